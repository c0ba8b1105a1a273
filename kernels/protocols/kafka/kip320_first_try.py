"""Kip320FirstTry.tla: followers truncate on demand, and the epoch of a record stands in for that of the follower.

It asks for a record at an offset with the epoch of the leader's; that is the leader's record (see `layout`).
Instances: becoming a follower, bit 6 replica + epoch of the request; fetching and truncating, the follower; the others
as in `replication`.
"""

from quorisk.kernels.model import action, variant_of
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.kafka.layout import (
    end_offset,
    high_watermark,
    last_records,
    leader_epoch,
    presiding,
    true_leader,
    truncate,
)
from quorisk.kernels.protocols.kafka.params import FIRST_TRY, NOT_AT_ONCE
from quorisk.kernels.protocols.kafka.replication import (
    advanceable,
    caught_up,
    expandable,
    follower_replicate,
    following,
    lagging,
    leader_expand_isr,
    leader_inc_high_watermark,
    leader_of,
    leader_shrink_isr,
    of_each,
    reaching,
    receive_request,
    shrinkable,
)
from quorisk.kernels.protocols.kafka.truncation import kept_for_match, last_records_of_all, requests_to_follow
from quorisk.kernels.protocols.rows import EVERY_ROW, WIDTH, gathered, nonempty, row, row_of


def caught_up_to_leader_epoch(state, leader, end):
    """IsFollowerCaughtUpToLeaderEpoch, spread, for a leader that presumes to lead."""
    last = last_records(state, end) & row(state.logs, leader)
    return following(state, row(state.leads, leader)) & reaching(state, end, last)


def high_watermark_in_epoch(state, leader):
    """HasHighWatermarkReachedCurrentEpoch, the same in Kip320."""
    hw = high_watermark(state, leader)
    record = row(state.offsets, hw) & row(state.logs, leader)
    in_epoch = (record & row(state.epochs, leader_epoch(state, leader))) != 0
    return in_epoch | (hw == end_offset(state, leader))


def expandable_in_epoch(state, is_caught_up):
    """`expandable` once the high watermark has reached the leader's epoch."""
    ready = high_watermark_in_epoch(state, row_of(true_leader(state)))
    return where(ready, expandable(state, is_caught_up), 0)


@variant_of(leader_expand_isr)
def leader_expand_isr_better_fencing(state, params):
    chosen = (params.expand_isr == FIRST_TRY) & (true_leader(state) != 0)
    return (when(chosen, expandable_in_epoch, state, caught_up_to_leader_epoch),)


@variant_of(leader_shrink_isr)
def leader_shrink_isr_better_fencing(state, params):
    chosen = (params.shrink_isr == FIRST_TRY) & (true_leader(state) != 0)
    return (when(chosen, shrinkable, state, caught_up_to_leader_epoch),)


@variant_of(leader_inc_high_watermark)
def improved_leader_inc_high_watermark(state, params):
    leaders = where(params.inc_high_watermark == FIRST_TRY, presiding(state), 0)
    return (of_each(leaders, advanceable, state, caught_up_to_leader_epoch),)


def become_follower_enabled(state, params):
    chosen = params.become_follower == NOT_AT_ONCE
    return (where(chosen, requests_to_follow(state, params, state.leads), 0),)


@action(become_follower_enabled)
def become_follower(state, params, instance, lost):
    """Each request that names another replica leader reaches a replica."""
    replica = instance // WIDTH
    return receive_request(state, replica, instance - WIDTH * replica)


def lasts_in_log(state, lasts, leader):
    """The replicas, spread, whose last record the leader holds at that offset."""
    return nonempty(lasts & (row(state.logs, leader) * EVERY_ROW))


def fetching(state, lasts, leader):
    """The followers of a leader, spread, that lack records and whose last record it holds."""
    agreeing = lasts_in_log(state, lasts, leader) | (nonempty(lasts) ^ EVERY_ROW)
    return lagging(state, caught_up, leader) & agreeing


@variant_of(follower_replicate)
def follower_fetch(state, params):
    leaders = where(params.fetch == FIRST_TRY, presiding(state), 0)
    lasts = when(leaders != 0, last_records_of_all, state)
    return (gathered(of_each(leaders, fetching, state, lasts)),)


def truncating(state, lasts, leader):
    """FollowerNeedsTruncation: a log that is longer than the leader's also ends in a record that the leader lacks."""
    disagreeing = nonempty(lasts) & ~lasts_in_log(state, lasts, leader)
    return following(state, row(state.leads, leader)) & disagreeing


def follower_truncate_enabled(state, params):
    leaders = where(params.become_follower == NOT_AT_ONCE, presiding(state), 0)
    lasts = when(leaders != 0, last_records_of_all, state)
    return (gathered(of_each(leaders, truncating, state, lasts)),)


@action(follower_truncate_enabled)
def follower_truncate(state, params, follower, lost):
    """Each follower whose log ends in another record than its leader's truncates it."""
    return truncate(state, follower, kept_for_match(state, leader_of(state, follower), follower))
