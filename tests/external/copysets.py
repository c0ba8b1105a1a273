"""Copysets: which sets of nodes hold all copies of something, and how likely it is that a set of dead nodes has one.

Cidon et al., Copysets: Reducing the Frequency of Data Loss in Cloud Storage, USENIX ATC 2013: of 5,000 nodes, of which
1 % do not come back after a power outage, with three copies.

What the paper prints of random replication at Facebook, 22.8 %, rests on 275,000 = 5,000 C(11, 2) copysets. By its own
rule, a node and two of the ten after it, there are 225,000 = 5,000 C(10, 2), hence 19.09 %. Neither knows that these
sets overlap: exactly, it is 17.522 % (`windowed`).
"""

from math import comb

import numpy as np
from scipy.stats import hypergeom

NODES, DEAD, COPIES = 5000, 50, 3
WINDOW = 10
"""How many nodes after a chunk's first node may have its other copies."""
FIGURES = {275_000: "22.8", 8_333: "0.78"}
"""P(something is lost) in %, by number of copysets, in the paper's digits."""
CORRECTED, EXACTLY = {NODES * comb(WINDOW, 2): "19.09"}, "17.522"
"""The first of them by the paper's own rule, by number of copysets; and exactly."""


def p_loss(nodes: int, dead: int, copies: int, copysets: int) -> float:
    """P(at least one of so many different copysets, drawn at random, is among the dead nodes)."""
    return float(hypergeom.sf(0, comb(nodes, copies), comb(dead, copies), copysets))


def windowed(nodes: int, dead: int, window: int) -> float:
    """P(any three of the dead nodes of a ring are a node and two of the `window` after it), exactly.

    None are if any two neighbouring gaps of the dead ones come to more than `window` nodes. Gaps above that are alike.
    """
    safe, wide = np.longdouble(0), window + 1
    for first in range(1, wide + 1):
        ways = np.zeros((wide + 1, nodes + 1), np.longdouble)  # by the last gap, and by the nodes that gaps take up
        ways[first, first : None if first == wide else first + 1] = 1
        for _ in range(dead - 1):
            ways = _with_one_more_gap(ways)
        safe += ways[max(1, wide - first) :, nodes].sum()
    rings = np.longdouble(1)  # comb(nodes, dead), which is too large for a float
    for i in range(dead):
        rings = rings * (nodes - i) / (i + 1)
    return float(1 - safe * nodes / dead / rings)


def _with_one_more_gap(ways: np.ndarray) -> np.ndarray:
    wide, more = len(ways) - 1, np.zeros_like(ways)
    for gap in range(1, wide + 1):
        before = ways[max(1, wide - gap) :].sum(0)
        more[gap, gap:] = (np.cumsum(before) if gap == wide else before)[: ways.shape[1] - gap]
    return more
