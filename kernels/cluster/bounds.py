"""Upper bounds of what a tick loses, given how many nodes are down: in closed form, and with nothing repaired."""

from collections.abc import Sequence
from functools import cache, cached_property
from math import comb, factorial, inf, perm
from typing import NamedTuple

from quorisk.kernels.cluster import placement
from quorisk.kernels.cluster.setting import DISTINCT_RACKS, MOST_COPIES, TWO_RACKS, Cluster, units
from quorisk.kernels.cluster.ticks import ANYWHERE, Past, Tick, kinds_of_ticks, some_nodes

INCIDENTS, ENTRIES = WHAT = ("incidents", "entries")
"""Quantities of a tick: P(anything is lost), or the expected number of entries lost."""


class Unit(NamedTuple):
    """A kind of unit that may be lost: ledgers or thin entries."""

    copies: int
    worth: float
    """Number of all of them or, if entries are bounded, of the entries that they lose if each loses one write set."""
    windows: int
    only_now: bool
    """Whether only nodes that an outage of the whole cluster takes now can lose it."""


class ShareBounds:
    """The bounds of a cluster, for one of WHAT."""

    def __init__(self, cluster: Cluster, what: str) -> None:
        self.cluster, self.what = cluster, what
        kinds = units(cluster)
        self.units = [
            Unit(copies, number * (entries if what == ENTRIES else 1.0), cluster.windows if i == 0 else 1, only_now)
            for i, (copies, number, entries, only_now) in enumerate(zip(*kinds, strict=True))
        ]
        self.least = min(kinds.copies)

    @cached_property
    def known(self) -> Sequence[Sequence[int]]:
        """The ensembles, if they are known one by one."""
        return placement.catalogue(self.cluster)

    @cache  # noqa: B019  # lives as long as its cluster is in use
    def on_a_set(self, copies: int) -> float:
        """Upper bound on the chance that `copies` random members of a write set are certain nodes."""
        cluster, ensemble = self.cluster, self.cluster.ensemble_size
        if self.known:
            counts = [0] * cluster.nodes
            for members in self.known:
                for node in members:
                    counts[node] += 1
            return max(counts) / len(self.known) / comb(ensemble, copies)
        total, others = placement.law_of(cluster).total, ensemble - copies
        if placement.needs_rings(cluster):
            return perm(cluster.nodes - copies, others) * perm(copies) / total
        around = comb(cluster.nodes - copies, others)
        if cluster.placement == DISTINCT_RACKS:
            around, left = 0, dict(sorted(cluster.rack_sizes.items()))
            for _ in range(copies):  # the others are in the largest racks that are left
                smallest = next(size for size, number in left.items() if number > 0)
                left[smallest] -= 1
            around = placement.sets_in_distinct_racks(left, others)
        return around / total / comb(ensemble, copies)

    def expected_on_sets(self, copies: int) -> float:
        """Upper bound on the same chance, averaged over nodes drawn, for each set of `copies` places that they take."""
        if not self.known:
            return self.on_a_set(copies)
        likeliest = [1.0]  # by number of places: chances of certain nodes there, over the ticks that may take them
        for k in range(1, copies + 1):
            parts = ((likeliest[k - c], rack, c) for c in range(1, k + 1) for rack in self._racks)
            likeliest.append(max(rest / self.weight(rack, c) for rest, rack, c in parts))
        return factorial(copies) * likeliest[copies]

    @cached_property
    def _racks(self) -> set[int]:
        """Values of `Tick.rack` of all ticks, and ANYWHERE."""
        return {ANYWHERE, *(tick.rack for tick in kinds_of_ticks(self.cluster)[0])}

    def linear(self, moments: Sequence[float], now: Tick) -> float:
        """Returns a bound, not capped at 1, of a tick's mean loss over the nodes down before.

        `moments` [k]: the expected number of sets of k of them.
        """
        value = 0.0
        for unit in self.units:
            k = unit.copies
            sets = sum(comb(now.lost, k - j) * moments[j] for j in range(k + 1))
            if unit.only_now:
                sets = comb(now.lost, k) if now.takes_writers else 0.0
            value += unit.worth * unit.windows * self.expected_on_sets(k) * sets
        return value

    def capped(self, value: float) -> float:
        """Caps a probability at 1; leaves a number of entries unchanged."""
        return min(1.0, value) if self.what == INCIDENTS else value

    def of(self, before: Sequence[Past | Tick], now: Tick) -> tuple[float, bool]:
        """Returns the bound of a tick's loss after others, and whether it is one for nodes that are drawn by beginning
        with a group that is lost (`by_groups`)."""
        at_random = self._at_random(before, now)
        if not self.known or at_random == 0.0:
            return self.capped(at_random), False
        by_groups = self._by_groups([*before, now])
        return min((self.capped(at_random), False), (by_groups, True))

    def _at_random(self, before: Sequence[Past | Tick], now: Tick) -> float:
        value = 0.0
        for i, unit in enumerate(self.units):
            if unit.only_now and not now.takes_writers:
                continue
            earlier = [] if unit.only_now else before
            sets = self._sets([*earlier, now], unit.copies) - self._sets(earlier, unit.copies)
            one_rack = now.rack > 0 and not before and self.cluster.placement == TWO_RACKS
            if i == 0 and one_rack and not self.known:
                continue  # no write set is in one rack
            chance = sets * self.on_a_set(unit.copies)
            many = unit.windows * chance
            value += unit.worth * (many if self.what == ENTRIES else min(1.0, many))
        return value

    def _sets(self, taken: Sequence[Past | Tick], copies: int) -> float:
        """Number of sets of `copies` of these nodes: nodes of different ticks may be in different racks."""
        together = self.cluster.placement == DISTINCT_RACKS and not self.known
        if not together:
            return float(comb(sum(each.lost for each in taken), copies))
        sets = [1.0] + [0.0] * copies
        for each in taken:
            most = 1 if each.rack > 0 else copies
            sets = [sum(comb(each.lost, i) * sets[j - i] for i in range(min(j, most) + 1)) for j in range(copies + 1)]
        return sets[copies]

    def _by_groups(self, taken: Sequence[Past | Tick]) -> float:
        """Bound for draws that begin with a group (`groups`): the number of ways, over the least weight of one."""
        k, groups, places = self.least, len(self.known), sum(each.lost for each in taken)
        subsets = comb(self.cluster.ensemble_size, k)
        lost = sum(unit.worth * unit.windows for unit in self.units) / (groups * subsets)
        ways = perm(places, k) * groups * subsets * self.capped(lost)
        lightest = [1.0] + [inf] * k
        for each in taken:
            weights = [self.weight(each.rack, c) for c in range(min(k, each.lost) + 1)]
            lightest = [
                min((lightest[j - c] * weights[c] for c in range(min(j, len(weights) - 1) + 1)), default=inf)
                for j in range(k + 1)
            ]
        return ways / lightest[k]

    def weight(self, rack: int, count: int) -> float:
        """Reciprocal of the chance that certain nodes are at `count` certain places of a tick."""
        if rack > 0 and count > 0:
            return self.cluster.rack_sizes[rack] * perm(rack, count) or inf
        nodes = self.cluster.nodes if rack >= ANYWHERE else some_nodes(self.cluster, rack).nodes
        return float(perm(nodes, count)) or inf


def moments_of(past: Sequence[tuple[int, float]]) -> list[float]:
    """Returns the expected numbers of sets of 0, 1, ... nodes that ticks before took, from (nodes, expected ticks)."""
    most = MOST_COPIES + 1
    rates = [0.0] + [sum(mean * comb(lost, j) for lost, mean in past) for j in range(1, most)]
    sets = [1.0]
    for j in range(1, most):  # the exponential of a power series
        sets.append(sum(i * rates[i] * sets[j - i] for i in range(1, j + 1)) / j)
    return sets
