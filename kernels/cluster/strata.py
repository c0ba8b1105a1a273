"""Strata: histories before a tick, with weights and bounds of what is lost: all that matter, and a bound of the others.

Ticks are Poisson, so by Mecke's formula the rate of incidents is the sum over kinds of ticks of rate x E[f], f the
chance that the tick is an incident given the ticks before it, which are again Poisson. Only some of those matter: the
last 2 W of each kind, W being the time until all of its copies are back. A *stratum* fixes how many of each kind there
were, so its weight is exact, and so is all that makes losses rare: in it, f is at most `bound`, and f / bound, between
0 and 1, is not rare (`shares`). Some strata are solved (`solved`).

Source: J. Mecke, "Stationaere zufaellige Masse auf lokalkompakten Abelschen Gruppen", Zeitschrift fuer
Wahrscheinlichkeitstheorie 9 (1967) 36-58.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import comb, exp, expm1, factorial, isnan, prod
from typing import NamedTuple

import scipy

from quorisk.kernels.cluster.bounds import ShareBounds, moments_of
from quorisk.kernels.cluster.setting import Cluster
from quorisk.kernels.cluster.solved import Solver
from quorisk.kernels.cluster.ticks import ANYWHERE, Past, Tick, kinds_of_ticks

NEGLIGIBLE = 1e-6
"""Share of the known part at which no more strata are sought; upper bounds include the rest."""
MOST_HISTORIES = 4000


class Row(NamedTuple):
    """A stratum, and the tick that comes now."""

    weight: float
    """Its rate a year."""
    bound: float
    """Bound of the tick's loss."""
    past: tuple[int, ...]
    """The ticks before, as numbers of `Strata.past`."""
    now: int
    """The tick now, as a number of `Strata.now`."""
    by_groups: bool
    """Whether nodes are drawn by beginning with a group that is lost."""
    value: float
    """Mean loss, if it is solved; else NaN."""


class Strata(NamedTuple):
    """The strata of a cluster, for one of `bounds.WHAT`."""

    now: tuple[Tick, ...]
    past: tuple[Past, ...]
    rows: tuple[Row, ...]
    left_out: float
    """A bound of all other strata's sum, a year."""
    off: float
    """A bound of the error of these strata, as repairs of older ticks may have to be waited for."""

    @property
    def solved(self) -> float:
        """Sum over the strata that are solved, a year."""
        return sum(row.weight * row.value for row in self.rows if not isnan(row.value))

    @property
    def memory(self) -> float:
        """Longest time for which any tick matters, in years."""
        return max((each.span for each in self.past), default=0.0)


def strata(cluster: Cluster, what: str) -> Strata:
    """Returns the strata that matter, for one of `bounds.WHAT`."""
    bounds = ShareBounds(cluster, what)
    every, missing = kinds_of_ticks(cluster)
    before = _past(cluster, every)
    moments = moments_of([(each.lost, each.mean) for each in before])
    now, left_out = _without_rarest(every, moments, bounds)
    left_out += missing * bounds.capped(bounds.linear(moments, Tick("", ANYWHERE, cluster.nodes, 1.0, True)))

    @cache
    def potential(lost: int) -> float:
        """The most that all ticks may lose a year after some that took `lost` nodes, whatever else came before."""
        sets = [sum(comb(lost, i) * moments[j - i] for i in range(j + 1)) for j in range(len(moments))]
        return sum(tick.rate * bounds.capped(bounds.linear(sets, tick)) for tick in now)

    past = _past(cluster, now)
    kept = {each[:4] for each in past}
    left_out += sum(each.mean * potential(each.lost) for each in before if each[:4] not in kept)
    rows, rest = _enumerate(past, potential, Stratifier(now, past, bounds, Solver(cluster, what)))
    waits = _still_waits(cluster, past) * sum(row.weight * row.bound for row in rows)
    return Strata(tuple(now), tuple(past), tuple(rows), left_out + rest, waits)


def _still_waits(cluster: Cluster, past: Sequence[Past]) -> float:
    """A bound of the chance that a queue of repairs lasts from ticks that are too old to matter until now.

    Work comes as a compound Poisson process, and a queue lasts for a time s with probability of at most exp(-a s), a
    being the root of sum of rate x (exp(a x repair time) - 1) = a: Lundberg's inequality.
    """
    if not cluster.repair_queue or cluster.repair_time == 0.0 or not past:
        return 0.0

    def growth(a: float) -> float:
        return sum(each.rate * expm1(a * each.lost * cluster.repair_time) for each in past) - a

    largest = max(each.lost for each in past) * cluster.repair_time
    upper = 1.0 / largest
    while growth(upper) < 0.0:
        upper *= 2.0
    lower = upper / 2.0
    while growth(lower) >= 0.0 and lower > 1e-9:
        lower /= 2.0
    if growth(lower) >= 0.0:
        return 1.0
    a = float(scipy.optimize.brentq(growth, lower, upper))
    return exp(-a * (cluster.span(1) - cluster.window(1)))


def _past(cluster: Cluster, now: list[Tick]) -> list[Past]:
    """The kinds of ticks before, whatever their causes; those that take writers apart, where that matters."""
    writers = any(thin.heals for thin in cluster.thin)
    common = {event.name for event in cluster.events if event.is_common}
    rates = defaultdict[tuple[int, int, bool, bool], list[float]](lambda: [0.0, 0.0])
    for tick in now:
        rates[tick.rack, tick.lost, writers and tick.takes_writers, tick.is_disk][tick.cause in common] += tick.rate
    return [Past(*key, sum(each), cluster.span(key[1]), each[True] / sum(each)) for key, each in rates.items()]


def _without_rarest(every: list[Tick], moments: Sequence[float], bounds: ShareBounds) -> tuple[list[Tick], float]:
    """Leaves out the ticks of least consequence; returns the others, and the most that these lose a year."""
    most = [bounds.capped(bounds.linear(moments, tick)) * tick.rate for tick in every]
    total, left_out, dropped = sum(most), 0.0, set[int]()
    for i in sorted(range(len(every)), key=lambda i: most[i]):
        if left_out + most[i] > 0.01 * NEGLIGIBLE * total:
            break
        left_out += most[i]
        dropped.add(i)
    return [tick for i, tick in enumerate(every) if i not in dropped], left_out


def _enumerate(
    past: list[Past], potential: Callable[[int], float], stratifier: "Stratifier"
) -> tuple[list[Row], float]:
    """The rows of histories, the most promising first, and the most that all others may add a year.

    Histories that continue one have at most its product of mean**number / number! as their chance, times that of the
    other ticks: hence `promise`.
    """

    def promise(history: tuple[int, ...]) -> float:
        return stratifier.chance(history) * potential(sum(past[i].lost for i in history))

    rows: list[Row] = []
    heap: list[tuple[float, tuple[int, ...]]] = [(-promise(()), ())]
    known = 0.0
    rest = -heap[0][0]
    for _ in range(MOST_HISTORIES):
        if not heap or rest <= NEGLIGIBLE * known:
            break
        less, history = heapq.heappop(heap)
        rest += less
        for row in stratifier.rows(history):
            rows.append(row)
            known += row.weight * (row.bound if isnan(row.value) else row.value)
        for i in range(history[-1] if history else 0, len(past)):
            after = (*history, i)
            more = promise(after)
            heapq.heappush(heap, (-more, after))
            rest += more
    return rows, -sum(less for less, _ in heap)


class Stratifier:
    """The rows of a history: one for each tick that may come now."""

    def __init__(self, now: Sequence[Tick], past: Sequence[Past], bounds: ShareBounds, solver: Solver) -> None:
        self._now, self._past, self._bounds, self._solver = now, past, bounds, solver
        self._none = exp(-sum(each.mean for each in past))

    def chance(self, history: Sequence[int]) -> float:
        """Returns the chance of a history's numbers of ticks by kind, relative to that of none."""
        numbers = Counter(history)
        return prod(self._past[i].mean ** number / factorial(number) for i, number in numbers.items())

    def rows(self, history: tuple[int, ...]) -> Iterator[Row]:
        """Yields those in which anything can be lost."""
        weight = self._none * self.chance(history)
        before = [self._past[i] for i in history]
        for i, tick in enumerate(self._now):
            bound, by_groups = self._bounds.of(before, tick)
            if bound > 0.0:
                value = self._solver.value(before, tick)
                yield Row(weight * tick.rate, bound, history, i, by_groups, value)
