"""Members of an ensemble that share a rack: the chance of each pattern, in closed form, for every placement."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, pairwise
from math import comb, perm

from quorisk.kernels.cluster.placement import allowed, catalogue, ways_to_fill
from quorisk.kernels.cluster.setting import Cluster


def in_one_rack(cluster: Cluster) -> dict[int, float]:
    """Returns the chance of each mask: those positions of a ledger's ring, and no others, are in one rack, which is
    any of the racks with the same chance."""
    found: dict[int, float] = {}
    for mask, chance in _of_known(cluster) if catalogue(cluster) else _of_any(cluster):
        found[mask] = found.get(mask, 0.0) + chance
    return found


@lru_cache(maxsize=64)
def p_in_rack(cluster: Cluster) -> float:
    """Returns the chance that an ensemble has a member in a certain rack, averaged over racks. Copysets count as random
    ensembles, as each of them is one."""
    return 1.0 - sum(chance for mask, chance in _of_any(cluster) if mask == 0)


def has_room_without(cluster: Cluster, a_rack: bool = True) -> bool:
    """Returns whether the placement still allows an ensemble while a rack is down, or else a node, whichever it is."""
    if known := catalogue(cluster):
        if not a_rack:
            return not frozenset[int]().union(known[0]).intersection(*known)
        return all(
            any(not any(first <= node < end for node in group) for group in known)
            for first, end in pairwise(cluster.rack_starts)
        )
    sizes, parts = _sizes(cluster), allowed(cluster)
    for down in {*sizes}:
        left = list(sizes)
        left.remove(down)
        left += [] if a_rack or down == 1 else [down - 1]
        if not left or ways_to_fill(parts, cluster.ensemble_size, left)[-1] == 0.0:
            return False
    return True


def _of_any(cluster: Cluster) -> Iterator[tuple[int, float]]:
    sizes, parts, ensemble = _sizes(cluster), allowed(cluster), cluster.ensemble_size
    everywhere, whole = ways_to_fill(parts, ensemble, sizes)[-1], (1 << ensemble) - 1
    for size in set(sizes):
        others = list(sizes)
        others.remove(size)
        elsewhere = ways_to_fill(parts, ensemble, others)
        for mask in (0, *parts):
            ways = perm(size, mask.bit_count()) * elsewhere[whole ^ mask]
            yield mask, ways / everywhere * sizes.count(size) / len(sizes)


def _of_known(cluster: Cluster) -> Iterator[tuple[int, float]]:
    """Yields masks of known ensembles, whose members may have any order, with their chances."""
    known, starts, size = catalogue(cluster), cluster.rack_starts, cluster.ensemble_size
    each = 1.0 / (len(known) * cluster.racks)
    for first, end in pairwise(starts):
        for group in known:
            inside = sum(first <= node < end for node in group)
            for positions in combinations(range(size), inside):
                yield sum(1 << i for i in positions), each / comb(size, inside)


def _sizes(cluster: Cluster) -> list[int]:
    return [end - first for first, end in pairwise(cluster.rack_starts)]
