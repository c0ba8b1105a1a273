"""Runs until a precision is reached: intervals that hold however often one looks, and when to stop.

An interval for a fixed number of runs fails more often than it says if runs go on until it looks good. The intervals
here form a confidence sequence: with probability of at least `confidence` all of them, after 1, 2, 3, ... runs, hold
the probability p, so the one at which a rule stops does, whatever the rule.

The rule: Robbins' mixture of likelihood ratios. Let k of n runs lose. For the true p,

    M(p) = B(k + 1/2, n - k + 1/2) / B(1/2, 1/2) / (p^k (1 - p)^(n - k)),

the likelihood mixed over the prior Beta(1/2, 1/2) by the likelihood of p, is a nonnegative martingale that starts at 1,
and so by Ville's inequality ever reaches 1/a with probability of at most a. The interval is where M(p) < 1/a, with
a = 1 - confidence. The prior is Jeffreys': near 0 as apt as in the middle, and symmetric in losing and not losing. Its
price over an interval for a fixed number of runs is a logarithm: M(p) grows as exp(n KL(k/n, p)) / sqrt(pi n / 2).

Sources: H. Robbins, "Statistical methods related to the law of the iterated logarithm", Annals of Mathematical
Statistics 41 (1970) 1397-1409; S. R. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, "Time-uniform, nonparametric,
nonasymptotic confidence sequences", Annals of Statistics 49 (2021) 1055-1080; I. Waudby-Smith, A. Ramdas, "Estimating
means of bounded random variables by betting", Journal of the Royal Statistical Society B 86 (2024) 1-27.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from scipy.special import expit

METHOD = "beta-binomial confidence sequence, prior Beta(1/2, 1/2)"
FIRST_LOOK = 64
GROWTH = 16
"""Divisor of the runs n that gives the number of runs until the next look: n / GROWTH, FIRST_LOOK at the least."""
_SERIES_FROM = 30.0
_LOGIT_TOLERANCE = 1e-13


class Rule(NamedTuple):
    """A stopping rule: the precision at which runs may stop."""

    half_width: float
    """The largest half-width of the interval at which runs may stop; infinite if it does not matter."""
    relative: float
    """The largest ratio of half-width to the estimate k / n; infinite if it does not matter."""

    def is_met(self, losses: int, runs: int, low: float, high: float) -> bool:
        """Whether an interval is narrow enough. Without losses none is in relative terms: 0 has no scale."""
        half_width = (high - low) / 2
        narrow = self.relative == math.inf or half_width * runs <= self.relative * losses
        return narrow and half_width <= self.half_width


def looks(budget: int) -> Iterator[int]:
    """Yields the numbers of runs after which to look at the interval, the last of them the budget."""
    runs = 0
    while runs < budget:
        runs = min(runs + max(FIRST_LOOK, runs // GROWTH), budget)
        yield runs


def confidence_sequence(losses: int, runs: int, confidence: float, hidden: int = 0) -> tuple[float, float]:
    """Returns the interval after `runs` runs of the confidence sequence above; low is 0 if k = 0, high is 1 if k = n.

    `hidden` runs may each hide a loss, as in `intervals.clopper_pearson`: high is that of k + hidden losses. This keeps
    the promise, as each end grows with k: were nothing hidden, every interval would lie within the one given.
    """
    return _end(losses, runs, confidence, -1), _end(min(losses + hidden, runs), runs, confidence, 1)


def simultaneous(confidence: float, num_intervals: int) -> float:
    """Returns the confidence that each of some intervals needs for all of them to hold together (Bonferroni).

    No assumption on how they depend on each other: points of a grid share their random numbers, so that Sidak's
    slightly smaller 1 - confidence^(1/m) would not be safe.
    """
    return 1.0 - (1.0 - confidence) / num_intervals


def _end(losses: int, runs: int, confidence: float, side: int) -> float:
    """The low (side -1) or high (1) end: log M(p) = log M(k/n) + n KL(k/n, p) = log 1/a, solved for p's log-odds.

    With T = log 1/a - log M(k/n) that is n KL(k/n, p) = T. As n KL(k/n, p) >= k (log(k/n / p) - 1), and likewise for
    1 - p, it lies between k/n and log-odds of log(k/n) - 1 - T/k.
    """
    if confidence == 1.0:  # as `simultaneous` rounds the highest there are
        return 0.0 if side < 0 else 1.0
    reach = -math.log1p(-confidence) - _log_mixture_at_mode(losses, runs)
    others = runs - losses
    if losses == 0:
        return 0.0 if side < 0 else -math.expm1(-reach / runs)
    if others == 0:
        return 1.0 if side > 0 else math.exp(-reach / runs)
    from scipy.optimize import brentq  # here, since it takes its time to load

    near = math.log(losses / others)
    count = losses if side < 0 else others
    far = side * (1.0 + reach / count - math.log(count / runs))
    root = brentq(lambda logit: _divergence(losses, runs, logit) - reach, near, far, xtol=_LOGIT_TOLERANCE)
    return float(expit(root))


def _divergence(losses: int, runs: int, logit: float) -> float:
    """n KL(k/n, p) for the p of these log-odds, as n p f((k - n p) / (n p)) + n q f((n p - k) / (n q))."""
    p, q = float(expit(logit)), float(expit(-logit))
    excess = losses - runs * p if p < 0.5 else runs * q - (runs - losses)
    return runs * (p * _bregman(excess / (runs * p)) + q * _bregman(-excess / (runs * q)))


def _bregman(u: float) -> float:
    """f(u) = (1 + u) log(1 + u) - u, without cancellation near 0: u^2/2 - u^3/6 + u^4/12 - ..."""
    if abs(u) > 0.02:
        return (1.0 + u) * math.log1p(u) - u if u > -1.0 else 1.0
    return u * u * sum((-u) ** i / ((i + 1) * (i + 2)) for i in range(8))


def _log_mixture_at_mode(losses: int, runs: int) -> float:
    """log M(k/n), at most 0, by Stirling's formula with its remainder, so that no large numbers cancel:

    log Gamma(x) = (x - 1/2) log x - x + log(2 pi)/2 + r(x), for x = k + 1/2, n - k + 1/2 and n + 1.
    """
    others = runs - losses
    grown = sum(count * math.log1p(0.5 / count) for count in (losses, others) if count)
    remainders = _remainder(losses + 0.5) + _remainder(others + 0.5) - _remainder(runs + 1.0)
    return grown - runs * math.log1p(1.0 / runs) - 0.5 * math.log((runs + 1.0) * math.pi / 2.0) + remainders


def _remainder(x: float) -> float:
    """r(x) of Stirling's formula: 1/(12 x) - 1/(360 x^3) + ..., off by less than 1/(1260 x^5)."""
    if x < _SERIES_FROM:
        return math.lgamma(x) - ((x - 0.5) * math.log(x) - x + 0.5 * math.log(2.0 * math.pi))
    return 1.0 / (12.0 * x) - 1.0 / (360.0 * x**3)
