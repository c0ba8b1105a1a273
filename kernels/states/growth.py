"""How many states a search will find, from how many it found at each depth so far.

The numbers by depth rise and fall like a bell: the logarithm of the ratio between one and the next falls, about evenly.
So that is carried on to where nothing new is found, along the last depths, more of them, and all: what all say sees no
second bell, what the last say takes each pause for the beginning of one, and the middle of the three errs least.
"""

from collections.abc import Sequence

import numpy as np

MOST = 1e15
"""What is beyond is as good as infinite."""
_FEWEST_DEPTHS = 6
"""Depths that it takes to tell."""
_SHARES = 1 / 3, 2 / 3, 1.0
"""Parts of the depths, the last ones, that a line is drawn through; the middle one of what they say counts."""


def expected(by_depth: Sequence[int]) -> float:
    """Returns how many states there will be in all, so many new ones having been found at each depth; infinite if
    nothing shows an end. A guess, and rather too low at first.
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
