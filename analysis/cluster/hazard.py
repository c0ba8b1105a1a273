"""P(any incident in a time) from the rate of incidents: they come in clusters, and do not remember for long.

What a tick loses depends on what happened within the time M before it, so incidents more than M apart are independent.
Let I be their rate, and J that of *first* incidents, which none came before for M. Let S(t) be the chance of none until
t, g(t) = -S'(t) / S(t) the hazard, and K = 2 M.

Above. An incident at t without one since 0 is one without one in [t - M, t) and in [0, t - K); the first depends on
ticks after t - K, the second on those before. So g(t) S(t) <= J S(t - K), and g(t) <= J exp(G K) if g <= G before t. Up
to K g is at most I / (1 - I K), since S(t) >= 1 - I t. If J exp(G K) <= G for a G that is no less, then g <= G always.

Below. Of first incidents at t with none in [0, t - K), those with one in [t - K, t - M) have to be taken off: at most
I M G S(t - K), since the two are independent. So g(t) S(t) >= (J - I M G) S(t - K) >= l S(t - K), and so g(t) >=
l exp(l K) after K, and g(t) >= l before.

Both ends agree but for a part of about I M and, near the beginning, M (I - J).
"""

import math
from typing import NamedTuple

_E = math.exp(-1.0)


class IncidentRates(NamedTuple):
    """Rates of incidents a year, with their bounds."""

    incidents: tuple[float, float, float]
    """Estimate, low and high of all incidents."""
    first: tuple[float, float, float]
    """Estimate, low and high of first incidents."""
    memory: float
    """M, in years."""
    off: float
    """Bound of the rate at which these are wrong: see `kernels.cluster.history.seen_late`."""


def p_any_in_years(rates: IncidentRates, years: float = 1.0) -> tuple[float, float, float]:
    """Returns P(at least one incident in `years` years): estimate, low and high.

    Where no useful bound exists, low is 0, and high is the expected number of incidents, at most 1.
    """
    twice, most = 2.0 * rates.memory, rates.incidents[2]
    low, high = 0.0, min(1.0, most * years)
    steepest = _steepest(most, rates.first[2], twice)
    if steepest is not None:
        early, late = min(twice, years), max(0.0, years - twice)
        start = most / (1.0 - most * twice)
        high = min(high, -math.expm1(-early * start - late * rates.first[2] * math.exp(steepest * twice)))
        least = rates.first[1] - most * rates.memory * steepest
        if least > 0.0:
            low = -math.expm1(-early * least - late * least * math.exp(min(least * twice, 1.0)))
    estimate = -math.expm1(-years * _hazard(rates.first[0], rates.memory))
    off = rates.off * years
    low, high = max(0.0, low - off), min(1.0, high + off)
    return min(max(estimate, low), high), low, high


def _hazard(first: float, memory: float) -> float:
    """The hazard h, of whose incidents a fraction exp(-h M) are first ones."""
    hazard = first
    for _ in range(50):
        hazard = first * math.exp(min(hazard * memory, 1.0))
    return hazard


def _steepest(incidents: float, first: float, twice: float) -> float | None:
    """A bound of the hazard: the smallest G for which the proof holds; None if it holds for none."""
    if incidents * twice >= 1.0 or first * twice >= _E:
        return None
    root = first
    for _ in range(200):
        root = first * math.exp(root * twice)
    steepest = max(incidents / (1.0 - incidents * twice), root * (1.0 + 1e-12))
    return steepest if first * math.exp(steepest * twice) <= steepest * (1.0 + 1e-12) else None
