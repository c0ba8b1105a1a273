"""What nodes take with them that are down, against ensembles that are listed one by one."""

from itertools import combinations, permutations, product
from math import comb, prod

import numpy as np
import pytest

from quorisk.kernels.cluster.fate import ALL, Down, fate, kinds_of_units, room_for_fate
from quorisk.kernels.cluster.placement import catalogue, law_of
from quorisk.kernels.cluster.setting import Cluster, Thin, units

THIN = (Thin(2, 5.0, False), Thin(1, 7.0, True))
CLUSTERS = {
    "random": Cluster(7, 3, 3, 10, 6),
    "random, E above WQ": Cluster(6, 2, 4, 10, 6),
    "distinct racks": Cluster(9, 3, 3, 10, 6, racks=3, placement="distinct_racks"),
    "distinct racks of two sizes": Cluster(8, 2, 3, 10, 6, racks=5, placement="distinct_racks"),
    "two racks": Cluster(6, 3, 3, 10, 6, racks=2, placement="two_racks"),
    "two racks of two sizes": Cluster(7, 3, 3, 10, 6, racks=3, placement="two_racks"),
    "two racks, E above WQ": Cluster(7, 3, 4, 10, 6, racks=3, placement="two_racks"),
    "copysets": Cluster(7, 3, 3, 10, 6, placement="copysets", scatter_width=4),
    "copysets, E above WQ": Cluster(9, 2, 4, 10, 6, placement="copysets", scatter_width=9),
    "known sets": Cluster(6, 2, 3, 10, 6, sets=((0, 1, 2), (1, 2, 3), (0, 1, 2), (3, 4, 5))),
}
DOWN = [
    ([4, 0], [0.3, 0.6], [1, 2]),
    ([], [], [0, 1, 2]),
    ([5], [1.0], [3, 0]),
    ([0, 1, 2, 3], [0.5, 0.2, 1.0, 0.9], [5]),
]
"""Nodes down before, the shares of their copies that are missing, and nodes that are lost now."""


def rings(cluster):
    """All rings of nodes that a ledger may be on, each as likely."""
    racks = {node: rack for rack, first in enumerate(cluster.rack_starts[:-1]) for node in range(first, cluster.nodes)}
    size, spans = cluster.ensemble_size, windows(cluster)
    groups = catalogue(cluster) or combinations(range(cluster.nodes), size)
    for group in groups:
        for ring in permutations(group):
            where = [racks[node] for node in ring]
            if cluster.placement == "distinct_racks" and len(set(where)) < size:
                continue
            if cluster.placement == "two_racks" and any(len({where[i] for i in span}) < 2 for span in spans):
                continue
            yield ring


def windows(cluster):
    size = cluster.ensemble_size
    return [[(first + i) % size for i in range(cluster.write_quorum)] for first in range(cluster.windows)]


def listed(cluster, old, shares, new, outage):
    """By number of write sets the chance that a ledger newly loses so many, and for each kind of thin entry its."""
    sets, thin, num = np.zeros(cluster.ensemble_size + 1), np.zeros(len(cluster.thin)), 0
    for ring in rings(cluster):
        num += 1
        before = [i for i, node in enumerate(ring) if node in old]
        for states in product((True, False), repeat=len(before)):
            missing = {i for i, state in zip(before, states, strict=True) if state}
            chance = prod(
                shares[old.index(ring[i])] if state else 1 - shares[old.index(ring[i])]
                for i, state in zip(before, states, strict=True)
            )
            now = {i for i, node in enumerate(ring) if node in new}
            lost = [span for span in windows(cluster) if missing | now >= set(span) and now & set(span)]
            sets[len(lost)] += chance
            for kind, each in enumerate(cluster.thin):
                hit = [
                    now >= set(some) if each.heals else missing | now >= set(some) and bool(now & set(some))
                    for span in windows(cluster)
                    for some in combinations(span, each.copies)
                ]
                if outage or not each.heals:
                    thin[kind] += chance * sum(hit) / len(hit)
    return sets / num, thin / num


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("outage", [False, True])
def test_chances_are_those_of_all_ensembles(name, outage):
    cluster = CLUSTERS[name]._replace(thin=THIN if CLUSTERS[name].write_quorum > 2 else THIN[1:])
    law, kinds = law_of(cluster), kinds_of_units(units(cluster))
    found = room_for_fate(law, kinds)
    for old, shares, new in DOWN:
        num = len(old) + len(new)
        down = Down(np.array([*old, *new], np.int64), np.array([*shares, *[1.0] * len(new)]), np.full(num, ALL))
        log_ledgers, log_all, entries = fate(law, kinds, down, len(old), num, outage, found)
        sets, thin = listed(cluster, old, shares, new, outage)
        assert found.sets[0, 1 : len(sets)] == pytest.approx(sets[1:], abs=1e-14)
        assert found.hit[0, 1:] == pytest.approx(thin, abs=1e-14)
        numbers = [each.number for each in cluster.thin]
        assert log_ledgers == pytest.approx(10 * np.log1p(-min(1 - sets[0], 1 - 1e-16)), rel=1e-9, abs=1e-12)
        rest = sum(n * np.log1p(-min(p, 1 - 1e-16)) for n, p in zip(numbers, thin, strict=True))
        assert log_all == pytest.approx(log_ledgers + rest, rel=1e-9, abs=1e-12)
        of_sets = 10 * 6 / cluster.windows * sum(j * p for j, p in enumerate(sets))
        assert entries == pytest.approx(of_sets + sum(np.multiply(numbers, thin)), abs=1e-12)


def test_an_ensemble_is_one_of_those_that_the_placement_allows():
    assert law_of(CLUSTERS["random"]).total == comb(7, 3)
    assert law_of(CLUSTERS["distinct racks"]).total == 27
    assert law_of(CLUSTERS["two racks"]).total == comb(6, 3) - 2
    assert law_of(CLUSTERS["two racks, E above WQ"]).total == sum(1 for _ in rings(CLUSTERS["two racks, E above WQ"]))
