"""Rolls: an operator restarts the brokers one after another, in ascending order. Beyond the specs.

Each is shut down cleanly. A gated roll restarts the next one once no restart is under way and all replicas are in the
ISR (no partition is under-replicated); one without a gate does not look. Instances: of the roll, one; of a restart, row
of the broker + the new leader that the controller chooses; of its end, the broker.
"""

from quorisk.kernels.model import action, variant_of
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.kraft.controller import fence_instances
from quorisk.kernels.protocols.kraft.lifecycle import broker_start, shut_down_cleanly
from quorisk.kernels.protocols.rows import WIDTH

_BOUNDS = ("max_rolls",)


def roll_begins_enabled(state, params):
    begins = (state.rolls < params.max_rolls) & (state.to_restart | state.restarting == 0)
    return (where(begins, 1, 0),)


@action(roll_begins_enabled, "roll", bounds=_BOUNDS)
def roll_begins(state, params, instance, lost):
    """An operator begins to restart all brokers, one after another, while no other roll is under way."""
    return state._replace(to_restart=(1 << params.brokers) - 1, rolls=state.rolls + 1)


def roll_restarts_enabled(state, params):
    """The next broker of the roll, while it runs and the gate is open."""
    following = state.to_restart & -state.to_restart & state.running
    in_sync = (state.restarting == 0) & (state.con.replicas & ~state.con.isr == 0)
    following = where((params.gated_rolls == 0) | in_sync, following, 0)
    return (when(following != 0, fence_instances, state, params, following),)


@action(roll_restarts_enabled, shared=WIDTH, bounds=_BOUNDS)
def roll_restarts(state, params, instance, lost):
    """The operator shuts the next broker of a roll down, cleanly, once its gate is open, whoever leads next."""
    broker = 1 << (instance // WIDTH)
    stopped = shut_down_cleanly(state, params, instance)
    return stopped._replace(to_restart=state.to_restart & ~broker, restarting=state.restarting | broker)


@variant_of(broker_start, counts="Each broker that a roll shut down starts.", bounds=_BOUNDS)
def restart_ends(state, params):
    return (state.restarting,)
