"""What a protocol promises of an acknowledged entry: the form of what `promise` returns in a protocol's `promises`."""

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, NamedTuple


class Promise(NamedTuple):
    """What a configuration promises, whatever its runs say."""

    copies: int
    """The fewest copies of an entry when it is acknowledged."""
    stored: int
    """The copies of an entry in the end, if nothing breaks: what storage is paid for."""
    on_disk: bool
    """Whether these copies survive a power cut when the entry is acknowledged; else they are in the page cache."""
    nodes: int
    """How many nodes may be lost at once when an entry is acknowledged, whichever they are."""
    zones: int
    """How many zones may be lost in their place."""
    asked: int
    """The copies whose answers a write may wait for: all of them, or its leader's alone."""
    waits_for: int
    """How many of these answers a write waits for."""
    node: str = "node"
    """What the protocol calls a node: "bookie", "broker". Targets may be written with that word, too."""
    zone: str = "zone"
    """What a zone is called."""
    provided: str = ""
    """What else a node may do that loses data for all that, in words: ", but no empty restart"."""

    replaced_after: float = inf
    """How long a writer waits for a node that is down before it goes on with another one, in model time; infinite if
    it never does, as a partition's replicas stay where they are."""
    leaderless_for: float = 0.0
    """How long nobody leads once a leader stops that hands nothing over, on average, in model time; 0 if nobody has to
    lead, or the protocol does not tell."""

    @property
    def stops_with_one(self) -> bool:
        """Whether writes stop while any one of the nodes that have copies is down."""
        return self.copies == self.stored and self.replaced_after == inf

    @property
    def survives(self) -> str:
        """What may be lost at once, in words: "1 bookie or 1 zone", "1 bookie, but no empty restart"."""
        zones = f" or {several(self.zones, self.zone)}" if self.zones else ""
        return several(self.nodes, self.node) + zones + self.provided


class FewCopies(NamedTuple):
    """What acknowledged entries have of one number of copies that is below what is stored in the end."""

    time: float
    """For so long an entry has this many copies on average, until the next one is stored."""
    p_stays: float
    """The probability that it never has more."""


Promises = Callable[[Mapping[str, Any]], Promise]
"""`promise(values)`: what a configuration promises, from its parameters by dotted key."""


def several(num: int, what: str) -> str:
    """Returns so many of something in words: "no bookie", "1 bookie", "2 bookies"."""
    return f"{num or 'no'} {what}{'s' if num > 1 else ''}"
