"""Leaders that are cut off from the controller and the other brokers, and not from producers. Beyond the specs.

Such a leader goes on taking records, and with acks=1 acknowledges them; its followers get nothing from it, and its ISR
cannot change. The controller fences it once `broker.session.timeout.ms` are over without a heartbeat, and has another
broker lead. At the end of its isolation it hears of that, and truncates. Instances: the broker; of fencing, row of the
broker + the new leader.
"""

from quorisk.kernels.model import action
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.kraft.controller import fence_instances, handle_broker_fenced
from quorisk.kernels.protocols.kraft.layout import forget
from quorisk.kernels.protocols.kraft.lifecycle import drop_fetch_sessions
from quorisk.kernels.protocols.rows import WIDTH

_BOUNDS = ("max_isolations",)


def leader_is_isolated_enabled(state, params):
    leader = state.con.leader & state.leaders & state.running & ~state.isolated
    return (where(state.isolations < params.max_isolations, leader, 0),)


@action(leader_is_isolated_enabled, "isolated leader", bounds=_BOUNDS)
def leader_is_isolated(state, params, b, lost):
    """Each broker, while it leads, is cut off from the controller and the other brokers."""
    state = forget(drop_fetch_sessions(state, 1 << b))
    return state._replace(isolated=state.isolated | (1 << b), isolations=state.isolations + 1)


def isolation_ends_enabled(state, params):
    return (state.isolated,)


@action(isolation_ends_enabled, bounds=_BOUNDS)
def isolation_ends(state, params, b, lost):
    """Each isolated broker is connected again."""
    return state._replace(isolated=state.isolated & ~(1 << b))


def session_times_out_enabled(state, params):
    silent = state.isolated & state.unfenced
    return (when(silent != 0, fence_instances, state, params, silent),)


@action(session_times_out_enabled, shared=WIDTH, interval_ms=("broker.session.timeout.ms",), bounds=_BOUNDS)
def session_times_out(state, params, instance, lost):
    """Each broker that is cut off is fenced, whoever leads next."""
    b = instance // WIDTH
    return handle_broker_fenced(state, params, b, 1 << (instance - WIDTH * b))
