"""Followers that stall: they are up and may be elected, and fetch nothing. Beyond the specs.

A garbage collection, a slow disk or a network without room does that to a broker. A partition that is written to all
the time leaves such a follower behind at once, and its leader asks the controller to take it out of the ISR once
`replica.lag.time.max.ms` are over. It joins again when it has resumed and caught up. Instances: the follower; of
removals, row of the leader + the follower.
"""

from quorisk.kernels.model import action
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.kraft.layout import MAX_BROKERS
from quorisk.kernels.protocols.kraft.leader import idle_leaders, request_isr
from quorisk.kernels.protocols.rows import WIDTH, row

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
