"""Sums of scenarios in a year: losses, incidents and P(any loss), with intervals that hold.

A scenario's event happens `per_year` times, and touches `hits` objects each time, each of which is lost with
probability P. Expected losses a year are the sum of per_year x hits x P. Of an event's objects nobody knows how they
fail together, unless the scenario says so. If they share one fate, an event is an incident with probability P; if they
are independent, with probability 1 - (1 - P)^hits. What lies between is between these two ends. Events come as a
Poisson process, so that P(any loss in a year) is 1 - exp(-incidents a year).

An interval is from the sum of the low ends to the sum of the high ones, of intervals that hold all together
(Bonferroni): it holds at least as often as it says, however the scenarios depend on each other, as they do under one
seed. It is wider than it need be, by little where one scenario decides. Scenarios that were solved exactly have no
interval, and no part in the adjustment.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorisk.analysis.statistics.sequential import simultaneous

EXACT = "exact"
METHOD = "sum of the ends of intervals that hold together (Bonferroni)"
SHARED, INDEPENDENT = FATES = ("shared", "independent")
"""Fates of the objects that one event touches: lost or kept all together, or independently of each other."""
SAME = 0.01
"""Losses that differ by less, relatively, are no reason to choose: no rate is known that well."""
_ALMOST = 1.0 - 1e-16


class Ends(NamedTuple):
    """An estimate, and the ends of its interval."""

    value: float = 0.0
    low: float = 0.0
    high: float = 0.0

    def plus(self, other: "Ends") -> "Ends":
        """Returns the sum, end by end."""
        return Ends(*(a + b for a, b in zip(self, other, strict=True)))


NOTHING = Ends()


def tied_from(low: float) -> float:
    """Returns the least upper end of an interval that is tied with another one, whose lower end is `low`."""
    return low * (1.0 - SAME)


def disagree(first: tuple[Ends, Ends], second: tuple[Ends, Ends]) -> bool:
    """Whether two measures are for different designs, neither tied: the first measure is lower for the first design,
    and the second measure for the second design."""
    return first[0].high < tied_from(second[0].low) and second[1].high < tied_from(first[1].low)


class YearPart(NamedTuple):
    """Contribution of one scenario to a year."""

    per_year: float
    """Number of times a year that the scenario's event happens."""
    p: float
    """The probability that an object is lost each time."""
    low: float
    high: float
    """The upper end of an interval at the confidence of `confidence_of_each`; low and high are `p` if that is exact."""
    hits: float = 1.0
    """The objects that each event touches."""
    fates: str = ""
    """One of FATES, for these objects given the event; empty if it is unknown."""

    def incidents(self, fates: str, p: float) -> float:
        """Returns events a year that lose at least one object, under one of FATES, at a probability `p` of each."""
        if fates == SHARED or p >= 1.0:
            return self.per_year * p
        return self.per_year * -math.expm1(self.hits * math.log1p(-p))


class YearlyLosses(NamedTuple):
    """Expected losses a year."""

    p: float
    """The estimate. Where no loss was seen it is 0, and only `high` is known."""
    low: float
    high: float
    confidence: float
    """The confidence with which low and high hold; 1 if all parts are exact."""
    method: str


def confidence_of_each(confidence: float, num_sampled: int) -> float:
    """Returns the confidence that each sampled scenario's interval needs for that of their sum to have `confidence`."""
    return simultaneous(confidence, max(num_sampled, 1))


def add_up(parts: Sequence[YearPart], confidence: float) -> YearlyLosses:
    """Returns the losses of some scenarios, whose sampled ones have intervals at the confidence of
    `confidence_of_each`.

    >>> add_up([YearPart(1000.0, 1e-6, 1e-6, 1e-6), YearPart(2.0, 0.01, 0.005, 0.02)], 0.95)[:3]
    (0.021, 0.011, 0.041)
    """
    exact = all(part.low == part.high for part in parts)
    return YearlyLosses(*lost_a_year(parts), 1.0 if exact else confidence, EXACT if exact else METHOD)


def lost_a_year(parts: Iterable[YearPart]) -> Ends:
    """Returns the objects that some scenarios lose in a year."""
    each = [Ends(*(part.per_year * part.hits * p for p in (part.p, part.low, part.high))) for part in parts]
    return Ends(*(math.fsum(ends) for ends in zip(NOTHING, *each, strict=True)))


def incidents(parts: Iterable[YearPart], fates: str = "") -> Ends:
    """Returns the incidents of some scenarios in a year. Where a scenario does not say how the objects of an event fail
    together, the estimate and the upper end are those of independent ones, and the lower end is that of one fate; if
    one of FATES is given, it holds for all three."""
    each = []
    for part in parts:
        known = part.fates or fates
        ways = known or INDEPENDENT, known or SHARED, known or INDEPENDENT
        each.append([part.incidents(way, p) for way, p in zip(ways, (part.p, part.low, part.high), strict=True)])
    return Ends(*(math.fsum(ends) for ends in zip(NOTHING, *each, strict=True)))


def p_any(rate: Ends, of_cluster: Ends = NOTHING) -> Ends:
    """Returns P(any loss in a year), at this rate of incidents beside those of a cluster, which has a loss with this
    probability.

    >>> p_any(Ends(0.5, 0.0, 1.0), Ends(0.1, 0.1, 0.1)).low
    0.1
    """
    return Ends(*(-math.expm1(math.log1p(-min(p, _ALMOST)) - often) for often, p in zip(rate, of_cluster, strict=True)))


def is_open(parts: Iterable[YearPart]) -> bool:
    """Returns whether it matters that scenarios do not say how the objects of an event fail together."""
    return any(not part.fates and part.hits > 1.0 and part.high > 0.0 for part in parts)
