"""How nodes go down and are repaired, tick by tick."""

import numpy as np

from quorisk.kernels.cluster.history import Repair, _take, no_history, nodes_up

TICKS = [(10.0, [0, 1]), (9.0, [1, 2]), (8.0, [0, 1])]
"""Years ago, and the nodes taken."""
DELAY, TIME = 0.5, 4.0


def taken(queue: bool):
    """Until when there is something to repair after each tick, and each node is down."""
    history, nodes, busy, ends = no_history(3, 6), nodes_up(3), -np.inf, []
    for i, (age, lost) in enumerate(TICKS):
        first = history.first[i]
        history.age[i], history.lost[i], history.first[i + 1] = age, len(lost), first + len(lost)
        history.node[first : first + len(lost)] = lost
        busy = _take(i, history, Repair(DELAY, TIME, queue), busy, nodes)
        ends.append(busy)
    return ends, list(nodes.until)


def test_a_node_that_is_down_is_not_repaired_again():
    first = -10.0 + DELAY + 2 * TIME
    queued = first + TIME
    assert taken(queue=True) == ([first, queued, queued], [first, first, queued])
    second = -9.0 + DELAY + TIME
    assert taken(queue=False) == ([first, second, second], [first, first, second])
