"""Copysets: which sets of nodes hold all copies of something, and how likely it is that a set of dead nodes has one.

Cidon et al., Copysets: Reducing the Frequency of Data Loss in Cloud Storage, USENIX ATC 2013: of 5,000 nodes, of which
1 % do not come back after a power outage, with three copies.
"""

from math import comb

from scipy.stats import hypergeom

NODES, DEAD, COPIES = 5000, 50, 3
FIGURES = {275_000: "22.8", 8_333: "0.78"}
"""P(something is lost) in %, by number of copysets, in the paper's digits."""


def p_loss(nodes: int, dead: int, copies: int, copysets: int) -> float:
    """P(at least one of so many different copysets, drawn at random, is among the dead nodes)."""
    return float(hypergeom.sf(0, comb(nodes, copies), comb(dead, copies), copysets))
