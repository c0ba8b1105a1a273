"""A cluster as numbers: nodes and racks, what is stored and where, how nodes are lost and repaired. Time is in years.

A *tick* is an instant at which nodes lose all that they store: one node alone, or those that an event takes, such as an
outage of the whole cluster, of a rack, or a bad batch of disks. A tick may also take one disk of a node: what is on its
other disks is kept, but the node is down as well. The copies of the b nodes that one tick takes are made anew in their
place: each of them at t + detection_delay + b x repair_time x U, U uniform on (0, 1) and independent for each ledger.
An *incident* is a tick at which something loses its last copy.
"""

from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple

RANDOM, TWO_RACKS, DISTINCT_RACKS, COPYSETS = PLACEMENTS = ("random", "two_racks", "distinct_racks", "copysets")
SCOPES = CLUSTER, RACK, BATCH, NODE = "cluster", "rack", "batch", "node"
SINGLES, AFTER, THIN = "single_losses", "single_losses_after_event", "thin_entries"
"""Causes of incidents that are no events: a node or disk lost alone, while no node or some node that a common cause
took is in repair; and a tick that took no whole write set."""
MOST_COPIES = 8
"""Largest ensemble, in members."""
VERSION = 6
"""Version of the model of a cluster's years: results of different versions never merge."""


class Thin(NamedTuple):
    """Acknowledged entries that have fewer copies than the write quorum, on random members of their write set."""

    copies: int
    number: float
    """Number of them at any time."""
    heals: bool
    """Whether their writer, if it lives, completes the other copies: then only outages of the whole cluster, which take
    writers as well, can lose them."""


class Event(NamedTuple):
    """A common cause: nodes that are lost at one instant, each with the same probability, independently."""

    name: str
    scope: str
    """Place of its nodes, one of SCOPES: the whole cluster, a rack, a batch of random nodes, or one node."""
    per_year: float
    """Times a year that it happens: to the cluster, or to some batch of its nodes; or to each rack, or to each node."""
    p_lost: float
    nodes: int = 0
    """Number of nodes of a batch, which are other ones each time. With scope NODE, number of nodes to which it
    happens, which are not like the others; 0 if it happens to all."""
    takes_unflushed: bool = False
    """Whether it takes unflushed entries, at all of its nodes and, for the whole cluster, at its writers."""
    first: int = 0
    """The first of these nodes; the others follow it."""

    @property
    def is_common(self) -> bool:
        """Whether it may take several nodes at once."""
        return self.scope != NODE

    @property
    def takes_writers(self) -> bool:
        """Whether it takes everything that is in memory only, in the whole cluster."""
        return self.scope == CLUSTER and self.takes_unflushed


class Cluster(NamedTuple):
    """A cluster; rates are a year's, times are in years."""

    nodes: int
    write_quorum: int
    ensemble_size: int
    """A ledger has one write set if it is the write quorum, else as many as it has members: neighbours on a ring."""
    ledgers: float
    entries_per_ledger: float
    racks: int = 1
    placement: str = RANDOM
    scatter_width: int = 0
    """Largest number of other nodes that have copies of a node's entries, with copysets."""
    sets: tuple[tuple[int, ...], ...] = ()
    """The ensembles themselves, if they are known: each ledger is on one of them, in the place of `placement`."""
    node_loss: float = 0.0
    """Times a year that a node is lost alone."""
    detection_delay: float = 0.0
    repair_time: float = 0.0
    """Time in which all copying nodes restore one node's data."""
    events: tuple[Event, ...] = ()
    thin: tuple[Thin, ...] = ()
    repair_queue: bool = False
    """Whether ticks are repaired one after another, as if by one team; else at the same time, and none the slower."""
    lifetime_shape: float = 1.0
    """Shape of a Weibull distribution: a node's hazard is node_loss on the average of its service life, and grows with
    the node's age to the power of this less 1."""
    service_life: float = 5.0
    """Age at which a node is replaced by a new one, without a loss."""
    batches: int = 0
    """Number of batches of nodes of the same age; 0 if each node has an age of its own."""
    disks_per_node: int = 1
    """Disks that a node's copies are on. A ledger is on the disk of the same number in all of its nodes."""
    disk_loss: float = 0.0
    """Times a year that one of them is lost alone."""

    @property
    def windows(self) -> int:
        """Write sets of a ledger, each with the same share of its entries."""
        return 1 if self.ensemble_size == self.write_quorum else self.ensemble_size

    @property
    def entries(self) -> float:
        """Number of stored entries."""
        return self.ledgers * self.entries_per_ledger

    @property
    def permutations(self) -> int:
        """Number of permutations of the nodes that copysets of the scatter width take, rounded up."""
        return -(-self.scatter_width // max(1, self.ensemble_size - 1))

    @property
    def rack_sizes(self) -> Mapping[int, int]:
        """Number of racks of each size; sizes differ by one at most."""
        size, larger = divmod(self.nodes, self.racks)
        return {size: self.racks - larger} | ({size + 1: larger} if larger else {})

    @property
    def is_ageing(self) -> bool:
        """Whether a node's hazard depends on its age."""
        return self.lifetime_shape != 1.0

    @property
    def causes(self) -> Mapping[str, bool]:
        """Causes of incidents, SINGLES first, AFTER and THIN last, and whether each is possible."""
        of_events = {event.name: self.hits_of(event) > 0.0 for event in self.events}
        follows = self.taken_alone > 0.0 and any(of_events[event.name] for event in self.events if event.is_common)
        thin = any(each.number > 0.0 for each in self.thin)
        return {SINGLES: self.taken_alone > 0.0, **of_events, AFTER: follows, THIN: thin}

    def scopes_of(self, event: Event) -> Mapping[int, int]:
        """Returns how many groups of nodes an event may happen to, by their number of nodes."""
        return {
            CLUSTER: {self.nodes: 1},
            RACK: self.rack_sizes,
            BATCH: {event.nodes: 1},
            NODE: {1: event.nodes or self.nodes},
        }[event.scope]

    def hits_of(self, event: Event) -> float:
        """Returns the times a year that an event takes a node, if it is up, on average over nodes."""
        return event.per_year * event.p_lost * ((event.nodes or self.nodes) / self.nodes)

    @property
    def taken_alone(self) -> float:
        """Times a year that a node is lost alone, or one of its disks is."""
        return self.node_loss + self.disks_per_node * self.disk_loss

    @property
    def hits(self) -> float:
        """Times a year that a tick takes a node, if it is up, on average over nodes."""
        return self.taken_alone + sum(map(self.hits_of, self.events))

    @property
    def most_hits(self) -> float:
        """Times a year that a tick takes the node that is taken most often, if it is up."""
        some = [event for event in self.events if event.scope == NODE and event.nodes]
        of_all = self.hits - sum(map(self.hits_of, some))
        more = [sum(e.per_year * e.p_lost for e in some if e.first <= one.first < e.first + e.nodes) for one in some]
        return of_all + max(more, default=0.0)

    @property
    def lost_alone(self) -> float:
        """Times a year that a node's copy of a ledger is lost with no other node, on average over nodes."""
        hits = sum(self.hits_of(event) for event in self.events if event.scope == NODE)
        return self.node_loss + self.disk_loss + hits

    @property
    def outages(self) -> float:
        """Times a year that everything is lost that is in memory only."""
        return sum(event.per_year for event in self.events if event.takes_writers)

    def with_outages(self, factor: float) -> "Cluster":
        """Returns the cluster with `factor` times as many events that take everything in memory."""
        scaled = {each: each._replace(per_year=factor * each.per_year) for each in self.events if each.takes_writers}
        return self._replace(events=tuple(scaled.get(each, each) for each in self.events))

    def with_repair(self, factor: float) -> "Cluster":
        """Returns the cluster whose repairs begin after `factor` times as long, and take `factor` times as long."""
        delay, time = factor * self.detection_delay, factor * self.repair_time
        return self._replace(detection_delay=delay, repair_time=time)

    @property
    def utilization(self) -> float:
        """Share of the time for which repairs one after another have work; 1 or more if they never catch up."""
        return self.nodes * self.hits * self.repair_time

    def window(self, lost: int) -> float:
        """Time until all copies of a tick that took `lost` nodes are back, if it waits for no other."""
        return self.detection_delay + lost * self.repair_time

    def span(self, lost: int) -> float:
        """Time for which such a tick counts: twice its window, so that it is known whether a node that was taken was
        down already; where repairs wait for each other, with the wait for as few others as lose a write set."""
        return 2.0 * self.window(lost + (self.write_quorum - 1) * self.repair_queue)

    @property
    def rack_starts(self) -> tuple[int, ...]:
        """The first node of each rack, the larger racks first; and the end."""
        sizes = sorted(self.rack_sizes.items(), reverse=True)
        return tuple(accumulate((size for size, number in sizes for _ in range(number)), initial=0))


class Units(NamedTuple):
    """Kinds of units that are lost or kept as a whole: ledgers first, then thin entries."""

    copies: tuple[int, ...]
    number: tuple[float, ...]
    entries: tuple[float, ...]
    """Entries of a write set; of a thin entry, one."""
    in_outages_only: tuple[bool, ...]


def units(cluster: Cluster) -> Units:
    """Returns the kinds of units that a cluster may lose."""
    thin = [each for each in cluster.thin if each.number > 0]
    return Units(
        (cluster.write_quorum, *(each.copies for each in thin)),
        (float(cluster.ledgers), *(float(each.number) for each in thin)),
        (cluster.entries_per_ledger / cluster.windows, *(1.0 for _ in thin)),
        (False, *(each.heals for each in thin)),
    )
