"""Nodes that fail independently, each at a rate of its own: every set of nodes that may be down is looked at."""

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
