"""Rates of groups that are alike but not the same, such as drives of several models, and the rate of one more group.

Counting all groups together tells how well their average is known, which is next to nothing about a group that is not
among them: models of drives differ by more than any one of them is uncertain. So groups' rates are taken to be
lognormal around a middle, with a spread (the standard deviation of their logarithms), and events to be Poisson. Middle
and spread are integrated over a grid, with a flat prior for the logarithm of the middle, and a half-normal one of scale
PRIOR_SPREAD for the spread: models that differ by a factor of e are nothing unusual. If no group has an event, a flat
prior has no proper posterior: the lower the middle, the better it explains the data. The prior of the middle is then
Jeffreys' for a Poisson rate, as for one group (`known.Gamma`).

Source: A. Gelman et al., "Bayesian Data Analysis", 3rd edition (2013), chapter 5. That intervals hold is shown by
tests/validation/rates_coverage.py; see docs/rates.md.
"""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, ndtr, ndtri, polygamma

from quorisk.analysis.statistics.known import Gamma

PRIOR_SPREAD = 1.0
_SPREADS = (0.06, 2.0)
_NUM_MIDDLES, _NUM_SPREADS, _PASSES = 41, 21, 2
_BEYOND = 2.0
"""Distance, in logarithms, by which the middle may lie beyond the groups' own rates."""
_LEAST_WEIGHT = 1e-6
"""Weight, relative to the likeliest, up to which a pair of middle and spread is left out."""
_MANY, _STEP = 100, 0.04
"""Number of events from which a likelihood is taken as normal, and the step of integrals below it, in log rate."""
_REACH, _NUM_RATES = 8.0, 401
"""Standard deviations to either side, and points, of a table of quantiles."""


class Mixture:
    """Distribution of a rate that is lognormal around one of several middles: a `Known`."""

    def __init__(self, weights: np.ndarray, log_middles: np.ndarray, spreads: np.ndarray) -> None:
        """`weights` add up to 1; each middle has a spread."""
        self._weights, self._log_middles, self._spreads = weights, log_middles, spreads

    @property
    def median(self) -> float:
        return float(self.quantile(0.5))

    @property
    def mean(self) -> float:
        return float(self._weights @ np.exp(self._log_middles + self._spreads**2 / 2))

    @property
    def log_sigma(self) -> float:
        off = self._log_middles - self._weights @ self._log_middles
        return float(np.sqrt(self._weights @ (off**2 + self._spreads**2)))

    def quantile(self, levels: ArrayLike) -> np.ndarray:
        z, log_rates = self._table
        return np.exp(np.interp(ndtri(levels), z, log_rates))

    @cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray]:
        """Normal scores of the cdf at logarithms of rates: nearly linear, and interpolated linearly."""
        low = (self._log_middles - _REACH * self._spreads).min()
        high = (self._log_middles + _REACH * self._spreads).max()
        log_rates = np.linspace(low, high, _NUM_RATES)
        scores = (log_rates[:, None] - self._log_middles) / self._spreads
        below, above = ndtr(scores) @ self._weights, ndtr(-scores) @ self._weights  # each exact where it is small
        return np.where(below < 0.5, ndtri(below), -ndtri(above)), log_rates


class Pooled:
    """The posterior of a population of groups."""

    def __init__(self, events: ArrayLike, exposures: ArrayLike) -> None:
        """Takes the events and the exposure of each group; one group at least has to have an exposure above 0."""
        counts = [(k, t) for k, t in zip(np.asarray(events, float), np.asarray(exposures, float), strict=True) if t > 0]
        ends = np.log([Gamma(k, t).quantile([0.01, 0.99]) for k, t in counts])
        low, high, least, most = ends.min() - _BEYOND, ends.max() + _BEYOND, *_SPREADS
        for _ in range(_PASSES):
            log_middles, spreads = _grid(low, high, least, most)
            log_weights = np.log(spreads) - (spreads / PRIOR_SPREAD) ** 2 / 2  # the grid is in the spread's logarithm
            log_weights += sum(_log_likelihood(k, t, log_middles, spreads) for k, t in counts)
            log_weights += 0.0 if any(k for k, _ in counts) else log_middles / 2  # Jeffreys' prior: rate^(-1/2) d rate
            weights = np.exp(log_weights - log_weights.max())
            kept = weights > _LEAST_WEIGHT
            self._weights = weights[kept] / weights[kept].sum()
            self._log_middles, self._spreads = log_middles[kept], spreads[kept]
            step = (high - low) / (_NUM_MIDDLES - 1)  # the next grid is finer, where there is something
            low, high = self._log_middles.min() - step, self._log_middles.max() + step

    def another(self) -> Mixture:
        """Returns the distribution of the rate of a group that is not among these."""
        return Mixture(self._weights, self._log_middles, self._spreads)

    @property
    def spread(self) -> float:
        """The standard deviation of the logarithms of groups' rates: its posterior mean."""
        return float(self._weights @ self._spreads)


def _grid(low: float, high: float, least: float, most: float) -> tuple[np.ndarray, np.ndarray]:
    middles, spreads = np.linspace(low, high, _NUM_MIDDLES), np.geomspace(least, most, _NUM_SPREADS)
    log_middles, spreads = (each.ravel() for each in np.meshgrid(middles, spreads, indexing="ij"))
    return log_middles, spreads


def _log_likelihood(events: float, exposure: float, log_middles: np.ndarray, spreads: np.ndarray) -> np.ndarray:
    """Log-likelihood of middles and spreads by the events of a group, over all rates: up to a constant."""
    if events >= _MANY:  # the likelihood of the rate's logarithm is all but normal
        variances = polygamma(1, events) + spreads**2
        off = digamma(events) - np.log(exposure) - log_middles
        return np.asarray(-np.log(variances) / 2 - off**2 / (2 * variances))
    peak = np.log(max(events, 0.5) / exposure)
    low = peak - 1 - 20 / events if events else log_middles.min() - _REACH * spreads.max()
    log_rates = np.arange(low, peak + 4, _STEP)
    likelihood = np.exp(events * (log_rates - peak) - exposure * (np.exp(log_rates) - np.exp(peak)))
    scores = (log_rates[:, None] - log_middles) / spreads
    with np.errstate(divide="ignore"):  # of middles that are too far off
        return np.asarray(np.log(likelihood @ np.exp(-(scores**2) / 2)) - np.log(spreads))
