"""What was odd in data: how often, and where first. Nothing is left out of a count in silence."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


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
        told[what] = Seen(before.times + times, before.where or where) if before else Seen(times, where)


def together(each: Iterable[Mapping[Odd, Seen]]) -> Told:
    """Returns what was told in several places, in the order of first appearance."""
    whole: Told = {}
    for one in each:
        for what, seen in one.items():
            tell(whole, what, seen.times, seen.where)
    return whole
