"""The story of a partition, in words: replicas are r1, r2, ..., records m0, m1, ..., the controller c.

A LeaderAndIsr request is drawn where a replica acts on it, which may be long after it was made; fetching is one step.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from quorisk.kernels.protocols.kafka import layout
from quorisk.kernels.protocols.kafka.describe import NIL, Record, SpecState, spec_state
from quorisk.kernels.protocols.rows import WIDTH, row
from quorisk.kernels.telling import Message, Note, Told, members, words_beside

CONTROLLER = "controller"
WORDS = words_beside(__file__)["steps"]
"""Sentences on steps by action, with fields in braces."""


def participants(params: Any) -> tuple[str, ...]:
    """The controller and the replicas."""
    return (CONTROLLER, *map(_replica, range(params.replicas)))


def tell(state: layout.State, params: Any, action: str, instance: int, after: layout.State) -> Told:
    """The step from `state` to `after` that this action made."""
    before, then = spec_state(state, params), spec_state(after, params)
    quorum = then.quorumState
    told = f"epoch {quorum.leaderEpoch}: leader {_replica(quorum.leader)}, ISR {_replicas(quorum.isr)}"
    if action in _OF_DISKS:
        noticed = [Note((CONTROLLER,), told)] if quorum != before.quorumState else []
        touched = _touched(params, action, instance)
        notes = [Note((_replica(r),), _OF_DISKS[action](before, then, r)) for r in touched]
        return Told(WORDS[action].format(replica=_replicas(touched)), notes=(*notes, *noticed))
    if action.startswith("controller"):
        return Told(WORDS[action].format(member=_replica(instance)), notes=(Note((CONTROLLER,), told),))
    if quorum.isr != before.quorumState.isr:
        leader, isr = _replica(quorum.leader), _replicas(quorum.isr)
        words = WORDS[action].format(leader=leader, member=_replica(instance))
        return Told(words, received=(Message(leader, CONTROLLER, f"ISR {isr}"),))
    replica = instance // WIDTH if action.startswith(("become", "fenced_become")) else instance
    now = then.replicaState[replica]
    record = _record_of(before, then, replica)
    fields = {"replica": _replica(replica), "leader": _replica(now.leader), "epoch": str(now.leaderEpoch)}
    return Told(
        WORDS[action].format(record=record and _record(record), **fields),
        received=(*_received(before, then, replica), *_asked(action, before, then, replica)),
        notes=tuple(Note((_replica(replica),), text) for text in _news(before, then, replica)),
    )


def verdict(state: layout.State, params: Any, invariant: str) -> str:
    """Returns a sentence on how a state breaks an invariant."""
    spec = spec_state(state, params)
    if invariant == "LeaderInIsr":
        return f"{_replica(spec.quorumState.leader)} leads, but is not in the ISR {_replicas(spec.quorumState.isr)}."
    if invariant == "CommittedRecordsSurvive":
        leader = spec.quorumState.leader
        committed = state.committed | layout.exposed(state)
        held = {record.id for record in spec.replicaLog[leader]}
        lost = members(f"m{i}" for i in range(spec.nextRecordId) if committed >> i & 1 and i not in held)
        kept = _log(spec.replicaLog[leader]) if held else "it is empty"
        return f"{lost}, committed before, is not in the log of {_replica(leader)}, which leads: {kept}."
    strong = invariant == "StrongIsr"
    leader, replica, record = next(_exposed_gaps(spec, strong))
    whose = "the" if strong else "its"
    isr = spec.quorumState.isr if strong else spec.replicaState[leader].isr
    return (
        f"{_record(record)} is below the high watermark of {_replica(leader)}, which presumes to lead, but "
        f"{_replica(replica)}, in {whose} ISR {_replicas(isr)}, lacks it."
    )


variables = spec_state
"""The spec's variables."""


def _replica(replica: int) -> str:
    return "none" if replica == NIL else f"r{replica + 1}"


def _replicas(replicas: Iterable[int]) -> str:
    return members(map(_replica, sorted(replicas)))


def _record(record: Record) -> str:
    return f"m{record.id}"


def _log(log: Iterable[Record]) -> str:
    return "[" + ", ".join(f"{_record(record)} (epoch {record.epoch})" for record in log) + "]"


def _record_of(before: SpecState, then: SpecState, replica: int) -> Record | None:
    """The record that a step adds to a log, or else moves below the high watermark."""
    log = then.replicaLog[replica]
    if len(log) > len(before.replicaLog[replica]):
        return log[-1]
    old_hw, new_hw = before.replicaState[replica].hw, then.replicaState[replica].hw
    return log[old_hw] if new_hw > old_hw else None


def _received(before: SpecState, then: SpecState, replica: int) -> Iterator[Message]:
    """A request acted on, or a record fetched."""
    was, now, log = before.replicaState[replica], then.replicaState[replica], then.replicaLog[replica]
    if now.leaderEpoch != was.leaderEpoch:
        role = "lead" if now.leader == replica else f"follow {_replica(now.leader)}"
        yield Message(CONTROLLER, _replica(replica), f"epoch {now.leaderEpoch}: {role}")
    elif len(log) > len(before.replicaLog[replica]) and now.leader != replica:
        yield Message(_replica(now.leader), _replica(replica), f"{_record(log[-1])}, hw {now.hw}")


def _asked(action: str, before: SpecState, then: SpecState, replica: int) -> Iterator[Message]:
    """The OffsetsForLeaderEpoch exchange of KIP-101: one step of the specification, and the cause of its defect."""
    log, leader = before.replicaLog[replica], then.replicaState[replica].leader
    if action != "become_follower_truncate_kip101" or not log:
        return
    epoch, end = log[-1].epoch, _epoch_end(before.replicaLog[leader], log[-1].epoch)
    yield Message(_replica(replica), _replica(leader), f"OffsetsForLeaderEpoch: epoch {epoch}")
    answer = "an epoch unknown to me" if end is None else f"epoch {epoch} ends at offset {end}"
    yield Message(_replica(leader), _replica(replica), answer)


def _epoch_end(log: Sequence[Record], epoch: int) -> int | None:
    """LookupOffsetForEpoch: where an epoch ends in a log; None if neither it nor a later one is there."""
    if log and log[-1].epoch == epoch:
        return len(log)
    return next((offset for offset, record in enumerate(log) if record.epoch > epoch), None)


def _news(before: SpecState, then: SpecState, replica: int) -> Iterator[str]:
    """Yields the changes of a replica's log and high watermark."""
    was, now = before.replicaState[replica], then.replicaState[replica]
    old, log = before.replicaLog[replica], then.replicaLog[replica]
    if len(log) < len(old):
        gone = ", ".join(map(_record, old[len(log) :]))
        yield f"truncates to offset {len(log)}: {gone} dropped"
    if len(log) > len(old) and now.leader == replica:
        yield f"{_record(log[-1])} at offset {len(log) - 1}, epoch {now.leaderEpoch}"
    if now.hw > was.hw and now.leader == replica:
        yield f"high watermark {now.hw}: {_record(log[now.hw - 1])} committed"


def _dropped(before: SpecState, then: SpecState, replica: int) -> str:
    gone = before.replicaLog[replica][len(then.replicaLog[replica]) :]
    return f"{', '.join(map(_record, gone)) or 'nothing'} dropped"


def _on_disk(before: SpecState, then: SpecState, replica: int) -> str:
    return f"{', '.join(map(_record, then.replicaLog[replica]))} on disk"


def _touched(params: Any, action: str, instance: int) -> list[int]:
    """The replicas that flush, or that restart."""
    if action == "zone_loses_power":
        zone = row(params.zones, instance // WIDTH)
        return [r for r in range(params.replicas) if zone >> r & 1]
    return list(range(params.replicas)) if action == "cluster_loses_power" else [instance]


_OF_DISKS = {
    "replica_flushes": _on_disk,
    **dict.fromkeys(("replica_restarts_unclean", "cluster_loses_power", "zone_loses_power"), _dropped),
}
"""Functions by action: the records that a replica has dropped, or has on disk."""


def _exposed_gaps(spec: SpecState, strong: bool) -> Iterator[tuple[int, int, Record]]:
    """Presumed leaders, members of the ISR and records below the high watermark that these lack."""
    for leader, own in enumerate(spec.replicaState):
        for replica in sorted(spec.quorumState.isr if strong else own.isr) if own.leader == leader else ():
            for offset, record in enumerate(spec.replicaLog[leader][: own.hw]):
                if spec.replicaLog[replica][offset : offset + 1] != (record,):
                    yield leader, replica, record
