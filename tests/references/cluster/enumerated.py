"""Nodes that fail independently, each at a rate of its own: every state that they may be in together is looked at."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from quorisk.kernels.cluster.setting import Cluster


def p_at_least(num: int, p: Sequence[float]) -> float:
    """Returns the chance that so many nodes are down or more, given that of each."""
    return sum(
        prod(q if is_down else 1.0 - q for q, is_down in zip(p, down, strict=True))
        for down in product((False, True), repeat=len(p))
        if sum(down) >= num
    )


def rates(cluster: Cluster) -> Iterator[float]:
    """Yields how often a year each node is lost, alone or by an event of single nodes."""
    for node in range(cluster.nodes):
        events = (each for each in cluster.events if not each.nodes or each.first <= node < each.first + each.nodes)
        yield cluster.node_loss + sum(each.per_year * each.p_lost for each in events)


def incidents(cluster: Cluster) -> float:
    """Returns how often a year a node is lost while so many others are down that a write set is gone, where every write
    set has ledgers and a node is back at once after the detection delay: a renewal process for each node."""
    lost = list(rates(cluster))
    down = [rate * cluster.detection_delay / (1.0 + rate * cluster.detection_delay) for rate in lost]
    needed = cluster.write_quorum - 1
    return sum(
        rate * (1.0 - down[node]) * p_at_least(needed, down[:node] + down[node + 1 :]) for node, rate in enumerate(lost)
    )


def incidents_of_disks(cluster: Cluster) -> float:
    """Returns the same where nodes are alike and lose all disks or one: each is up, or lacks all disks, or lacks disk
    0, or disk 1, ... An incident takes a node of which enough others lack one of the disks that it loses."""
    disks, delay = cluster.disks_per_node, cluster.detection_delay
    every = frozenset(range(disks))
    kinds = {every: cluster.node_loss} if disks > 1 else {every: cluster.node_loss + cluster.disk_loss}
    if disks > 1:
        kinds |= {frozenset([disk]): cluster.disk_loss for disk in range(disks)}
    up = 1.0 / (1.0 + delay * sum(kinds.values()))
    chances: dict[frozenset[int], float] = {frozenset(): up} | {
        lacking: rate * delay * up for lacking, rate in kinds.items()
    }
    found = 0.0
    for others in product(chances, repeat=cluster.nodes - 1):
        chance = prod(chances[lacking] for lacking in others)
        for takes, rate in kinds.items():
            if any(sum(disk in lacking for lacking in others) >= cluster.write_quorum - 1 for disk in takes):
                found += cluster.nodes * up * rate * chance
    return found
