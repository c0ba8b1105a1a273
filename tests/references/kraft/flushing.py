"""What of a broker's log is on disk, and how it loses the rest: written from tests/data/tla/FLUSH.md.

A state is the interpreter's own with a flush point for each broker beside it. Every action of the interpreter goes on
as it is; here stands what it leaves on the disks.
"""

from collections.abc import Iterator
from typing import NamedTuple

from quorisk.kernels.protocols.kraft.spec import OFFLINE_CLEAN, OFFLINE_DIRTY, PartitionData, SpecState
from tests.references.kraft.actions import ACTIONS
from tests.references.kraft.lifecycle import shut_down
from tests.references.kraft.properties import PROPERTIES
from tests.references.kraft.state import EMPTY, Values, brokers, initial, is_966, log_of, offline, put, subsets


class State(NamedTuple):
    """All but the disks, the flush points, and the faults so far."""

    spec: SpecState
    flushed: tuple[int, ...]  # the offset up to which a log is on disk, that one not included
    tail_losses: int = 0
    outages: int = 0


def first_state(v: Values) -> State:
    return State(initial(v), (1,) * v["brokers"])


def ends(spec: SpecState) -> tuple[int, ...]:
    return tuple(data.leo for data in spec.partition_data)


def logs_on_disk(s: State, after: SpecState, v: Values) -> State:
    """Truncation goes to disk at once, records once they are flushed."""
    end = ends(after)
    return s._replace(spec=after, flushed=end if v["flush_every_message"] else tuple(map(min, s.flushed, end)))


def published_actions(s: State, v: Values) -> Iterator[State]:
    for name, action in ACTIONS.items():
        if name != "no_data_loss_shutdown":
            for after in action(s.spec, v):
                yield logs_on_disk(s, after, v)


def no_data_loss_shutdown(s: State, v: Values) -> Iterator[State]:
    """A clean one flushes; in KIP-966's version a process may also die, whose page cache stays."""
    for b in brokers(v):
        count = s.spec.aux_ctrs.no_data_loss_shutdown_ctr
        if count >= v["max_clean_shutdowns"] or offline(s.spec, b):
            continue
        counters = s.spec.aux_ctrs._replace(no_data_loss_shutdown_ctr=count + 1)
        epoch = s.spec.broker_state[b - 1].broker_epoch if is_966(v) else 0
        for after in shut_down(s.spec, v, b, OFFLINE_CLEAN, epoch, counters):
            yield s._replace(spec=after, flushed=put(s.flushed, b, ends(after)[b - 1]))
        if is_966(v):
            for after in shut_down(s.spec, v, b, OFFLINE_CLEAN, 0, counters):
                yield s._replace(spec=after)


def broker_flushes(s: State, v: Values) -> Iterator[State]:
    for b in brokers(v):
        end = ends(s.spec)[b - 1]
        if s.flushed[b - 1] < end:
            yield s._replace(flushed=put(s.flushed, b, end))


def flushed_part(s: State, b: int) -> PartitionData:
    """A log after a power failure."""
    end = s.flushed[b - 1]
    return PartitionData(log_of(s.spec, b)[: end - 1], min(s.spec.partition_data[b - 1].hwm, end), end)


def with_log(s: State, spec: SpecState, b: int, data: PartitionData) -> State:
    return s._replace(
        spec=spec._replace(partition_data=put(spec.partition_data, b, data)), flushed=put(s.flushed, b, data.leo)
    )


def fails(s: State, v: Values, b: int, data: PartitionData) -> Iterator[State]:
    """A broker that was up goes down without a clean shutdown, with this log."""
    for after in shut_down(s.spec, v, b, OFFLINE_DIRTY, 0, s.spec.aux_ctrs):
        yield with_log(s, after._replace(partition_leso=put(after.partition_leso, b, None)), b, data)


def tail_loss_shutdown(s: State, v: Values) -> Iterator[State]:
    for b in brokers(v):
        last_standing = s.spec.con_partition_metadata.isr == {b}
        spared = not is_966(v) and v["avoid_last_replica_standing"] and last_standing
        if s.tail_losses < v["max_tail_losses"] and not offline(s.spec, b) and not spared:
            yield from fails(s._replace(tail_losses=s.tail_losses + 1), v, b, flushed_part(s, b))


def loses_power(s: State, v: Values, b: int, gone: frozenset[int]) -> Iterator[State]:
    """One broker of an outage; the page cache of one whose process is down is gone too."""
    if offline(s.spec, b):
        yield with_log(s, s.spec, b, flushed_part(s, b))
    else:
        yield from fails(s, v, b, EMPTY if b in gone else flushed_part(s, b))


def cluster_loses_power(s: State, v: Values) -> Iterator[State]:
    """All brokers at one instant: those that are up are fenced in ascending order, but for the last one."""
    up = frozenset(b for b in brokers(v) if not offline(s.spec, b))
    if s.outages >= v["max_outages"]:
        return
    for last in sorted(up):
        for gone in subsets(up):
            after = [s._replace(outages=s.outages + 1)]
            for b in [*(b for b in brokers(v) if b != last), last]:
                after = [state for one in after for state in loses_power(one, v, b, gone)]
            yield from after


ACTIONS_WITH_FLUSHES = (
    published_actions,
    no_data_loss_shutdown,
    broker_flushes,
    tail_loss_shutdown,
    cluster_loses_power,
)


def successors(s: State, v: Values) -> Iterator[State]:
    for action in ACTIONS_WITH_FLUSHES:
        yield from action(s, v)


def acked_records_are_on_disk(s: State) -> bool:
    """Every acknowledged record is on the disk of some broker."""
    on_disk = {
        record.value
        for data, end in zip(s.spec.partition_data, s.flushed, strict=True)
        for record in data.log[: end - 1]
    }
    return s.spec.inv_pos_acked <= on_disk


def properties(s: State, v: Values) -> dict[str, bool]:
    """Whether each property holds."""
    found = {name: holds(s.spec, v) for name, holds in PROPERTIES.items()}
    return found | {"AckedRecordsAreOnDisk": acked_records_are_on_disk(s)}
