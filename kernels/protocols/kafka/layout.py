"""Bit layout of the Kafka model's state, and the set algebra that its rules are made of.

Three facts make a log a set of record ids. Ids are handed out once, so an id has one leader epoch; replication copies
a record to the offset that it has in the leader's log, so an id has one offset; and a leader's log is not truncated
while it leads, so no two records share both epoch and offset (comparing epochs at an offset compares records).

Every matrix is a word of rows (`kernels.protocols.rows`): sets of replicas, records or leader epochs. The controller
makes one LeaderAndIsr request with each leader epoch, so the requests are tables by epoch, and the quorum state follows
the latest of them.
"""

from typing import Annotated, NamedTuple

from quorisk.kernels.ops import popcount
from quorisk.kernels.protocols.fields import blank, widths
from quorisk.kernels.protocols.rows import EVERY_ROW, LOW_BITS, ROW, WIDTH, gathered, nonempty, row, rows, union

MAX_REPLICAS, MAX_RECORDS, MAX_EPOCHS = 6, 6, 6


# What there is in a state, and its bits (see `fields`)
Replicas = Annotated[int, MAX_REPLICAS]
Records = Annotated[int, MAX_RECORDS]
ByReplica = Annotated[int, WIDTH * MAX_REPLICAS]
ByEpoch = Annotated[int, WIDTH * MAX_EPOCHS]
ByOffset = Annotated[int, WIDTH * MAX_RECORDS]
Counter = Annotated[int, 3]


class State(NamedTuple):
    """Every variable of the spec, and the records that were committed."""

    logs: ByReplica  # replicaLog: bit 6r + i: the log of replica r holds record i
    unflushed: ByReplica  # bit 6r + i: it does, but not on disk
    below_hw: ByReplica  # replicaState[r].hw: bit 6r + i: record i is below the high watermark in that log
    epochs: ByEpoch  # bit 6e + i: record i was written in leader epoch e; only records that some log holds
    offsets: ByOffset  # bit 6o + i: record i is at offset o; only records that some log holds
    next_record: Counter  # nextRecordId
    committed: Records  # were below the high watermark of a replica while it presumed to lead; see `params`
    next_epoch: Counter  # nextLeaderEpoch
    quorum_isr: Replicas  # quorumState.isr; its leader and epoch are those of the latest request
    seen: ByReplica  # replicaState[r].leaderEpoch: bit 6r + e: e is at most that epoch; none if Nil
    deposed: Replicas  # bit r: replica r was to lead in that epoch, and has restarted since: its leader is None
    leads: ByReplica  # leaderAndIsrRequests: bit 6r + e: the leader named with epoch e is r
    isrs: ByReplica  # replicaState[r].isr: bit 6r + q
    request_isrs: ByEpoch  # leaderAndIsrRequests: bit 6e + q: the ISR named with epoch e
    unclean_restarts: Counter  # so far
    outages: Counter  # power outages of the cluster so far
    zone_outages: Counter  # and of a zone


WIDTHS, INITIAL = widths(State), blank(State)


def current(state):
    """The leader epoch of each replica: bit 6r + e."""
    return state.seen & ~((state.seen >> 1) & LOW_BITS)


def presiding(state):
    """ReplicaPresumesLeadership: bit 6r + e where replica r presumes to lead, in epoch e."""
    return current(state) & state.leads & ~rows(state.deposed)


def quorum_epoch(state):
    """quorumState.leaderEpoch as a bit of each row; none if Nil."""
    return ((1 << state.next_epoch) >> 1) * EVERY_ROW


def true_leader(state):
    """IsTrueLeader: bit 6r + e of the true leader, if there is one."""
    return presiding(state) & quorum_epoch(state)


def quorum_leader(state):
    """quorumState.leader as a set of replicas, empty if None."""
    return gathered(nonempty(state.leads & quorum_epoch(state)))


def exposed(state):
    """The records below the high watermark of any replica that presumes to lead."""
    return union(state.below_hw & (nonempty(presiding(state)) * ROW))


def end_offset(state, replica):
    """GetEndOffset."""
    return popcount(row(state.logs, replica))


def leader_epoch(state, replica):
    """replicaState[replica].leaderEpoch; -1 = Nil."""
    return popcount(row(state.seen, replica)) - 1


def high_watermark(state, replica):
    """replicaState[replica].hw."""
    return popcount(row(state.below_hw, replica))


def records_before(state, offset):
    """The records at smaller offsets."""
    return union(state.offsets & ((1 << (WIDTH * offset)) - 1))


def last_records(state, end):
    """The records at offset `end` - 1; none if `end` is 0."""
    return row(state.offsets << WIDTH, end)


def truncate(state, replica, kept):
    """TruncateTo: a replica's log keeps its records in `kept` alone."""
    return keep(state, ~(ROW << (WIDTH * replica)) | (kept << (WIDTH * replica)))


def keep(state, held):
    """The state with the records in `held`, a matrix, alone in its logs: records that no log holds are forgotten."""
    logs = state.logs & held
    known = union(logs) * EVERY_ROW
    return state._replace(
        logs=logs,
        unflushed=state.unflushed & held,
        below_hw=state.below_hw & held,
        offsets=state.offsets & known,
        epochs=state.epochs & known,
    )
