"""A cluster told literally: single nodes and single ledgers, one tick after another.

It takes only numbers from `Cluster`: where ledgers are, on which of a node's disks, who is down, what is repaired when
and what is lost is all its own, without probabilities of anything but what happens. Copies of a ledger are restored at
times of its own.
"""

import random
from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

from quorisk.kernels.cluster.setting import COPYSETS, DISTINCT_RACKS, TWO_RACKS, Cluster, Event


class Unit(NamedTuple):
    """What is lost or kept: the ledger's ring of nodes, or the nodes of one entry that has few copies."""

    ring: list[int]
    windows: list[list[int]]  # positions of each write set
    worth: float  # entries of a write set
    missing_until: list[float]  # by position
    disk: int = 0  # on which its copy is, in each of its nodes


class Year(NamedTuple):
    incidents: list[float]
    """Entries that each of them lost."""


def years(cluster: Cluster, groups: Sequence[Sequence[int]], num: int, seed: int) -> Iterator[Year]:
    """Tells so many years; `groups` are the ensembles, where they are known one by one."""
    rng = random.Random(seed)
    racks = _racks(cluster)
    warm = 4.0 * cluster.window(1 + cluster.nodes // 3) / (1.0 - 0.5 * cluster.repair_queue)
    for _ in range(num):
        yield _year(cluster, rng, racks, groups, warm)


def _racks(cluster: Cluster) -> list[list[int]]:
    size, larger = divmod(cluster.nodes, cluster.racks)
    racks, node = [], 0
    for rack in range(cluster.racks):
        members = size + 1 if rack < larger else size
        racks.append(list(range(node, node + members)))
        node += members
    return racks


def _year(
    cluster: Cluster, rng: random.Random, racks: list[list[int]], groups: Sequence[Sequence[int]], warm: float
) -> Year:
    units = [
        unit._replace(disk=number % cluster.disks_per_node)
        for number, unit in enumerate(_units(cluster, rng, racks, groups))
    ]
    on: list[set[int]] = [set() for _ in range(cluster.nodes)]
    for number, unit in enumerate(units):
        for node in unit.ring:
            on[node].add(number)
    node_back, busy, incidents = [-inf] * cluster.nodes, -inf, []
    for time, takes_writers, hit, disk in _ticks(cluster, rng, racks, warm):
        start = time + cluster.detection_delay
        if cluster.repair_queue:
            start = max(start, busy)
        up = [node for node in hit if node_back[node] <= time]
        finish = start + len(up) * cluster.repair_time
        busy = finish if up else busy
        for node in up:
            node_back[node] = finish
        met = [unit for unit in map(units.__getitem__, _met(on, up)) if disk in (None, unit.disk)]
        lost = sum(_loses(unit, set(up), time, start, finish, rng) for unit in met)
        if takes_writers:
            lost += _in_flight(cluster, rng, racks, groups, set(up))
        if lost and time >= 0.0:
            incidents.append(lost)
    return Year(incidents)


def _met(on: list[set[int]], nodes: list[int]) -> list[int]:
    return sorted(set().union(*(on[node] for node in nodes)))


def _loses(unit: Unit, failed: set[int], time: float, start: float, finish: float, rng: random.Random) -> float:
    """Takes the copies on these nodes from a unit. Returns the entries that it loses."""
    new = [i for i, node in enumerate(unit.ring) if node in failed and unit.missing_until[i] <= time]
    gone = [until > time for until in unit.missing_until]
    for i in new:
        unit.missing_until[i] = start + rng.random() * (finish - start)
    lost = 0.0
    for window in unit.windows:
        if all(gone[i] or i in new for i in window) and any(i in new for i in window):
            lost += unit.worth
    return lost


def _units(
    cluster: Cluster, rng: random.Random, racks: list[list[int]], groups: Sequence[Sequence[int]]
) -> Iterator[Unit]:
    spans = _windows(cluster)
    for _ in range(int(cluster.ledgers)):
        ring = _place(cluster, rng, racks, groups)
        yield Unit(ring, spans, cluster.entries_per_ledger / len(spans), [-inf] * len(ring))
    for thin in cluster.thin:
        for _ in range(0 if thin.heals else int(thin.number)):
            ring = _some(cluster, rng, racks, groups, thin.copies)
            yield Unit(ring, [list(range(len(ring)))], 1.0, [-inf] * len(ring))


def _windows(cluster: Cluster) -> list[list[int]]:
    size, write_quorum = cluster.ensemble_size, cluster.write_quorum
    if size == write_quorum:
        return [list(range(size))]
    return [[(first + i) % size for i in range(write_quorum)] for first in range(size)]


def _some(
    cluster: Cluster, rng: random.Random, racks: list[list[int]], groups: Sequence[Sequence[int]], copies: int
) -> list[int]:
    """Random members of a random write set of a new ledger."""
    ring = _place(cluster, rng, racks, groups)
    return rng.sample([ring[i] for i in rng.choice(_windows(cluster))], copies)


def _in_flight(
    cluster: Cluster, rng: random.Random, racks: list[list[int]], groups: Sequence[Sequence[int]], failed: set[int]
) -> float:
    """Entries of which writers know that have few copies: all of these are on nodes that fail now."""
    lost = 0
    for thin in cluster.thin:
        for _ in range(int(thin.number) if thin.heals else 0):
            lost += failed.issuperset(_some(cluster, rng, racks, groups, thin.copies))
    return float(lost)


def _place(cluster: Cluster, rng: random.Random, racks: list[list[int]], groups: Sequence[Sequence[int]]) -> list[int]:
    """The ring of a new ledger: any that the placement allows, each as likely."""
    if groups:
        ring = list(rng.choice(groups))
        rng.shuffle(ring)
        return ring
    rack_of = {node: number for number, rack in enumerate(racks) for node in rack}
    spans = _windows(cluster)
    while True:
        ring = rng.sample(range(cluster.nodes), cluster.ensemble_size)
        where = [rack_of[node] for node in ring]
        if cluster.placement == DISTINCT_RACKS and len(set(where)) < len(ring):
            continue
        if cluster.placement == TWO_RACKS and any(len({where[i] for i in span}) < 2 for span in spans):
            continue
        assert cluster.placement != COPYSETS
        return ring


def _ticks(
    cluster: Cluster, rng: random.Random, racks: list[list[int]], warm: float
) -> Iterator[tuple[float, bool, list[int], int | None]]:
    """When which nodes are lost together, or fail to come back; whether writers are lost as well; and of a node that
    loses one disk alone, which."""
    ticks: list[tuple[float, bool, list[int], int | None]]
    ticks = [(time, False, [node], None) for time, node in _lost_alone(cluster, rng, warm)]
    for node in range(cluster.nodes if cluster.disk_loss else 0):
        for disk in range(cluster.disks_per_node):
            ticks += [(time, False, [node], disk) for time in _poisson(cluster.disk_loss, rng, warm)]
    for event in cluster.events:
        for nodes in _scopes(event, cluster, racks):
            for time in _poisson(event.per_year, rng, warm):
                there = rng.sample(nodes, event.nodes) if event.scope == "batch" else nodes
                hit = [node for node in there if rng.random() < event.p_lost]
                ticks.append((time, event.scope == "cluster" and event.takes_unflushed, hit, None))
    yield from sorted(ticks, key=lambda tick: tick[0])


def _scopes(event: Event, cluster: Cluster, racks: list[list[int]]) -> list[list[int]]:
    """The groups of nodes to each of which an event may happen; of a batch, those that it is drawn from."""
    if event.scope == "node":
        return [[node] for node in range(event.first, event.first + (event.nodes or cluster.nodes))]
    return racks if event.scope == "rack" else [list(range(cluster.nodes))]


def _poisson(rate: float, rng: random.Random, warm: float) -> Iterator[float]:
    time = -warm
    while rate > 0.0:
        time += rng.expovariate(rate)
        if time >= 1.0:
            return
        yield time


def _lost_alone(cluster: Cluster, rng: random.Random, warm: float) -> Iterator[tuple[float, int]]:
    """Nodes of constant hazard; or, day by day, of one that depends on a node's age."""
    if not cluster.is_ageing:
        for node in range(cluster.nodes):
            yield from ((time, node) for time in _poisson(cluster.node_loss, rng, warm))
        return
    life, shape, step = cluster.service_life, cluster.lifetime_shape, 1.0 / 365.25
    batches = cluster.batches or cluster.nodes
    bought = [rng.random() * life for _ in range(batches)]
    days = range(int(life / step) + 2)  # of a node's life, in each of which it is lost with a chance of its own
    chances = [step * cluster.node_loss * shape * ((day + 0.5) * step / life) ** (shape - 1.0) for day in days]
    for node in range(cluster.nodes):
        # from the day its batch was bought, as it may have been lost since
        phase = bought[node * batches // cluster.nodes]
        time, age, batch_age = -warm - phase, 0, 0.0
        while time < 1.0:
            if rng.random() < chances[age]:
                if time >= -warm:
                    yield time + rng.random() * step, node
                age = 0
            time, age, batch_age = time + step, age + 1, batch_age + step
            if batch_age >= life:
                age, batch_age = 0, 0.0
