"""Which members of an ensemble are in one rack: the chance of each pattern, in closed form, for every placement."""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from math import comb, perm

from quorisk.kernels.cluster.placement import catalogue, fills, windows
from quorisk.kernels.cluster.setting import DISTINCT_RACKS, TWO_RACKS, Cluster


def in_one_rack(cluster: Cluster) -> dict[int, float]:
    """Returns the chance of each mask: those positions of a ledger's ring, and no others, are in one rack, which is
    any of the racks with the same chance."""
    found: dict[int, float] = {}
    for mask, chance in _of_known(cluster) if catalogue(cluster) else _of_any(cluster):
        found[mask] = found.get(mask, 0.0) + chance
    return found


def has_room_without(cluster: Cluster) -> bool:
    """Returns whether the placement still allows an ensemble while a rack is down, whichever it is."""
    if known := catalogue(cluster):
        return all(
            any(not any(first <= node < end for node in group) for group in known)
            for first, end in pairwise(cluster.rack_starts)
        )
    smallest = sorted(_sizes(cluster))[:-1]  # the largest is down
    return bool(smallest) and bool(_rings(cluster, _allowed(cluster), smallest)[-1] > 0.0)


def _of_any(cluster: Cluster) -> Iterator[tuple[int, float]]:
    sizes, allowed = _sizes(cluster), _allowed(cluster)
    everywhere, whole = _rings(cluster, allowed, sizes)[-1], (1 << cluster.ensemble_size) - 1
    for size in set(sizes):
        others = list(sizes)
        others.remove(size)
        elsewhere = _rings(cluster, allowed, others)
        for mask in (0, *allowed):
            ways = perm(size, mask.bit_count()) * elsewhere[whole ^ mask]
            yield mask, ways / everywhere * sizes.count(size) / len(sizes)


def _of_known(cluster: Cluster) -> Iterator[tuple[int, float]]:
    """Of groups, whose members may have any order."""
    known, starts, size = catalogue(cluster), cluster.rack_starts, cluster.ensemble_size
    each = 1.0 / (len(known) * cluster.racks)
    for first, end in pairwise(starts):
        for group in known:
            inside = sum(first <= node < end for node in group)
            for positions in combinations(range(size), inside):
                yield sum(1 << i for i in positions), each / comb(size, inside)


def _allowed(cluster: Cluster) -> list[int]:
    """The positions that may be in one rack together, as masks."""
    every = range(1, 1 << cluster.ensemble_size)
    if cluster.placement == DISTINCT_RACKS:
        return [mask for mask in every if mask.bit_count() == 1]
    if cluster.placement == TWO_RACKS:
        forbidden = [sum(1 << i for i in span) for span in windows(cluster.ensemble_size, cluster.write_quorum)]
        return [mask for mask in every if not any(mask & each == each for each in forbidden)]
    return list(every)


def _sizes(cluster: Cluster) -> list[int]:
    return [end - first for first, end in pairwise(cluster.rack_starts)]


def _rings(cluster: Cluster, allowed: Sequence[int], sizes: Sequence[int]) -> list[float]:
    """By mask, the ways to fill these positions from racks of these sizes."""
    ways = [1.0] + [0.0] * ((1 << cluster.ensemble_size) - 1)
    for size in sorted(set(sizes)):
        mine = fills(allowed, cluster.ensemble_size, size, sizes.count(size))[-1]
        ways = [
            sum(ways[part] * mine[mask ^ part] for part in range(mask + 1) if part & mask == part)
            for mask in range(len(ways))
        ]
    return ways
