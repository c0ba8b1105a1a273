"""What was odd in data: how often, and where first. Nothing is left out of a count in silence."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quorisk.analysis.experiment.characters import one_line


class Odd(NamedTuple):
    """Something odd in data."""

    what: str
    done: str
    """What was done about it: "left out"."""


class Seen(NamedTuple):
    """How often something odd was seen."""

    times: int
    where: str
    """The first place, for whoever wants to look; empty if there is none to tell."""


Told = dict[Odd, Seen]


def tell(told: Told, what: Odd, times: int = 1, where: str = "") -> None:
    """Adds that something odd was seen so many times; nothing if that is 0."""
    if times:
        before = told.get(what)
        there = before.where if before else ""
        told[what] = Seen(times + (before.times if before else 0), there or one_line(where))


def together(each: Iterable[Mapping[Odd, Seen]]) -> Told:
    """Returns what was told in several places, in the order of first appearance."""
    whole: Told = {}
    for one in each:
        for what, seen in one.items():
            tell(whole, what, seen.times, seen.where)
    return whole
