"""Rates of groups that are alike but not the same, such as drives of several models: what is known of one more of them.

Counting all groups together tells how well their average is known, which is next to nothing about a group that is not
among them: models of drives differ by more than any one of them is uncertain. So groups' rates are taken to be
gamma-distributed, and events to be Poisson: given the mean and the spread of the groups, the events of each are
negative binomial. Mean and spread are integrated over a grid, with a flat prior for the logarithm of the mean, and a
half-normal one of scale PRIOR_SPREAD for the spread (the groups' standard deviation over their mean).

Source: A. Gelman et al., "Bayesian Data Analysis", 3rd edition (2013), chapter 5. That intervals hold is shown by
scripts/rates_coverage.py; see docs/rates.md.
"""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammainc, gammainccinv, gammaincinv, gammaln, ndtri, polygamma

from quorisk.analysis.statistics.known import Gamma

PRIOR_SPREAD = 1.0
_NUM_MEANS, _NUM_SPREADS, _NUM_RATES = 61, 31, 201
_LEAST_SPREAD, _MOST_SPREAD = 0.03, 3.5
_LEAST_WEIGHT = 1e-5
"""Of a mean and spread, relative to the likeliest: others are left out."""
_TAIL, _LEAST_RATE = 1e-6, 1e-9
"""A mixture's table goes out to these tails of its parts, but not below this share of the highest rate."""


class Mixture:
    """What is known of a rate that may be one of several gamma distributions: a `Known`."""

    def __init__(self, weights: np.ndarray, shapes: np.ndarray, exposures: np.ndarray) -> None:
        """`weights` add up to 1; `exposures` are inverse scales, so that shapes over exposures are the means."""
        self._weights, self._shapes, self._exposures = weights, shapes, exposures

    @property
    def median(self) -> float:
        return float(self.quantile(0.5))

    @property
    def mean(self) -> float:
        return float(self._weights @ (self._shapes / self._exposures))

    @property
    def log_sigma(self) -> float:
        means = digamma(self._shapes) - np.log(self._exposures)
        within, between = (
            self._weights @ polygamma(1, self._shapes),
            self._weights @ (means - self._weights @ means) ** 2,
        )
        return float(np.sqrt(within + between))

    def quantile(self, levels: ArrayLike) -> np.ndarray:
        z, log_rates = self._table
        return np.exp(np.interp(ndtri(levels), z, log_rates))

    @cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray]:
        """Normal scores of the cdf at logarithms of rates: nearly a line, so that between them it is one."""
        high = (gammainccinv(self._shapes, _TAIL) / self._exposures).max()
        low = max((gammaincinv(self._shapes, _TAIL) / self._exposures).min(), high * _LEAST_RATE)
        log_rates = np.linspace(np.log(low), np.log(high), _NUM_RATES)
        cdf = self._weights @ gammainc(self._shapes[:, None], self._exposures[:, None] * np.exp(log_rates))
        z = ndtri(np.clip(cdf, 1e-15, 1 - 1e-15))
        rising = np.concatenate([[True], np.diff(z) > 0])
        return z[rising], log_rates[rising]


class Pooled:
    """The posterior of a population of groups."""

    def __init__(self, events: ArrayLike, exposures: ArrayLike) -> None:
        """Takes the events and the exposure of each group; at least one has to have an exposure above 0."""
        self._events, self._exposures = np.asarray(events, float), np.asarray(exposures, float)
        log_means, spreads = np.meshgrid(self._log_means(), _spreads(), indexing="ij")
        self._shapes = (1 / spreads**2).ravel()
        self._scales = self._shapes / np.exp(log_means.ravel())
        log_prior = -(spreads.ravel() ** 2) / (2 * PRIOR_SPREAD**2) + np.log(spreads.ravel())  # the grid is in log
        log_weights = log_prior + self._log_likelihood()
        weights = np.exp(log_weights - log_weights.max())
        self._kept = weights > _LEAST_WEIGHT
        self._weights = weights[self._kept] / weights[self._kept].sum()

    def another(self) -> Mixture:
        """Returns what is known of the rate of a group that is not among these."""
        return Mixture(self._weights, self._shapes[self._kept], self._scales[self._kept])

    @property
    def spread(self) -> float:
        """The groups' standard deviation over their mean: its posterior mean."""
        return float(self._weights @ self._shapes[self._kept] ** -0.5)

    def _log_means(self) -> np.ndarray:
        """As far out as the groups' own rates may be, and a factor of ten beyond."""
        seen = [Gamma(k, t).quantile([0.01, 0.99]) for k, t in zip(self._events, self._exposures, strict=True) if t > 0]
        lows, highs = np.transpose(seen)
        return np.linspace(np.log(lows.min() / 10), np.log(highs.max() * 10), _NUM_MEANS)

    def _log_likelihood(self) -> np.ndarray:
        """Of mean and spread: negative binomial events of all groups, up to a constant."""
        events, exposures = self._events[:, None], self._exposures[:, None]
        each = (
            gammaln(events + self._shapes)
            - gammaln(self._shapes)
            + self._shapes * np.log(self._scales)
            - (events + self._shapes) * np.log(self._scales + exposures)
        )
        return np.asarray(each.sum(axis=0))


def _spreads() -> np.ndarray:
    return np.geomspace(_LEAST_SPREAD, _MOST_SPREAD, _NUM_SPREADS)
