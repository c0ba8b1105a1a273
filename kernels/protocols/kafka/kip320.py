"""Kip320.tla: a leader and a follower deal with each other only in the same leader epoch.

Instances as in `replication` and `truncation`.
"""

from quorisk.kernels.model import Action, sends_nothing
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.kafka.kip320_first_try import expandable_in_epoch
from quorisk.kernels.protocols.kafka.layout import last_records, presiding, true_leader
from quorisk.kernels.protocols.kafka.params import FENCED, TO_MATCH_IN_EPOCH
from quorisk.kernels.protocols.kafka.replication import (
    add_to_isr,
    advance_high_watermark,
    advanceable_leaders,
    fetch,
    following,
    lagging_followers,
    reaching,
    remove_from_isr,
    shrinkable,
)
from quorisk.kernels.protocols.kafka.truncation import become_follower_and_truncate_to_match, requests_to_follow
from quorisk.kernels.protocols.rows import row


def in_epoch_and_caught_up(state, leader, end):
    """IsFollowingLeaderEpoch, spread, with a log that reaches `end`."""
    return following(state, row(presiding(state), leader)) & reaching(state, end, last_records(state, end))


def fenced_leader_expand_isr_enabled(state, params):
    chosen = (params.expand_isr == FENCED) & (true_leader(state) != 0)
    return (when(chosen, expandable_in_epoch, state, in_epoch_and_caught_up),)


def fenced_leader_shrink_isr_enabled(state, params):
    chosen = (params.shrink_isr == FENCED) & (true_leader(state) != 0)
    return (when(chosen, shrinkable, state, in_epoch_and_caught_up),)


def fenced_leader_inc_high_watermark_enabled(state, params):
    leaders = where(params.inc_high_watermark == FENCED, presiding(state), 0)
    return (advanceable_leaders(state, leaders, in_epoch_and_caught_up),)


def fenced_become_follower_and_truncate_enabled(state, params):
    chosen = params.become_follower == TO_MATCH_IN_EPOCH
    return (where(chosen, requests_to_follow(state, params, presiding(state)), 0),)


def fenced_follower_fetch_enabled(state, params):
    leaders = where(params.fetch == FENCED, presiding(state), 0)
    return (lagging_followers(state, leaders, in_epoch_and_caught_up),)


FENCED_LEADER_EXPAND_ISR = Action(
    "fenced_leader_expand_isr",
    fenced_leader_expand_isr_enabled,
    sends_nothing,
    add_to_isr,
    counts="Each replica that has caught up is added to the ISR by the leader.",
)
FENCED_LEADER_SHRINK_ISR = Action(
    "fenced_leader_shrink_isr",
    fenced_leader_shrink_isr_enabled,
    sends_nothing,
    remove_from_isr,
    counts="Each member of the ISR that has fallen behind is removed by the leader.",
)
FENCED_LEADER_INC_HIGH_WATERMARK = Action(
    "fenced_leader_inc_high_watermark",
    fenced_leader_inc_high_watermark_enabled,
    sends_nothing,
    advance_high_watermark,
    counts="Each replica that takes itself for the leader moves its high watermark past a record that its ISR has.",
)
FENCED_BECOME_FOLLOWER_AND_TRUNCATE = Action(
    "fenced_become_follower_and_truncate",
    fenced_become_follower_and_truncate_enabled,
    sends_nothing,
    become_follower_and_truncate_to_match,
    counts="Each request that names another replica leader reaches a replica, which truncates its log.",
)
FENCED_FOLLOWER_FETCH = Action(
    "fenced_follower_fetch",
    fenced_follower_fetch_enabled,
    sends_nothing,
    fetch,
    counts="Each follower that lacks records fetches the next one from its leader.",
)
