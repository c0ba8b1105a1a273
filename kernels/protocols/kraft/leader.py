"""The leader changes the ISR by AlterPartition requests.

SendAlterPartitionRequest is two actions here: one without followers that timed out, which lets those that caught up
join, and one with some, a fault. Instances: row of the leader + the follower that joins, or the leader's own bit for
all that caught up, as the specs have it; of the second, 32 leader + the set of timed out members - 1, two leaders a
word, where a set of the five other brokers leaves out the leader's own bit.
"""

from quorisk.kernels.model import Condition, action
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.kraft.layout import (
    ACCEPTED,
    ALL_BROKERS,
    MAX_BROKERS,
    REQUESTED,
    leader_epoch_of,
    peer_epoch,
    wide_row,
    with_alter,
    with_local,
    word_of,
)
from quorisk.kernels.protocols.kraft.watermark import maybe_update_hwm_on_partition_change
from quorisk.kernels.protocols.rows import WIDTH, row, with_row

_LEADERS_A_WORD = 2
_SETS_A_LEADER = 1 << (MAX_BROKERS - 1)


def joining(state, params, b):
    """FollowerIsCaughtUp for those outside the ISR of leader b."""
    hwm, leso = row(state.hwms, b), row(state.lesos, b)
    needed = where((params.catch_up_to_high_watermark != 0) & (hwm > 1), hwm, 1)
    needed = where((params.catch_up_to_epoch_start != 0) & (leso > needed), leso, needed)
    caught_up = row(word_of(state.peers, b), needed - 1)
    return caught_up & row(state.local.replicas, b) & ~row(state.local.isrs, b) & ~state.stalled


def idle_leaders(state):
    """Leaders that may send an AlterPartition request."""
    return state.leaders & state.running & ~(state.pending | state.isolated)


def registered_peers(state, b, peers):
    """The brokers whose last fetch from a leader was under the broker epoch that is registered; `peers` is its word."""
    found = 0
    for p in range(MAX_BROKERS):
        found |= where(row(state.reg_epochs, p) == peer_epoch(peers, b, p), 1 << p, 0)
    return found


def join_choices(state, params, b):
    """The followers that may each join the ISR of leader b alone; in the specs' form, b if any may join."""
    caught_up, peers = joining(state, params, b), word_of(state.peers, b)
    current = where(params.check_broker_epochs, registered_peers(state, b, peers), ALL_BROKERS)
    return where(params.kafka, caught_up & state.unfenced & current, where(caught_up != 0, 1 << b, 0))


def send_alter_partition_request_enabled(state, params):
    idle = idle_leaders(state)
    found = 0
    for b in range(MAX_BROKERS):
        found |= when((idle >> b) & 1 != 0, join_choices, state, params, b) << (WIDTH * b)
    return (found,)


def request_isr(state, params, b, proposed):
    """DoSendAlterPartitionRequest for this proposed ISR."""
    broker = 1 << b
    local = state.local
    i, isr = row(local.partition_epochs, b) - 1, row(local.isrs, b)
    peers = word_of(state.peers, b)
    named = (proposed & ~isr) | broker
    epochs = 0
    for p in range(MAX_BROKERS):
        epoch = where(b == p, row(state.broker_epochs, p), peer_epoch(peers, b, p))
        epochs |= where((named >> p) & 1, epoch << (4 * p), 0)
    return state._replace(
        alters=with_alter(state.alters, i, REQUESTED, proposed, epochs),
        local=local._replace(maximal_isrs=with_row(local.maximal_isrs, b, proposed | isr)),
        pending=state.pending | broker,
    )


@action(send_alter_partition_request_enabled)
def send_alter_partition_request(state, params, instance, lost):
    """Each leader asks the controller to add the followers that caught up."""
    b = instance // WIDTH
    follower = instance - WIDTH * b
    joins = where(follower == b, joining(state, params, b), 1 << follower)
    return request_isr(state, params, b, row(state.local.isrs, b) | joins)


def without_bit(members, b):
    """A set of brokers as five bits, b left out."""
    below = (1 << b) - 1
    return (members & below) | (members >> 1 & ~below)


def parts(members):
    """Bit s - 1: s is a subset of this set of five, and not empty."""
    found = 1
    for i in range(MAX_BROKERS - 1):
        found |= where((members >> i) & 1, found << (1 << i), 0)
    return found >> 1


def timed_out_sets(state, b):
    """Bit s - 1: the members s of the ISR of leader b may have timed out."""
    return parts(without_bit(row(state.local.isrs, b), b))


def leader_shrink_isr_enabled(state, params):
    allowed = (state.isr_shrinks < params.max_isr_shrinks) & (params.kafka == 0)
    idle = where(allowed, idle_leaders(state), 0)
    sets = [when((idle >> b) & 1 != 0, timed_out_sets, state, b) for b in range(MAX_BROKERS)]
    return tuple(first | second << _SETS_A_LEADER for first, second in zip(sets[::2], sets[1::2], strict=True))


_NO_REASON = Condition(
    "semantics",
    '"specification" for ISRs that shrink without a reason; else a follower lags as it stalls: set max_stalls, '
    'rates.follower_stalls, rates.follower_resumes and "replica.lag.time.max.ms"',
    lambda v: v["semantics"] == "specification",
)


@action(leader_shrink_isr_enabled, "ISR shrink", shared=_SETS_A_LEADER, bounds=("max_isr_shrinks",), only=_NO_REASON)
def leader_shrink_isr(state, params, instance, lost):
    """Each leader asks the controller to remove members that lag; which ones, any set alike."""
    word = instance // 64
    place = (instance - 64 * word) // _SETS_A_LEADER
    b = place + _LEADERS_A_WORD * word
    others = instance - 64 * word - _SETS_A_LEADER * place + 1
    below = (1 << b) - 1
    timed_out = (others & below) | (others & ~below) << 1
    proposed = (row(state.local.isrs, b) & ~timed_out) | joining(state, params, b)
    return request_isr(state, params, b, proposed)._replace(isr_shrinks=state.isr_shrinks + 1)


def answered(state, b):
    """Bit b if there is an answer to the request that leader b waits for: a rejection, or news of the same epoch."""
    i = row(state.local.partition_epochs, b) - 1
    kind = wide_row(state.alters.kinds, i)
    same_epoch = wide_row(state.log.bumps, i + 1) == 0
    return where((kind > ACCEPTED) | ((kind == ACCEPTED) & same_epoch), 1 << b, 0)


def receive_alter_partition_response_enabled(state, params):
    waiting = state.pending & state.leaders & state.running & ~state.isolated
    found = 0
    for b in range(MAX_BROKERS):
        found |= when((waiting >> b) & 1 != 0, answered, state, b)
    return (found,)


@action(receive_alter_partition_response_enabled)
def receive_alter_partition_response(state, params, b, lost):
    """Each answer to a leader's request about the ISR arrives."""
    log = state.log
    i = row(state.local.partition_epochs, b) - 1
    accepted = wide_row(state.alters.kinds, i) == ACCEPTED
    j = where(accepted, i + 1, i)  # an error rolls back to the record that the leader had
    replicas, isr, leader = wide_row(log.replicas, j), wide_row(log.isrs, j), wide_row(log.leaders, j)
    state = maybe_update_hwm_on_partition_change(state, params, b, word_of(state.peers, b), isr)
    return state._replace(
        local=with_local(state.local, b, replicas, isr, leader, leader_epoch_of(log, j), j + 1),
        pending=state.pending & ~(1 << b),
        alters=with_alter(state.alters, i, 0, 0, 0),
    )
