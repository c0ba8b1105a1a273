"""Losses a year: what scenarios add up to, with an interval that holds, and the mean time between them.

The expected losses of a year are the sum over scenarios of per_year x P(loss). Its interval is from the sum of the low
ends to the sum of the high ones, of intervals that hold all together (Bonferroni): it holds at least as often as it
says, however the scenarios depend on each other, as they do under one seed. It is wider than it need be, by little
where one scenario decides. Scenarios that were solved exactly have no interval, and no part in the adjustment.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from quorisk.analysis.statistics.sequential import simultaneous

EXACT = "exact"
METHOD = "sum of the ends of intervals that hold together (Bonferroni)"


class Part(NamedTuple):
    """What one scenario contributes."""

    per_year: float
    """How many times a year it happens."""
    p: float
    """The probability of a loss each time."""
    low: float
    high: float
    """The upper end of an interval at the confidence of `confidence_of_each`; low and high are `p` if that is exact."""


class Losses(NamedTuple):
    """Expected losses a year."""

    p: float
    """The estimate. Where no loss was seen it is 0, and `high` is what is known."""
    low: float
    high: float
    confidence: float
    """The confidence with which low and high hold; 1 if all parts are exact."""
    method: str

    @property
    def years_between(self) -> tuple[float, float, float]:
        """The mean time between losses in years, by the estimate, and at least and at most; infinite for none."""
        estimate, least, most = (1.0 / rate if rate > 0 else math.inf for rate in (self.p, self.high, self.low))
        return estimate, least, most


def confidence_of_each(confidence: float, num_sampled: int) -> float:
    """Returns the confidence that each sampled scenario's interval needs for that of their sum to have `confidence`."""
    return simultaneous(confidence, max(num_sampled, 1))


def add_up(parts: Sequence[Part], confidence: float) -> Losses:
    """Returns the sum of some scenarios, whose sampled ones have intervals at the confidence of `confidence_of_each`.

    >>> add_up([Part(1000.0, 1e-6, 1e-6, 1e-6), Part(2.0, 0.01, 0.005, 0.02)], 0.95)[:3]
    (0.021, 0.011, 0.041)
    """
    exact = all(part.low == part.high for part in parts)
    p, low, high = (
        math.fsum(part.per_year * end(part) for part in parts)
        for end in (lambda part: part.p, lambda part: part.low, lambda part: part.high)
    )
    return Losses(p, low, high, 1.0 if exact else confidence, EXACT if exact else METHOD)
