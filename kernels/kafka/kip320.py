"""Kip320.tla: a leader and a follower deal with each other only in the same leader epoch.

Instances as in `replication` and `truncation`.
"""

from kernels.kafka.kip320_first_try import high_watermark_in_epoch
from kernels.kafka.layout import (
    MAX_REPLICAS,
    end_offset,
    gathered,
    high_watermark,
    last_records,
    presiding,
    row,
    row_of,
    spread,
    true_leader,
)
from kernels.kafka.params import FENCED, TO_MATCH_IN_EPOCH
from kernels.kafka.replication import (
    add_to_isr,
    advance_high_watermark,
    fetch,
    following,
    reaching,
    remove_from_isr,
)
from kernels.kafka.truncation import become_follower_and_truncate_to_match, requests_to_follow
from kernels.model import Action, sends_nothing
from kernels.ops import jitable, when, where


@jitable
def following_leader_epoch(state, leader):
    """IsFollowingLeaderEpoch, spread."""
    return following(state, row(presiding(state), leader))


@jitable
def following_up_to(state, leader, end):
    """Those of them whose logs reach `end`, spread."""
    return following_leader_epoch(state, leader) & reaching(state, end, last_records(state, end))


@jitable
def expandable(state):
    leader = row_of(true_leader(state))
    ready = following_up_to(state, leader, high_watermark(state, leader))
    return where(high_watermark_in_epoch(state, leader), gathered(ready) & ~row(state.isrs, leader), 0)


@jitable
def fenced_leader_expand_isr_enabled(state, params):
    return (when((params.expand_isr == FENCED) & (true_leader(state) != 0), expandable, state),)


@jitable
def shrinkable(state):
    leader = row_of(true_leader(state))
    kept = gathered(following_up_to(state, leader, end_offset(state, leader))) | (1 << leader)
    return row(state.isrs, leader) & ~kept


@jitable
def fenced_leader_shrink_isr_enabled(state, params):
    return (when((params.shrink_isr == FENCED) & (true_leader(state) != 0), shrinkable, state),)


@jitable
def advanceable(state, leader):
    # the leader is in its own ISR, so this asks for its record too
    acknowledged = following_up_to(state, leader, high_watermark(state, leader) + 1)
    return where(spread(row(state.isrs, leader)) & ~acknowledged == 0, 1 << leader, 0)


@jitable
def fenced_leader_inc_high_watermark_enabled(state, params):
    leaders = where(params.inc_high_watermark == FENCED, presiding(state), 0)
    mask = 0
    for leader in range(MAX_REPLICAS):
        mask |= when(row(leaders, leader) != 0, advanceable, state, leader)
    return (mask,)


@jitable
def fenced_become_follower_and_truncate_enabled(state, params):
    chosen = params.become_follower == TO_MATCH_IN_EPOCH
    return (where(chosen, requests_to_follow(state, params, presiding(state)), 0),)


@jitable
def lagging(state, leader):
    followers = following_leader_epoch(state, leader)
    return followers & ~following_up_to(state, leader, end_offset(state, leader))


@jitable
def fenced_follower_fetch_enabled(state, params):
    leaders = where(params.fetch == FENCED, presiding(state), 0)
    mask = 0
    for leader in range(MAX_REPLICAS):
        mask |= when(row(leaders, leader) != 0, lagging, state, leader)
    return (gathered(mask),)


FENCED_LEADER_EXPAND_ISR = Action(
    "fenced_leader_expand_isr",
    fenced_leader_expand_isr_enabled,
    sends_nothing,
    add_to_isr,
)
FENCED_LEADER_SHRINK_ISR = Action(
    "fenced_leader_shrink_isr",
    fenced_leader_shrink_isr_enabled,
    sends_nothing,
    remove_from_isr,
)
FENCED_LEADER_INC_HIGH_WATERMARK = Action(
    "fenced_leader_inc_high_watermark",
    fenced_leader_inc_high_watermark_enabled,
    sends_nothing,
    advance_high_watermark,
)
FENCED_BECOME_FOLLOWER_AND_TRUNCATE = Action(
    "fenced_become_follower_and_truncate",
    fenced_become_follower_and_truncate_enabled,
    sends_nothing,
    become_follower_and_truncate_to_match,
)
FENCED_FOLLOWER_FETCH = Action("fenced_follower_fetch", fenced_follower_fetch_enabled, sends_nothing, fetch)
