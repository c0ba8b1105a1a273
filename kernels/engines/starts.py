"""Starting states of runs that do not start at the beginning: a table of states and how often each is drawn."""

import math
from typing import NamedTuple

import numpy as np

from quorisk.kernels.packing import RowLayout

FLOW_UNIT = 2**62
"""Sum of the flows of all starts."""


class Starts(NamedTuple):
    """States, one of which a run draws by a random number of its own."""

    rows: np.ndarray
    """uint64, [start, word]: the states."""
    layout: RowLayout
    """Layout of the rows."""
    cumulative: np.ndarray
    """int64 by state: the flows of this one and all before it, in units of 1 / FLOW_UNIT; the last one is FLOW_UNIT."""
    places: int = 0
    """Largest number of enabled instances of the fault, if runs are hurried (`engines.hurried`); else 0."""
    p: float = 1.0
    """Upper bound, for hurried runs, on the probability that one more of these faults comes before a lifetime ends."""


NO_STARTS = Starts(
    np.empty((0, 1), np.uint64), RowLayout(*(np.empty(0, np.uint64) for _ in RowLayout._fields)), np.empty(0, np.int64)
)
"""The empty table: runs start at the beginning."""


def starts(rows: np.ndarray, layout: RowLayout, flows: np.ndarray, places: int = 0, p: float = 1.0) -> Starts:
    """The table of these states, drawn in proportion to their flows; the rest is as in `Starts`.

    A flow is off by less than 2 / FLOW_UNIT of all together, and by what float64 rounds.
    """
    total = math.fsum(flows)
    exact = np.cumsum(flows.astype(np.longdouble)) / np.longdouble(total)
    cumulative = np.minimum(exact, 1.0) * np.longdouble(FLOW_UNIT)
    cumulative = np.minimum(np.rint(cumulative).astype(np.int64), FLOW_UNIT)
    cumulative[-1] = FLOW_UNIT
    return Starts(rows, layout, cumulative, places, p)
