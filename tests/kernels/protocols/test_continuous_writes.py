"""Logs that are written to all the time: that states of one normal form go on alike, whichever of them it is."""

import itertools
import random
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, NamedTuple

import pytest

import quorisk
from quorisk.kernels.model import EVERYTHING, Action, Model, with_defaults
from quorisk.kernels.ops import bits, deposit
from quorisk.kernels.protocols import bookkeeper, kafka, kraft
from quorisk.kernels.protocols.bookkeeper import describe as bookkeeper_words
from quorisk.kernels.protocols.kafka import kip320
from quorisk.kernels.protocols.kafka import replication as kafka_replication
from quorisk.kernels.protocols.kafka.normal_form import normal_form as kafka_form
from quorisk.kernels.protocols.kraft import layout as kraft_layout
from quorisk.kernels.protocols.kraft import replication as kraft_replication
from quorisk.kernels.protocols.kraft.normal_form import normal_form as kraft_form


class Continuous(NamedTuple):
    """A protocol with continuous writes, its steps as they are before the state is brought to its normal form."""

    model: Model
    actions: tuple[Action, ...]
    normal_form: Callable[[Any, Any], Any]
    write: str
    room: Callable[[Any, Any], bool]
    """Whether there is room for another record."""
    told_apart: Callable[[Any], Any] = lambda state: state
    """The state without what keeps its records from being merged, for a moment."""
    taking: Callable[[Any, Any], Any] = lambda state, params: 0
    """Who is written to, of those where another record tells anything new."""


def without_normal_form(model: Model, *actions: Action) -> tuple[Action, ...]:
    named = {action.name: action for action in actions}
    return tuple(named.get(action.name, action) for action in model.actions)


def without_late_requests(state: Any) -> Any:
    """Without fetches from somebody who is, or may be, no longer the leader."""
    late = state.fetch_requests & ~state.fetchers
    for f in range(6):
        leader = state.fetch_requests >> 6 * f & state.fetchers >> 6 * f & 63
        place = kraft_layout.place_of(f, leader.bit_length() - 1)
        if leader and state.fetch_heads[f] >> 12 * place & 15 != state.local.leader_epochs >> 6 * f & 63:
            late |= leader << 6 * f
    return state._replace(fetch_requests=state.fetch_requests & ~late)


def all_the_time(state: Any, params: Any) -> tuple[Any, ...]:
    """The writes of any leader, whatever others have and whether anything may be lost, so that all kinds of logs are
    met; else the model's."""
    busy = state.sent == params.values
    return (kraft_replication.writable(state, params, 0 if busy else state.leaders & state.running),)


def kraft_writes() -> Continuous:
    own = (kraft_replication.receive_fetch_response, kraft_replication.write_record_to_leader)
    actions = without_normal_form(kraft.MODEL, own[0], own[1]._replace(enabled=all_the_time))
    room = lambda state, params: state.sent != params.values  # noqa: E731
    taking = kraft_replication.taking_writes
    return Continuous(kraft.MODEL, actions, kraft_form, "write_record_to_leader", room, without_late_requests, taking)


def kafka_writes() -> Continuous:
    own = kafka_replication.leader_write, kip320.fenced_leader_inc_high_watermark, kip320.fenced_follower_fetch
    room = lambda state, params: state.next_record < params.max_records  # noqa: E731
    return Continuous(kafka.MODEL, without_normal_form(kafka.MODEL, *own), kafka_form, "leader_write", room)


Steps = dict[tuple[str, int, int, Any], float]
"""By action, members of its subset, of these lost, and the state after it: the share of the action's rate."""


def steps(actions: tuple[Action, ...], state: Any, params: Any) -> Steps:
    found: Steps = defaultdict(float)
    for action in actions:
        instances = [64 * w + b for w, mask in enumerate(action.enabled(state, params)) for b in bits(mask)]
        group = (lambda i: 0) if action.shared == EVERYTHING else (lambda i, size=action.shared: i // size)
        sizes = Counter(group(i) for i in instances)
        for instance in instances:
            sent = action.sends(state, params, instance)
            for fates in range(1 << sent.bit_count()):
                after = action.apply(state, params, instance, deposit(fates, sent))
                found[action.name, sent.bit_count(), fates.bit_count(), after] += 1 / sizes[group(instance)]
    return found


def class_of(state: Any, writes: Continuous, params: Any) -> Any:
    """The normal form, in which records with those of other leaders between them may take several steps."""
    while (found := writes.normal_form(state, params)) != state:
        state = found
    return state


def lumped(found: Steps, writes: Continuous, params: Any, here: Any, skip: bool) -> Mapping[Any, Any]:
    """The steps by normal form, but for those that stay at one, which take no time from the others; of a loss no more
    than that, as it ends a run."""
    classes: dict[Any, float] = defaultdict(float)
    for (name, sent, lost, after), share in found.items():
        is_lost = not all(each.holds(after, params) for each in writes.model.invariants if each.data_loss)
        if not (skip and name == writes.write):
            to = "lost" if is_lost else class_of(writes.told_apart(after), writes, params)
            classes[name, sent, lost, to] += share
    stays = class_of(writes.told_apart(here), writes, params)
    return {key: pytest.approx(share) for key, share in classes.items() if key[-1] != stays}


def walk(writes: Continuous, params: Any, seed: int):
    """States without end, of runs that begin again where they end. Faults are rare, or logs stay short."""
    chance = random.Random(seed)
    rare = {each.name for each in writes.actions if each.fault or each.name.startswith("controller")}
    while True:
        state, seen = writes.model.initial(params, 0), 0
        while seen < 60 and all(each.holds(state, params) for each in writes.model.invariants if each.data_loss):
            yield state
            after = list(steps(writes.actions, state, params))
            if not after:
                break
            weights = [0.05 if name in rare else 1.0 for name, *_ in after]
            state, seen = chance.choices(after, weights)[0][-1], seen + 1


def check_lumping(writes: Continuous, params: Any, num_states: int, ignored: tuple[str, ...] = ()) -> tuple[int, int]:
    """Returns how many states and how many classes were seen; fails if what comes next differs within a class."""
    seen: dict[Any, Any] = {}
    for state in islice(walk(writes, params, 1), num_states):
        here = class_of(state, writes, params)
        for invariant in writes.model.invariants:
            if invariant.name not in ignored and not invariant.room:  # a class needs less of it
                assert bool(invariant.holds(state, params)) == bool(invariant.holds(here, params)), invariant.name
        assert writes.taking(state, params) == writes.taking(here, params)
        full = not writes.room(state, params)
        mine, stand_in = (steps(writes.actions, each, params) for each in (state, here))
        assert lumped(mine, writes, params, here, full) == lumped(stand_in, writes, params, here, full)
        seen[state] = here
    return len(seen), len(set(seen.values()))


def params_of(model: Model, **given: Any) -> Any:
    return model.make_params(with_defaults(model, {"continuous_writes": True, **given}))


KRAFT = {
    "two leaders": {"max_clean_shutdowns": 1, "max_fencings": 1, "acks": "1", "unclean_leader_election": True},
    "page cache": {"max_tail_losses": 1, "flush_every_message": False},
    "lost disk": {"max_lossy_shutdowns": 1, "version": "v3_5", "brokers": 3, "replication_factor": 3},
    "as specified": {"max_fencings": 1, "semantics": "specification", "brokers": 3, "replication_factor": 3},
    "stalls and isolation": {"max_stalls": 1, "max_isolations": 1, "acks": "1", "brokers": 3, "replication_factor": 3},
    "reassigned": {"max_reassignments": 1, "max_clean_shutdowns": 1, "brokers": 3},
}


@pytest.mark.parametrize("given", KRAFT.values(), ids=list(KRAFT))
def test_kraft_states_of_one_normal_form_go_on_alike(given):
    writes = kraft_writes()
    params = params_of(writes.model, **{"brokers": 2, "replication_factor": 2, "min_isr": 1, "values": 6, **given})
    # once nothing may lose power any more, what is on disk is forgotten
    states, classes = check_lumping(writes, params, 150, ("AckedRecordsAreOnDisk",))
    assert classes < states


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "given",
    [{"max_rolls": 1, "gated_rolls": False, "max_clean_shutdowns": 2}, {"max_clean_shutdowns": 3, "max_fencings": 2}],
    ids=["rolls", "fencings"],
)
def test_a_late_fetch_from_a_broker_that_is_down_is_refused_whatever_it_says(given):
    """So that no record is told apart for its sake."""
    writes, chance, refused = kraft_writes(), random.Random(1), 0
    params = params_of(writes.model, **{"brokers": 3, "replication_factor": 3, "min_isr": 1, "values": 6, **given})
    for _ in range(200):
        state, late = writes.model.initial(params, 0), set[int]()
        for _ in range(200):
            masks = [(each, each.enabled(state, params)) for each in writes.actions]
            enabled = [(each, 64 * w + b) for each, mask in masks for w, word in enumerate(mask) for b in bits(word)]
            if not enabled:
                break
            weights = [
                0.1 if each.fault or each.name in ("broker_start", "roll_restarts") else 1.0 for each, _ in enabled
            ]
            action, instance = chance.choices(enabled, weights)[0]
            after = action.apply(state, params, instance, 0)
            if action.name == "receive_fetch_request" and instance in late:
                assert (after.logs, after.hwms, after.peers) == (state.logs, state.hwms, state.peers)
                refused += 1
            running = state.running * kraft_layout.EVERY_BROKER
            kept = without_late_requests(after).fetch_requests
            late = {i for i in bits(after.fetch_requests & ~kept) if i in late or not running >> i & 1}
            state = after
    assert refused > 20


PEACE = [
    ("follower_stalls", {"max_stalls": 1, "max_clean_shutdowns": 1, "unclean_leader_election": True}),
    ("no_data_loss_unclean_shutdown", {"max_lossy_shutdowns": 1, "max_clean_shutdowns": 1, "version": "v3_5"}),
    ("fence_broker", {"max_tail_losses": 1, "max_fencings": 1, "flush_every_message": False}),
    ("roll_begins", {"max_zone_outages": 1, "max_rolls": 1, "zones": 3, "flush_every_message": False}),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("first", "given"), PEACE, ids=[first for first, _ in PEACE])
def test_one_more_fault_at_peace_takes_nothing(first, given):
    """Though the brokers are written to all the time, which the model does no more once they are at peace."""
    writes, chance = kraft_writes(), random.Random(1)
    params = params_of(
        writes.model,
        **{"brokers": 3, "replication_factor": 3, "min_isr": 1, "values": 6, "gated_rolls": False, **given},
    )
    last = 0
    for _ in range(20):
        state, faults, at_peace = writes.model.initial(params, 0), 0, False
        for _ in range(150):
            masks = [(each, each.enabled(state, params)) for each in writes.actions]
            enabled = [(each, 64 * w + b) for each, mask in masks for w, word in enumerate(mask) for b in bits(word)]
            if not enabled:
                break
            fault = 0.1 if at_peace else 0.0
            weights = [(fault if faults else each.name == first) if each.fault else 1.0 for each, _ in enabled]
            action, instance = chance.choices(enabled, weights)[0]
            sent = action.sends(state, params, instance)
            after = action.apply(state, params, instance, deposit(chance.getrandbits(6), sent))
            state = class_of(after, writes, params)
            faults += bool(action.fault)
            last += at_peace and bool(action.fault)
            at_peace |= bool(kraft_replication.at_peace(state, params))
            if not all(each.holds(state, params) for each in writes.model.invariants if each.data_loss):
                assert not at_peace
                break
    assert last > 5


@pytest.mark.parametrize(
    "given", [{}, {"flush_every_message": False, "max_unclean_restarts": 3}], ids=["", "page cache"]
)
@pytest.mark.parametrize("replicas", [2, 3])
def test_kafka_states_of_one_normal_form_go_on_alike(replicas, given):
    writes, sizes = kafka_writes(), {"replicas": replicas, "log_size": 6, "max_records": 6, "max_leader_epoch": 4}
    states, classes = check_lumping(writes, params_of(writes.model, **sizes, **given), 400)
    assert classes < states


def alike_entries_as_one(state: Any, params: Any) -> tuple[Any, ...]:
    """A ledger before anybody recovers it, as `continuous_writes` would have it: of neighbours that the same bookies
    have, that are on their way to and from the same ones, and that lie on the same side of every LAC, there is one."""
    spec = bookkeeper_words.spec_state(state, params)
    (writer,), told = spec.clients, []
    for e in range(1, writer.lap + 1):
        holders = [b for b, entries in enumerate(spec.b_entries) if e in {entry.id for entry in entries}]
        about = {(m.type, m.bookie, m.success, count) for m, count in spec.messages if m.entry.id == e}
        below = [e <= lac for lac in (writer.lac, *spec.b_lac)]
        told.append((*holders, *sorted(writer.confirmed[e - 1]), *below, frozenset(about)))
    return (writer.status, spec.meta_status, *(entry for entry, _ in itertools.groupby(told)))


@pytest.mark.parametrize("entries", [2, pytest.param(3, marks=pytest.mark.exhaustive)])
def test_alike_entries_of_bookkeeper_go_on_unlike(entries):
    """Why BookKeeper has no `continuous_writes` (docs/concepts.md): a bookie takes requests one by one. One entry on
    its way to a bookie, and two on their way, would be one state. The next step takes the one to the state in which the
    bookie has all that was sent, and the two never."""
    sizes = {"bookies": 2, "clients": 1, "write_quorum": 2, "ack_quorum": 2, "entries": entries, "inflight": entries}
    params = bookkeeper.MODEL.make_params(with_defaults(bookkeeper.MODEL, sizes))
    states, stores = [bookkeeper.MODEL.initial(params, 0)], dict[Any, dict[Any, float]]()
    seen = set(states)
    for state in states:  # which grows
        rates: dict[Any, float] = defaultdict(float)
        for (name, _, lost, after), share in steps(bookkeeper.MODEL.actions, state, params).items():
            if not lost and name == "bookie_sends_add_confirmed_response":
                rates[alike_entries_as_one(after, params)] += share
            if not lost and after not in seen:
                seen.add(after)
                states.append(after)
        stores[state] = rates
    classes = defaultdict(list)
    for state in states:
        classes[alike_entries_as_one(state, params)].append(state)
    unlike = [each for each in classes.values() if any(stores[state] != stores[each[0]] for state in each)]
    sent = [state for state in states if state.writer.requests.sent == state.writer.requests.on_way != 0]
    one, two = (next(state for state in sent if state.writer.lap == lap) for lap in (1, 2))
    assert any(one in each and two in each for each in unlike)
    assert set(stores[one].values()) == {1.0}
    assert not stores[one].keys() & stores[two].keys()
    assert len(unlike) < len(classes)


def test_of_ever_more_records_classes_reach_the_limit_first(tmp_path):
    """Room for one record is the same for one record and one class. More records are more likely to lose any; classes,
    of which each may be any number of records, need room for few until more of it changes nothing: where room runs out,
    a flush is forgotten, and flushes merge what they make alike, though nothing can be written."""

    def p(room: int, continuous: bool) -> float:
        file = tmp_path / "kafka.toml"
        file.write_text(KAFKA.format(room=room, continuous=str(continuous).lower()))
        return quorisk.exact(file).data_loss.p

    records, classes = [p(room, False) for room in (1, 2, 3)], [p(room, True) for room in (1, 2, 3, 4)]
    assert classes[0] == pytest.approx(records[0], rel=1e-12)
    assert records == sorted(records)
    assert all(few < many for few, many in zip(records[1:], classes[1:], strict=False))
    more = [b - a for a, b in itertools.pairwise(classes)]
    assert 0.0 < more[2] < more[1] / 4 < more[0] / 4
    assert classes[2:] == pytest.approx([LIMIT, LIMIT], rel=2e-4)


@pytest.mark.exhaustive
def test_what_makes_records_alike_makes_room_though_nothing_can_be_written():
    """Room for three kinds of records, of five replicas: 0.171 of the runs lost anything where only writes, fetches and
    high watermarks merged records, and 0.305 do by another program, which has room for all."""
    file = tomllib.loads(KAFKA.format(room=3, continuous="true"))
    file["model"] |= {"replicas": 5, "max_leader_epoch": 5}
    file["faults"] = {"max_outages": 1}
    file["rates"] |= {
        "leader_write": 10,
        "fenced_follower_fetch": 2,
        "replica_flushes": 0.5,
        "cluster_loses_power": 0.1,
    }
    file["rates"] |= {"controller_shrink_isr": 0, "controller_elect_leader": 0.3, "fenced_leader_shrink_isr": 2}
    file["rates"] |= {"fenced_leader_expand_isr": 2, "fenced_become_follower_and_truncate": 2}
    file["run"] = {"lifetime": 60, "runs": 20_000, "max_steps": 2_000_000}
    assert 0.172 < quorisk.estimate(file).data_loss.low < 0.305


LIMIT = 0.0059388
"""With room for 4 to 6 classes: 6 take minutes."""
KAFKA = """
protocol = "kafka"
[model]
replicas = 2
log_size = {room}
max_records = {room}
max_leader_epoch = 2
continuous_writes = {continuous}
[variant]
flush_every_message = false
[faults]
max_unclean_restarts = 1
[rates]
leader_write = 1
fenced_follower_fetch = 20
fenced_leader_inc_high_watermark = 20
replica_flushes = 0.2
replica_restarts_unclean = 0.1
controller_shrink_isr = 0.05
controller_elect_leader = 0.5
become_leader = 5
fenced_become_follower_and_truncate = 5
[run]
lifetime = 100
"""


def test_one_in_eleven_crashes_of_leaders_loses_a_record_with_acks_1(written):
    """A record every 10 ms and 1 ms until the next leader has all that there is: 1 ms of 11 there is one that it lacks.
    Half of the crashes are the leader's. Of a single record it is the chance that its copy loses a race against the
    next crash with one of the same rate as the next record. A tenth of a record is on its way on average, and 1.1 where
    any is."""
    file = written("acks.toml", ACKS_1)
    found = quorisk.estimate(file)
    assert found.data_loss.low < 1 / 22 < found.data_loss.high
    assert found.amount is not None
    assert found.amount.low < 1.1 < found.amount.high
    assert found.expected_records == pytest.approx(0.05, rel=0.15)
    solved = quorisk.exact(file)
    assert solved.data_loss.p == pytest.approx(1 / 22, rel=0.02)
    assert solved.amount == found.amount
    assert solved.expected_records == pytest.approx(0.05, rel=0.06)


def test_a_year_has_the_records_that_each_of_its_scenarios_loses():
    """1,000 crashes a year lose 50 of the records above, of which there is one in 10 s; without crashes none is lost.
    What is lost is the same time at any rate of writes."""
    document = tomllib.loads(ACKS_1)
    document["rates"] = {name: f"{rate} / s" for name, rate in document["rates"].items()}
    crashes = {"per_year": 100, "hits": 10, "about": "a broker crashes"}
    document["scenarios"] = {"crashes": crashes, "none": crashes | {"faults": {"max_clean_shutdowns": 0}}}
    found = quorisk.year(document, solve=True).found.scenarios
    assert found["crashes"]["writing_s_per_year"] == pytest.approx(50.0 * 10, rel=0.06)
    assert found["crashes"]["amount"].runs == 50
    assert "amount" not in found["none"]
    document["rates"]["write_record_to_leader"] = "0.2 / s"
    del document["scenarios"]["none"]
    found = quorisk.year(document, solve=True).found.scenarios
    assert found["crashes"]["writing_s_per_year"] == pytest.approx(50.0 * 10, rel=0.12)


ACKS_1 = """
protocol = "kraft"
[model]
brokers = 2
replication_factor = 2
min_isr = 1
values = 6
continuous_writes = true
[variant]
acks = "1"
[faults]
max_clean_shutdowns = 1
[rates]
write_record_to_leader = 0.1
send_fetch_request = 1
receive_fetch_request = 1000
receive_fetch_response = 1000
no_data_loss_unclean_shutdown = 0.01
no_data_loss_shutdown = 0
broker_start = 1
receive_broker_reg_response = 10
receive_metadata_update = 10
send_alter_partition_request = 10
receive_alter_partition_response = 10
receive_alter_partition_request = 10
receive_broker_reg_request = 10
unfence_broker = 10
[run]
runs = 20000
seed = 1
"""
