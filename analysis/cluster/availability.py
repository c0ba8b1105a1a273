"""Ledgers that cannot be read, or closed, because nodes do not answer: how many, and for how long.

A node does not answer while it restarts, and a copy on it is missing from its loss until it is made anew. Nodes do so
independently of each other (restarts one after another are better than that). A ledger cannot be read where all copies
of a write set are missing, and cannot be closed where a write set lacks so many answers that an entry may have been
acknowledged without those that are left: its ack quorum. Outages of the whole cluster come on top. The parts of ledgers
that cannot be read, closed or written while one node or rack is down are given separately.

Kafka's partitions take no writes while fewer than min.insync.replicas are in sync: replicas stay where they are.
BookKeeper's writers put another bookie in the place of one that does not answer; they wait for it if the ack quorum
needs it. If the placement allows no other bookie, the ledger is closed, whatever the ack quorum is, and no new one can
be opened.
"""

import math
from itertools import product
from typing import NamedTuple

from quorisk.kernels.cluster.placement import windows
from quorisk.kernels.cluster.racks import has_room_without, in_one_rack
from quorisk.kernels.cluster.setting import RACK, Cluster
from quorisk.say.quantities import YEAR_S


class Restarts(NamedTuple):
    """Restarts and outages: nodes are down for a while and keep their disks."""

    per_year: float = 0.0
    """Restarts of each node a year."""
    time: float = 0.0
    """Duration of a restart, in years."""
    outage_time: float = 0.0
    """Duration of an outage, of a rack or of the whole cluster, in years."""


class Unavailable(NamedTuple):
    """Ledgers that cannot be used in one way; outages of the whole cluster aside."""

    part: float
    """Fraction of the time for one ledger, and mean fraction of all ledgers at any time."""
    ledgers: float
    """Mean number of such ledgers at any time."""
    per_year: float
    """Number of times a year that this begins for some ledger."""
    mean_s: float
    """Mean duration, in seconds."""


class RackDown(NamedTuple):
    """Fractions of all ledgers that cannot be used while any one rack is down and all other nodes answer."""

    reading: float
    """Fraction that cannot be read; lost in part, if the rack is gone for good."""
    closing: float | None
    writing: float | None
    """Fraction that takes no writes; None if the number of answers that a write waits for is unknown."""
    has_room: bool
    """Whether writes go on once other nodes have taken the places of those that are down."""


class Writers(NamedTuple):
    """Answers that a write waits for, and when another node takes the place of one that does not answer."""

    needs: int
    """Number of a write set's answers: the ack quorum, or min.insync.replicas."""
    replaced_after_s: float = math.inf
    """Seconds after which another node takes the place of one that does not answer; infinite if none ever does,
    NaN if it is not known."""
    leaderless_for_s: float = 0.0
    """Seconds without a leader each time that one stops; NaN if they are not known."""


class Writing(NamedTuple):
    """Ledgers that take no writes because a node, a rack or the whole cluster does not answer."""

    node_down: float
    """Fraction of all ledgers that take no writes while any one node is down."""
    has_room: bool
    """Whether they take writes again once another node has taken its place."""
    minutes_per_year: float | None
    """Mean minutes a year for which a ledger takes no writes; None if it is unknown how long writers wait."""
    leaderless_for_s: float = 0.0
    """Seconds without a leader, each time that one stops."""
    electing_minutes: float = 0.0
    """Minutes of a year without a leader. Each restart counts, as if the leader did not hand over before."""

    @property
    def stops(self) -> bool:
        """Whether some writes stop for as long as a node is down, such as while it restarts."""
        return self.node_down > 0.0 and not self.has_room


class Availability(NamedTuple):
    """Ledgers of a cluster that cannot be used for a while."""

    reading: Unavailable
    closing: Unavailable | None
    """Ledgers that cannot be closed; None where no ack quorum is known."""
    outage_s_per_year: float
    """Seconds a year for which the whole cluster is down."""
    rack_down: RackDown | None = None
    """Ledgers that cannot be used while one rack is down; None if there is one rack."""
    writing: Writing | None = None
    """Ledgers that take no writes; None if the number of answers that writes wait for is unknown."""
    method: str = "solved, with nodes that answer independently of each other"


def availability(
    cluster: Cluster, restarts: Restarts, ack_quorum: int | None, writers: Writers | None = None
) -> Availability:
    """Returns how available a cluster's ledgers are."""
    away, begins = _away(cluster, restarts)
    closing = _unavailable(cluster, ack_quorum, away, begins) if ack_quorum else None
    reading = _unavailable(cluster, cluster.write_quorum, away, begins)
    down = _rack_down(cluster, ack_quorum, writers) if cluster.racks > 1 else None
    outage_s = cluster.outages * restarts.outage_time * YEAR_S
    writing = _writing(cluster, restarts, writers, down) if writers else None
    return Availability(reading, closing, outage_s, down, writing)


def _writing(cluster: Cluster, restarts: Restarts, writers: Writers, rack_down: RackDown | None) -> Writing:
    has_room = writers.replaced_after_s != math.inf and has_room_without(cluster, a_rack=False)
    fatal = _fatal(cluster, writers, has_room)
    most, forever = writers.replaced_after_s / YEAR_S, math.inf
    away = _away(cluster, restarts, most if has_room else forever)
    part = _unavailable(cluster, fatal, *away).part
    if rack_down:
        outages = sum(each.per_year for each in cluster.events if each.scope == RACK and each.takes_unflushed)
        time = restarts.outage_time
        a_rack = min(1.0, outages * (min(time, most) if rack_down.has_room else time))
        part = _with_racks(cluster, fatal, away[0], a_rack)
    part += cluster.outages * restarts.outage_time
    node_down = cluster.ensemble_size / cluster.nodes if fatal == 1 else 0.0
    waits = has_room or (rack_down is not None and rack_down.has_room)
    is_known = not (waits and math.isnan(writers.replaced_after_s))
    down = sum(cluster.hits_of(event._replace(p_lost=1.0)) for event in cluster.events)
    electing = (restarts.per_year + cluster.taken_alone + down) * writers.leaderless_for_s / 60.0
    minutes = part * YEAR_S / 60.0 + electing if is_known and not math.isnan(electing) else None
    return Writing(node_down, has_room, minutes, writers.leaderless_for_s, electing)


def _with_racks(cluster: Cluster, fatal: int, away: float, a_rack: float) -> float:
    """Fraction of the time for which `fatal` members of a write set do not answer, each for a part `away` of it by
    itself, and each rack for a part `a_rack`. No two racks are down together, unless each has one member at most."""
    masks = in_one_rack(cluster)
    if all(mask.bit_count() <= 1 for mask in masks):
        return _silent(cluster, fatal, 1.0 - (1.0 - away) * (1.0 - a_rack))
    during = sum(chance * _silent(cluster, fatal, away, mask) for mask, chance in masks.items())
    down = min(1.0, cluster.racks * a_rack)
    return (1.0 - down) * _silent(cluster, fatal, away) + down * during


def _silent(cluster: Cluster, fatal: int, away: float, down: int = 0) -> float:
    """Probability that `fatal` members of a write set do not answer, if those in the mask `down` do not."""
    size, spans = cluster.ensemble_size, windows(cluster.ensemble_size, cluster.write_quorum)
    others = [i for i in range(size) if not down >> i & 1]
    total = 0.0
    for silent in product((False, True), repeat=len(others)):
        mask = down | sum(1 << i for i, gone in zip(others, silent, strict=True) if gone)
        if any(sum(mask >> i & 1 for i in span) >= fatal for span in spans):
            total += away ** sum(silent) * (1.0 - away) ** (len(others) - sum(silent))
    return total


def _fatal(cluster: Cluster, writers: Writers, has_room: bool) -> int:
    """Number of members of a write set whose silence stops its writes."""
    closed = writers.replaced_after_s != math.inf and not has_room
    return 1 if closed else cluster.write_quorum - writers.needs + 1


def _rack_down(cluster: Cluster, ack_quorum: int | None, writers: Writers | None) -> RackDown:
    masks, spans = in_one_rack(cluster), windows(cluster.ensemble_size, cluster.write_quorum)

    def part(fatal: int) -> float:
        """Fraction of ledgers with at least `fatal` members of one write set in the rack."""
        return sum(p for mask, p in masks.items() if any(sum(mask >> i & 1 for i in span) >= fatal for span in spans))

    has_room = writers is not None and writers.replaced_after_s != math.inf and has_room_without(cluster)
    return RackDown(
        part(cluster.write_quorum),
        part(ack_quorum) if ack_quorum else None,
        part(_fatal(cluster, writers, has_room)) if writers else None,
        has_room,
    )


def _away(cluster: Cluster, restarts: Restarts, most: float = math.inf) -> tuple[float, float]:
    """Fraction of the time for which a copy is missing, counting `most` years each time at most; and how often a year
    that begins."""
    losses = [(cluster.taken_alone, 1.0)]
    for event in cluster.events:
        groups = cluster.scopes_of(event)
        size = sum(nodes * number for nodes, number in groups.items()) / sum(groups.values())
        losses.append((cluster.hits_of(event), 1.0 + (size - 1.0) * event.p_lost))
    each = [(rate, cluster.detection_delay + lost * cluster.repair_time / 2.0) for rate, lost in losses]
    missing = sum(rate * min(time, most) for rate, time in each)
    restarting = restarts.per_year * min(restarts.time, most)
    there = 1.0 / (1.0 + missing) / (1.0 + restarting)
    return 1.0 - there, sum(rate for rate, _ in losses) + restarts.per_year


def _unavailable(cluster: Cluster, fatal: int, away: float, begins: float) -> Unavailable:
    """Ledgers with `fatal` members of a write set that do not answer.

    It begins when a critical member stops answering: one without which it is not so, and with which it is. A member is
    up and critical with the probability of the state if that member is down, less that of the state whatever it is.
    """
    part, size = _silent(cluster, fatal, away), cluster.ensemble_size
    per_year = begins * sum(_silent(cluster, fatal, away, 1 << i) - part for i in range(size))
    mean_s = part / per_year * YEAR_S if per_year else 0.0
    return Unavailable(part, cluster.ledgers * part, cluster.ledgers * per_year, mean_s)
