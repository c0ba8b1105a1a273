"""Knowledge of a rate, a probability or another positive figure: a distribution over its possible values.

Each is a small immutable value, with one contract (`Known`). What people have is counts, a figure with an error factor,
or a range. Each of these has its distribution:

- events in an exposure, "3 in 200 years": Gamma, the posterior of a Poisson rate from Jeffreys' prior;
- events in trials, "3 of 400": Beta, the posterior of a probability from Jeffreys' prior;
- a median and an error factor, which is the 95 % quantile over the median: LogNormal;
- a low and a high, the 5 % and 95 % quantiles: LogNormal (`log_normal_between`), and of a probability LogitNormal.

A probability with an error factor is lognormal, too: "a factor of 2 either way" then means what it says, and the error
factor of its power is the error factor's power. It is cut at 1, and readers of files refuse it where that matters.
A range of probabilities is logit-normal: it keeps both ends as given, however close to 1 they are.

Sources: C. L. Atwood et al., "Handbook of Parameter Estimation for Probabilistic Risk Assessment", NUREG/CR-6823
(2003), sections 6.2.2 and 6.3.2 (Jeffreys), A.7.3 (error factors).
"""

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, expit, gammaincinv, logit, ndtr, ndtri, polygamma

HIGH = 0.95
"""The quantile that an error factor compares with the median, and the upper end of a range."""
Z = float(ndtri(HIGH))
"""Standard normal quantile at HIGH: 1.645."""
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(101)
"""Nodes and weights of Gauss-Hermite quadrature, for moments of LogitNormal."""


class Known(Protocol):
    """Distribution over the possible values of a positive figure."""

    @property
    def median(self) -> float: ...

    @property
    def mean(self) -> float: ...

    @property
    def log_sigma(self) -> float:
        """The standard deviation of the figure's logarithm; 0 if it is known exactly."""

    def quantile(self, levels: ArrayLike) -> np.ndarray:
        """Returns the values that the figure is below with each of these probabilities.

        An inverse cdf: it also makes samples of uniform, or quasi-random, numbers between 0 and 1.
        """


class Gamma(NamedTuple):
    """A rate with `events` counted in an `exposure` (a time, in the unit that the rate is per)."""

    events: float
    exposure: float

    @property
    def shape(self) -> float:
        return self.events + 0.5

    @property
    def median(self) -> float:
        return float(self.quantile(0.5))

    @property
    def mean(self) -> float:
        return self.shape / self.exposure

    @property
    def log_sigma(self) -> float:
        return math.sqrt(float(polygamma(1, self.shape)))

    def quantile(self, levels: ArrayLike) -> np.ndarray:
        return np.asarray(gammaincinv(self.shape, levels) / self.exposure)


class Beta(NamedTuple):
    """A probability of something that happened in `events` of `trials`."""

    events: float
    trials: float

    @property
    def shapes(self) -> tuple[float, float]:
        return self.events + 0.5, self.trials - self.events + 0.5

    @property
    def median(self) -> float:
        return float(self.quantile(0.5))

    @property
    def mean(self) -> float:
        return self.shapes[0] / (self.trials + 1.0)

    @property
    def log_sigma(self) -> float:
        return math.sqrt(float(polygamma(1, self.shapes[0]) - polygamma(1, self.trials + 1.0)))

    def quantile(self, levels: ArrayLike) -> np.ndarray:
        return np.asarray(betaincinv(*self.shapes, levels))


class LogNormal(NamedTuple):
    """A figure with a median and an error factor, which is at most `most`; with a factor of 1 it is known exactly."""

    median: float
    error_factor: float
    most: float = math.inf

    @property
    def mean(self) -> float:
        whole = self.median * math.exp(self.log_sigma**2 / 2)
        if math.isinf(self.most) or self.log_sigma == 0 or self.median == 0:
            return whole
        z = math.log(self.most / self.median) / self.log_sigma
        return float(whole * ndtr(z - self.log_sigma) + self.most * ndtr(-z))

    @property
    def log_sigma(self) -> float:
        return math.log(self.error_factor) / Z

    def quantile(self, levels: ArrayLike) -> np.ndarray:
        return np.minimum(self.median * np.exp(self.log_sigma * ndtri(levels)), self.most)


class LogitNormal(NamedTuple):
    """A probability that is below `low` with probability 5 %, and below `high` with 95 %."""

    low: float
    high: float

    @property
    def median(self) -> float:
        return float(expit(self._centre))

    @property
    def mean(self) -> float:
        return float(_expected(expit(self._centre + self._sigma * _NODES)))

    @property
    def log_sigma(self) -> float:
        logs = np.log(expit(self._centre + self._sigma * _NODES))
        return math.sqrt(_expected((logs - _expected(logs)) ** 2))

    def quantile(self, levels: ArrayLike) -> np.ndarray:
        return np.asarray(expit(self._centre + self._sigma * ndtri(levels)))

    @property
    def _centre(self) -> float:
        return float(logit(self.low) + logit(self.high)) / 2

    @property
    def _sigma(self) -> float:
        return float(logit(self.high) - logit(self.low)) / (2 * Z)


def _expected(values: np.ndarray) -> float:
    """The mean of a function of a standard normal number, from its values at `_NODES`."""
    return float(values @ _WEIGHTS / _WEIGHTS.sum())


def log_normal_between(low: float, high: float) -> LogNormal:
    """Returns the distribution of a figure that is below `low` with probability 5 %, and below `high` with 95 %."""
    return LogNormal(math.sqrt(low) * math.sqrt(high), math.sqrt(high / low))
