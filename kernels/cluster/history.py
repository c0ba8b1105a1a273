"""A few ticks, one after another: the nodes that are down at each, the progress of their repair, and the losses."""

from typing import NamedTuple

import numpy as np

from quorisk.kernels.cluster.fate import ALL, fate
from quorisk.kernels.ops import jitable, jitable_apart


class History(NamedTuple):
    """Ticks, the oldest first. A tick at place i took the nodes from `first[i]` to `first[i + 1]` - 1."""

    age: np.ndarray  # float64, years ago
    lost: np.ndarray  # int64
    rack: np.ndarray  # int64, the size of the rack in which it takes nodes, or ANYWHERE
    span: np.ndarray  # float64, for how long it matters
    first: np.ndarray  # int64
    node: np.ndarray  # int64
    disk: np.ndarray  # int64, the disk that it takes of its node; ALL if nodes lose all that they have


class Nodes(NamedTuple):
    """The state of each node during a history."""

    start: np.ndarray  # float64: when its repair starts
    until: np.ndarray  # float64: when it ends; -inf if it never was down
    since: np.ndarray  # float64: the first tick that took it, of those that count; inf if there is none
    num_hits: np.ndarray  # int64: ticks that took it, of those that count
    listed: np.ndarray  # int64: whether it is among those that are down
    disk: np.ndarray  # int64: as `Down.disk`, while it is down
    common: np.ndarray  # bool: whether an event that may take several took it; only years use it


class Repair(NamedTuple):
    """The repair of nodes, in years."""

    detection_delay: float
    repair_time: float
    queue: bool


def no_history(most_ticks: int, most_taken: int) -> History:
    """Returns room for a history of `most_ticks` ticks, which take `most_taken` nodes together."""
    ages, spans = np.zeros(most_ticks), np.zeros(most_ticks)
    lost, rack = np.zeros(most_ticks, np.int64), np.zeros(most_ticks, np.int64)
    first, node = np.zeros(most_ticks + 1, np.int64), np.zeros(most_taken, np.int64)
    return History(ages, lost, rack, spans, first, node, np.full(most_ticks, ALL))


def nodes_up(num: int) -> Nodes:
    """Returns nodes that never were down."""
    never, hits = np.full(num, -np.inf), np.zeros(num, np.int64)
    return Nodes(
        never, never.copy(), np.full(num, np.inf), hits, hits.copy(), np.full(num, ALL), np.zeros(num, np.bool_)
    )


@jitable
def share_missing(nodes, node, now):
    """The share of a node's copies that is not made anew yet, while it is down."""
    if now < nodes.start[node]:
        return 1.0
    return (nodes.until[node] - now) / (nodes.until[node] - nodes.start[node])


@jitable_apart
def at(place, history, repair, law, kinds, outage, nodes, down, found):
    """Returns `fate` of the tick at a place, given the ticks before that matter by then, and all nodes up before them.
    Where repairs wait for each other all known ticks matter.

    `reset_nodes` has to follow.
    """
    now, busy, num = -history.age[place], -np.inf, 0
    for i in range(place):
        if repair.queue or now + history.age[i] < history.span[i]:
            busy = _take(i, history, repair, busy, nodes)
    for i in range(place):
        if repair.queue or now + history.age[i] < history.span[i]:
            for j in range(history.first[i], history.first[i + 1]):
                node = history.node[j]
                if nodes.until[node] > now and not nodes.listed[node]:
                    down.node[num], down.share[num] = node, share_missing(nodes, node, now)
                    down.disk[num] = nodes.disk[node]
                    nodes.listed[node] = 1
                    num += 1
    old = num
    for j in range(history.first[place], history.first[place + 1]):
        if not nodes.listed[history.node[j]]:
            down.node[num], down.share[num], down.disk[num] = history.node[j], 1.0, history.disk[place]
            num += 1
    return fate(law, kinds, down, old, num, outage, found)


@jitable_apart
def _take(i, history, repair, busy, nodes):
    """Takes down the nodes of a tick that are up. Returns the time until which there is something to repair."""
    then, new = -history.age[i], 0
    start = then + repair.detection_delay
    if repair.queue and start < busy:
        start = busy
    for j in range(history.first[i], history.first[i + 1]):
        new += nodes.until[history.node[j]] <= then
    until = start + new * repair.repair_time
    for j in range(history.first[i], history.first[i + 1]):
        node = history.node[j]
        nodes.since[node] = min(nodes.since[node], then)
        nodes.num_hits[node] += 1
        if nodes.until[node] <= then:
            nodes.start[node], nodes.until[node], nodes.disk[node] = start, until, history.disk[i]
    return until if new else busy


@jitable_apart
def seen_late(place, history, repair, nodes, window):
    """Returns the time for which nodes that may matter at a tick could have been down already when they were first
    taken, because of ticks that are too old to count: in years, added up over nodes. `window` is the shortest there is.
    The time is infinite if such a tick's nodes still wait for their repair."""
    now, late = -history.age[place], 0.0
    for i in range(place):
        is_old = now + history.age[i] >= history.span[i]
        if is_old and not repair.queue:
            continue
        for j in range(history.first[i], history.first[i + 1]):
            node = history.node[j]
            if is_old and nodes.until[node] > now:
                return np.inf
            if nodes.since[node] == -history.age[i] and (nodes.until[node] > now or nodes.num_hits[node] > 1):
                late += max(0.0, now - nodes.since[node] - window)
    return late


@jitable_apart
def reset_nodes(place, history, nodes):
    """Resets the nodes of the ticks up to a place to those of `nodes_up`."""
    for j in range(history.first[place + 1]):
        node = history.node[j]
        nodes.start[node], nodes.until[node], nodes.since[node] = -np.inf, -np.inf, np.inf
        nodes.num_hits[node], nodes.listed[node] = 0, 0
