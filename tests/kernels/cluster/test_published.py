"""Clusters that lose nodes, against figures that others printed."""

from math import comb, exp

import numpy as np
import pytest

from quorisk.analysis.cluster.certified import DrawPlan, certified
from quorisk.kernels.cluster.fate import ALL, Down, fate, kinds_of_units, room_for_fate
from quorisk.kernels.cluster.placement import catalogue, law_of
from quorisk.kernels.cluster.setting import Cluster, units
from tests.analysis.cluster.clusters import outage
from tests.external import incidents as published
from tests.validation.clusters import majorities

DRAWS, HOUR = DrawPlan(1, 1), 1.0 / 8766.0


def digits(value: float, printed: str) -> str:
    """A value in the digits of a figure."""
    mantissa, _, power = printed.partition("e")
    places = len(mantissa.partition(".")[2])
    return f"{value:.{places}e}" if power else f"{value:.{places}f}"


def lost_by(cluster: Cluster) -> int:
    """How many sets of three nodes lose something if they are lost at once."""
    law, kinds = law_of(cluster), kinds_of_units(units(cluster))
    found, count = room_for_fate(law, kinds), 0
    for dead in published.triples(cluster.nodes):
        count += fate(law, kinds, Down(np.array(dead), np.ones(3), np.full(3, ALL)), 0, 3, True, found)[1] < 0.0
    return count


def test_nine_nodes():
    """Cidon et al., Copysets, USENIX ATC 2013: of 84 sets of three nodes, with a scatter width of 4."""
    assert comb(9, 3) == 84
    assert lost_by(Cluster(9, 3, 3, published.EVERY_SET, 1, sets=published.windowed(9, 4))) == 54
    copysets = Cluster(9, 3, 3, published.EVERY_SET, 1, placement="copysets", scatter_width=4)
    assert len(set(map(tuple, map(sorted, catalogue(copysets))))) == lost_by(copysets) == 6
    # Table 2: copysets of random replication on 39 nodes
    for width in (2, 4, 10, 19):
        assert len(set(map(frozenset, published.windowed(39, width)))) == 39 * comb(width, 2)


def test_five_thousand_nodes():
    for chunks, printed in published.COPYSETS.items():
        p = published.p_of(Cluster(5000, 3, 3, chunks, 1), 50)
        assert digits(100 * p, printed) == printed


@pytest.mark.sampled(2)
@pytest.mark.parametrize("nodes", published.WINDOWED)
def test_random_sets_in_a_window(nodes):
    cluster = Cluster(nodes, 3, 3, published.EVERY_SET, 1, sets=published.windowed(nodes, 10))
    p = published.p_of(cluster, nodes // 100, 1 << 13)
    assert 100 * p == pytest.approx(float(published.WINDOWED[nodes]), rel=0.012)


@pytest.mark.parametrize("nodes", published.ONE_OUTAGE)
def test_twenty_thousand_ledgers_in_one_outage(nodes):
    (num, copies), (p, ledgers) = nodes, published.ONE_OUTAGE[nodes]
    cluster = Cluster(num, copies, copies, 20_000, 50_000, events=(outage(1.0, 0.0075),))
    losses = certified(cluster, 0.95, DRAWS)
    assert digits(losses.incidents.value, p) == p
    lost = losses.entries.value / losses.incidents.value / 50_000
    assert digits(lost, ledgers) == ledgers
    if copies == 3:
        assert digits(losses.entries.value, "421.9") == published.ENTRIES_OF_THREE_COPIES


def test_ceph():
    for copies, printed in published.CEPH.items():
        assert digits(published.ceph(copies), printed) == printed
    # two disks that share a hundred placement groups each with other disks: the same, but for what saturates in a year
    shared = tuple((disk, 2 + 100 * disk + i) for disk in (0, 1) for i in range(100))
    rate, window = published.CEPH_LAMBDA * published.CEPH_YEAR_H, published.CEPH_RECOVERY_H * HOUR
    cluster = Cluster(202, 2, 2, published.EVERY_SET, 1, sets=shared, node_loss=rate, detection_delay=window)
    assert certified(cluster, 0.95, DRAWS).p_any.value == pytest.approx(published.ceph(2), rel=0.01)


def test_backblaze():
    p = 1.0 - exp(-0.00405 * 6.5 / 365.0)
    shards = Cluster(20, 4, 4, published.EVERY_SET, 1, events=(outage(365.0 / 6.5, p),))
    assert digits(certified(shards, 0.95, DRAWS).incidents.value, published.BACKBLAZE) == published.BACKBLAZE


def test_majorities():
    assert majorities(quick=True).holds


@pytest.mark.sampled(2)
@pytest.mark.parametrize("copies", [2, 3, 4, 5])
def test_mean_times_to_loss_by_a_chain(copies):
    """Repair that is exponential, and ours that is uniform with the same mean, agree to first order."""
    loss, mean = 0.02, 24.0 * HOUR
    cluster = Cluster(copies, copies, copies, 1, 1, node_loss=loss, repair_time=2.0 * mean)
    years = 1.0 / certified(cluster, 0.95, DRAWS).incidents.value
    assert years == pytest.approx(published.mttdl(copies, loss, 1.0 / mean), rel=4e-4)
