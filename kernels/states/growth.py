"""Estimate of the number of states that a search will find, from the numbers found at each depth so far.

The numbers by depth rise and fall like a bell: the logarithm of the ratio of neighbours falls about evenly. A line
through these logarithms is extended until nothing new is found: one line each through the last third, the last two
thirds and all of them. The last line misses a second bell, the first takes each pause for one; the median errs least.
"""

from collections.abc import Sequence

import numpy as np

MOST = 1e15
"""Number of states above which an estimate counts as infinite."""
_FEWEST_DEPTHS = 6
"""Number of depths below which there is no estimate."""
_SHARES = 1 / 3, 2 / 3, 1.0
"""Shares of the depths, counted from the last, that a line is fitted to; the median of their estimates counts."""


def expected(by_depth: Sequence[int]) -> float:
    """Returns a guess at the number of states in all, from the number of new ones at each depth: infinite if nothing
    shows an end, and rather too low at first.
    """
    if len(by_depth) < _FEWEST_DEPTHS:
        return np.inf
    ratios = np.diff(np.log(by_depth))
    lasts = (ratios[-max(_FEWEST_DEPTHS - 1, round(share * len(ratios))) :] for share in _SHARES)
    return sorted(_carried_on(by_depth, last) for last in lasts)[1]


def _carried_on(by_depth: Sequence[int], ratios: np.ndarray) -> float:
    slope, start = np.polyfit(np.arange(len(ratios)), ratios, 1)
    if slope >= 0.0:
        return np.inf
    total, new, ratio = float(sum(by_depth)), float(by_depth[-1]), start + slope * len(ratios)
    while new >= 1.0 and total < MOST:
        new *= np.exp(ratio)
        total += new
        ratio += slope
    return total if total < MOST else np.inf
