"""Intervals of probabilities counted in runs, and of means of draws."""

import math
from collections.abc import Callable

from scipy.special import betainc, betaincc, betainccinv, betaincinv, gammaincinv

METHOD = "Clopper-Pearson"
_OFF = 1e-6
"""Largest relative error accepted in the tail of a quantile."""


def clopper_pearson(losses: int, runs: int, confidence: float, hidden: int = 0) -> tuple[float, float]:
    """Returns the interval that holds the probability of a loss with at least this confidence, whatever it is.

    With a = 1 - confidence, k losses in n runs: low is the a/2 quantile of Beta(k, n - k + 1), 0 if k = 0; high is the
    1 - a/2 quantile of Beta(k + 1, n - k), 1 if k = n. At low, k or more losses have probability a/2; at high, k or
    fewer. With k = 0 high is 1 - (a/2)**(1/n).

    `hidden` runs ended before it was known whether they would lose, as those that `max_steps` cut off; those that the
    horizon ended belong to them only if the question is about a loss at any time. Each may hide a loss, so high is that
    of k + hidden losses. Runs that lost before they were cut off may be among them.

    Source: C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934) 404-413.
    """
    tail = (1.0 - confidence) / 2.0
    most = losses + hidden
    low, high = 0.0, 1.0
    if losses > 0:
        low = _quantile(betainc, betaincinv, losses, runs - losses + 1, tail)
    if most < runs:
        high = _quantile(betaincc, betainccinv, most + 1, runs - most, tail)
    return low, high


def _quantile(tail_of: Callable[..., float], inverse: Callable[..., float], a: int, b: int, tail: float) -> float:
    """The p with tail_of(a, b, p) = tail. `inverse` is checked: SciPy 1.17's are wrong by up to a factor of 15
    where a or b is just 1000 and the other is 10**8 or more. NaN for more losses than runs.
    """
    p = float(inverse(a, b, tail))
    if b <= 0 or abs(tail_of(a, b, p) - tail) <= _OFF * tail:
        return p
    from scipy.optimize import brentq  # here, since it takes its time to load

    return float(brentq(lambda p: tail_of(a, b, p) - tail, 0.0, 1.0, xtol=1e-300, rtol=1e-15, maxiter=1000))


def bernstein(total: float, squares: float, num: int, confidence: float) -> tuple[float, float]:
    """Returns an interval that holds the mean with at least this confidence, by the sum of `num` numbers and the sum of
    their squares.

    The numbers are between 0 and 1, whatever their distribution. Each end is off by
    sqrt(2 V x / n) + 7 x / (3 (n - 1)), V the sample variance and x = ln(4 / (1 - confidence)).

    Source: A. Maurer, M. Pontil, "Empirical Bernstein bounds and sample variance penalization", COLT 2009, theorem 4.
    """
    if num < 2:
        return 0.0, 1.0
    x, mean = math.log(4.0 / (1.0 - confidence)), total / num
    variance = max(0.0, (squares - num * mean * mean) / (num - 1))
    off = math.sqrt(2.0 * variance * x / num) + 7.0 * x / (3.0 * (num - 1))
    return max(0.0, mean - off), min(1.0, mean + off)


def sum_of_few(mean: float, variance: float, most: float, confidence: float) -> tuple[float, float]:
    """Returns an interval of the mean of a sum to which rare events add, each its weight, by the sum that was found.

    `variance` is that of the sum, if each event is as frequent as it was seen to be, and `most` the weight of the
    heaviest. With y, v and w for these, low is a quantile of a gamma distribution of mean y and variance v, and high
    one of mean y + w and variance v + w**2. Where all weights are equal that is the exact interval of a Poisson
    distribution's mean; else it holds somewhat more often than it says, unless there are heavier events than `most`:
    with the heaviest of those seen, if weights are lognormal, in 92 of 100 cases with 10 events and in 95 with 30. The
    normal approximation's holds in 82 and 89.

    Source: M. P. Fay, E. J. Feuer, "Confidence intervals for directly standardized rates: a method based on the gamma
    distribution", Statistics in Medicine 16 (1997) 791-801.
    """
    error = (1.0 - confidence) / 2.0

    def quantile(mean: float, variance: float, q: float) -> float:
        return float(gammaincinv(mean**2 / variance, q)) * variance / mean if variance > 0.0 else mean

    return quantile(mean, variance, error), quantile(mean + most, variance + most**2, 1.0 - error)
