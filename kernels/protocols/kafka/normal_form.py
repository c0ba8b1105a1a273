"""The normal form of a state whose log is written to all the time: as few records as tell all that may happen.

Two neighbouring records are alike if every replica holds both or neither, on disk or not, below its high watermark or
not, both were committed or neither, and they are of one leader epoch, or all high watermarks are beyond them: epochs
only matter until the high watermark has reached the leader's own. Both have the same fate, so the second stands for
both. A record that no log holds, and that was never committed, is forgotten. Ids count the records that are left in the
order in which they were written, offsets their places in a log.
"""

from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.kafka.layout import MAX_RECORDS
from quorisk.kernels.protocols.kafka.replication import may_lose_power
from quorisk.kernels.protocols.rows import EVERY_ROW, ROW, WIDTH, union


def normal_form(state, params):
    """The state with one record for all that are alike, without records that no log has. The disk no longer matters
    once nothing may lose power."""
    state = state._replace(unflushed=where(may_lose_power(state, params), state.unflushed, 0))
    merged = alike(state)
    missing = ((1 << state.next_record) - 1) & ~union(state.logs)
    lost = missing & state.committed
    gone = missing & ~(lost & -lost)  # of all that are lost one says as much
    is_full = (state.next_record == params.max_records) & (merged | gone == 0)
    merged |= when(is_full, alike_but_for_a_flush, state)
    for i in reversed(range(MAX_RECORDS)):
        state = where(((merged | gone) >> i) & 1, without(state, i), state)
    return state


def alike(state):
    """The records for which the next one of the log may stand: the next one that was written, or with another leader at
    work at the same time the one after that."""
    found, uncommitted = 0, union(state.logs & ~state.below_hw)
    for later in (1, 2):
        apart = state.committed ^ (state.committed >> later)
        for records in (state.logs, state.unflushed, state.below_hw):
            apart |= union(records ^ (records >> later))
        apart |= union(state.epochs ^ (state.epochs >> later)) & uncommitted
        found |= union(state.offsets & (state.offsets >> (WIDTH + later))) & ~apart & (ROW >> later)
    return found


def alike_but_for_a_flush(state):
    """The newest record that only flushes tell from the next one: with this in its place, less is on disk."""
    found = alike(state._replace(unflushed=0))
    return found & ~(found >> 1 | found >> 2 | found >> 3 | found >> 4)


def without_column(matrix, i):
    """Sets of records without record i, later ones renumbered."""
    before, after = (1 << i) - 1, (ROW >> 1) & ~((1 << i) - 1)
    return (matrix & (before * EVERY_ROW)) | ((matrix >> 1) & (after * EVERY_ROW))


def without(state, i):
    """The state without record i; later records of the logs that hold it move down by an offset."""
    holders = (state.logs >> i) & EVERY_ROW
    moved = state.offsets & ((union(state.logs & (holders * ROW)) & (ROW & -(2 << i))) * EVERY_ROW)
    return state._replace(
        logs=without_column(state.logs, i),
        unflushed=without_column(state.unflushed, i),
        below_hw=without_column(state.below_hw, i),
        epochs=without_column(state.epochs, i),
        offsets=without_column((state.offsets & ~moved) | (moved >> WIDTH), i),
        next_record=state.next_record - 1,
        committed=without_column(state.committed, i) & ROW,
    )
