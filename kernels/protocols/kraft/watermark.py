"""High watermarks and acknowledgements: the steps of a leader whenever it may commit."""

from quorisk.kernels.ops import popcount, where
from quorisk.kernels.protocols.kraft.layout import MAX_VALUES, leo_of, values_before
from quorisk.kernels.protocols.rows import row, with_row


def commit_offset(reached, others, leo):
    """GetCommitOffset: the last offset below `leo` that all of `others` are beyond; `reached` as in State.peers."""
    committed = 0
    for offset in range(1, MAX_VALUES + 1):
        everybody = others & ~row(reached, offset) == 0
        committed = where(everybody & (offset < leo), offset, committed)
    return committed


def ackable(state, b, lower, upper):
    """SendAcksFor: the values of b's log from `lower` to before `upper` that it took itself, in leader terms without a
    break, and that were not acknowledged either way."""
    flo = row(state.flos, b)
    first = where(flo > lower, flo, lower)
    log = row(state.logs, b) & values_before(state, upper) & ~values_before(state, first)
    return where(flo != 0, log & ~(state.pos_acked | state.neg_acked), 0)


def maybe_advance_high_watermark(state, params, b, isr, new_hwm, positive):
    """MaybeAdvanceHighWatermark; positive: the type of acknowledgement."""
    old_hwm = row(state.hwms, b)
    safe = (params.min_isr_to_commit == 0) | (popcount(isr) >= params.min_isr)
    acked = ackable(state, b, old_hwm, where(positive, new_hwm, leo_of(state, b)))
    # with continuous writes offsets of logs that differ cannot be compared: `consumed` alone says what was committed
    ahead = (new_hwm > state.true_hwm) | (params.continuous_writes != 0)
    consumed = row(state.logs, b) & values_before(state, new_hwm) & ~values_before(state, state.true_hwm)
    advanced = state._replace(
        hwms=with_row(state.hwms, b, new_hwm),
        pos_acked=state.pos_acked | where(positive, acked, 0),
        neg_acked=state.neg_acked | where(positive, 0, acked),
        true_hwm=where((params.continuous_writes == 0) & ahead, new_hwm, state.true_hwm),
        consumed=state.consumed | where(ahead, consumed, 0),
    )
    return where((new_hwm > old_hwm) & safe, advanced, state)


def maybe_update_hwm_on_partition_change(state, params, b, reached, isr):
    """MaybeUpdateHwmAndAckOnPartitionChange, for a partition whose ISR and maximal ISR both are `isr`."""
    leo = leo_of(state, b)
    new_hwm = commit_offset(reached, isr & ~(1 << b), leo) + 1
    return maybe_advance_high_watermark(state, params, b, isr, new_hwm, popcount(isr) >= params.min_isr)
