"""Strata that are solved: ticks that find all nodes up, and nodes lost one by one until a write set is gone."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, islice, pairwise
from math import comb, factorial, nan, perm, prod

import numpy as np
import scipy

from quorisk.kernels.cluster import placement
from quorisk.kernels.cluster.bounds import INCIDENTS
from quorisk.kernels.cluster.draws import log_none
from quorisk.kernels.cluster.fate import ALL, Down, compiled, fate, kinds_of_units, room_for_fate
from quorisk.kernels.cluster.setting import DISTINCT_RACKS, RANDOM, TWO_RACKS, Cluster, units
from quorisk.kernels.cluster.ticks import ANYWHERE, Past, Tick, some_nodes

_MOST_LOST, _MOST_PATTERNS = 30, 500
"""Largest number of nodes lost at once, and of ways in which they may lie in racks, that are solved one by one."""


class Solver:
    """Mean losses in the strata of a cluster that can be solved, for one of `bounds.WHAT`."""

    def __init__(self, cluster: Cluster, what: str) -> None:
        self._cluster, self._what = cluster, what
        self._law, self._kinds = placement.law_of(cluster), kinds_of_units(units(cluster))
        self._found = room_for_fate(self._law, self._kinds)
        self._known = bool(placement.catalogue(cluster))
        self._disks = 1
        self._chains: dict[int, float] = {}

    def value(self, past: Sequence[Past], now: Tick) -> float:
        """Returns the mean loss of a tick after others; NaN if that is not solved."""
        if not past:
            return nan if self._known else self._alone(now)
        ticks = [*((each.rack, each.lost) for each in past), (now.rack, now.lost)]
        one_by_one = ticks == [(ANYWHERE, 1)] * self._cluster.write_quorum
        if not one_by_one or self._cluster.thin or placement.needs_rings(self._cluster):
            return nan
        disks = sum(each.is_disk for each in past) + now.is_disk
        if disks not in self._chains:
            self._chains[disks] = self._chain(disks)
        return self._chains[disks]

    def _chain(self, disks: int) -> float:
        """Mean loss of nodes lost one by one, so many of which lose one disk alone: all must have the same number."""
        every = self._cluster.disks_per_node
        same, self._disks = every ** -max(0, disks - 1), 1 if disks else every
        return same * sum(chance * self._down_one_by_one(share) for chance, share in self._sets())

    def _alone(self, now: Tick) -> float:
        by_rack = now.rack == ANYWHERE and self._cluster.placement != RANDOM
        patterns = (
            list(islice(self._patterns(now), _MOST_PATTERNS + 1)) if now.lost <= _MOST_LOST or not by_rack else []
        )
        if not patterns or len(patterns) > _MOST_PATTERNS:
            return nan
        disk = 0 if now.is_disk else ALL
        return sum(chance * self._lost_with(nodes, disk, now.takes_writers) for chance, nodes in patterns)

    def _lost_with(self, nodes: list[int], disk: int, outage: bool) -> float:
        down = Down(np.array(nodes, np.int64), np.ones(len(nodes)), np.full(len(nodes), disk))
        _, log_none, entries = compiled(fate)(self._law, self._kinds, down, 0, len(nodes), outage, self._found)
        return float(-np.expm1(log_none) if self._what == INCIDENTS else entries)

    def _patterns(self, now: Tick) -> Iterator[tuple[float, list[int]]]:
        """The ways in which a tick's nodes lie in racks: chance, and nodes that lie so."""
        cluster = self._cluster
        by_size: dict[int, list[int]] = {}  # first nodes of racks
        for first, end in pairwise(cluster.rack_starts):
            by_size.setdefault(end - first, []).append(first)
        if now.rack < ANYWHERE:
            event = some_nodes(cluster, now.rack)
            yield from ((1.0 / event.nodes, [event.first + i]) for i in range(event.nodes))
            return
        if now.rack != ANYWHERE:
            yield 1.0, [by_size[now.rack][0] + i for i in range(now.lost)]
            return
        if cluster.placement == RANDOM:
            yield 1.0, list(range(now.lost))
            return
        every = comb(cluster.nodes, now.lost)
        for parts in _spread(now.lost, [(size, len(racks)) for size, racks in by_size.items()]):
            nodes, ways = [], 1
            for (size, racks), taken in zip(by_size.items(), parts, strict=True):
                ways *= perm(len(racks), len(taken)) // prod(map(factorial, Counter(taken).values()))
                ways *= prod(comb(size, part) for part in taken)
                nodes += [racks[i] + j for i, part in enumerate(taken) for j in range(part)]
            yield ways / every, nodes

    def _sets(self) -> Iterator[tuple[float, float]]:
        """Yields, by kind of set of nodes, the chance that a chain's nodes are one, and that a ledger has it as
        a write set."""
        cluster, law, copies = self._cluster, self._law, self._cluster.write_quorum
        orders = factorial(copies) / cluster.nodes**copies
        subsets = comb(cluster.ensemble_size, copies)
        if self._known:
            times = Counter(
                tuple(sorted(some))
                for members in placement.catalogue(cluster)
                for some in combinations(members, copies)
            )
            for number, sets in Counter(times.values()).items():
                yield sets * orders, cluster.windows * number / (law.num_groups * subsets)
        elif cluster.placement == DISTINCT_RACKS:
            sizes = list(cluster.rack_sizes.items())
            for parts in _compositions(copies, [number for _, number in sizes]):
                ways = prod(comb(n, part) * size**part for (size, n), part in zip(sizes, parts, strict=True))
                left = {size: n - part for (size, n), part in zip(sizes, parts, strict=True)}
                around = placement.sets_in_distinct_racks(left, cluster.ensemble_size - copies)
                yield ways * orders, cluster.windows * around / (law.total * subsets)
        else:
            allowed = law.total if cluster.placement == TWO_RACKS else comb(cluster.nodes, copies)
            yield allowed * orders, cluster.windows / allowed

    def _down_one_by_one(self, share: float) -> float:
        """Mean loss if a ledger has these nodes for a write set with the chance `share`.

        Each of the nodes before has an age uniform on its span. While its repair has not begun all its copies are
        missing, then a uniform share, and what counts is the product of m such shares.
        """
        cluster, span = self._cluster, self._cluster.span(1)
        before = cluster.write_quorum - 1
        if cluster.repair_queue:
            return self._one_in_repair(share, before, span)
        begun, not_begun = cluster.repair_time / span, cluster.detection_delay / span
        value = 0.0
        for m in range(before + 1):
            chance = comb(before, m) * begun**m * not_begun ** (before - m)
            if chance > 0.0:
                value += chance * self._with_repair(share, m)
        return value

    def _one_in_repair(self, share: float, before: int, span: float) -> float:
        """The same where repairs wait for each other: all are down until the first is back, and no other is begun."""
        cluster = self._cluster
        begun, window = cluster.detection_delay, cluster.window(1)
        value = (begun / span) ** before * self._lost(share)
        if before and cluster.repair_time > 0.0:

            def weighted(age: float) -> float:
                missing = 1.0 - (age - begun) / cluster.repair_time
                return before * age ** (before - 1) / span**before * self._lost(share * missing)

            value += float(scipy.integrate.quad(weighted, begun, window, limit=400, epsabs=0.0, epsrel=1e-11)[0])
        return value

    def _lost(self, share: float) -> float:
        """Loss of ledgers that each have the nodes that are down for a write set with the chance `share`, if they are
        on one of the disks that count."""
        cluster, part = self._cluster, self._disks / self._cluster.disks_per_node
        if self._what != INCIDENTS:
            return share * cluster.entries / cluster.windows * part
        return float(-np.expm1(self._disks * log_none(cluster.ledgers / cluster.disks_per_node, share)))

    def _with_repair(self, share: float, m: int) -> float:
        """Mean loss with m nodes whose repair has begun."""
        if self._what != INCIDENTS:
            return 0.5**m * self._lost(share)
        if m == 0:
            return self._lost(share)
        # -log of the product is a sum of m exponentials; it decides where the expected losses are about 1
        bend = np.log(max(self._cluster.ledgers * share, 1.0))
        most = bend + 60.0 + 4.0 * m

        def weighted(t: float) -> float:
            return self._lost(share * float(np.exp(-t))) * t ** (m - 1) * float(np.exp(-t)) / factorial(m - 1)

        points = [point for point in (bend, bend + 5.0, 5.0) if 0.0 < point < most]
        return float(scipy.integrate.quad(weighted, 0.0, most, points=points, limit=400, epsabs=0.0, epsrel=1e-11)[0])


def _spread(lost: int, sizes: list[tuple[int, int]]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """The ways to take `lost` nodes from racks, (size, number) each: for each size the nodes that its racks lose."""
    if not sizes:
        if lost == 0:
            yield ()
        return
    (size, number), *others = sizes
    for here in range(lost + 1):
        for parts in _partitions(here, number, size):
            for rest in _spread(lost - here, others):
                yield (parts, *rest)


def _partitions(total: int, parts: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yields a total as sums of up to `parts` parts of up to `most`, the largest first."""
    if total == 0:
        yield ()
    elif parts > 0:
        for largest in range(min(total, most), 0, -1):
            for rest in _partitions(total - largest, parts - 1, largest):
                yield (largest, *rest)


def _compositions(total: int, most: list[int]) -> Iterator[tuple[int, ...]]:
    """Yields a total as sums of one part for each of `most`, which is its maximum."""
    if not most:
        if total == 0:
            yield ()
        return
    for first in range(min(total, most[0]) + 1):
        for rest in _compositions(total - first, most[1:]):
            yield (first, *rest)
