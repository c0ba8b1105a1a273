"""Figures that others printed of clusters that lose nodes, and the clusters that they are of.

Of what is lost by nodes that are lost at once, `p_of` says how likely it is, of exactly so many.
"""

from itertools import combinations
from math import comb, expm1, isnan

from quorisk.kernels.cluster.bounds import INCIDENTS, ShareBounds
from quorisk.kernels.cluster.setting import SINGLES, Cluster
from quorisk.kernels.cluster.shares import SHARE, draw_shares
from quorisk.kernels.cluster.solved import Solver
from quorisk.kernels.cluster.strata import Row, Strata
from quorisk.kernels.cluster.ticks import ANYWHERE, Tick

EVERY_SET = 1e15
"""Ledgers: so many that each set of nodes has some."""

WINDOWED = {1000: "2.97765", 2000: "6.8235", 5000: "17.522"}
"""P(loss) in %, exactly, by nodes of which 1 % die: a chunk's copies are on a node and two of the ten after it."""
COPYSETS = {8_333: "0.7814", 275_000: "22.8081"}
"""P(loss) in %, by chunks on random sets of three of 5,000 nodes of which 50 die."""

ONE_OUTAGE = {
    (10, 3): ("4.867e-05", "173.4"),
    (30, 3): ("1.462e-03", "5.77"),
    (100, 3): ("6.902e-03", "1.22"),
    (50, 2): ("5.437e-02", "20.69"),
}
"""P(loss) and ledgers that it takes, by nodes and copies: 20,000 random ledgers, an outage, 0.75 % do not come back."""
ENTRIES_OF_THREE_COPIES = "421.9"
"""That are lost in it, whatever the number of nodes, if each ledger has 50,000."""

CEPH = {1: "0.00721457", 2: "4.948e-07", 3: "5.090e-11"}
"""P(loss) a year by copies, of Ceph's reliability model (github.com/ceph/ceph-tools, models/reliability): 826 failures
in 1e9 hours, 2e12 bytes three quarters full, 50 MB/s for each of 200 placement groups, marked out after 10 minutes."""
CEPH_LAMBDA, CEPH_YEAR_H, CEPH_GROUPS = 826e-9, 8766.0, 200
CEPH_RECOVERY_H = 10.0 / 60.0 + 0.75 * 2e12 / (50e6 * CEPH_GROUPS) / 3600.0

BACKBLAZE = "7.354e-12"
"""Losses a year of 20 shards of which 17 are enough: each is lost with 0.405 % a year and replaced after 6.5 days
(github.com/Backblaze/erasure-coding-durability, README)."""


def windowed(nodes: int, width: int) -> tuple[tuple[int, ...], ...]:
    """The sets of a node and two of so many after it, in a ring."""
    return tuple(
        (first, (first + i) % nodes, (first + j) % nodes)
        for first in range(nodes)
        for i, j in combinations(range(1, width + 1), 2)
    )


def p_of(cluster: Cluster, dead: int, draws: int = 0) -> float:
    """P(anything is lost) if exactly so many nodes are lost at once, solved or drawn."""
    now = Tick(SINGLES, ANYWHERE, dead, 1.0)
    value = Solver(cluster, INCIDENTS).value([], now)
    if not draws:
        assert not isnan(value)
        return value
    bound, by_groups = ShareBounds(cluster, INCIDENTS).of([], now)
    strata = Strata((now,), (), (Row(1.0, bound, (), 0, by_groups, value),), 0.0, 0.0)
    found = draw_shares(cluster, strata, INCIDENTS, not isnan(value), draws, 1, 3)
    return found.whole * float(found.sums[SHARE]) / draws


def ceph(copies: int) -> float:
    """P(loss) a year as Ceph's model has it: of a first disk, then of any that a placement group shares with it."""
    p, left = 1.0, copies
    p *= -expm1(-left * CEPH_LAMBDA * CEPH_YEAR_H)
    for left in range(copies - 1, 0, -1):
        p *= -expm1(-left * CEPH_GROUPS * CEPH_LAMBDA * CEPH_RECOVERY_H)
    return p


def mttdl(copies: int, loss: float, repair: float) -> float:
    """The mean time until all copies are lost, each lost and repaired at these rates: a sum of positive terms."""
    total = step = 0.0
    for lost in range(copies):
        step = (1.0 + lost * repair * step) / ((copies - lost) * loss)
        total += step
    return total


def triples(nodes: int) -> list[tuple[int, ...]]:
    """All sets of three of some nodes."""
    assert comb(nodes, 3) < 1000
    return list(combinations(range(nodes), 3))
