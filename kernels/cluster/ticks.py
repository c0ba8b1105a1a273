"""The ticks of a cluster, by how many nodes they take and where, with their rates."""

from typing import NamedTuple

import numpy as np
from scipy.special import betainc, gammaln, xlog1py, xlogy

from quorisk.kernels.cluster.setting import NODE, RACK, SINGLES, Cluster, Event

ANYWHERE = -1
"""Value in place of a rack's size: a tick takes any nodes. Below it: one of the nodes of an event, see `some_nodes`."""


class Tick(NamedTuple):
    """A kind of tick."""

    cause: str
    rack: int
    """The size of the rack in which it takes nodes; or ANYWHERE, or below."""
    lost: int
    rate: float
    """Rate a year."""
    takes_writers: bool = False
    """Whether all unflushed entries of the whole cluster are lost."""
    is_disk: bool = False
    """Whether its node loses one disk alone."""


class Past(NamedTuple):
    """A kind of tick that came before, whatever its cause."""

    rack: int
    lost: int
    takes_writers: bool
    """Whether it takes writers, where that matters."""
    is_disk: bool
    rate: float
    span: float
    """Time for which it matters, in years."""
    common: float
    """Share of them that are events which may take several nodes at once."""

    @property
    def mean(self) -> float:
        """Mean number of them that matter."""
        return self.rate * self.span


def kinds_of_ticks(cluster: Cluster, negligible: float = 1e-30) -> tuple[list[Tick], float]:
    """Returns the kinds of ticks that take nodes, and the rate of those left out: the largest of an event, which are
    together below `negligible` of its rate."""
    found, left_out = [], 0.0
    if cluster.node_loss > 0:
        found.append(Tick(SINGLES, ANYWHERE, 1, cluster.nodes * cluster.node_loss))
    if cluster.disk_loss > 0:
        rate = cluster.nodes * cluster.disks_per_node * cluster.disk_loss
        found.append(Tick(SINGLES, ANYWHERE, 1, rate, is_disk=cluster.disks_per_node > 1))
    groups = [(i, event, *some) for i, event in enumerate(cluster.events) for some in cluster.scopes_of(event).items()]
    for i, event, nodes, number in groups:
        rate, rack = event.per_year * number, nodes if event.scope == RACK else ANYWHERE
        if event.scope == NODE and event.nodes:
            rack = ANYWHERE - 1 - i
        for lost in range(1, nodes + 1 if rate > 0 else 0):
            chance = float(p_lost(nodes, event.p_lost, lost))
            found.append(Tick(event.name, rack, lost, rate * chance, event.takes_writers))
            rest = float(betainc(lost + 1, nodes - lost, event.p_lost)) if lost < nodes else 0.0
            if rest < negligible:
                left_out += rate * rest
                break
    return [tick for tick in found if tick.rate > 0], left_out


def some_nodes(cluster: Cluster, rack: int) -> Event:
    """Returns the event to whose nodes alone a tick happens, by its `rack` below ANYWHERE."""
    return cluster.events[ANYWHERE - 1 - rack]


def p_lost(nodes: int, p: float, lost: "int | np.ndarray") -> "float | np.ndarray":
    """Returns the binomial probability that `lost` of `nodes` nodes are lost."""
    ways = gammaln(nodes + 1) - gammaln(np.add(lost, 1)) - gammaln(nodes - np.asarray(lost) + 1)
    return np.exp(ways + xlogy(lost, p) + xlog1py(nodes - np.asarray(lost), -p))
