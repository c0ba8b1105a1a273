"""Promises of a protocol on an acknowledged entry: the form of the answers of `promise` in a protocol's `promises`."""

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, NamedTuple


class Promise(NamedTuple):
    """The promise of a configuration, whatever its runs show."""

    copies: int
    """The fewest copies of an entry when it is acknowledged."""
    stored: int
    """The copies of an entry in the end, if nothing breaks: those that storage is paid for."""
    on_disk: bool
    """Whether these copies survive a power cut when the entry is acknowledged; else they are in the page cache."""
    nodes: int
    """Number of nodes that may be lost at once when an entry is acknowledged, whichever they are."""
    zones: int
    """Number of zones that may be lost in their place."""
    asked: int
    """Copies that a write may wait for: all of them, or the leader's alone."""
    waits_for: int
    """Number of these answers that a write waits for."""
    node: str = "node"
    """The protocol's word for a node: "bookie", "broker". Targets may be written with that word, too."""
    zone: str = "zone"
    """The protocol's word for a zone."""
    provided: str = ""
    """Other faults of a node that lose data all the same, in words: ", but no empty restart"."""

    replaced_after: float = inf
    """Time for which a writer waits for a node that is down before it goes on with another one, in model time; infinite
    if it never does, as a partition's replicas stay where they are."""
    leaderless_for: float = 0.0
    """Mean time without a leader after one stops without handing over, in model time; 0 if none is needed, or the
    protocol does not tell."""
    last_leads: bool = False
    """Whether the last node in sync leads once it is back, even with an empty disk: others then drop what it lacks."""
    by_majority: bool = False
    """Whether any majority of the nodes elects a leader and acknowledges, without the others."""
    uncounted: str = ""
    """Reason why copies on disks do not tell what a cluster of such nodes loses; empty if they do."""

    @property
    def stops_with_one(self) -> bool:
        """Whether writes stop while any one of the nodes that have copies is down."""
        return self.copies == self.stored and self.replaced_after == inf

    @property
    def survives(self) -> str:
        """Nodes or zones that may be lost at once, in words: "1 bookie or 1 zone", "1 bookie, but no empty restart"."""
        zones = f" or {several(self.zones, self.zone)}" if self.zones else ""
        return several(self.nodes, self.node) + zones + self.provided


class FewCopies(NamedTuple):
    """The time of acknowledged entries at one number of copies, which is below that stored in the end."""

    time: float
    """Mean time for which an entry has this many copies, until the next one is stored."""
    p_stays: float
    """The probability that it never has more."""


Promises = Callable[[Mapping[str, Any]], Promise]
"""`promise(values)`: the promise of a configuration, from its parameters by dotted key."""


def several(num: int, what: str) -> str:
    """Returns a number of things in words: "no bookie", "1 bookie", "2 bookies"."""
    return f"{num or 'no'} {what}{'s' if num > 1 else ''}"
