"""Placement of ledgers: the tables from which `fate` finds the chance that a ledger is on certain nodes.

A ledger's ensemble is a ring of nodes, uniform among those that the placement allows: `random`, any; `distinct_racks`,
no two members in one rack; `two_racks`, no write set in one rack; `copysets`, one of the groups into which random
permutations of the nodes are cut. Placement is averaged over, as ledgers are many and come and go; the groups of
copysets, which stay, are drawn once.

Nodes lie in *cells*, of which an ensemble takes `cap` members each at most: racks; or all of them in one, if racks do
not matter. Where positions on the ring are exchangeable, only the numbers of missing ones count (POOL, GROUPS); where
racks must alternate along it they do not, and whole rings are counted (RINGS).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, product
from math import comb, perm
from typing import NamedTuple

import numpy as np

from quorisk.kernels.cluster.setting import COPYSETS, DISTINCT_RACKS, TWO_RACKS, Cluster, Units, units

POOL, RINGS, GROUPS = range(3)
OPEN, ALIVE, OLD, NEW = range(4)
"""States of a position of a ring: not yet given to a node; on a live node; missing since before; missing since now."""
_CATALOGUE_SEED = 7
"""Seed of the groups of copysets: the same for every seed of a run, so that all answers are about one cluster."""


class Law(NamedTuple):
    """A cluster's placement as tables for compiled code."""

    mode: int
    ensemble: int
    cap: int
    """Largest number of members of an ensemble in one cell."""
    nodes: int
    disks: int
    """Disks of a node: a ledger is on the one of its number, in all nodes."""
    part: float
    """Part of all ledgers that is on one disk."""
    total: float
    """Number of ensembles that are allowed: sets of nodes, or rings; 1 if they are known one by one."""
    cell: np.ndarray  # int64 by node
    size: np.ndarray  # int64 by cell
    small: int
    """The size of the smaller cells; the larger have one more."""
    num_small: int
    num_large: int
    newly: np.ndarray  # float64 [a, b, j]: P(j write sets newly missing) of a new and b old missing positions
    thin: np.ndarray  # float64 [a, b, kind]: P(a thin entry newly missing)
    first: np.ndarray  # int64 by node, where its groups begin in `groups`; and the end
    groups: np.ndarray  # int64
    num_groups: int
    moves: np.ndarray  # int64 rows of (from, to, new, old, alive): what a rack may take of a ring
    fills_small: np.ndarray  # float64 [racks, mask]: ways to fill these positions from that many smaller racks
    fills_large: np.ndarray
    ring_open: np.ndarray  # int64 by ring, the positions that are open, as a mask
    ring_sets: np.ndarray  # int64 by ring, its write sets newly missing if open positions get live nodes
    ring_thin: np.ndarray  # float64 [ring, kind]


@lru_cache(maxsize=64)
def law_of(cluster: Cluster) -> Law:
    """Returns the tables of a cluster's placement."""
    ensemble, write_quorum, kinds = cluster.ensemble_size, cluster.write_quorum, units(cluster)
    starts = cluster.rack_starts if _by_racks(cluster) else (0, cluster.nodes)
    cells = [end - first for first, end in pairwise(starts)]
    small, num_small = min(cells), cells.count(min(cells))
    first, groups, num_groups = _membership(cluster)
    mode = GROUPS if num_groups else RINGS if needs_rings(cluster) else POOL
    rings = _rings(cluster, kinds) if mode == RINGS else _NO_RINGS
    total = float(_count(cluster)) if mode == POOL else 1.0
    if mode == RINGS:
        total = float(ways_to_fill(allowed(cluster), ensemble, cells)[-1])
    return Law(
        mode,
        ensemble,
        _cap(cluster),
        cluster.nodes,
        cluster.disks_per_node,
        1.0 / cluster.disks_per_node,
        total,
        np.repeat(np.arange(len(cells)), cells),
        np.array(cells, np.int64),
        small,
        num_small,
        len(cells) - num_small,
        newly_missing(ensemble, write_quorum),
        _thin(ensemble, kinds),
        first,
        groups,
        num_groups,
        *rings,
    )


def needs_rings(cluster: Cluster) -> bool:
    """Whether it matters where on the ring a node is: racks have to alternate along it."""
    return not cluster.sets and cluster.placement == TWO_RACKS and cluster.ensemble_size > cluster.write_quorum


def _by_racks(cluster: Cluster) -> bool:
    return not cluster.sets and cluster.placement in (TWO_RACKS, DISTINCT_RACKS)


def _cap(cluster: Cluster) -> int:
    if not _by_racks(cluster):
        return cluster.ensemble_size
    return cluster.ensemble_size - 1 if cluster.placement == TWO_RACKS else 1


def _count(cluster: Cluster) -> int:
    """Number of sets of nodes that an ensemble may be, if positions are exchangeable."""
    if cluster.placement == DISTINCT_RACKS:
        return sets_in_distinct_racks(cluster.rack_sizes, cluster.ensemble_size)
    every = comb(cluster.nodes, cluster.ensemble_size)
    if cluster.placement == TWO_RACKS:
        every -= sum(number * comb(size, cluster.ensemble_size) for size, number in cluster.rack_sizes.items())
    return every


def sets_in_distinct_racks(sizes: Mapping[int, int], num: int) -> int:
    """Returns the number of sets of `num` nodes in distinct racks, given the number of racks of each size."""
    ways = [1] + [0] * num
    for size, number in sizes.items():
        ways = [sum(ways[j - i] * comb(number, i) * size**i for i in range(j + 1)) for j in range(num + 1)]
    return ways[num]


def catalogue(cluster: Cluster) -> Sequence[Sequence[int]]:
    """Returns the ensembles that a cluster knows one by one: given, or those of copysets; else none."""
    if cluster.sets or cluster.placement != COPYSETS:
        return cluster.sets
    rng, size = np.random.default_rng(_CATALOGUE_SEED), cluster.ensemble_size
    rows = [rng.permutation(cluster.nodes).tolist() for _ in range(cluster.permutations)]
    return [row[i : i + size] for row in rows for i in range(0, cluster.nodes - size + 1, size)]


def _membership(cluster: Cluster) -> tuple[np.ndarray, np.ndarray, int]:
    known = catalogue(cluster)
    of: list[list[int]] = [[] for _ in range(cluster.nodes)]
    for group, members in enumerate(known):
        for node in members:
            of[node].append(group)
    first = np.cumsum([0, *map(len, of)]).astype(np.int64)
    return first, np.array([group for groups in of for group in groups], np.int64), len(known)


def newly_missing(ensemble: int, write_quorum: int) -> np.ndarray:
    """Returns [a, b, j]: the chance that j write sets are newly missing, if a random a positions of a ring are missing
    since now and b since before."""
    table = np.zeros((ensemble + 1, ensemble + 1, ensemble + 1))
    for ring in product((ALIVE, OLD, NEW), repeat=ensemble):
        table[ring.count(NEW), ring.count(OLD), len(_newly(ring, write_quorum))] += 1
    totals = table.sum(axis=2, keepdims=True)
    return np.divide(table, totals, out=np.zeros_like(table), where=totals > 0)


def windows(ensemble: int, write_quorum: int) -> list[list[int]]:
    """The positions of each write set."""
    starts = range(1 if ensemble == write_quorum else ensemble)
    return [[(start + i) % ensemble for i in range(write_quorum)] for start in starts]


def _newly(ring: Sequence[int], write_quorum: int) -> list[list[int]]:
    """The write sets of a ring that are newly missing."""
    spans = windows(len(ring), write_quorum)
    return [span for span in spans if all(ring[i] in (OLD, NEW) for i in span) and any(ring[i] == NEW for i in span)]


def _thin(ensemble: int, kinds: Units) -> np.ndarray:
    """Returns [new, old, kind], as `newly_missing`: the chance that a thin entry loses its last copy now."""
    table = np.zeros((ensemble + 1, ensemble + 1, len(kinds.copies)))
    for new, old, kind in product(range(ensemble + 1), range(ensemble + 1), range(1, len(kinds.copies))):
        table[new, old, kind] = _thin_chance(new, old, ensemble, kinds, kind)
    return table


def _thin_chance(new: int, old: int, among: int, kinds: Units, kind: int) -> float:
    """Chance that an entry on random members is newly lost. Nobody writes to members that were down before, so entries
    in flight are on others."""
    copies = kinds.copies[kind]
    gone = comb(new, copies) if kinds.in_outages_only[kind] else comb(new + old, copies) - comb(old, copies)
    return gone / comb(among, copies)


# Rings whose write sets must each lie in two racks

_NO_RINGS = (
    np.zeros((0, 5), np.int64),
    np.zeros((0, 0)),
    np.zeros((0, 0)),
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    np.zeros((0, 0)),
)


def allowed(cluster: Cluster) -> list[int]:
    """The positions of a ring that may be in one rack together, as masks."""
    every = range(1, 1 << cluster.ensemble_size)
    if cluster.placement == DISTINCT_RACKS:
        return [mask for mask in every if mask.bit_count() == 1]
    if cluster.placement == TWO_RACKS:
        forbidden = [sum(1 << i for i in span) for span in windows(cluster.ensemble_size, cluster.write_quorum)]
        return [mask for mask in every if not any(mask & each == each for each in forbidden)]
    return list(every)


def _rings(cluster: Cluster, kinds: Units) -> tuple[np.ndarray, ...]:
    ensemble, spans = cluster.ensemble_size, windows(cluster.ensemble_size, cluster.write_quorum)
    parts = allowed(cluster)
    states = list(product(range(4), repeat=ensemble))
    numbers = {state: i for i, state in enumerate(states)}
    moves = [
        (numbers[state], numbers[after], taken.count(NEW), taken.count(OLD), taken.count(ALIVE))
        for state in sorted(states, key=lambda state: state.count(OPEN))  # so that no rack is used twice
        for after, taken in _taken(state, set(parts))
    ]
    of_racks = [fills(parts, ensemble, size, number) for size, number in sorted(cluster.rack_sizes.items())]
    one = np.zeros((1, 1 << ensemble))
    one[0, 0] = 1.0
    thin = np.array([[_ring_thin(state, spans, kinds, kind) for kind in range(len(kinds.copies))] for state in states])
    return (
        np.array(moves, np.int64),
        of_racks[0],
        of_racks[1] if len(of_racks) > 1 else one,
        np.array([sum(1 << i for i in range(ensemble) if state[i] == OPEN) for state in states], np.int64),
        np.array([len(_newly(state, cluster.write_quorum)) for state in states], np.int64),
        thin,
    )


def _taken(state: tuple[int, ...], allowed: set[int]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yields each ring that a rack may leave, and the positions that it took, if any."""
    places = [i for i, each in enumerate(state) if each == OPEN]
    for taken in product(range(4), repeat=len(places)):
        mask = sum(1 << i for i, each in zip(places, taken, strict=True) if each != OPEN)
        if mask and mask in allowed:
            after = list(state)
            for i, each in zip(places, taken, strict=True):
                after[i] = each
            yield tuple(after), taken


def fills(allowed: Iterable[int], ensemble: int, size: int, racks: int) -> np.ndarray:
    """Returns [n, mask]: the ways to fill these positions from n racks, each of which takes an allowed part of them."""
    by_racks = np.zeros((ensemble + 1, 1 << ensemble))  # [k, mask]: by exactly k racks, in the order of lowest position
    by_racks[0, 0] = 1.0
    for mask in range(1, 1 << ensemble):
        lowest = mask & -mask
        for part in allowed:
            if part & lowest and part & mask == part:
                by_racks[1:, mask] += by_racks[:-1, mask ^ part] * perm(size, part.bit_count())
    orders = np.array([[float(perm(n, k)) for k in range(ensemble + 1)] for n in range(racks + 1)])
    return orders @ by_racks


def ways_to_fill(allowed: Sequence[int], ensemble: int, sizes: Sequence[int]) -> list[float]:
    """Returns, by mask, the ways to fill these positions from racks of these sizes, each of which takes an allowed part
    of them."""
    ways = [1.0] + [0.0] * ((1 << ensemble) - 1)
    for size in sorted(set(sizes)):
        mine = fills(allowed, ensemble, size, sizes.count(size))[-1]
        ways = [
            sum(ways[part] * mine[mask ^ part] for part in range(mask + 1) if part & mask == part)
            for mask in range(len(ways))
        ]
    return ways


def _ring_thin(state: Sequence[int], spans: Sequence[Sequence[int]], kinds: Units, kind: int) -> float:
    """The chance that an entry of a kind, with few copies yet, is newly lost in this state of a ring: the mean over its
    write sets, which are `spans` of positions. Kind 0 is of whole ledgers."""
    if kind == 0:
        return 0.0
    counts = [([state[i] for i in span].count(NEW), [state[i] for i in span].count(OLD)) for span in spans]
    return sum(_thin_chance(new, old, len(spans[0]), kinds, kind) for new, old in counts) / len(spans)
