"""Bit layout of the Kafka model's state, and the set algebra that its rules are made of.

Three facts make a log a set of record ids. Ids are handed out once, so an id has one leader epoch; replication copies
a record to the offset that it has in the leader's log, so an id has one offset; and a leader's log is not truncated
while it leads, so no two records share both epoch and offset (comparing epochs at an offset compares records).

Every matrix is a word of 6-bit rows, bit 6 row + column; a row is a set of replicas, records or leader epochs. A set
of replicas also comes spread: replica r as bit 6r, the lowest bit of its row. The controller makes one LeaderAndIsr
request with each leader epoch, so the requests are tables by epoch, and the quorum state follows the latest of them.
"""

from typing import NamedTuple

from quorisk.kernels.ops import jitable, lowest_bit, popcount

MAX_REPLICAS, MAX_RECORDS, MAX_EPOCHS = 5, 6, 6
WIDTH = 6
"""Bits of a row."""
ROW = 0b111111
"""A whole row."""
EVERY_ROW = 0x41041041
"""Times a row: that row in every row; also every row's lowest bit."""
EVERY_REPLICA = 0x1041041
"""The same for matrices whose rows are replicas."""
_LOW_BITS = EVERY_ROW * 0b011111
_SPREAD = 1 | 1 << 5 | 1 << 10 | 1 << 15 | 1 << 20
_GATHER = 1 << 24 | 1 << 19 | 1 << 14 | 1 << 9 | 1 << 4


class State(NamedTuple):
    """Every variable of the spec, and the records that were committed."""

    logs: int  # replicaLog: bit 6r + i: the log of replica r holds record i
    below_hw: int  # replicaState[r].hw: bit 6r + i: record i is below the high watermark in that log
    epochs: int  # bit 6e + i: record i was written in leader epoch e; only records that some log holds
    offsets: int  # bit 6o + i: record i is at offset o; only records that some log holds
    next_record: int  # nextRecordId
    committed: int  # records that were below the high watermark of a replica while it presumed to lead; see `params`
    next_epoch: int  # nextLeaderEpoch
    quorum_isr: int  # quorumState.isr; its leader and epoch are those of the latest request
    seen: int  # replicaState[r].leaderEpoch: bit 6r + e: e is at most that epoch; none if Nil
    leads: int  # leaderAndIsrRequests: bit 6r + e: the leader named with epoch e is r
    isrs: int  # replicaState[r].isr: bit 6r + q
    request_isrs: int  # leaderAndIsrRequests: bit 6e + q: the ISR named with epoch e


WIDTHS = State(
    logs=WIDTH * MAX_REPLICAS,
    below_hw=WIDTH * MAX_REPLICAS,
    epochs=WIDTH * MAX_EPOCHS,
    offsets=WIDTH * MAX_RECORDS,
    next_record=3,
    committed=MAX_RECORDS,
    next_epoch=3,
    quorum_isr=MAX_REPLICAS,
    seen=WIDTH * MAX_REPLICAS,
    leads=WIDTH * MAX_REPLICAS,
    isrs=WIDTH * (MAX_REPLICAS - 1) + MAX_REPLICAS,
    request_isrs=WIDTH * (MAX_EPOCHS - 1) + MAX_REPLICAS,
)

INITIAL = State(**dict.fromkeys(State._fields, 0))


@jitable
def row(matrix, i):
    """Row i of a matrix."""
    return (matrix >> (WIDTH * i)) & ROW


@jitable
def with_row(matrix, i, value):
    """The matrix with row i replaced."""
    return (matrix & ~(ROW << (WIDTH * i))) | (value << (WIDTH * i))


@jitable
def row_of(bit):
    """The row of a matrix's only bit."""
    return lowest_bit(bit) // WIDTH


@jitable
def union(matrix):
    """All rows in one."""
    halves = matrix | (matrix >> (3 * WIDTH))
    return (halves | (halves >> WIDTH) | (halves >> (2 * WIDTH))) & ROW


@jitable
def nonempty(matrix):
    """The lowest bit of every row that has a bit set."""
    return ((((matrix & _LOW_BITS) + _LOW_BITS) | matrix) >> (WIDTH - 1)) & EVERY_ROW


@jitable
def spread(replicas):
    """A set of replicas, replica r moved to bit 6r."""
    return (replicas * _SPREAD) & EVERY_REPLICA


@jitable
def gathered(replicas):
    """The inverse of `spread`."""
    return ((replicas * _GATHER) >> 24) & 0b11111


@jitable
def rows(replicas):
    """The whole rows of a set of replicas."""
    return spread(replicas) * ROW


@jitable
def current(state):
    """The leader epoch of each replica: bit 6r + e."""
    return state.seen & ~((state.seen >> 1) & _LOW_BITS)


@jitable
def presiding(state):
    """ReplicaPresumesLeadership: bit 6r + e where replica r presumes to lead, in epoch e."""
    return current(state) & state.leads


@jitable
def quorum_epoch(state):
    """quorumState.leaderEpoch as a bit of each row; none if Nil."""
    return ((1 << state.next_epoch) >> 1) * EVERY_REPLICA


@jitable
def true_leader(state):
    """IsTrueLeader: bit 6r + e of the true leader, if there is one."""
    return presiding(state) & quorum_epoch(state)


@jitable
def quorum_leader(state):
    """quorumState.leader as a set of replicas, empty if None."""
    return gathered(nonempty(state.leads & quorum_epoch(state)))


@jitable
def exposed(state):
    """The records below the high watermark of any replica that presumes to lead."""
    return union(state.below_hw & (nonempty(presiding(state)) * ROW))


@jitable
def end_offset(state, replica):
    """GetEndOffset."""
    return popcount(row(state.logs, replica))


@jitable
def leader_epoch(state, replica):
    """replicaState[replica].leaderEpoch; -1 = Nil."""
    return popcount(row(state.seen, replica)) - 1


@jitable
def high_watermark(state, replica):
    """replicaState[replica].hw."""
    return popcount(row(state.below_hw, replica))


@jitable
def records_before(state, offset):
    """The records at smaller offsets."""
    return union(state.offsets & ((1 << (WIDTH * offset)) - 1))


@jitable
def last_records(state, end):
    """The records at offset `end` - 1; none if `end` is 0."""
    return row(state.offsets << WIDTH, end)


@jitable
def truncate(state, replica, kept):
    """TruncateTo, keeping of the log the records in `kept`, and none but those below the high watermark: what no log
    holds any longer is forgotten."""
    held = ~(ROW << (WIDTH * replica)) | (kept << (WIDTH * replica))
    logs = state.logs & held
    known = union(logs) * EVERY_ROW
    return state._replace(
        logs=logs,
        below_hw=state.below_hw & held,
        offsets=state.offsets & known,
        epochs=state.epochs & known,
    )
