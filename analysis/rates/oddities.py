"""Oddities in data: how often each was seen, and where first. Nothing is left out of a count in silence."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quorisk.analysis.experiment.characters import one_line


class Oddity(NamedTuple):
    """Something odd in data."""

    what: str
    done: str
    """The consequence, such as "left out"."""


class Sightings(NamedTuple):
    """The sightings of something odd."""

    times: int
    where: str
    """The first place where it was seen; empty if it has none."""


Oddities = dict[Oddity, Sightings]


def note(oddities: Oddities, what: Oddity, times: int = 1, where: str = "") -> None:
    """Adds `times` sightings of something odd; nothing if that is 0."""
    if times:
        before = oddities.get(what)
        there = before.where if before else ""
        oddities[what] = Sightings(times + (before.times if before else 0), there or one_line(where))


def merge_oddities(each: Iterable[Mapping[Oddity, Sightings]]) -> Oddities:
    """Returns the oddities of several places together, in the order of first appearance."""
    whole: Oddities = {}
    for one in each:
        for what, seen in one.items():
            note(whole, what, seen.times, seen.where)
    return whole
