"""Latency of a write: the time of the ack quorum's last answer among those of all copies.

A writer sends an entry to all its copies at once and has it acknowledged when the k-th of n answers is there. With a
replica's round trip distributed as F, independently of the others', P(the k-th of n is there by t) is the regularised
incomplete beta function I(F(t); k, n - k + 1). So the q-quantile of the write is a quantile of one round trip, at the
level u with I(u; k, n - k + 1) = q. Where F is known in formulas that is solved numerically and no sampling is done;
where F is known from measurements alone, the quantile is one of them, with an interval from the ranks of its
neighbours, whatever F is.

Source of the delays built in, and of the model of a round trip as a request and an answer: P. Bailis, S. Venkataraman,
M. J. Franklin, J. M. Hellerstein, I. Stoica, "Probabilistically Bounded Staleness for Practical Partial Quorums",
PVLDB 5 (2012) 776-787. Of the order statistics: H. A. David, H. N. Nagaraja, "Order Statistics" (2003), 2.1 and 7.1.
"""

import math
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import betaincinv

EXACT, BY_RANKS = "exact", "order statistics"
LEVELS = (0.5, 0.99, 0.999)
"""The quantiles of a design's latency: p50, p99 and p99.9."""
_PANELS, _NODES = 13, 20
"""Numbers of panels of the Gauss-Legendre integration, each a quarter of the next towards either end, and of nodes."""


class Delay(NamedTuple):
    """A delay in milliseconds: a mixture of distributions."""

    parts: tuple[tuple[float, Any], ...]
    """Shares that add up to 1, each with a frozen distribution of scipy.stats."""


class RoundTrip(NamedTuple):
    """A round trip from a writer to a replica and back: two independent delays."""

    request: Delay
    """Network delay to the replica, and its work until the entry is safe: PBS's W, or R of a read."""
    answer: Delay
    """The way back: PBS's A, or S."""


class Measured(NamedTuple):
    """Measured round trips, each independent of the others and all of one distribution."""

    sorted_ms: np.ndarray
    """float64, shape (number of measurements,), ascending."""


class Quantile(NamedTuple):
    """A write takes no longer than `ms` with probability `level`."""

    level: float
    ms: float
    low_ms: float
    high_ms: float
    """Upper end of the interval; infinite where there are too few measurements. If EXACT, both ends are `ms`."""
    method: str
    """Method: EXACT or BY_RANKS."""


def lognormal(median_ms: float, p99_ms: float) -> Delay:
    """Returns a delay whose logarithm is normal, from two of its quantiles."""
    sigma = math.log(p99_ms / median_ms) / stats.norm.ppf(0.99)
    return Delay(((1.0, stats.lognorm(sigma, scale=median_ms)),))


def pareto_exponential(share: float, min_ms: float, shape: float, rate_per_ms: float) -> Delay:
    """Returns a delay that is Pareto's, P(delay > t) = (min / t)**shape, with this share, and else exponential."""
    return Delay(((share, stats.pareto(shape, scale=min_ms)), (1.0 - share, stats.expon(scale=1.0 / rate_per_ms))))


_SSD = pareto_exponential(0.9122, 0.235, 10.0, 1.66)
BUILT_IN: Mapping[str, RoundTrip] = {
    "LNKD-SSD": RoundTrip(_SSD, _SSD),
    "LNKD-DISK": RoundTrip(pareto_exponential(0.38, 1.05, 1.51, 0.183), _SSD),
    "YMMR": RoundTrip(pareto_exponential(0.939, 3.0, 3.35, 0.0028), pareto_exponential(0.982, 1.5, 3.8, 0.0217)),
}
"""Writes in production: LinkedIn's on solid-state disks and on spinning ones, and Yammer's Riak (PBS, Table 3)."""


def write_latency(
    replica: RoundTrip | Measured, copies: int, acks: int, cut_ms: float = math.inf, confidence: float = 0.95
) -> tuple[Quantile, ...]:
    """Returns how long a write takes that is sent to `copies` replicas and waits for the `acks` fastest: at LEVELS.

    Kafka's waits for its whole in-sync set, acks = copies, from which a replica is dropped after `cut_ms`
    (replica.lag.time.max.ms). `confidence` is that of each interval, if `replica` was measured.

    >>> [round(each.ms, 2) for each in write_latency(BUILT_IN["LNKD-SSD"], copies=3, acks=2)]
    [0.51, 0.91, 1.63]
    """
    found = []
    for level in LEVELS:
        alike = float(betaincinv(acks, copies - acks + 1, level))
        if isinstance(replica, Measured):
            ms, low_ms, high_ms = _by_ranks(replica.sorted_ms, alike, confidence)
            method = BY_RANKS
        else:
            ms = low_ms = high_ms = _quantile(replica, alike)
            method = EXACT
        found.append(Quantile(level, min(ms, cut_ms), min(low_ms, cut_ms), min(high_ms, cut_ms), method))
    return tuple(found)


def round_trip_cdf(replica: RoundTrip, t_ms: float) -> float:
    """P(a round trip takes no longer than t): the request's distribution, averaged over the answer's quantiles.

    Either may be narrow beside t, and anywhere: so the panels follow the quantiles of both.
    """
    shares, (nodes, weights) = _shares(), _panel()
    total = 0.0
    for share, request in replica.request.parts:
        quantiles = request.ppf(shares)
        for other_share, answer in replica.answer.parts:
            end = float(answer.cdf(t_ms - request.support()[0]))
            edges = np.unique(np.concatenate([end * shares, np.minimum(answer.cdf(t_ms - quantiles), end), [0.0, end]]))
            widths = np.diff(edges)[:, None]
            at = edges[:-1, None] + widths * (nodes + 1.0) / 2.0
            averaged = (request.cdf(t_ms - answer.ppf(at)) * widths).sum(axis=0) @ weights / 2.0
            total += share * other_share * float(averaged)
    return total


@cache
def _shares() -> np.ndarray:
    """Shares between 0 and 1 that get closer towards both ends."""
    quarters = 0.25 ** np.arange(_PANELS, 0, -1)
    return np.concatenate([quarters, [0.5], 1.0 - quarters[::-1]])


@cache
def _panel() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss's quadrature between -1 and 1."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights


@lru_cache(maxsize=1024)
def _quantile(replica: RoundTrip, level: float) -> float:
    """The round trip that is not exceeded with this probability, in ms."""
    low_ms, high_ms = 0.0, 1.0
    while round_trip_cdf(replica, high_ms) < level:
        low_ms, high_ms = high_ms, 2.0 * high_ms
    return float(brentq(lambda t_ms: round_trip_cdf(replica, t_ms) - level, low_ms, high_ms, xtol=1e-12, rtol=1e-12))


def _by_ranks(sorted_ms: np.ndarray, level: float, confidence: float) -> tuple[float, float, float]:
    """The measured quantile, and the measurements between which the true one is with at least this confidence.

    The number of measurements below the true quantile is binomial, whatever the distribution.
    """
    tail, count = (1.0 - confidence) / 2.0, len(sorted_ms)
    low_rank = int(stats.binom.ppf(tail, count, level))
    high_rank = int(stats.binom.ppf(1.0 - tail, count, level)) + 1
    low_ms = sorted_ms[low_rank - 1] if low_rank else 0.0
    high_ms = sorted_ms[high_rank - 1] if high_rank <= count else math.inf
    return float(sorted_ms[max(math.ceil(count * level), 1) - 1]), float(low_ms), float(high_ms)
