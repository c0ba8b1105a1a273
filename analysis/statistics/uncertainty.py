"""Losses of designs by what is known of the rates: values at common draws, and their summary."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from quorisk.analysis.statistics.known import Known

LEVELS = 0.05, 0.95
"""Levels of the two quantiles that hold 90 % of the draws between them."""


class Unknown(NamedTuple):
    """A figure of a point that is not known exactly."""

    name: str
    """Name of the unknown, which all points share whose figures have this name."""
    known: Known


class Draws(NamedTuple):
    """Levels of unknowns."""

    names: tuple[str, ...]
    levels: np.ndarray
    """float64[draws, names], each between 0 and 1: low-discrepancy points, so that means of draws converge fast."""

    def values(self, unknown: Mapping[str, Unknown]) -> dict[str, np.ndarray]:
        """Returns the drawn values of a point's unknowns (`unknowns`), by key: float64[draws] each."""
        return {key: each.known.quantile(self.levels[:, self.names.index(each.name)]) for key, each in unknown.items()}


class Figure(NamedTuple):
    """A figure that is not known exactly."""

    known: Known
    value: float
    """The value with which answers are computed, in the unit of the model."""
    often: float
    """The same value per year or per trial, as `per` says."""
    per: str
    """`year`, `trial`, or `unit of time` if the file has no physical times."""
    a_year: float | None = None
    """Years or trials that a year of the cluster shows: of 20 nodes, 20 years. Infinite for continuous events; None if
    unknown."""


class DrawnLosses(NamedTuple):
    """Losses of a design, in a year or in a run, for drawn rates."""

    values: np.ndarray
    """float64[draws]: the losses at each draw."""
    median: float
    low: float
    """The lower end of the interval that holds 90 % of the draws, widened by `error_factor`."""
    high: float
    error_factor: float
    """Factor by which the computed losses may be off at some draw."""
    num_solved: int
    """Number of draws solved anew; the others follow from elasticities, or on a cluster by interpolation."""
    powers: dict[str, float]
    """Elasticity of the losses by figure, at the values with which answers are computed; on a cluster, between the ends
    of the figure's 90 % interval."""
    shares: dict[str, float]
    """Fraction of the log-variance due to each figure, in a product of these powers."""
    bent: float
    """Fraction of the log-variance that a product of these powers does not explain."""

    def as_json(self) -> dict[str, Any]:
        """Returns all fields but `values`, for `json.dumps`."""
        return {name: value for name, value in self._asdict().items() if name != "values"}


def variance_shares(known: Mapping[str, Known], powers: Mapping[str, float]) -> dict[str, float]:
    """Returns the share of each figure in the variance of an answer's logarithm, if the answer is a product of powers
    of figures: (k sigma)^2 over their sum, exact where these are lognormal. Shares add up to 1, or all are 0.
    """
    variances = {name: (powers[name] * known[name].log_sigma) ** 2 for name in powers}
    whole = math.fsum(variances.values())
    return {name: variance / whole if whole else 0.0 for name, variance in variances.items()}


def bent(values: np.ndarray, powers: Mapping[str, float], known: Mapping[str, Known], draws: Draws) -> float:
    """Returns the fraction of the variance of logarithms that a product of powers does not explain."""
    logs = np.log(values)
    product = np.zeros(len(logs))
    for name, power in powers.items():
        product += power * np.log(known[name].quantile(draws.levels[:, draws.names.index(name)]))
    whole = logs.var()
    return float((logs - product).var() / whole) if whole else 0.0


class Allowed(NamedTuple):
    """Losses of the designs of an experiment, for draws of its uncertain figures."""

    draws: Draws
    of: dict[str, Figure]
    """The figures by name."""
    designs: list[DrawnLosses | None]
    """The designs in the order of `by_design`; None where losses are not solved, or are proved to be impossible."""
    unsolved: Mapping[int, str] = {}
    """Scenario whose losses are counted or bounded, by place in `designs`; empty without scenarios."""
