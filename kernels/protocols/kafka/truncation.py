"""KafkaTruncateToHighWatermark.tla, Kip101.tla and Kip279.tla: three ways to truncate on becoming a follower.

Instances: bit 6 replica + epoch, for each LeaderAndIsr request that names another replica as leader.
"""

from quorisk.kernels.model import action
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.kafka.layout import MAX_REPLICAS, end_offset, last_records, records_before, truncate
from quorisk.kernels.protocols.kafka.params import TO_EPOCH_END, TO_HIGH_WATERMARK, TO_MATCH
from quorisk.kernels.protocols.kafka.replication import receive_request
from quorisk.kernels.protocols.rows import EVERY_ROW, ROW, WIDTH, nonempty, row, row_of, union


def requests_to_follow(state, params, leads):
    """Requests that a replica may receive as a follower, of those that `leads` has."""
    in_use = (1 << (WIDTH * params.replicas)) - 1
    return (union(leads) * EVERY_ROW) & in_use & ~state.leads & ~state.seen


def request_leader(state, epoch):
    """The leader that the request of that epoch names."""
    return row_of(state.leads & (EVERY_ROW << epoch))


def become_follower_and_truncate_to(state, instance, kept):
    """BecomeFollowerAndTruncateTo, keeping the records in `kept`."""
    replica = instance // WIDTH
    return receive_request(truncate(state, replica, kept), replica, instance - WIDTH * replica)


def become_follower_truncate_to_high_watermark_enabled(state, params):
    chosen = params.become_follower == TO_HIGH_WATERMARK
    return (where(chosen, requests_to_follow(state, params, state.leads), 0),)


@action(become_follower_truncate_to_high_watermark_enabled)
def become_follower_truncate_to_high_watermark(state, params, instance, lost):
    """Each request that names another replica leader reaches a replica, which truncates its log."""
    return become_follower_and_truncate_to(state, instance, row(state.below_hw, instance // WIDTH))


def last_record(state, replica):
    """GetLatestRecord, as a set; empty if the log is."""
    return row(state.logs, replica) & last_records(state, end_offset(state, replica))


def last_records_of_all(state):
    """GetLatestRecord of every replica, in its row."""
    lasts = 0
    for replica in range(MAX_REPLICAS):
        lasts |= last_record(state, replica) << (WIDTH * replica)
    return lasts


def kept_for_epoch_end(state, leader, replica):
    """The records before LookupOffsetForEpoch of the follower's last epoch; any for a follower without records."""
    epoch = row_of(state.epochs & (last_record(state, replica) * EVERY_ROW))
    log = row(state.logs, leader)
    same_epoch = (last_record(state, leader) & row(state.epochs, epoch)) != 0
    later = union(state.epochs >> (WIDTH * (epoch + 1))) & log
    first_later = row_of(state.offsets & (later * EVERY_ROW))
    offset = where(same_epoch, end_offset(state, leader), first_later)
    return where(same_epoch | (later != 0), records_before(state, offset), row(state.below_hw, replica))


def beyond_end(state, lasts, replica):
    """Leaders, spread, whose answer to LookupOffsetForEpoch lies beyond the end of the replica's log."""
    last = row(lasts, replica)
    epoch = row_of(state.epochs & (last * EVERY_ROW))
    end = end_offset(state, replica)
    same_epoch = nonempty(lasts & (row(state.epochs, epoch) * EVERY_ROW))
    longer = nonempty(state.logs & (row(state.offsets, end) * EVERY_ROW))
    later = union(state.epochs >> (WIDTH * (epoch + 1)))
    later_in_reach = later & records_before(state, end + 1)
    first_beyond = nonempty(state.logs & (later * EVERY_ROW)) & ~nonempty(state.logs & (later_in_reach * EVERY_ROW))
    return where(last != 0, (same_epoch & longer) | (first_beyond & ~same_epoch), 0)


def become_follower_truncate_kip101_enabled(state, params):
    chosen = params.become_follower == TO_EPOCH_END
    mask = where(chosen, requests_to_follow(state, params, state.leads), 0)
    strict = params.keep_short_logs == 0
    lasts = when(strict & (mask != 0), last_records_of_all, state)
    for replica in range(MAX_REPLICAS):
        refused = when(strict & (row(mask, replica) != 0), beyond_end, state, lasts, replica)
        mask &= ~(union(state.leads & (refused * ROW)) << (WIDTH * replica))
    return (mask,)


@action(become_follower_truncate_kip101_enabled)
def become_follower_truncate_kip101(state, params, instance, lost):
    """Each request that names another replica leader reaches a replica, which truncates its log."""
    replica = instance // WIDTH
    leader = request_leader(state, instance - WIDTH * replica)
    return become_follower_and_truncate_to(state, instance, kept_for_epoch_end(state, leader, replica))


def kept_for_match(state, leader, replica):
    """The records before FirstNonMatchingOffsetFromTail: up to the last one that both logs hold."""
    matching = row(state.logs, leader) & row(state.logs, replica)
    kept = state.offsets & (matching * EVERY_ROW)
    for distance in (1, 2, 4, 8, 16, 32):
        kept |= kept >> distance
    return union(state.offsets & kept)


def become_follower_truncate_kip279_enabled(state, params):
    chosen = params.become_follower == TO_MATCH
    return (where(chosen, requests_to_follow(state, params, state.leads), 0),)


@action(become_follower_truncate_kip279_enabled)
def become_follower_truncate_kip279(state, params, instance, lost):
    """Each request that names another replica leader reaches a replica, which truncates its log."""
    replica = instance // WIDTH
    leader = request_leader(state, instance - WIDTH * replica)
    return become_follower_and_truncate_to(state, instance, kept_for_match(state, leader, replica))
