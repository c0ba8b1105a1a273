"""Power outages: all brokers, or those of a zone, go down at one instant. Beyond the specs, but made of their steps.

Each broker has lost its log with the action's probability, independently, and else keeps what it had flushed: a lossy
shutdown, or an unclean one. A broker that was down loses what its page cache still had. Nobody can act in between,
but the controller fences one broker after the other, in ascending order but for the last. Which one that is matters:
a broker alone in the ISR stays its last member (as of 3.5), or is the last known leader. In these elections it is
that broker that is elected if it can be, else the first candidate in the order of the assignment, as brokers have it.
Instances: the broker that is fenced last; of a zone's outages, row of the zone + that broker.
"""

from quorisk.kernels.model import EVERYTHING, action
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.kraft.controller import handle_broker_fenced
from quorisk.kernels.protocols.kraft.layout import ALL_BROKERS, EVERY_BROKER, MAX_BROKERS, forget
from quorisk.kernels.protocols.kraft.lifecycle import go_down, lose_logs, lose_tails, unacknowledged
from quorisk.kernels.protocols.rows import WIDTH, row

_FAULT = "power outage"


def up(state):
    """The brokers that may go down."""
    return state.running | state.starting


def fenced_in_turn(state, params, brokers, last):
    """The state once the controller has fenced these brokers, of which `last` comes last."""
    for b in range(MAX_BROKERS):
        fenced = handle_broker_fenced(state, params, b, 1 << last)
        state = where(((brokers >> b) & 1 != 0) & (b != last), fenced, state)
    return handle_broker_fenced(state, params, last, 1 << last)


def lose_power(state, params, machines, last, lost):
    """These brokers' machines stop at one instant, those of `lost` for good."""
    brokers = machines & up(state)
    refused = 0
    for b in range(MAX_BROKERS):
        refused |= when(((brokers & state.leaders) >> b) & 1 != 0, unacknowledged, state, b)
    fenced = fenced_in_turn(state, params, brokers, last)
    return forget(lose_tails(lose_logs(go_down(fenced, params, brokers, refused), lost), machines))


def cluster_loses_power_enabled(state, params):
    return (where(state.outages < params.max_outages, up(state), 0),)


def brokers_that_lose_power(state, params, last):
    return up(state)


@action(
    cluster_loses_power_enabled,
    _FAULT,
    sends=brokers_that_lose_power,
    shared=EVERYTHING,
    lost_with="p_lost_in_outage",
    needs=("max_outages",),
)
def cluster_loses_power(state, params, last, lost):
    """The cluster loses power: all brokers at once, whichever is fenced last."""
    return lose_power(state, params, ALL_BROKERS, last, lost)._replace(outages=state.outages + 1)


def zone_loses_power_enabled(state, params):
    return (where(state.zone_outages < params.max_zone_outages, params.zones & (up(state) * EVERY_BROKER), 0),)


def brokers_of_zone_that_lose_power(state, params, instance):
    return row(params.zones, instance // WIDTH) & up(state)


@action(
    zone_loses_power_enabled,
    _FAULT,
    sends=brokers_of_zone_that_lose_power,
    shared=WIDTH,
    lost_with="p_lost_in_zone_outage",
    needs=("max_zone_outages",),
)
def zone_loses_power(state, params, instance, lost):
    """Each zone loses power: all of its brokers at once, whichever is fenced last."""
    zone = instance // WIDTH
    return lose_power(state, params, row(params.zones, zone), instance - WIDTH * zone, lost)._replace(
        zone_outages=state.zone_outages + 1
    )
