"""Oddities in data: how often each was seen, and where first. Nothing is left out of a count in silence."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quorisk.analysis.experiment.characters import one_line


class Odd(NamedTuple):
    """Something odd in data."""

    what: str
    done: str
    """The consequence, such as "left out"."""


class Seen(NamedTuple):
    """The sightings of something odd."""

    times: int
    where: str
    """The first place where it was seen; empty if there is none to give."""


Told = dict[Odd, Seen]


def tell(told: Told, what: Odd, times: int = 1, where: str = "") -> None:
    """Adds `times` sightings of something odd; nothing if that is 0."""
    if times:
        before = told.get(what)
        there = before.where if before else ""
        told[what] = Seen(times + (before.times if before else 0), there or one_line(where))


def together(each: Iterable[Mapping[Odd, Seen]]) -> Told:
    """Returns the oddities of several places together, in the order of first appearance."""
    whole: Told = {}
    for one in each:
        for what, seen in one.items():
            tell(whole, what, seen.times, seen.where)
    return whole
