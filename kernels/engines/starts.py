"""Where runs start that do not start at the beginning: a table of states and how often each is drawn."""

import math
from typing import NamedTuple

import numpy as np

UNIT = 2**62
"""What the flows of all starts add up to."""


class Starts(NamedTuple):
    """States, one of which a run draws by a random number of its own."""

    states: np.ndarray
    """int64, the integers of state after state, as `compiled.load_words` takes them."""
    cumulative: np.ndarray
    """int64 by state: the flows of this one and all before it, in units of 1 / UNIT; the last one is UNIT."""


NO_STARTS = Starts(np.empty(0, np.int64), np.empty(0, np.int64))
"""Runs start at the beginning."""


def starts(states: np.ndarray, flows: np.ndarray) -> Starts:
    """The table of states, int64 of shape (states, integers), drawn in proportion to their flows.

    A flow is off by less than 2 / UNIT of all together, and by what float64 rounds.
    """
    total = math.fsum(flows)
    exact = np.cumsum(flows.astype(np.longdouble)) / np.longdouble(total)
    cumulative = np.minimum(exact, 1.0) * np.longdouble(UNIT)
    cumulative = np.minimum(np.rint(cumulative).astype(np.int64), UNIT)
    cumulative[-1] = UNIT
    return Starts(np.ascontiguousarray(states, np.int64).reshape(-1), cumulative)
