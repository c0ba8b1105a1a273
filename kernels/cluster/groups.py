"""Importance sampling of ticks: a draw begins with a group of nodes that is lost, if ensembles are known one by one.

Such groups may be few, so that random nodes rarely hold one, however many are down. So some members of a random group
are put at random places of the ticks, and the other nodes are drawn around them. A draw's weight is its likelihood
ratio: 1 over the mean, over all ways to begin, of the weights of those that it
may have begun with (Karp and Luby's estimator of a union: R. M. Karp, M. Luby, N. Madras, "Monte-Carlo approximation
algorithms for enumeration problems", Journal of Algorithms 10 (1989) 429-448).
"""

from typing import NamedTuple

import numpy as np

from quorisk.kernels.cluster.draws import uniform_below
from quorisk.kernels.cluster.ticks import ANYWHERE
from quorisk.kernels.ops import jitable, jitable_apart


class Places(NamedTuple):
    """Nodes in racks, the larger racks first, and in groups."""

    nodes: int
    first: np.ndarray  # int64 by rack: its first node
    num_large: int
    large: int
    """The size of the larger racks."""
    member: np.ndarray  # int64 [group, place]
    least: int
    """Fewest nodes of a group that have to be down for a loss."""
    some: np.ndarray  # int64 [event, 2]: first node that the event may hit, and the number of such nodes


class DrawRoom(NamedTuple):
    """Working memory of a draw."""

    stream: np.ndarray  # uint64
    kind: np.ndarray  # int64, by tick: its kind
    old: np.ndarray  # int64, by tick: whether it is too old to matter
    marks: np.ndarray  # int64 by node
    subset: np.ndarray  # int64: members of a group
    digit: np.ndarray  # int64 by member: which of the ticks that took it counts; 0 for none
    place: np.ndarray  # int64: places of ticks that matter
    forced: np.ndarray  # int64 by place: the node that is put there; -1 for none


@jitable
def nodes_of(rack, places):
    """The first node that a tick outside of racks may take, and how many such nodes there are."""
    if rack < ANYWHERE:
        return places.some[ANYWHERE - 1 - rack, 0], places.some[ANYWHERE - 1 - rack, 1]
    return 0, places.nodes


@jitable_apart
def _weight(rack, count, places):
    """`Bounds.weight`: the reciprocal of the chance that certain nodes are at `count` certain places of a tick."""
    weight, nodes = 1.0, rack if rack > 0 else nodes_of(rack, places)[1]
    for i in range(count):
        weight *= nodes - i
    if rack < 0 or count == 0:
        return weight
    return weight * (places.num_large if rack == places.large else len(places.first) - 1 - places.num_large)


@jitable_apart
def begin_with_a_group(last, places, room, history):
    """Puts some members of a group at places of ticks that matter. Returns the number of ways to do that; 0 if this way
    is impossible: it puts nodes of one tick in several racks, or nodes in a tick that does not happen to them."""
    num = 0
    for i in range(last + 1):
        for j in range(history.first[i], history.first[i + 1]):
            if not room.old[i]:
                room.place[num] = j
                num += 1
    group, size = uniform_below(room.stream, len(places.member)), places.member.shape[1]
    for i in range(size):
        room.subset[i] = i
    num_ways = float(len(places.member))
    for i in range(places.least):
        other = i + uniform_below(room.stream, size - i)
        room.subset[i], room.subset[other] = room.subset[other], room.subset[i]
        other = i + uniform_below(room.stream, num - i)
        room.place[i], room.place[other] = room.place[other], room.place[i]
        room.forced[room.place[i]] = places.member[group, room.subset[i]]
        num_ways *= (size - i) / (i + 1) * (num - i)
    for i in range(last + 1):
        rack = -1
        for j in range(history.first[i], history.first[i + 1]):
            begins, among = nodes_of(history.rack[i], places)
            if room.forced[j] >= 0 and not begins <= room.forced[j] < begins + among:
                return 0.0
            if history.rack[i] > 0 and room.forced[j] >= 0:
                its = np.searchsorted(places.first, room.forced[j], "right") - 1
                if places.first[its + 1] - places.first[its] != history.rack[i] or (rack >= 0 and its != rack):
                    return 0.0
                rack = its
    return num_ways


@jitable_apart
def ways(last, places, law, room, history, one):
    """Sums, over the ways in which this draw may have begun with some group, the weights of each (`_way`)."""
    met = 0
    for i in range(last + 1):
        for j in range(history.first[i], history.first[i + 1]):
            if not room.old[i]:
                node = history.node[j]
                for k in range(law.first[node], law.first[node + 1]):
                    group = law.groups[k]
                    if one.num_down[group] == 0:
                        one.met[met] = group
                        met += 1
                    one.num_down[group] += 1
    total = 0.0
    for i in range(met):
        if one.num_down[one.met[i]] >= places.least:
            total += _ways_of(one.met[i], last, places, room, history)
        one.num_down[one.met[i]] = 0
    return total


@jitable_apart
def _ways_of(group, last, places, room, history):
    """Sums the weights of all ways to begin with a group: a way takes some members, and one place for each."""
    size, total = places.member.shape[1], 0.0
    for m in range(size):
        room.digit[m] = 0
    while True:
        total += _way(group, last, places, room, history)
        m = 0
        while m < size:  # the next choice of places, as an odometer turns
            room.digit[m] += 1
            if room.digit[m] <= _times(places.member[group, m], last, room, history):
                break
            room.digit[m] = 0
            m += 1
        if m == size:
            return total


@jitable_apart
def _times(node, last, room, history):
    """Number of ticks that matter and took a node."""
    times = 0
    for i in range(last + 1):
        for j in range(history.first[i], history.first[i + 1]):
            times += not room.old[i] and history.node[j] == node
    return times


@jitable_apart
def _way(group, last, places, room, history):
    """The weight of one way; 0 if it does not take just `places.least` members."""
    used = 0
    for m in range(places.member.shape[1]):
        used += room.digit[m] > 0
    if used != places.least:
        return 0.0
    weight = 1.0
    for i in range(last + 1):
        count = 0
        for m in range(places.member.shape[1]):
            if room.digit[m] > 0:
                node, nth = places.member[group, m], room.digit[m]
                count += _times(node, i - 1, room, history) < nth <= _times(node, i, room, history)
        weight *= _weight(history.rack[i], count, places)
    return weight
