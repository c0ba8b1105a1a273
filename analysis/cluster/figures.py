"""Figures of a cluster, each with an interval and the method by which it was found."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

COLUMNS, ENDS = ("any_loss", "incidents", "entries"), ("", "_low", "_high")
"""Columns of result frames: P(any loss in a year), incidents and entries lost a year, with the ends of intervals."""
BY_CAUSE = "by_cause_"
"""Prefix of the columns of result frames that hold the incidents a year due to each cause."""
PLACED = "placed_"
"""Prefix of the columns that hold P(any loss in a year) on the cluster with each placement."""
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


class YearFigure(NamedTuple):
    """A number a year, or a probability."""

    value: float
    low: float
    high: float
    method: str

    def times(self, factor: float) -> "YearFigure":
        """Returns the figure multiplied by `factor`."""
        return YearFigure(factor * self.value, factor * self.low, factor * self.high, self.method)


class Size(NamedTuple):
    """Quantile of the sizes of incidents, or the rate a year of incidents of at least some size."""

    value: float
    low: float
    high: float


class Cause(NamedTuple):
    """Incidents that are due to one cause."""

    incidents: YearFigure
    """Incidents a year."""
    share: float
    """Fraction of all incidents."""


class Losses(NamedTuple):
    """Losses of a cluster, by strata or by years."""

    p_any: YearFigure
    """P(anything is lost in a year)."""
    p_any_in_ten_years: YearFigure
    incidents: YearFigure
    """Incidents a year."""
    entries: YearFigure
    """Expected number of entries lost a year."""
    in_entries: Mapping[str, Size]
    """Sizes of incidents in entries, by the names in QUANTILES; empty if nothing is known of them."""
    in_ledgers: Mapping[str, Size]
    by_cause: Mapping[str, Cause]
    at_least: Mapping[float, Size]
    """Incidents a year that lose at least a number of entries at once, by that number: powers of ten."""
    sizes: tuple[np.ndarray, np.ndarray]
    """Weights of incidents by bin, and the largest incident of each bin, both in entries and in ledgers."""
    independent: float
    """Effective sample size: the number of independent incidents that these sizes are worth."""
