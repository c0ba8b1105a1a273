"""Shares: the loss of a tick in a stratum, over its bound: a number from 0 to 1, drawn many times.

A draw picks a stratum in proportion to weight x bound, the ages of the ticks before, uniform over the time for which
each matters, and nodes: where a loss is rare even in a stratum, by beginning with a group that is lost (`groups`).

Some ticks that are too old to matter now are drawn as well: whether an incident was the first for a time depends on
them.
"""

from math import isnan
from typing import NamedTuple

import numpy as np

from quorisk.kernels.cluster.bounds import ENTRIES
from quorisk.kernels.cluster.draws import begin, exponential, new_stream, others, uniform, uniform_below
from quorisk.kernels.cluster.fate import ALL, compiled, kinds_of_units, none_down, room_for_fate
from quorisk.kernels.cluster.groups import DrawRoom, Places, begin_with_a_group, nodes_of, ways
from quorisk.kernels.cluster.history import Repair, at, no_history, nodes_up, reset_nodes, seen_late
from quorisk.kernels.cluster.placement import catalogue, law_of
from quorisk.kernels.cluster.setting import Cluster, units
from quorisk.kernels.cluster.sizes import IN_ENTRIES, IN_LEDGERS, Sizes, bin_of, draw_size, no_sizes
from quorisk.kernels.cluster.strata import Row, Strata
from quorisk.kernels.cluster.ticks import Past, Tick
from quorisk.kernels.cores import side_by_side
from quorisk.kernels.ops import jitable_apart
from quorisk.kernels.progress import Progress

CHUNK = 4096
"""Number of draws at a time; their sums do not depend on threads."""
MOST_OLD = 128
"""Room for ticks that are too old to matter: more than are ever drawn."""
SHARE, SHARE_SQUARED, NOT_FIRST, NOT_FIRST_SQUARED, LATE, LATE_SQUARED = range(6)
"""Sums over draws: shares; those of incidents that follow another within the time considered; and the time of
`history.seen_late` as a part of its maximum."""


class StrataArrays(NamedTuple):
    """Strata as compiled code takes them."""

    cumulative: np.ndarray  # float64 by row: of weight x bound
    bound: np.ndarray  # float64 by row
    past: np.ndarray  # int64 [row, place]: numbers of kinds of ticks before; -1 for none
    now: np.ndarray  # int64 by row: the number of the kind of tick that comes now
    by_groups: np.ndarray  # bool by row


class TickKinds(NamedTuple):
    """Kinds of ticks as compiled code takes them, by number."""

    lost: np.ndarray  # int64
    disks: np.ndarray  # int64: number of the disks of which a node loses one; 0 if it loses all that it has
    rack: np.ndarray  # int64
    span: np.ndarray  # float64, years
    rates: np.ndarray  # float64, added up
    cause: np.ndarray  # int64
    takes_writers: np.ndarray  # bool
    common: np.ndarray  # float64: as `Past.common`; 0 of ticks that come now


class DrawSettings(NamedTuple):
    """Settings of all draws, for compiled code."""

    in_entries: bool
    looks_back: bool
    """Whether ticks that are too old to matter are drawn as well."""
    memory: float
    """Longest time for which any tick matters: an incident is the first if none came before it for that time."""
    window: float
    late: float
    """Factor that turns `history.seen_late` into a part of its maximum."""


class Shares(NamedTuple):
    """Sums over draws of some strata."""

    draws: int
    whole: float
    """Sum of weight x bound of all these strata, a year: the whole that shares refer to."""
    sums: np.ndarray  # float64: see SHARE and its like
    by_cause: np.ndarray  # float64 [cause, 2]: shares and their squares, by `Cluster.causes`
    late: float
    """Unit of LATE: the largest chance that a draw is wrong."""
    sizes: Sizes


def draw_shares(
    cluster: Cluster,
    found: Strata,
    what: str,
    solved: bool,
    draws: int,
    seed: int,
    purpose: int,
    threads: int = 1,
    progress: Progress | None = None,
) -> Shares:
    """Draws shares of the strata that are solved, or of those that are not.

    They are a function of the seed and of `purpose`, whatever `threads` is. `progress` is called with draws made.
    """
    rows = [row for row in found.rows if isnan(row.value) != solved]
    whole = sum(row.weight * row.bound for row in rows)
    sums, by_cause, sizes = np.zeros(6), np.zeros((len(cluster.causes), 2)), no_sizes()
    if not rows or draws == 0:
        return Shares(0, whole, sums, by_cause, 0.0, sizes)
    law, kinds = law_of(cluster), kinds_of_units(units(cluster))
    table, before, now = _table(rows), _kinds(found.past, cluster), _kinds(found.now, cluster)
    taken = max(sum(found.past[i].lost for i in row.past) for row in rows)
    hits = cluster.most_hits
    late, queue = hits * found.memory * taken, cluster.repair_queue
    per_late = hits if queue else hits / late if late else 0.0
    limits = DrawSettings(what == ENTRIES, what != ENTRIES or queue, found.memory, cluster.window(1), per_late)
    repair = Repair(cluster.detection_delay, cluster.repair_time, cluster.repair_queue)
    given = (np.uint64(seed), purpose, table, before, now, _places(cluster, kinds.least), law, kinds, repair, limits)
    most_taken = taken + int(now.lost.max()) + MOST_OLD * int(before.lost.max(initial=1))

    def run(first: int) -> tuple[int, np.ndarray, np.ndarray, Sizes]:
        num, parts = min(CHUNK, draws - first), (np.zeros(6), np.zeros_like(by_cause), no_sizes())
        down = none_down(cluster.nodes)
        room = _room(cluster, table.past.shape[1] + 1 + MOST_OLD, most_taken)
        history = no_history(table.past.shape[1] + 1 + MOST_OLD, most_taken)
        compiled(_draws)(
            first, num, *given, room, history, nodes_up(cluster.nodes), down, room_for_fate(law, kinds), *parts
        )
        return num, *parts

    for num, its_sums, its_causes, its_sizes in side_by_side(run, range(0, draws, CHUNK), threads):
        sums += its_sums
        by_cause += its_causes
        sizes.add(its_sizes)
        if progress:
            progress(num)
    return Shares(draws, whole, sums, by_cause, 1.0 if queue else min(1.0, late), sizes)


def _table(rows: list[Row]) -> StrataArrays:
    mass = np.array([row.weight * row.bound for row in rows])
    slots = max(1, *(len(row.past) for row in rows))
    return StrataArrays(
        np.cumsum(mass) / mass.sum(),
        np.array([row.bound for row in rows]),
        np.array([(*row.past, *[-1] * (slots - len(row.past))) for row in rows], np.int64),
        np.array([row.now for row in rows], np.int64),
        np.array([row.by_groups for row in rows], np.bool_),
    )


def _kinds(ticks: tuple[Past | Tick, ...], cluster: Cluster) -> TickKinds:
    numbers = {cause: number for number, cause in enumerate(cluster.causes)}
    return TickKinds(
        np.array([each.lost for each in ticks], np.int64),
        np.array([cluster.disks_per_node * each.is_disk for each in ticks], np.int64),
        np.array([each.rack for each in ticks], np.int64),
        np.array([cluster.span(each.lost) for each in ticks]),
        np.cumsum([each.rate for each in ticks]),
        np.array([numbers[each.cause] if isinstance(each, Tick) else -1 for each in ticks], np.int64),
        np.array([each.takes_writers for each in ticks], np.bool_),
        np.array([each.common if isinstance(each, Past) else 0.0 for each in ticks]),
    )


def _places(cluster: Cluster, least: int) -> Places:
    large, num_large = max(cluster.rack_sizes.items())
    member = np.array(catalogue(cluster), np.int64).reshape(-1, cluster.ensemble_size)
    some = np.array([(event.first, event.nodes) for event in cluster.events], np.int64).reshape(-1, 2)
    return Places(cluster.nodes, np.array(cluster.rack_starts, np.int64), num_large, large, member, least, some)


def _room(cluster: Cluster, ticks: int, taken: int) -> DrawRoom:
    lengths = ticks, ticks, cluster.nodes, cluster.ensemble_size, cluster.ensemble_size, taken, taken
    room = DrawRoom(new_stream(), *(np.zeros(length, np.int64) for length in lengths))
    room.forced[:] = -1
    return room


def _draws(
    first, num, seed, purpose, rows, before, now, places, law, kinds, repair, limits,
    room, history, nodes, down, found, sums, by_cause, sizes,
):  # fmt: skip
    """Draws number `first` to first + num - 1."""
    for i in range(num):
        begin(room.stream, seed, first + i, purpose)
        row = np.searchsorted(rows.cumulative, uniform(room.stream), "right")
        row = min(row, len(rows.bound) - 1)
        last = _ticks(row, rows, before, now, limits, room, history)
        weight = 1.0
        if rows.by_groups[row]:
            weight = begin_with_a_group(last, places, room, history)
        if weight > 0.0:
            _nodes(last, places, room, history)
            if rows.by_groups[row]:
                weight /= ways(last, places, law, room, history, found.one)
        for j in range(history.first[last + 1]):
            room.forced[j] = -1
        if weight == 0.0:
            continue
        outage = now.takes_writers[rows.now[row]]
        log_ledgers, log_all, entries = at(last, history, repair, law, kinds, outage, nodes, down, found)
        late = min(1.0, seen_late(last, history, repair, nodes, limits.window) * limits.late)
        sums[LATE] += late
        sums[LATE_SQUARED] += late * late
        after = _after_event(last, before, room, history, nodes)
        reset_nodes(last, history, nodes)
        value = -np.expm1(log_all)
        if value <= 0.0:
            continue
        share = (entries if limits.in_entries else value) * weight / rows.bound[row]
        in_entries, in_ledgers = draw_size(room.stream, law, kinds, found)
        _add(IN_ENTRIES, in_entries, share, sizes)
        _add(IN_LEDGERS, in_ledgers, share, sizes)
        thin = share * (np.exp(log_ledgers) - np.exp(log_all)) / value
        cause = now.cause[rows.now[row]]
        following = (share - thin) * after if cause == 0 else 0.0
        for number, amount in ((-1, thin), (-2, following), (cause, share - thin - following)):
            by_cause[number, 0] += amount
            by_cause[number, 1] += amount * amount
        not_first = 0.0
        if not limits.in_entries:
            log_before = 0.0
            for j in range(last):
                if history.age[j] < limits.memory:
                    outage = before.takes_writers[room.kind[j]]
                    log_before += at(j, history, repair, law, kinds, outage, nodes, down, found)[1]
                    reset_nodes(j, history, nodes)
            not_first = -share * np.expm1(log_before)
        sums[SHARE] += share
        sums[SHARE_SQUARED] += share * share
        sums[NOT_FIRST] += not_first
        sums[NOT_FIRST_SQUARED] += not_first * not_first


@jitable_apart
def _after_event(last, before, room, history, nodes):
    """Probability that an earlier tick, of which a node is still down, was an event of several nodes."""
    none = 1.0
    for i in range(last):
        for j in range(history.first[i], history.first[i + 1]):
            if nodes.until[history.node[j]] > 0.0:
                none *= 1.0 - before.common[room.kind[i]]
                break
    return 1.0 - none


@jitable_apart
def _ticks(row, rows, before, now, limits, room, history):
    """Draws the ages of a stratum's ticks, and older ticks if `looks_back`; oldest first. Returns the place of the
    current tick."""
    num = 0
    for slot in range(rows.past.shape[1]):
        kind = rows.past[row, slot]
        if kind >= 0:
            _insert(num, before, kind, before.span[kind] * uniform(room.stream), 0, room, history)
            num += 1
    if limits.looks_back and len(before.rates) > 0:
        rate, age, old = before.rates[-1], 0.0, 0
        while old < MOST_OLD:
            age += exponential(room.stream) / rate
            if age >= limits.memory:
                break
            kind = min(np.searchsorted(before.rates, uniform(room.stream) * rate, "right"), len(before.rates) - 1)
            _insert(num, before, kind, before.span[kind] + age, 1, room, history)
            num += 1
            old += 1
    _insert(num, now, rows.now[row], 0.0, 0, room, history)
    history.first[0] = 0
    for i in range(num + 1):
        history.first[i + 1] = history.first[i] + history.lost[i]
    return num


@jitable_apart
def _insert(num, kinds, kind, age, old, room, history):
    """Puts a tick among `num` others, by age."""
    i = num
    while i > 0 and history.age[i - 1] < age:
        history.age[i], history.lost[i], history.rack[i] = history.age[i - 1], history.lost[i - 1], history.rack[i - 1]
        history.span[i], room.kind[i], room.old[i] = history.span[i - 1], room.kind[i - 1], room.old[i - 1]
        history.disk[i] = history.disk[i - 1]
        i -= 1
    history.age[i], history.lost[i], history.rack[i] = age, kinds.lost[kind], kinds.rack[kind]
    history.span[i], room.kind[i], room.old[i] = kinds.span[kind], kind, old
    history.disk[i] = uniform_below(room.stream, kinds.disks[kind]) if kinds.disks[kind] > 0 else ALL


@jitable_apart
def _nodes(last, places, room, history):
    """Draws the nodes of all ticks, around those that are put there."""
    for i in range(last + 1):
        first, end = history.first[i], history.first[i + 1]
        known = -1
        for j in range(first, end):
            if room.forced[j] >= 0:
                known = room.forced[j]
        begins, among = nodes_of(history.rack[i], places)
        if history.rack[i] > 0:
            rack = _rack(history.rack[i], known, places, room)
            begins, among = places.first[rack], history.rack[i]
        for j in range(first, end):
            if room.forced[j] >= 0:
                history.node[j] = room.forced[j]
                room.marks[history.node[j]] = 1
        for j in range(first, end):
            if room.forced[j] < 0:
                others(room.stream, 1, begins, among, history.node, j, room.marks)
        for j in range(first, end):
            room.marks[history.node[j]] = 0


@jitable_apart
def _rack(size, known, places, room):
    """The rack of node `known`, or a random one of that size if `known` is -1."""
    if known >= 0:
        return np.searchsorted(places.first, known, "right") - 1
    racks = len(places.first) - 1
    if size == places.large:
        return uniform_below(room.stream, places.num_large)
    return places.num_large + uniform_below(room.stream, racks - places.num_large)


@jitable_apart
def _add(what, size, weight, sizes):
    """Counts a size, if there is one."""
    if size > 0.0:
        place = bin_of(size)
        sizes.weight[what, place] += weight
        sizes.largest[what, place] = max(sizes.largest[what, place], size)
