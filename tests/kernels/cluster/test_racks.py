"""Which members of a ring are in one rack, held against all rings that a placement allows, one by one."""

from itertools import pairwise, permutations

import pytest

from quorisk.kernels.cluster.placement import catalogue, windows
from quorisk.kernels.cluster.racks import has_room_without, in_one_rack
from quorisk.kernels.cluster.setting import COPYSETS, DISTINCT_RACKS, RANDOM, TWO_RACKS, Cluster


def cluster(nodes, racks, write_quorum, ensemble, placement, scatter_width=0):
    return Cluster(nodes, write_quorum, ensemble, 1, 1, racks=racks, placement=placement, scatter_width=scatter_width)


def rings(given, nodes):
    """All rings of these nodes that are allowed; of groups, in every order."""
    rack = [place for place, (first, end) in enumerate(pairwise(given.rack_starts)) for _ in range(first, end)]
    if groups := catalogue(given):
        return [ring for group in groups if set(group) <= set(nodes) for ring in permutations(group)]
    spans = windows(given.ensemble_size, given.write_quorum)
    every = permutations(nodes, given.ensemble_size)
    if given.placement == DISTINCT_RACKS:
        return [ring for ring in every if len({rack[node] for node in ring}) == len(ring)]
    if given.placement == TWO_RACKS:
        return [ring for ring in every if all(len({rack[ring[i]] for i in span}) > 1 for span in spans)]
    return list(every)


CLUSTERS = [
    cluster(3, 2, 2, 2, RANDOM),  # the larger rack leaves no room
    cluster(7, 3, 2, 2, RANDOM),
    cluster(7, 3, 2, 4, RANDOM),
    cluster(7, 3, 3, 3, TWO_RACKS),
    cluster(6, 2, 3, 3, TWO_RACKS),
    cluster(7, 3, 2, 4, TWO_RACKS),
    cluster(7, 3, 3, 4, TWO_RACKS),
    cluster(5, 2, 2, 4, TWO_RACKS),
    cluster(7, 3, 3, 3, DISTINCT_RACKS),
    cluster(7, 4, 2, 3, DISTINCT_RACKS),
    cluster(9, 4, 3, 3, COPYSETS, 4),
    cluster(8, 2, 2, 2, COPYSETS, 1),
    cluster(3, 3, 3, 3, DISTINCT_RACKS),
    cluster(4, 3, 3, 3, DISTINCT_RACKS),
    cluster(4, 3, 2, 3, TWO_RACKS),
    cluster(3, 3, 1, 3, COPYSETS, 2),
]


@pytest.mark.parametrize("given", CLUSTERS, ids=lambda each: f"{each.placement}-{each.racks}-{each.ensemble_size}")
def test_the_patterns_are_those_of_all_rings(given):
    racks, every = list(pairwise(given.rack_starts)), rings(given, range(given.nodes))
    counted: dict[int, float] = {}
    for first, end in racks:
        for ring in every:
            mask = sum(1 << i for i, node in enumerate(ring) if first <= node < end)
            counted[mask] = counted.get(mask, 0.0) + 1.0 / (len(every) * len(racks))
    found = {mask: p for mask, p in in_one_rack(given).items() if p > 0.0}
    assert found == pytest.approx(counted, rel=1e-12)
    left = [[node for node in range(given.nodes) if not first <= node < end] for first, end in racks]
    assert has_room_without(given) == all(rings(given, nodes) for nodes in left)
    left = [[node for node in range(given.nodes) if node != down] for down in range(given.nodes)]
    assert has_room_without(given, a_rack=False) == all(rings(given, nodes) for nodes in left)
