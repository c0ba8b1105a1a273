"""The story of a partition, in words: brokers are b1, b2, ..., records A, B, ..., the controller leads nothing.

Messages of a step follow from the difference between two states of the spec's `messages`. Notes over the leader tell
what producers and consumers see; offsets count from 1, as in the spec.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from quorisk.kernels.protocols.kraft import layout
from quorisk.kernels.protocols.kraft.describe import spec_state
from quorisk.kernels.protocols.kraft.invariants import INVARIANTS
from quorisk.kernels.protocols.kraft.spec import (
    LEADER,
    OFFLINE_CLEAN,
    OFFLINE_DIRTY,
    RUNNING,
    AlterRequest,
    AlterResponse,
    FetchRequest,
    FetchResponse,
    PartitionMetadata,
    Record,
    RegisterRequest,
    RegisterResponse,
    SpecState,
)
from quorisk.kernels.protocols.kraft.spec import Message as Sent
from quorisk.kernels.protocols.rows import WIDTH
from quorisk.kernels.telling import Message, Note, Told, listed, members, words_beside

CONTROLLER = "controller"
WORDS = words_beside(__file__)["steps"]
"""Sentences on steps by action, with fields in braces."""
_SHUTDOWNS = (
    *("data_loss_shutdown", "no_data_loss_shutdown", "no_data_loss_unclean_shutdown", "tail_loss_shutdown"),
    *("cluster_loses_power", "zone_loses_power", "roll_restarts"),
)
_WITHOUT_MESSAGES = ("follower_stalls", "follower_resumes", "leader_is_isolated", "isolation_ends")
"""Actions that befall one broker, and by which it neither sends nor receives anything."""
_OFFLINE = (OFFLINE_CLEAN, OFFLINE_DIRTY)
_LOSSES = ("NoCommittedRecordLostGlobally", "LeaderCompletenessProperty", "ConsistentReadProperty")
_ONE_BROKER = (
    *("broker_start", "receive_alter_partition_response", "unfence_broker", "broker_flushes", "restart_ends"),
    *_WITHOUT_MESSAGES,
)


def participants(params: Any) -> tuple[str, ...]:
    """The controller and the brokers."""
    return (CONTROLLER, *(_broker(b + 1) for b in range(params.brokers)))


def tell(state: layout.State, params: Any, action: str, instance: int, after: layout.State) -> Told:
    """The step from `state` to `after` that this action made."""
    before, then = spec_state(state, params), spec_state(after, params)
    fresh, gone = then.messages - before.messages, before.messages - then.messages
    # who goes down or is cut off drops its fetches unread
    handled = [] if action in (*_SHUTDOWNS, *_WITHOUT_MESSAGES) else sorted(gone, key=repr)
    sent = sorted(fresh, key=repr)
    broker = _acting(action, instance, handled)
    fields = {"broker": _broker(broker), "replicas": _brokers(_target(then)), "epoch": "", "isr": "", "answer": ""}
    down = went_down(before, then)
    fields |= {"down": listed(map(_broker, down)), "go": "goes" if len(down) == 1 else "go"}
    received = [_message(m) for m in handled]
    if action == "receive_metadata_update":
        record = _heard(before, then, broker)
        fields["epoch"] = str(record.partition_epoch)
        received.append(Message(CONTROLLER, _broker(broker), _record_of_change(record)))
    for m in (*handled, *sent):
        if isinstance(m, AlterRequest):
            fields["isr"] = _brokers(m.isr)
        if isinstance(m, FetchRequest):
            fields["leader"] = _broker(m.dest)
        if isinstance(m, FetchResponse):
            fields["leader"] = _broker(m.source)
        if isinstance(m, FetchResponse | AlterResponse):
            fields["answer"] = _label(m)
    words = WORDS[action].format(**fields)
    crashed = {m.source for m in handled if isinstance(m, RegisterRequest) and not m.broker_epoch}
    unclean = crashed if params.exclude_unclean_brokers else set()
    befallen = down if action in _SHUTDOWNS else [broker] if action in _WITHOUT_MESSAGES else []
    befell = [Note(tuple(map(_broker, befallen)), words)] if befallen else []
    return Told(
        words,
        received=tuple(received),
        sent=tuple(_message(m) for m in sent),
        notes=(*befell, *_notes(before, then, down, unclean)),
    )


def verdict(state: layout.State, params: Any, invariant: str) -> str:
    """Returns a sentence on how a state breaks an invariant."""
    s = spec_state(state, params)
    md, committed = s.con_partition_metadata, f"records up to offset {s.inv_true_hwm - 1} are committed"
    if invariant == "AckedRecordsSurvive":
        return verdict(state, params, _how_lost(state, params))
    if invariant == "LeaderCompletenessProperty":
        held = {record.value for record in s.partition_data[(md.leader or 1) - 1].log}
        lost = s.inv_pos_acked - held
        lacks = f"lacks {_acknowledged(lost)}" if lost else f"ends before that: {committed}"
        return f"{_broker(md.leader)}, elected in leader epoch {md.leader_epoch}, {lacks}."
    if invariant == "NoCommittedRecordLostGlobally":
        held = {record.value for data in s.partition_data for record in data.log}
        lost = s.inv_pos_acked - held
        return f"{_acknowledged(lost)}, {'is' if len(lost) == 1 else 'are'} in no broker's log."
    if invariant == "LeaderCandidateCompletenessProperty":
        short = [b for b in sorted(md.isr | md.elr) if s.partition_data[b - 1].leo < s.inv_true_hwm]
        return f"{committed.capitalize()}, but {_brokers(short)}, of ISR and ELR, ends before."
    if invariant == "ReplicationQuorumSupersetProperty":
        leader = next(b for b, status in enumerate(s.partition_status, 1) if status == LEADER)
        own = s.partition_metadata[leader - 1]
        return (
            f"{_broker(leader)} commits with {_brokers(own.maximal_isr)}, its ISR is {_brokers(own.isr)}; "
            f"the controller may elect from ISR {_brokers(md.isr)} and ELR {_brokers(md.elr)}."
        )
    if invariant == "ConsistentReadProperty":
        return f"Consumers read {_log(s.inv_consumed)}, which the log of {_broker(md.leader)}, now leading, has not."
    if invariant == "LogMatchingProperty":
        logs = (f"{_broker(b)}: {_log(d.log[: d.hwm - 1])}" for b, d in enumerate(s.partition_data, 1))
        return f"Below their high watermarks logs differ: {', '.join(logs)}."
    if invariant == "AckedRecordsAreOnDisk":
        flushed = {r.value for b, data in enumerate(s.partition_data) for r in data.log[: s.partition_flushed[b] - 1]}
        cached = s.inv_pos_acked - flushed
        return f"{_acknowledged(cached)}, {'is' if len(cached) == 1 else 'are'} on no broker's disk."
    if invariant == "ProducersHaveRoom":
        return f"All {len(s.inv_sent)} records that are told apart are in use, so producers wait."
    return f"ISR and ELR are empty, and the last known ELR is {_brokers(md.last_known_elr)}."


def _how_lost(state: layout.State, params: Any) -> str:
    """The specification's property that says best how an acknowledged record is gone."""
    broken = [each.name for each in INVARIANTS if each.name in _LOSSES and not each.holds(state, params)]
    return min(broken, key=_LOSSES.index, default="LeaderCompletenessProperty")


variables = spec_state
"""The spec's variables."""


def _acting(action: str, instance: int, handled: list[Sent]) -> int:
    """The broker that a step is about."""
    place = instance % 64
    if action == "receive_alter_partition_request":
        return next(m.source for m in handled if isinstance(m, AlterRequest))
    if action == "leader_shrink_isr":
        return place // 32 + 2 * (instance // 64) + 1
    if action in _ONE_BROKER:
        return instance + 1
    if action in ("receive_metadata_update", "receive_broker_reg_request", "receive_broker_reg_response"):
        return place % WIDTH + 1
    return place // WIDTH + 1


def _target(s: SpecState) -> frozenset[int]:
    return s.con_partition_metadata.replicas - s.con_partition_metadata.removing


def _heard(before: SpecState, then: SpecState, broker: int) -> PartitionMetadata:
    """The last record that a broker has appended to its metadata log."""
    log = then.broker_metadata_log[broker - 1]
    assert len(log) > len(before.broker_metadata_log[broker - 1])
    return log[-1]


def value_name(value: int) -> str:
    """The name of a record: A, B, ..."""
    return chr(ord("A") + value)


def _broker(b: int | None) -> str:
    return f"b{b}" if b else "nobody"


def _brokers(brokers: Iterable[int]) -> str:
    return members(map(_broker, sorted(brokers)))


def _acknowledged(values: Iterable[int]) -> str:
    names = list(map(value_name, sorted(values)))
    return f"{listed(names)}, which {'was' if len(names) == 1 else 'were'} acknowledged"


def _log(records: Iterable[Record]) -> str:
    return "[" + ", ".join(f"{value_name(r.value)} (epoch {r.epoch})" for r in records) + "]"


def _record_of_change(md: PartitionMetadata) -> str:
    elr = f", ELR {_brokers(md.elr)}" if md.elr else ""
    last = f", last known ELR {_brokers(md.last_known_elr)}" if md.last_known_elr else ""
    return f"partition epoch {md.partition_epoch}: {_broker(md.leader)} leads, ISR {_brokers(md.isr)}{elr}{last}"


def _message(m: Sent) -> Message:
    to_controller, from_controller = (RegisterRequest, AlterRequest), (RegisterResponse, AlterResponse)
    sender = CONTROLLER if isinstance(m, from_controller) else _broker(m.source)
    receiver = CONTROLLER if isinstance(m, to_controller) else _broker(m.dest)
    return Message(sender, receiver, _label(m))


def _label(m: Sent) -> str:
    match m:
        case RegisterRequest():
            return f"register, last broker epoch {m.broker_epoch}" if m.broker_epoch else "register, no broker epoch"
        case RegisterResponse():
            return f"registered, broker epoch {m.broker_epoch}"
        case AlterRequest():
            return f"ISR {_brokers(m.isr)} in partition epoch {m.partition_epoch}"
        case AlterResponse(error=None):
            return f"ISR {_brokers(m.isr)} since partition epoch {m.partition_epoch}"
        case AlterResponse():
            return f"refused in partition epoch {m.request.partition_epoch}: {m.error}"
        case FetchRequest():
            return f"fetch from offset {m.fetch_offset}, leader epoch {m.leader_epoch}"
    if m.error:
        return str(m.error)
    if m.diverging_epoch:
        return f"diverged: epoch {m.diverging_epoch.epoch} ends at {m.diverging_epoch.offset}"
    records = f"{value_name(m.records[0].value)} at offset {m.fetch_offset}" if m.records else "nothing new"
    return f"{records}, hw {m.hwm}"


def went_down(before: SpecState, then: SpecState) -> list[int]:
    """The brokers that a step takes down."""
    changed = enumerate(zip(before.broker_state, then.broker_state, strict=True), 1)
    return [b for b, (was, now) in changed if now.status in _OFFLINE and was.status not in _OFFLINE]


def _notes(before: SpecState, then: SpecState, down: list[int], unclean: set[int]) -> Iterator[Note]:
    """Yields notes over brokers that went down, then over the controller, then over the others. `unclean`: brokers that
    are registered after an unclean shutdown, and so are no candidates."""
    yield from _of_brokers(before, then, down)
    for verb, brokers in (
        ("fences", before.con_unfenced - then.con_unfenced),
        ("unfences", then.con_unfenced - before.con_unfenced),
    ):
        if brokers:
            yield Note((CONTROLLER,), f"{verb} {listed(map(_broker, sorted(brokers)))}")
    if then.con_partition_metadata != before.con_partition_metadata:
        for text in _elected(before.con_partition_metadata, then.con_partition_metadata, unclean):
            yield Note((CONTROLLER,), text)
        yield Note((CONTROLLER,), _record_of_change(then.con_partition_metadata))
    yield from _of_brokers(before, then, [b for b in range(1, len(then.partition_data) + 1) if b not in down])


def _elected(was: PartitionMetadata, now: PartitionMetadata, unclean: set[int]) -> Iterator[str]:
    """Yields the brokers that are eligible no longer, and a leader elected though neither in sync nor eligible."""
    leaving = sorted(was.elr & unclean)
    if leaving:
        yield f"{listed(map(_broker, leaving))} leaves the ELR after an unclean shutdown"
    reassigned = (was.adding, was.removing) != (now.adding, now.removing)
    if now.leader not in (None, was.leader, *(was.isr | was.elr) - unclean) and not reassigned:
        how = "as last known leader" if now.leader in was.last_known_elr else "uncleanly, as nobody else can lead"
        yield f"elects {_broker(now.leader)} {how}"


def _of_brokers(before: SpecState, then: SpecState, brokers: Iterable[int]) -> Iterator[Note]:
    acknowledged = then.inv_pos_acked - before.inv_pos_acked
    refused = then.inv_neg_acked - before.inv_neg_acked
    for b in brokers:
        news = list(_news(before, then, b))
        own = {r.value for data in (before.partition_data, then.partition_data) for r in data[b - 1].log}
        if before.aux_flo[b - 1] != then.aux_flo[b - 1] or then.partition_status[b - 1] == LEADER:
            news += [f"acknowledges {value_name(v)}" for v in sorted(acknowledged & own)]
            no = "refuses {}" if then.broker_state[b - 1].status not in _OFFLINE else "leaves {} without an answer"
            news += [no.format(value_name(v)) for v in sorted(refused & own)]
        yield from (Note((_broker(b),), text) for text in news)


def _how_dropped(before: SpecState, then: SpecState, b: int) -> str:
    """Truncated, not on disk when the power went, or gone with the log."""
    was, now = before.partition_data[b - 1], then.partition_data[b - 1]
    dropped = listed(value_name(r.value) for r in was.log[now.leo - 1 :])
    if then.broker_state[b - 1].status not in _OFFLINE:
        return f"drops {dropped}"
    flushed = before.partition_flushed[b - 1]
    return f"loses {dropped}" + (", not yet on disk" if now.leo >= flushed else " with its disk")


def _news(before: SpecState, then: SpecState, b: int) -> Iterator[str]:
    """Yields the changes of a broker."""
    was, now = before.partition_data[b - 1], then.partition_data[b - 1]
    status, (led, leads) = then.broker_state[b - 1].status, (s.con_partition_metadata.leader for s in (before, then))
    if status != before.broker_state[b - 1].status and status not in _OFFLINE:
        yield "is running" if status == RUNNING else "starts"
    if then.partition_status[b - 1] != before.partition_status[b - 1]:
        epoch, leader = then.partition_metadata[b - 1].leader_epoch, then.partition_metadata[b - 1].leader
        role = then.partition_status[b - 1]
        follows = f"follows {_broker(leader)}" if role and leader else "has no leader"
        if status not in _OFFLINE:
            yield f"leads in leader epoch {epoch}" if role == LEADER else follows
    elif then.partition_status[b - 1] == LEADER and led == b != leads:
        yield "still believes it leads"
    if len(now.log) < len(was.log):
        yield _how_dropped(before, then, b) + (f": its log ends at offset {now.leo - 1}" if now.log else "")
    if len(now.log) > len(was.log):
        yield f"{value_name(now.log[-1].value)} at offset {was.leo}, epoch {now.log[-1].epoch}"
    if then.partition_flushed[b - 1] > before.partition_flushed[b - 1] and now.log == was.log:
        yield f"on disk up to offset {then.partition_flushed[b - 1] - 1}"
    if now.hwm > was.hwm and then.partition_status[b - 1] == LEADER:
        committed = ", ".join(value_name(r.value) for r in now.log[was.hwm - 1 : now.hwm - 1])
        yield f"high watermark {now.hwm}: {committed} committed"
