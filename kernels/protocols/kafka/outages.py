"""Power outages: all replicas, or those of a zone, restart at one instant without what they had not flushed.

Beyond the specifications: tests/data/tla/FLUSH.md has one replica's restart. The controller sees them fail one after
another before they are back, with one leader epoch for all; the last one in the ISR stays there, as Kafka has it. If
all members of the ISR fail, the instances are these members, and the one chosen stays. Else there is one instance, the
first replica that restarts. Of a zone's outages they are in the row of the zone.
"""

from quorisk.kernels.model import EVERYTHING, action
from quorisk.kernels.ops import where
from quorisk.kernels.protocols.kafka.layout import MAX_REPLICAS, keep, presiding, quorum_leader
from quorisk.kernels.protocols.kafka.replication import controller_update_isr
from quorisk.kernels.protocols.rows import WIDTH, gathered, nonempty, row, rows

_FAULT = "power outage"


def noticed(state, replicas):
    """Whether the controller notices that these replicas fail: one leads, or is in the ISR."""
    return (state.quorum_isr | quorum_leader(state)) & replicas != 0


def may_stay(state, params, replicas):
    """Replicas, one of which may stay in the ISR as all fail; none if no leader epoch is left for that."""
    all_fail = (state.quorum_isr != 0) & (state.quorum_isr & ~replicas == 0)
    instances = where(all_fail, state.quorum_isr, replicas & -replicas)
    return where(noticed(state, replicas) & (state.next_epoch >= params.epochs), 0, instances)


def lose_power(state, replicas, last):
    """These replicas restart with what is on their disks; if all members of the ISR do, `last` stays in it."""
    rest = state.quorum_isr & ~replicas
    isr = where(rest != 0, rest, state.quorum_isr & (1 << last))
    seen = controller_update_isr(state, quorum_leader(state) & ~replicas, isr)
    deposed = state.deposed | (gathered(nonempty(presiding(state))) & replicas)
    state = where(noticed(state, replicas), seen, state)
    return keep(state, ~(state.unflushed & rows(replicas)))._replace(deposed=deposed)


def cluster_loses_power_enabled(state, params):
    everyone = (1 << params.replicas) - 1
    return (where(state.outages < params.max_outages, may_stay(state, params, everyone), 0),)


@action(cluster_loses_power_enabled, _FAULT, shared=EVERYTHING, needs=("max_outages",))
def cluster_loses_power(state, params, last, lost):
    """The cluster loses power: all replicas at once, whichever stays in the ISR."""
    return lose_power(state, (1 << params.replicas) - 1, last)._replace(outages=state.outages + 1)


def zone_loses_power_enabled(state, params):
    instances = 0
    for zone in range(MAX_REPLICAS):
        instances |= may_stay(state, params, row(params.zones, zone)) << (WIDTH * zone)
    return (where(state.zone_outages < params.max_zone_outages, instances, 0),)


@action(zone_loses_power_enabled, _FAULT, shared=WIDTH, needs=("max_zone_outages",))
def zone_loses_power(state, params, instance, lost):
    """Each zone loses power: all of its replicas at once, whichever stays in the ISR."""
    zone = instance // WIDTH
    after = lose_power(state, row(params.zones, zone), instance - WIDTH * zone)
    return after._replace(zone_outages=state.zone_outages + 1)
