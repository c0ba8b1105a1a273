"""Random years of a cluster, tick by tick: for what strata cannot tell, and to check them.

Nodes are drawn, ledgers are not: given which nodes are down, losses have their chances (`fate`), and these are added
up. A year is a function of the cluster, the seed and its number. Sums over years are integers, so that it does not
matter which years are added up where.
"""

import math
from typing import NamedTuple

import numpy as np

from quorisk.kernels.cluster.draws import SIZES, YEARS, begin, exponential, new_stream, others, uniform, uniform_below
from quorisk.kernels.cluster.fate import ALL, compiled, fate, kinds_of_units, none_down, room_for_fate
from quorisk.kernels.cluster.history import Repair, nodes_up, share_missing
from quorisk.kernels.cluster.placement import law_of
from quorisk.kernels.cluster.setting import NODE, RACK, Cluster, units
from quorisk.kernels.cluster.sizes import BINS, IN_ENTRIES, IN_LEDGERS, bin_of, draw_size
from quorisk.kernels.cluster.ticks import p_lost
from quorisk.kernels.cores import side_by_side
from quorisk.kernels.errors import RunError
from quorisk.kernels.ops import jitable_apart
from quorisk.kernels.progress import Progress

UNIT = 2.0**-60
"""Unit of sums over years."""
WEIGHT_UNIT = 2.0**-40
"""Unit of the incidents in a bin of sizes."""
ANY, ANY_SQUARED, INCIDENTS, INCIDENTS_SQUARED, ENTRIES, ENTRIES_SQUARED, BY_CAUSE = range(7)
"""Places of sums: P(anything is lost in the year), incidents, and entries as a part of all that are stored, each with
its square; then the incidents of each of `Cluster.causes`, with their squares."""
_CHUNK = 4096
_HALF, _MOST = 2.0**30, 2.0**19
_WARM_UP = 1e-9
"""Chance of an event after which repair takes longer than a year's warm-up allows for."""
_REMEMBERED = 1e-6
"""Largest effect on a year of all nodes being up at the beginning of its warm-up."""
_LEAST_WINDOWS, _MOST_WINDOWS = 2.0, 100.0
"""Windows of a warm-up, at least and at most; the most are reached where nodes are down for nine tenths of the time."""


class YearTally(NamedTuple):
    """Sums over some years."""

    years: int
    sums: tuple[int, ...]
    """Sums in units of UNIT; see ANY and those after it."""
    weight: np.ndarray
    """int64 [in what, bin]: incidents by size, in units of WEIGHT_UNIT; see `sizes`."""
    largest: np.ndarray
    """float64 [in what, bin]: the largest size in a bin."""

    def plus(self, other: "YearTally") -> "YearTally":
        """Returns the tally of these years and of others."""
        sums = tuple(a + b for a, b in zip(self.sums, other.sums, strict=True))
        largest = np.maximum(self.largest, other.largest)
        return YearTally(self.years + other.years, sums, self.weight + other.weight, largest)

    def mean(self, what: int) -> float:
        """Returns the mean of a sum over a year; `what` is its place: ANY or one of those after it."""
        return self.sums[what] * UNIT / self.years


class LossRates(NamedTuple):
    """Rates of events, and of nodes and disks lost alone, a year."""

    total: float
    events: np.ndarray  # float64 by event, added up; the rest is nodes, and then disks, lost alone
    of_disks: float  # part of these, nodes and disks lost alone, that are disks
    in_a_rack: np.ndarray  # bool by event
    some: np.ndarray  # int64 [event, 2]: the first of the nodes that it may happen to, and how many they are
    takes_writers: np.ndarray  # bool by event
    is_common: np.ndarray  # bool by event
    at_most: np.ndarray  # float64 [event, in a smaller rack, nodes]: P(that many are lost at most)
    first_of_rack: np.ndarray  # int64 by rack, and the end
    num_large: int


class Ageing(NamedTuple):
    """Dependence of a node's hazard on its age."""

    node_loss: float
    shape: float
    life: float
    batches: int


class LossTimes(NamedTuple):
    """Times at which nodes are lost alone, if they age."""

    time: np.ndarray  # float64
    node: np.ndarray  # int64


class Streams(NamedTuple):
    """Random numbers, separate for events and for amounts lost, so that amounts never change events."""

    ticks: np.ndarray
    sizes: np.ndarray


def no_years(cluster: Cluster) -> YearTally:
    """Returns the tally of no years of a cluster."""
    return YearTally(0, (0,) * (BY_CAUSE + 2 * len(cluster.causes)), np.zeros((2, BINS), np.int64), np.zeros((2, BINS)))


def draw_years(
    cluster: Cluster, first_year: int, num_years: int, seed: int, threads: int = 1, progress: Progress | None = None
) -> YearTally:
    """Returns the tally of years first_year to first_year + num_years - 1; it does not depend on `threads`.

    `progress` is called with the number of years that have ended since its last call. Raises RunError if nodes are lost
    faster than a queue repairs them.
    """
    law, kinds = law_of(cluster), kinds_of_units(units(cluster))
    warm_up = warm_up_of(cluster)
    repair = Repair(cluster.detection_delay, cluster.repair_time, cluster.repair_queue)
    ageing = Ageing(cluster.node_loss, cluster.lifetime_shape, cluster.service_life, cluster.batches)
    stored = float(cluster.entries or 1.0)  # Numba would compile once more for a whole number
    given = (np.uint64(seed), law, kinds, _rates(cluster), repair, ageing, warm_up, stored)
    last = first_year + num_years

    def run(first: int) -> YearTally:
        num = min(_CHUNK, last - first)
        sums, weight = np.zeros((len(total.sums), 2), np.int64), np.zeros((2, BINS), np.int64)
        largest, nodes = np.zeros((2, BINS)), nodes_up(cluster.nodes)
        down = none_down(cluster.nodes)
        losses = _room_for_losses(cluster, warm_up)
        streams = Streams(new_stream(), new_stream())
        room = losses, streams, nodes, down, room_for_fate(law, kinds)
        if not compiled(_years)(first, num, *given, *room, sums, weight, largest):
            raise RunError(f"nodes are lost more often in a year than the {len(losses.time):,} times there is room for")
        return YearTally(num, tuple((int(high) << 30) + int(low) for high, low in sums), weight, largest)

    total = no_years(cluster)
    for part in side_by_side(run, range(first_year, last, _CHUNK), threads):
        total = total.plus(part)
        if progress:
            progress(part.years)
    return total


def warm_up_of(cluster: Cluster) -> float:
    """Returns the time for which nodes are simulated before a year, so that it does not begin with all of them up."""
    most = 1
    for event in cluster.events:
        nodes = max(cluster.scopes_of(event)) if cluster.hits_of(event) > 0.0 else 1
        chances = np.cumsum(p_lost(nodes, event.p_lost, np.arange(nodes + 1)))
        most = max(most, min(nodes, int(np.searchsorted(chances, 1.0 - _WARM_UP)) + 1))
    window = cluster.window(most)
    warm_up = _windows(cluster.most_hits * window) * window
    if cluster.repair_queue:
        if cluster.utilization >= 1.0:
            raise RunError(f"nodes are lost {cluster.utilization:.3g} times as fast as they can be repaired")
        warm_up = warm_up / (1.0 - cluster.utilization) ** 2
    return warm_up


def _windows(hits: float) -> float:
    """Number of windows for which nodes are simulated before a year; `hits` ticks in one would take a node.

    Losses of a node are a renewal process: it is down for a window, and then up for an exponential time. The density of
    such a process tends to its rate as e^(x t), t in windows, where x is the root of hits e^(-x) = hits + x, beside 0,
    whose real part is the largest. So e^(-Re x) is |1 + x / hits|: |1 + 4.5 i / hits| or more, found for hits from 0.01
    to 20.
    """
    if hits == 0.0:
        return _LEAST_WINDOWS
    needed = -math.log(_REMEMBERED) / math.log(math.hypot(1.0, 4.5 / hits))
    return min(max(_LEAST_WINDOWS, needed), _MOST_WINDOWS)


def _rates(cluster: Cluster) -> LossRates:
    large, events = max(cluster.rack_sizes), cluster.events
    at_most = np.full((len(events), 2, cluster.nodes + 1), np.inf)
    for i, event in enumerate(events):
        sizes = cluster.scopes_of(event)
        for j, nodes in enumerate((max(sizes), min(sizes))):
            at_most[i, j, :nodes] = np.cumsum(p_lost(nodes, event.p_lost, np.arange(nodes)))
    some = [(each.first, each.nodes) if each.scope == NODE and each.nodes else (0, cluster.nodes) for each in events]
    single = 0.0 if cluster.is_ageing else cluster.nodes * cluster.node_loss
    often = np.cumsum([event.per_year * sum(cluster.scopes_of(event).values()) for event in events], dtype=np.float64)
    disks = cluster.nodes * cluster.disks_per_node * cluster.disk_loss
    return LossRates(
        (float(often[-1]) if events else 0.0) + single + disks,
        often,
        disks / (single + disks) if disks else 0.0,
        np.array([event.scope == RACK for event in events], np.bool_),
        np.array(some, np.int64).reshape(-1, 2),
        np.array([event.takes_writers for event in events], np.bool_),
        np.array([event.is_common for event in events], np.bool_),
        at_most,
        np.array(cluster.rack_starts, np.int64),
        cluster.rack_sizes[large],
    )


def _room_for_losses(cluster: Cluster, warm_up: float) -> LossTimes:
    """Room for many more losses than there are in a year."""
    steepest = max(1.0, cluster.lifetime_shape, cluster.service_life ** (1.0 - cluster.lifetime_shape))
    mean = cluster.nodes * cluster.node_loss * steepest * (1.0 + warm_up) if cluster.is_ageing else 0.0
    most = int(mean + 40.0 * mean**0.5) + 100
    return LossTimes(np.zeros(most), np.zeros(most, np.int64))


def _years(
    first, num, seed, law, kinds, rates, repair, ageing, warm_up, stored,
    losses, streams, nodes, down, found, sums, weight, largest,
):  # fmt: skip
    """Adds up years `first` to first + num - 1. Returns whether there was room for all losses of ageing nodes."""
    is_ageing = ageing.shape != 1.0
    taken, marks, year = np.zeros(law.nodes, np.int64), np.zeros(law.nodes, np.int64), np.zeros(len(sums))
    for i in range(first, first + num):
        begin(streams.ticks, seed, i, YEARS)
        begin(streams.sizes, seed, i, SIZES)
        order = np.zeros(0, np.int64)
        if is_ageing:
            num_losses = _losses(streams.ticks, law.nodes, ageing, warm_up, losses)
            if num_losses < 0:
                return False
            order = np.argsort(losses.time[:num_losses])
        year[:] = 0.0
        _year(
            streams, law, kinds, rates, repair, warm_up, losses, order,
            nodes, down, taken, marks, found, year, weight, largest,
        )  # fmt: skip
        nodes.until[:] = -np.inf
        year[ANY] = -np.expm1(year[ANY])
        year[ENTRIES] /= stored
        for k in range(0, len(year), 2):
            year[k + 1] = year[k] * year[k]
        for k in range(len(year)):
            units = min(year[k], _MOST) * _HALF
            high = int(units)
            sums[k, 0] += high
            sums[k, 1] += int((units - high) * _HALF)
    return True


@jitable_apart
def _losses(stream, num_nodes, ageing, warm_up, losses):
    """Writes the times at which nodes are lost alone, from the warm-up on. Returns their number; -1 if room is short.

    A batch of nodes is bought together and retired together; a node that is lost is replaced by a new one, which is
    retired with the batch. So a node is followed from the day on which its batch was bought.
    """
    num, bought = 0, 0.0
    for node in range(num_nodes):
        batches = ageing.batches if ageing.batches > 0 else num_nodes
        if node == 0 or node * batches // num_nodes != (node - 1) * batches // num_nodes:
            bought = -warm_up - ageing.life * uniform(stream)
        new, retired = bought, bought + ageing.life
        hazard = 0.0
        while True:
            hazard += exponential(stream)
            lost = new + ageing.life * (hazard / (ageing.node_loss * ageing.life)) ** (1.0 / ageing.shape)
            if lost >= retired:
                new, retired = retired, retired + ageing.life
                if new >= 1.0:
                    break
            else:
                if lost >= 1.0:
                    break
                if lost >= -warm_up:
                    if num == len(losses.time):
                        return -1
                    losses.time[num], losses.node[num] = lost, node
                    num += 1
                new = lost
            hazard = 0.0
    return num


@jitable_apart
def _year(
    streams, law, kinds, rates, repair, warm_up, losses, order,
    nodes, down, taken, marks, found, year, weight, largest,
):  # fmt: skip
    """Makes one year: writes its sums to `year`, that of ANY as log P(nothing is lost), INCIDENTS, ENTRIES, causes."""
    drawn = -warm_up + exponential(streams.ticks) / rates.total if rates.total > 0.0 else np.inf
    place, num, busy = 0, 0, -np.inf
    while True:
        listed = losses.time[order[place]] if place < len(order) else np.inf
        time, cause, lost, disk = min(drawn, listed), 0, 1, ALL
        if time >= 1.0:
            return
        if listed < drawn:
            taken[0] = losses.node[order[place]]
            place += 1
        else:
            drawn += exponential(streams.ticks) / rates.total
            cause, lost = _tick(streams.ticks, law, rates, taken, marks)
            if law.disks > 1 and cause == 0:
                disk = _lost_disk(streams.ticks, law, rates)
        if lost == 0:
            continue
        start = time + repair.detection_delay
        if repair.queue and start < busy:
            start = busy
        common = cause > 0 and rates.is_common[cause - 1]
        num, old = _go_down(time, start, repair.repair_time, lost, disk, common, num, nodes, down, taken)
        if num == old:
            continue
        busy = start + (num - old) * repair.repair_time
        if time < 0.0 or num < kinds.least:
            continue
        after = False
        for i in range(num):
            after |= cause == 0 and i < old and nodes.common[down.node[i]]
            down.share[i] = 1.0 if i >= old else share_missing(nodes, down.node[i], time)
            down.disk[i] = nodes.disk[down.node[i]]
        takes_writers = cause > 0 and rates.takes_writers[cause - 1]
        log_ledgers, log_all, entries = fate(law, kinds, down, old, num, takes_writers, found)
        if log_all < 0.0:
            value = -np.expm1(log_all)
            thin = max(0.0, value + np.expm1(log_ledgers))
            year[ANY] += log_all
            year[INCIDENTS] += value
            year[ENTRIES] += entries
            year[len(year) - 4 if after else BY_CAUSE + 2 * cause] += value - thin
            year[len(year) - 2] += thin
            in_entries, in_ledgers = draw_size(streams.sizes, law, kinds, found)
            _count(IN_ENTRIES, in_entries, value, weight, largest)
            _count(IN_LEDGERS, in_ledgers, value, weight, largest)


@jitable_apart
def _tick(stream, law, rates, taken, marks):
    """Draws a tick, and writes the nodes that it takes. Returns the number of its cause, and that of the nodes."""
    event = np.searchsorted(rates.events, uniform(stream) * rates.total, "right")
    cause, lost, first, among, small = 0, 1, 0, law.nodes, 0
    if event < len(rates.events):
        cause = event + 1
        first, among = rates.some[event]
        if rates.in_a_rack[event]:
            rack = uniform_below(stream, len(rates.first_of_rack) - 1)
            first = rates.first_of_rack[rack]
            among = rates.first_of_rack[rack + 1] - first
            small = int(rack >= rates.num_large)
        lost = np.searchsorted(rates.at_most[event, small], uniform(stream), "right")
    others(stream, lost, first, among, taken, 0, marks)
    for i in range(lost):
        marks[taken[i]] = 0
    return cause, lost


@jitable_apart
def _lost_disk(stream, law, rates):
    """Draws the disk that a node which is taken alone loses; ALL if it loses all that it has."""
    return uniform_below(stream, law.disks) if uniform(stream) < rates.of_disks else ALL


@jitable_apart
def _go_down(time, start, repair_time, lost, disk, common, num, nodes, down, taken):
    """Takes repaired nodes off the list of those that are down, and adds others that are taken now. Returns how many
    are on it, and how many of them were before."""
    old = 0
    for i in range(num):
        if nodes.until[down.node[i]] > time:
            down.node[old] = down.node[i]
            old += 1
    num = old
    for i in range(lost):
        node = taken[i]
        if nodes.until[node] <= time:
            down.node[num] = node
            num += 1
    for i in range(old, num):
        node = down.node[i]
        nodes.start[node], nodes.until[node] = start, start + (num - old) * repair_time
        nodes.disk[node], nodes.common[node] = disk, common
    return num, old


@jitable_apart
def _count(what, size, value, weight, largest):
    """Counts a size, if there is one."""
    if size > 0.0:
        place = bin_of(size)
        weight[what, place] += int(value / WEIGHT_UNIT)
        largest[what, place] = max(largest[what, place], size)
