"""Intervals of probabilities: the one place that chooses their method, confidence and number at once."""

from typing import NamedTuple

from quorisk.analysis.statistics import intervals, sequential

BOUNDS = 10.0
"""Ratio of an interval's ends above which both are bounds, and there is no estimate."""


class Estimator(NamedTuple):
    """Method and confidence of intervals of probabilities that are made from counts of runs.

    Example: `Estimator(0.95).interval(0, 1_000_000)` is (0.0, 3.7e-06): no loss in a million runs is an upper bound.
    """

    confidence: float
    """The confidence with which an interval holds its probability, or all `together` hold theirs."""
    together: int = 1
    """The number of intervals that hold together (Bonferroni)."""
    is_sequential: bool = False
    """Whether the number of runs was not fixed before the first of them."""

    @staticmethod
    def far_apart(low: float, high: float) -> bool:
        """Whether the ends of an interval are bounds, and there is no estimate: one is over ten times the other."""
        return high > BOUNDS * low

    @property
    def method(self) -> str:
        """The method's name, as results have it."""
        name = sequential.METHOD if self.is_sequential else intervals.METHOD
        return name if self.together == 1 else f"simultaneous {name}"

    def interval(self, losses: int, runs: int, hidden: int = 0) -> tuple[float, float]:
        """Returns the interval after `losses` in `runs` runs, of which `hidden` ended before they could lose."""
        each = sequential.simultaneous(self.confidence, self.together)
        make = sequential.confidence_sequence if self.is_sequential else intervals.clopper_pearson
        return make(losses, runs, each, hidden)
