"""Losses by nodes that are down at once: the chances that a ledger, and a thin entry, are newly lost.

Compiled code calls these functions, and Python may: nothing in them allocates.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.cluster.draws import log_none
from quorisk.kernels.cluster.placement import GROUPS, RINGS, Law
from quorisk.kernels.cluster.setting import MOST_COPIES, Units
from quorisk.kernels.ops import jitable, jitable_apart

ALL = -1
"""Number in place of a disk's, of a node that lost all of them."""
_SIDE = MOST_COPIES + 1


class UnitKinds(NamedTuple):
    """`Units` as arrays, by kind."""

    number: np.ndarray  # float64
    entries: np.ndarray  # float64
    in_outages_only: np.ndarray  # bool
    least: int
    """The fewest copies of any kind."""


class Down(NamedTuple):
    """Nodes that are down: first those that were down before, then those that a tick takes now."""

    node: np.ndarray  # int64
    share: np.ndarray  # float64, the share of its copies that are not made anew yet
    disk: np.ndarray  # int64, the disk whose copies it lost; ALL if it lost all of them


class OneDisk(NamedTuple):
    """Chances of the units on one disk, and the working memory for them."""

    hit: np.ndarray  # float64 by kind: P(a unit newly loses something)
    sets: np.ndarray  # float64 [j]: P(a ledger newly loses j write sets)
    missing: np.ndarray  # float64 [new, old, alive]: weights of ensembles by members
    part: np.ndarray  # float64 [new, old, alive]: the same of one cell
    shares: np.ndarray  # float64 [missing, there]: weights of a cell's nodes that were down before
    rest: np.ndarray  # float64 [j]: ways to take j members from cells that have no node down
    rings: np.ndarray  # float64 by ring
    fills: np.ndarray  # float64 by mask
    num_down: np.ndarray  # int64 by cell or group: nodes down in it; zeros between calls
    met: np.ndarray  # int64: cells or groups that have nodes down


class FateResults(NamedTuple):
    """Results of `fate`, and its working memory."""

    hit: np.ndarray  # float64 [disk, kind]: P(a unit on this disk newly loses something)
    sets: np.ndarray  # float64 [disk, j]: P(a ledger on it newly loses j write sets)
    lacking: Down  # nodes that lack the copies of one disk
    one: OneDisk


def kinds_of_units(units: Units) -> UnitKinds:
    """Returns a cluster's units as arrays for compiled code."""
    return UnitKinds(
        np.array(units.number), np.array(units.entries), np.array(units.in_outages_only, np.bool_), min(units.copies)
    )


def none_down(nodes: int) -> Down:
    """Returns room for all nodes to be down."""
    return Down(np.zeros(nodes, np.int64), np.zeros(nodes), np.full(nodes, ALL))


def room_for_fate(law: Law, kinds: UnitKinds) -> FateResults:
    """Returns working memory for `fate`; each thread needs its own."""
    cube = (_SIDE, _SIDE, _SIDE)
    groups = max(len(law.size), law.num_groups)
    one = OneDisk(
        np.zeros(len(kinds.number)),
        np.zeros(_SIDE),
        np.zeros(cube),
        np.zeros(cube),
        np.zeros((_SIDE, _SIDE)),
        np.zeros(_SIDE),
        np.zeros(len(law.ring_open)),
        np.zeros(len(law.fills_small[0]) if len(law.fills_small) else 0),
        np.zeros(groups, np.int64),
        np.zeros(groups, np.int64),
    )
    by_kind, by_sets = np.zeros((law.disks, len(kinds.number))), np.zeros((law.disks, _SIDE))
    return FateResults(by_kind, by_sets, none_down(law.nodes), one)


@jitable_apart
def fate(law, kinds, down, old, num, outage, found):
    """Writes `found.hit` and `found.sets` for `num` nodes down, of which all but the first `old` are lost now.

    Returns log P(no ledger is hit), log P(nothing is hit), and the expected number of entries that are lost. `outage`
    means one of the whole cluster, which takes writers as well.
    """
    log_ledgers, log_all, entries, one = 0.0, 0.0, 0.0, found.one
    for disk in range(law.disks):
        before, there, lacking = old, num, down
        if law.disks > 1:
            before, there = _lacking(down, old, num, disk, found.lacking)
            lacking = found.lacking
        _chances(law, kinds, lacking, before, there, outage, one)
        sets = 0.0
        for j in range(1, law.ensemble + 1):
            found.sets[disk, j] = one.sets[j]
            sets += j * one.sets[j]
        entries += kinds.number[0] * law.part * kinds.entries[0] * sets
        none = log_none(kinds.number[0] * law.part, one.hit[0])
        log_ledgers += none
        log_all += none
        found.hit[disk, 0] = one.hit[0]
        for i in range(1, len(kinds.number)):
            found.hit[disk, i] = one.hit[i]
            log_all += log_none(kinds.number[i] * law.part, one.hit[i])
            entries += kinds.number[i] * law.part * kinds.entries[i] * one.hit[i]
    return log_ledgers, log_all, entries


@jitable_apart
def _lacking(down, old, num, disk, lacking):
    """Writes to `lacking` those nodes that lost this disk, or all of theirs. Returns how many were down before, and how
    many there are."""
    before, there = 0, 0
    for i in range(num):
        if down.disk[i] == disk or down.disk[i] == ALL:
            lacking.node[there], lacking.share[there] = down.node[i], down.share[i]
            there += 1
            before += i < old
    return before, there


@jitable
def _chances(law, kinds, down, old, num, outage, found):
    """Writes `found.hit` and `found.sets` of ledgers whose copies these nodes lost."""
    found.hit[:] = 0.0
    found.sets[:] = 0.0
    if num >= kinds.least and num > old:
        if law.mode == GROUPS:
            _by_groups(law, kinds, down, old, num, outage, found)
        elif law.mode == RINGS:
            _by_rings(law, kinds, down, old, num, outage, found)
        else:
            _by_pool(law, kinds, down, old, num, outage, found)
    for j in range(1, law.ensemble + 1):
        found.hit[0] += found.sets[j]


@jitable
def binomial(n, k):
    """The k-subsets of n, a float."""
    ways = 1.0
    for i in range(k):
        ways *= (n - i) / (i + 1)
    return ways


@jitable_apart
def _add(law, kinds, new, old, chance, outage, found):
    """Adds, times `chance`, the losses of an ensemble with `new` members newly missing and `old` missing before."""
    for j in range(1, law.ensemble + 1):
        found.sets[j] += chance * law.newly[new, old, j]
    for i in range(1, len(kinds.number)):
        if outage or not kinds.in_outages_only[i]:
            found.hit[i] += chance * law.thin[new, old, i]


@jitable_apart
def _shares(law, down, old, num, cell, found):
    """Writes `found.shares`: the contributions to an ensemble, missing or there, of a cell's nodes that were down
    before.

    Returns how many nodes of the cell were down before, and are lost now.
    """
    cap = law.cap
    found.shares[:] = 0.0
    found.shares[0, 0] = 1.0
    before, now = 0, 0
    for i in range(num):
        if law.cell[down.node[i]] != cell:
            continue
        if i >= old:
            now += 1
            continue
        before += 1
        share = down.share[i]
        for a in range(cap, -1, -1):
            for b in range(cap - a, -1, -1):
                if a > 0:
                    found.shares[a, b] += share * found.shares[a - 1, b]
                if b > 0:
                    found.shares[a, b] += (1.0 - share) * found.shares[a, b - 1]
    return before, now


@jitable_apart
def _cell(law, down, old, num, cell, found):
    """Writes `found.part`: the ways to take members newly missing, missing before and there from a cell."""
    cap = law.cap
    before, now = _shares(law, down, old, num, cell, found)
    stand = law.size[cell] - before - now
    for a in range(cap + 1):
        for b in range(cap + 1 - a):
            for c in range(cap + 1 - a - b):
                ways = 0.0
                for i in range(c + 1):
                    ways += found.shares[b, i] * binomial(stand, c - i)
                found.part[a, b, c] = ways * binomial(now, a)


@jitable_apart
def _by_pool(law, kinds, down, old, num, outage, found):
    """Positions are exchangeable: the members of an ensemble are counted, cell by cell."""
    ensemble, cap = law.ensemble, law.cap
    found.part[:] = 0.0
    met, nodes, small = 0, 0, 0
    for i in range(num):
        cell = law.cell[down.node[i]]
        if found.num_down[cell] > 0:
            continue
        found.num_down[cell] = 1
        found.met[met] = cell
        met += 1
        nodes += law.size[cell]
        small += law.size[cell] == law.small
        _cell(law, down, old, num, cell, found)
        for a in range(ensemble, -1, -1):
            for b in range(ensemble - a, -1, -1):
                for c in range(ensemble - a - b, -1, -1):
                    found.missing[a, b, c] = _joined(a, b, c, cap, found) if met > 1 else found.part[a, b, c]
    for i in range(met):
        found.num_down[found.met[i]] = 0
    for j in range(ensemble + 1):
        found.rest[j] = _from_others(law, nodes, small, met, j)
    for a in range(1, ensemble + 1):
        for b in range(ensemble - a + 1):
            if a + b < kinds.least:
                continue
            ways = 0.0
            for c in range(ensemble - a - b + 1):
                ways += found.missing[a, b, c] * found.rest[ensemble - a - b - c]
            if ways > 0.0:
                _add(law, kinds, a, b, ways / law.total, outage, found)


@jitable
def _joined(a, b, c, cap, found):
    """Number of ways to take members newly missing, missing before and there from the cells so far and one more."""
    ways = 0.0
    for p in range(min(a, cap) + 1):
        for q in range(min(b, cap - p) + 1):
            for s in range(min(c, cap - p - q) + 1):
                ways += found.part[p, q, s] * found.missing[a - p, b - q, c - s]
    return ways


@jitable
def _from_others(law, nodes, small, met, num):
    """Number of ways to take `num` members from cells that have no node down: all but `met` cells, `nodes` in all,
    `small` of them among the smaller ones."""
    if law.cap > 1:
        return binomial(law.nodes - nodes, num)
    ways = 0.0
    for i in range(num + 1):
        from_small = binomial(law.num_small - small, num - i) * float(law.small) ** (num - i)
        from_large = binomial(law.num_large - (met - small), i) * float(law.small + 1) ** i
        ways += from_small * from_large
    return ways


@jitable_apart
def _by_groups(law, kinds, down, old, num, outage, found):
    """Adds losses where ensembles are known: each that has nodes down by itself."""
    met = 0
    for i in range(num):
        node = down.node[i]
        for place in range(law.first[node], law.first[node + 1]):
            group = law.groups[place]
            if found.num_down[group] == 0:
                found.met[met] = group
                met += 1
            found.num_down[group] += 1
    for i in range(met):
        group = found.met[i]
        if found.num_down[group] >= kinds.least:
            _group(law, kinds, down, old, num, group, outage, found)
        found.num_down[group] = 0


@jitable_apart
def _group(law, kinds, down, old, num, group, outage, found):
    """Adds the losses of the ledgers on a group of nodes."""
    ensemble = law.ensemble
    found.shares[:] = 0.0
    found.shares[0, 0] = 1.0
    now = 0
    for i in range(num):
        node, is_in = down.node[i], False
        for place in range(law.first[node], law.first[node + 1]):
            is_in = is_in or law.groups[place] == group
        if is_in and i >= old:
            now += 1
        elif is_in:
            for b in range(ensemble, 0, -1):
                share = down.share[i]
                found.shares[b, 0] = share * found.shares[b - 1, 0] + (1.0 - share) * found.shares[b, 0]
            found.shares[0, 0] *= 1.0 - down.share[i]
    for b in range(ensemble - now + 1):
        if now > 0 and found.shares[b, 0] > 0.0:
            _add(law, kinds, now, b, found.shares[b, 0] / law.num_groups, outage, found)


@jitable_apart
def _by_rings(law, kinds, down, old, num, outage, found):
    """Positions are not exchangeable: racks take parts of a ring one after another, then those without a node down."""
    found.rings[:] = 0.0
    found.rings[0] = 1.0
    met, small = 0, 0
    for i in range(num):
        cell = law.cell[down.node[i]]
        if found.num_down[cell] > 0:
            continue
        found.num_down[cell] = 1
        found.met[met] = cell
        met += 1
        small += law.size[cell] == law.small
        _cell(law, down, old, num, cell, found)
        for a in range(law.cap + 1):
            for b in range(law.cap + 1 - a):
                for c in range(law.cap + 1 - a - b):
                    found.part[a, b, c] *= _orders(a) * _orders(b) * _orders(c)
        for k in range(len(law.moves)):
            before = found.rings[law.moves[k, 0]]
            if before > 0.0:
                part = found.part[law.moves[k, 2], law.moves[k, 3], law.moves[k, 4]]
                found.rings[law.moves[k, 1]] += before * part
    for i in range(met):
        found.num_down[found.met[i]] = 0
    for mask in range(len(found.fills)):
        ways, part = 0.0, mask
        while True:  # all parts of the mask, from the whole down to nothing
            small_ways = law.fills_small[law.num_small - small, part]
            ways += small_ways * law.fills_large[law.num_large - (met - small), mask ^ part]
            if part == 0:
                break
            part = (part - 1) & mask
        found.fills[mask] = ways
    for ring in range(len(found.rings)):
        chance = found.rings[ring] * found.fills[law.ring_open[ring]] / law.total
        if chance > 0.0:
            if law.ring_sets[ring] > 0:
                found.sets[law.ring_sets[ring]] += chance
            for i in range(1, len(kinds.number)):
                if outage or not kinds.in_outages_only[i]:
                    found.hit[i] += chance * law.ring_thin[ring, i]


@jitable
def _orders(num):
    """num!, a float."""
    ways = 1.0
    for i in range(2, num + 1):
        ways *= i
    return ways


@cache
def compiled(template: Any) -> Any:
    """A function of this folder, compiled for Python to call."""
    from quorisk.kernels.compiled import bind

    return bind(template, "cluster", kept_for="")
