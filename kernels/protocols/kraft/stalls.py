"""Followers that stall: they are up and may be elected, and fetch nothing. Beyond the specs.

A garbage collection, a slow disk or a network without room does that to a broker. A partition that is written to all
the time leaves such a follower behind at once, and its leader asks the controller to take it out of the ISR once
`replica.lag.time.max.ms` are over. It joins again when it has resumed and caught up. Instances: the follower; of
removals, row of the leader + the follower.
"""

from quorisk.kernels.model import action
from quorisk.kernels.ops import lowest_bit, popcount, when, where
from quorisk.kernels.protocols.kraft.layout import MAX_BROKERS, NOTHING, MetadataLog, Wide, wide_row
from quorisk.kernels.protocols.kraft.leader import idle_leaders, request_isr
from quorisk.kernels.protocols.kraft.metadata import hosts
from quorisk.kernels.protocols.kraft.replication import breakdowns_left, is_led, may_be_disturbed
from quorisk.kernels.protocols.rows import WIDTH, nonempty, row

_BOUNDS = ("max_stalls",)


def follower_stalls_enabled(state, params):
    followers = state.con.replicas & ~state.con.leader & state.running & ~state.stalled
    return (where(state.stalls < params.max_stalls, followers, 0),)


@action(follower_stalls_enabled, "stall", bounds=_BOUNDS)
def follower_stalls(state, params, b, lost):
    """Each running replica that does not lead stalls: it fetches nothing until it resumes."""
    return state._replace(stalled=state.stalled | (1 << b), stalls=state.stalls + 1)


def follower_resumes_enabled(state, params):
    return (state.stalled,)


@action(follower_resumes_enabled, bounds=_BOUNDS)
def follower_resumes(state, params, b, lost):
    """Each replica that stalls fetches again."""
    return state._replace(stalled=state.stalled & ~(1 << b))


def removable(state, leaders):
    """Row b: the members of the ISR of leader b that stall."""
    found = 0
    for b in range(MAX_BROKERS):
        members = row(state.local.isrs, b) & state.stalled & ~(1 << b)
        found |= where((leaders >> b) & 1, members << (WIDTH * b), 0)
    return found


def leader_removes_stalled_enabled(state, params):
    leaders = where(state.stalled != 0, idle_leaders(state), 0)
    return (when(leaders != 0, removable, state, leaders),)


@action(leader_removes_stalled_enabled, interval_ms=("replica.lag.time.max.ms",), bounds=_BOUNDS)
def leader_removes_stalled(state, params, instance, lost):
    """Each leader asks the controller to remove each member of the ISR that stalls."""
    b = instance // WIDTH
    return request_isr(state, params, b, row(state.local.isrs, b) & ~(1 << (instance - WIDTH * b)))


def knows_the_isr(state, params):
    """Whether the first leader knows the current ISR and waits for no answer, and all brokers are up and heard.

    Its followers hear of no ISR before another leader is elected, so that what the ISR was before matters no more.
    """
    con = state.con
    b = lowest_bit(con.leader | 1 << (MAX_BROKERS - 1))
    current = row(state.local.partition_epochs, b) == con.partition_epoch
    told = (hosts(state) == con.replicas) & (state.register_requests | state.register_responses == 0)
    return is_led(state, params) & (con.leader_epoch == 1) & current & told


def counted_anew(state, params):
    """The state with a metadata log that begins at the current record, and of stalls those whose followers are not back
    in the ISR; as it is unless the leader knows the ISR and a fault is still to come."""
    con, log = state.con, state.log
    to_come = may_be_disturbed(state, params) | (breakdowns_left(state, params) != 0)
    begins = MetadataLog(*(Wide(wide_row(wide, con.partition_epoch - 1), 0) for wide in log))
    anew = state._replace(
        con=con._replace(partition_epoch=1),
        log=begins._replace(bumps=Wide(1, 0)),
        replicated=Wide((1 << params.brokers) - 1, 0),
        local=state.local._replace(partition_epochs=nonempty(state.local.partition_epochs)),
        alters=NOTHING.alters,
        stalls=popcount(state.stalled | (con.replicas & ~con.isr)),
    )
    return where(knows_the_isr(state, params) & to_come, anew, state)
