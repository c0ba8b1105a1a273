"""Kip320.tla: a leader and a follower deal with each other only in the same leader epoch.

Instances as in `replication` and `truncation`.
"""

from quorisk.kernels.model import variant_of
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.kafka.kip320_first_try import expandable_in_epoch
from quorisk.kernels.protocols.kafka.layout import last_records, presiding, true_leader
from quorisk.kernels.protocols.kafka.params import FENCED, TO_MATCH_IN_EPOCH
from quorisk.kernels.protocols.kafka.replication import (
    advanceable,
    follower_replicate,
    following,
    lagging,
    leader_expand_isr,
    leader_inc_high_watermark,
    leader_shrink_isr,
    of_each,
    reaching,
    shrinkable,
)
from quorisk.kernels.protocols.kafka.truncation import become_follower_truncate_kip279, requests_to_follow
from quorisk.kernels.protocols.rows import gathered, row


def in_epoch_and_caught_up(state, leader, end):
    """IsFollowingLeaderEpoch, spread, with a log that reaches `end`."""
    return following(state, row(presiding(state), leader)) & reaching(state, end, last_records(state, end))


@variant_of(leader_expand_isr)
def fenced_leader_expand_isr(state, params):
    chosen = (params.expand_isr == FENCED) & (true_leader(state) != 0)
    return (when(chosen, expandable_in_epoch, state, in_epoch_and_caught_up),)


@variant_of(leader_shrink_isr)
def fenced_leader_shrink_isr(state, params):
    chosen = (params.shrink_isr == FENCED) & (true_leader(state) != 0)
    return (when(chosen, shrinkable, state, in_epoch_and_caught_up),)


@variant_of(leader_inc_high_watermark)
def fenced_leader_inc_high_watermark(state, params):
    leaders = where(params.inc_high_watermark == FENCED, presiding(state), 0)
    return (of_each(leaders, advanceable, state, in_epoch_and_caught_up),)


@variant_of(become_follower_truncate_kip279)
def fenced_become_follower_and_truncate(state, params):
    chosen = params.become_follower == TO_MATCH_IN_EPOCH
    return (where(chosen, requests_to_follow(state, params, presiding(state)), 0),)


@variant_of(follower_replicate)
def fenced_follower_fetch(state, params):
    leaders = where(params.fetch == FENCED, presiding(state), 0)
    return (gathered(of_each(leaders, lagging, state, in_epoch_and_caught_up)),)
