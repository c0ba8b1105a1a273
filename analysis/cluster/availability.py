"""Ledgers that cannot be read, or closed, because nodes do not answer: how many, and for how long.

A node does not answer while it restarts, and a copy on it is missing from its loss until it is made anew. Nodes do so
independently of each other (restarts one after another are better than that). A ledger cannot be read where all copies
of a write set are missing, and cannot be closed where a write set lacks so many answers that an entry may have been
acknowledged without those that are left: its ack quorum. Outages of the whole cluster come on top. Of a rack that is
down it is told apart what cannot be read, closed or written meanwhile.
"""

from itertools import product
from typing import NamedTuple

from quorisk.kernels.cluster.placement import windows
from quorisk.kernels.cluster.racks import has_room_without, in_one_rack
from quorisk.kernels.cluster.setting import Cluster
from quorisk.say.quantities import YEAR_S


class Restarts(NamedTuple):
    """What takes nodes for a while, and nothing on them."""

    per_year: float = 0.0
    """Of each node."""
    time: float = 0.0
    """That each takes, in years."""
    outage_time: float = 0.0
    """How long an outage of the whole cluster lasts, in years."""


class Unavailable(NamedTuple):
    """Ledgers that cannot be used in one way; outages of the whole cluster aside."""

    part: float
    """Of the time, of one ledger; or of all ledgers at any time."""
    ledgers: float
    """How many they are at any time, on average."""
    per_year: float
    """How often that begins for some ledger, a year."""
    mean_s: float
    """How long it lasts."""


class RackDown(NamedTuple):
    """What cannot be used while one rack is down, whichever it is, and all other nodes answer: parts of all ledgers."""

    reading: float
    """Cannot be read; lost in part, if the rack is gone for good."""
    closing: float | None
    writing: float | None
    """Writes stop; None where it is not known how many answers they wait for."""
    has_room: bool
    """Whether writes go on once other nodes have taken the places of those that are down."""


class Availability(NamedTuple):
    """What of a cluster cannot be used for a while."""

    reading: Unavailable
    closing: Unavailable | None
    """None where no ack quorum is known."""
    outage_s_per_year: float
    """How long all of the cluster is out, a year."""
    rack_down: RackDown | None = None
    """None if there is one rack."""
    method: str = "solved, with nodes that answer independently of each other"


def availability(
    cluster: Cluster, restarts: Restarts, ack_quorum: int | None, write_needs: int | None = None
) -> Availability:
    """Returns how available a cluster's ledgers are; a write waits for `write_needs` answers at least."""
    away, begins = _away(cluster, restarts)
    closing = _unavailable(cluster, ack_quorum, away, begins) if ack_quorum else None
    reading = _unavailable(cluster, cluster.write_quorum, away, begins)
    down = _rack_down(cluster, ack_quorum, write_needs) if cluster.racks > 1 else None
    return Availability(reading, closing, cluster.outages * restarts.outage_time * YEAR_S, down)


def _rack_down(cluster: Cluster, ack_quorum: int | None, write_needs: int | None) -> RackDown:
    masks, spans = in_one_rack(cluster), windows(cluster.ensemble_size, cluster.write_quorum)

    def part(fatal: int) -> float:
        """Of ledgers of which a write set has so many members in the rack."""
        return sum(p for mask, p in masks.items() if any(sum(mask >> i & 1 for i in span) >= fatal for span in spans))

    copies = cluster.write_quorum
    return RackDown(
        part(copies),
        part(ack_quorum) if ack_quorum else None,
        part(copies - write_needs + 1) if write_needs else None,
        ack_quorum is not None and has_room_without(cluster),
    )


def _away(cluster: Cluster, restarts: Restarts) -> tuple[float, float]:
    """The part of the time for which a copy is not there, and how often a year that begins."""
    losses = [
        (cluster.node_loss, 1.0),
        (cluster.outages * cluster.p_lost_in_outage, 1.0 + (cluster.nodes - 1) * cluster.p_lost_in_outage),
        (
            cluster.rack_outages * cluster.p_lost_in_rack_outage,
            1.0 + (cluster.nodes / cluster.racks - 1) * cluster.p_lost_in_rack_outage,
        ),
    ]
    missing = sum(rate * (cluster.detection_delay + lost * cluster.repair_time / 2.0) for rate, lost in losses)
    restarting = restarts.per_year * restarts.time
    there = 1.0 / (1.0 + missing) / (1.0 + restarting)
    return 1.0 - there, sum(rate for rate, _ in losses) + restarts.per_year


def _unavailable(cluster: Cluster, fatal: int, away: float, begins: float) -> Unavailable:
    """Ledgers of which a write set has `fatal` members that do not answer.

    It begins when a member goes without which it would not be: the sum over states of their chance, and over members
    that would make the difference of how often they go.
    """
    size = cluster.ensemble_size
    spans = windows(size, cluster.write_quorum)

    def is_out(gone: tuple[bool, ...]) -> bool:
        return any(sum(gone[i] for i in span) >= fatal for span in spans)

    part = per_year = 0.0
    for gone in product((False, True), repeat=size):
        chance = away ** sum(gone) * (1.0 - away) ** (size - sum(gone))
        if is_out(gone):
            part += chance
            continue
        critical = sum(is_out((*gone[:i], True, *gone[i + 1 :])) for i in range(size) if not gone[i])
        per_year += chance * critical * begins / (1.0 - away)
    mean_s = part / per_year * YEAR_S if per_year else 0.0
    return Unavailable(part, cluster.ledgers * part, cluster.ledgers * per_year, mean_s)
