"""KafkaReplication.tla: the controller, leaders and followers as they were before KIP-320 fenced them.

Instances: the controller's actions and the leaders' own, one per replica (elected, removed, added or acting); becoming
a leader, bit 6 replica + epoch of the request; fetching, the follower.
"""

from quorisk.kernels.model import action
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.kafka.layout import (
    MAX_REPLICAS,
    current,
    end_offset,
    high_watermark,
    last_records,
    leader_epoch,
    presiding,
    quorum_epoch,
    quorum_leader,
    records_before,
    true_leader,
)
from quorisk.kernels.protocols.kafka.params import PLAIN
from quorisk.kernels.protocols.rows import EVERY_ROW, ROW, WIDTH, gathered, nonempty, row, row_of, spread, with_row


def controller_update_isr(state, leader, isr):
    """ControllerUpdateIsr: the next leader epoch, with `leader` (a set of at most one replica) and `isr`."""
    return state._replace(
        leads=state.leads | (spread(leader) << state.next_epoch),
        request_isrs=state.request_isrs | (isr << (WIDTH * state.next_epoch)),
        quorum_isr=isr,
        next_epoch=state.next_epoch + 1,
    )


def controller_elect_leader_enabled(state, params):
    return (where(state.next_epoch < params.epochs, state.quorum_isr & ~quorum_leader(state), 0),)


@action(controller_elect_leader_enabled)
def controller_elect_leader(state, params, replica, lost):
    """Each replica of the ISR that does not lead is made the leader by the controller."""
    return controller_update_isr(state, 1 << replica, state.quorum_isr)


def controller_shrink_isr_enabled(state, params):
    return (where(state.next_epoch < params.epochs, state.quorum_isr | quorum_leader(state), 0),)


@action(controller_shrink_isr_enabled)
def controller_shrink_isr(state, params, replica, lost):
    """Each replica of the ISR, and the leader, is taken out by the controller, as one that failed."""
    failed = 1 << replica
    leader = quorum_leader(state)
    alone = (leader == failed) & (state.quorum_isr == failed)  # the last leader stays in the ISR
    isr = where(alone, failed, state.quorum_isr & ~failed)
    return controller_update_isr(state, leader & ~failed, isr)


def receive_request(state, replica, epoch):
    """The replica takes over leader epoch, leader and ISR of that LeaderAndIsr request."""
    return state._replace(
        seen=state.seen | (((2 << epoch) - 1) << (WIDTH * replica)),
        deposed=state.deposed & ~(1 << replica),
        isrs=with_row(state.isrs, replica, row(state.request_isrs, epoch)),
    )


def note_exposed(state, params, leader):
    """The state with all records below a presumed leader's high watermark committed: not an action, but an observer."""
    known = where(params.track_committed != 0, row(state.below_hw, leader), 0)
    return state._replace(committed=state.committed | known)


def become_leader_enabled(state, params):
    return (state.leads & ~state.seen,)


@action(become_leader_enabled)
def become_leader(state, params, instance, lost):
    """Each request that names a replica leader reaches that replica."""
    replica = instance // WIDTH
    return note_exposed(receive_request(state, replica, instance - WIDTH * replica), params, replica)


def following(state, epochs):
    """The replicas, spread, whose leader epoch is one of `epochs`. With the epochs that a leader was ever named for it
    is ReplicaIsFollowing; with the one that it is in, KIP-320's IsFollowingLeaderEpoch."""
    return nonempty(current(state) & (epochs * EVERY_ROW))


def reaching(state, end, last):
    """The replicas, spread, that hold one of `last`, the records that count at offset `end` - 1; all if `end` is 0."""
    return where(end == 0, EVERY_ROW, nonempty(state.logs & (last * EVERY_ROW)))


def caught_up(state, leader, end):
    """IsFollowerCaughtUp, spread; `end` is at most one beyond the leader's log."""
    return following(state, row(state.leads, leader)) & reaching(state, end, last_records(state, end))


def quorum_update_isr(state, leader, isr):
    """QuorumUpdateLeaderAndIsr, for the true leader."""
    return state._replace(quorum_isr=isr, isrs=with_row(state.isrs, leader, isr))


def expandable(state, is_caught_up):
    """Replicas that the true leader may add, where `is_caught_up` is the variant's notion of caught up."""
    leader = row_of(true_leader(state))
    return gathered(is_caught_up(state, leader, high_watermark(state, leader))) & ~row(state.isrs, leader)


def leader_expand_isr_enabled(state, params):
    return (when((params.expand_isr == PLAIN) & (true_leader(state) != 0), expandable, state, caught_up),)


@action(leader_expand_isr_enabled)
def leader_expand_isr(state, params, replica, lost):
    """Each replica that has caught up is added to the ISR by the leader."""
    leader = row_of(true_leader(state))
    return quorum_update_isr(state, leader, row(state.isrs, leader) | (1 << replica))


def shrinkable(state, is_caught_up):
    """Replicas that the true leader may remove."""
    leader = row_of(true_leader(state))
    kept = gathered(is_caught_up(state, leader, end_offset(state, leader))) | (1 << leader)
    return row(state.isrs, leader) & ~kept


def leader_shrink_isr_enabled(state, params):
    return (when((params.shrink_isr == PLAIN) & (true_leader(state) != 0), shrinkable, state, caught_up),)


@action(leader_shrink_isr_enabled)
def leader_shrink_isr(state, params, replica, lost):
    """Each member of the ISR that has fallen behind is removed by the leader."""
    leader = row_of(true_leader(state))
    return quorum_update_isr(state, leader, row(state.isrs, leader) & ~(1 << replica))


def may_lose_power(state, params):
    """Whether a replica may still lose unflushed records."""
    together = (state.outages < params.max_outages) | (state.zone_outages < params.max_zone_outages)
    return together | (state.unclean_restarts < params.max_unclean_restarts)


def at_peace(state, params):
    """Whether the leader stays: all replicas have heard of the last leader epoch, and none may lose power any more.

    Records written from then on are never lost. So none is written, and runs of continuous writes end.
    """
    behind = spread((1 << params.replicas) - 1) & ~nonempty(state.seen & quorum_epoch(state))
    led = (true_leader(state) != 0) & (behind == 0) & (state.deposed == 0)
    return led & (state.next_epoch == params.epochs) & (where(may_lose_power(state, params), 1, 0) == 0)


def leader_write_enabled(state, params):
    full = state.logs & (last_records(state, params.log_size) * EVERY_ROW)
    writers = nonempty(presiding(state)) & ~nonempty(full)
    writers = where((params.continuous_writes != 0) & at_peace(state, params), 0, writers)
    return (where(state.next_record < params.max_records, gathered(writers), 0),)


@action(leader_write_enabled)
def leader_write(state, params, leader, lost):
    """Each replica that takes itself for the leader writes the next record."""
    record = 1 << state.next_record
    return state._replace(
        logs=state.logs | (record << (WIDTH * leader)),
        unflushed=state.unflushed | where(params.flush_every_message, 0, record << (WIDTH * leader)),
        offsets=state.offsets | (record << (WIDTH * end_offset(state, leader))),
        epochs=state.epochs | (record << (WIDTH * leader_epoch(state, leader))),
        next_record=state.next_record + 1,
    )


def of_each(leaders, guard, state, *given):
    """`guard(state, *given, leader)` of each of `leaders`, rows of epochs, in one."""
    mask = 0
    for leader in range(MAX_REPLICAS):
        mask |= when(row(leaders, leader) != 0, guard, state, *given, leader)
    return mask


def advanceable(state, is_caught_up, leader):
    """1 << leader if its ISR has the next record."""
    # the leader is in its own ISR, so this asks for its record too
    acknowledged = is_caught_up(state, leader, high_watermark(state, leader) + 1)
    return where(spread(row(state.isrs, leader)) & ~acknowledged == 0, 1 << leader, 0)


def held_by_all(state, replicas):
    """The records that the logs of all these replicas hold."""
    found = ROW
    for replica in range(MAX_REPLICAS):
        found &= where((replicas >> replica) & 1, row(state.logs, replica), ROW)
    return found


def leader_inc_high_watermark_enabled(state, params):
    leaders = where(params.inc_high_watermark == PLAIN, presiding(state), 0)
    return (of_each(leaders, advanceable, state, caught_up),)


@action(leader_inc_high_watermark_enabled)
def leader_inc_high_watermark(state, params, leader, lost):
    """Each replica that takes itself for the leader moves its high watermark past a record that its ISR has."""
    record = row(state.offsets, high_watermark(state, leader)) & row(state.logs, leader)
    record = where(params.continuous_writes, held_by_all(state, row(state.isrs, leader) | 1 << leader), record)
    return note_exposed(state._replace(below_hw=state.below_hw | (record << (WIDTH * leader))), params, leader)


def lagging(state, is_caught_up, leader):
    """The leader's followers, spread, that lack records: all followers are caught up to offset 0."""
    return is_caught_up(state, leader, 0) & ~is_caught_up(state, leader, end_offset(state, leader))


def follower_replicate_enabled(state, params):
    leaders = where(params.fetch == PLAIN, presiding(state), 0)
    return (gathered(of_each(leaders, lagging, state, caught_up)),)


def leader_of(state, replica):
    """replicaState[replica].leader, which is not None."""
    return row_of(state.leads & (row(current(state), replica) * EVERY_ROW))


@action(follower_replicate_enabled)
def follower_replicate(state, params, follower, lost):
    """Each follower that lacks records fetches the next one from its leader."""
    # the leader's next record, then its high watermark
    leader = leader_of(state, follower)
    end = end_offset(state, follower)
    here = where(params.continuous_writes, ~records_before(state, end), row(state.offsets, end))
    record = here & row(state.logs, leader)
    log = row(state.logs, follower) | record
    leader_hw = high_watermark(state, leader)
    hw = where((leader_hw <= end) | (params.continuous_writes != 0), leader_hw, end + 1)
    return state._replace(
        logs=with_row(state.logs, follower, log),
        unflushed=state.unflushed | where(params.flush_every_message, 0, record << (WIDTH * follower)),
        below_hw=with_row(state.below_hw, follower, log & records_before(state, hw)),
    )
