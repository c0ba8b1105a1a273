"""What is said of a cluster: each figure with an interval and the method by which it came."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

COLUMNS, ENDS = ("any_loss", "incidents", "entries"), ("", "_low", "_high")
"""Of result frames: P(any loss in a year), incidents and entries lost a year, each with the ends of its interval."""
BY_CAUSE = "by_"
"""How columns of result frames begin, before what incidents are put down to: incidents a year."""
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


class Figure(NamedTuple):
    """A number a year, or a probability."""

    value: float
    low: float
    high: float
    method: str

    def times(self, factor: float) -> "Figure":
        """Returns it multiplied."""
        return Figure(factor * self.value, factor * self.low, factor * self.high, self.method)


class Size(NamedTuple):
    """A quantile of how much an incident loses, or how often one loses so much, a year."""

    value: float
    low: float
    high: float


class Cause(NamedTuple):
    """What incidents are put down to."""

    incidents: Figure
    """A year."""
    share: float
    """Of all incidents."""


class Losses(NamedTuple):
    """What a cluster loses, found one way or the other."""

    p_any: Figure
    """P(anything is lost in a year)."""
    p_any_in_ten_years: Figure
    incidents: Figure
    """A year."""
    entries: Figure
    """Expected, a year."""
    in_entries: Mapping[str, Size]
    """How much an incident loses, by QUANTILES; none if nothing is known of it."""
    in_ledgers: Mapping[str, Size]
    by_cause: Mapping[str, Cause]
    at_least: Mapping[float, Size]
    """How often so many entries or more are lost at once, a year, in powers of ten."""
    sizes: tuple[np.ndarray, np.ndarray]
    """Of incidents: weights by bin, and the largest of each bin, both in entries and in ledgers."""
    independent: float
    """How many independent incidents these sizes are worth."""
