"""Strata: what they weigh, what they bound, and what is solved of them."""

from math import inf, isnan, sqrt

import pytest

from quorisk.kernels.cluster import strata as module
from quorisk.kernels.cluster.bounds import ENTRIES, INCIDENTS, WHAT, moments_of
from quorisk.kernels.cluster.setting import Cluster, Event, Thin
from quorisk.kernels.cluster.shares import CHUNK, NOT_FIRST, SHARE, SHARE_SQUARED, draw_shares
from quorisk.kernels.cluster.strata import strata
from quorisk.kernels.cluster.ticks import kinds_of_ticks
from tests.analysis.cluster.clusters import outage, rack_outage

HOUR = 1.0 / 8766.0
SMALL = Cluster(
    9, 3, 3, 60, 10, node_loss=1.5, detection_delay=24 * HOUR, repair_time=48 * HOUR, events=(outage(0.5, 0.05),)
)
RACKED = SMALL._replace(nodes=12, racks=4, events=(*SMALL.events, rack_outage(0.15, 0.3)))
LARGEST = "disks and thin entries in racks"
CLUSTERS = {
    "random": SMALL,
    "random 3 of 5, in a queue": SMALL._replace(ensemble_size=5, node_loss=0.2, repair_queue=True),
    "distinct racks": RACKED._replace(placement="distinct_racks"),
    "two racks": RACKED._replace(placement="two_racks", nodes=11),
    "copysets": SMALL._replace(placement="copysets", scatter_width=4),
    "copysets 2 of 3 in racks": RACKED._replace(write_quorum=2, placement="copysets", scatter_width=8),
    "some in two racks are worse": RACKED._replace(
        placement="two_racks", nodes=11, events=(*RACKED.events, Event("worse", "node", 2.0, 0.9, 5, first=2))
    ),
    "copysets of some that are worse": RACKED._replace(
        write_quorum=2, placement="copysets", scatter_width=8, events=(Event("worse", "node", 2.0, 0.9, 5, first=2),)
    ),
    "thin": SMALL._replace(thin=(Thin(2, 20, False), Thin(1, 2, True))),
    "three disks": SMALL._replace(write_quorum=2, ensemble_size=3, disks_per_node=3, disk_loss=1.0),
    "disks of copysets": SMALL._replace(placement="copysets", scatter_width=4, disks_per_node=2, disk_loss=1.0),
    "disks and thin entries": SMALL._replace(
        disks_per_node=2, disk_loss=1.5, thin=(Thin(2, 20, False), Thin(1, 2, True))
    ),
    LARGEST: RACKED._replace(
        placement="distinct_racks", disks_per_node=2, disk_loss=1.5, thin=(Thin(2, 20, False), Thin(1, 2, True))
    ),
}
NUM = 8 * CHUNK


@pytest.mark.sampled(13)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * (name == LARGEST)) for name in CLUSTERS]
)
@pytest.mark.parametrize("what", WHAT)
def test_what_is_solved_is_what_is_drawn(name, what):
    """And no draw is above its bound: the squares of numbers from 0 to 1 add up to less than these."""
    found = strata(CLUSTERS[name], what)
    for solved in (False, True):
        shares = draw_shares(CLUSTERS[name], found, what, solved, NUM, 2, 9 + solved, threads=2)
        if not shares.draws:
            continue
        mean, square = shares.sums[SHARE] / NUM, shares.sums[SHARE_SQUARED] / NUM
        assert 0.0 < square <= mean * (1 + 1e-9)
        assert shares.sums[NOT_FIRST] <= shares.sums[SHARE]
        if solved:
            off = shares.whole * sqrt((square - mean * mean) / NUM)
            assert abs(shares.whole * mean - found.solved) <= 4.5 * off + 1e-9 * found.solved


@pytest.mark.parametrize("name", ["random", "distinct racks", "copysets 2 of 3 in racks"])
def test_what_is_left_out_is_bounded(name, monkeypatch):
    """With few strata, the bound of the others covers what more of them find."""
    cluster = CLUSTERS[name]
    most = strata(cluster, ENTRIES)
    monkeypatch.setattr(module, "NEGLIGIBLE", 0.3)
    few = strata(cluster, ENTRIES)
    assert len(few.rows) < len(most.rows)
    assert few.left_out > most.left_out

    def known(found):
        drawn = draw_shares(cluster, found, ENTRIES, False, NUM, 2, 9)
        return found.solved + drawn.whole * drawn.sums[SHARE] / NUM

    assert known(few) < known(most) < known(few) + few.left_out


def test_weights_are_poisson():
    """Weights of all histories before one kind of tick add up to its rate."""
    cluster = SMALL._replace(thin=(Thin(1, 1, False),))  # any tick may lose something, so that no stratum is without
    found = strata(cluster, INCIDENTS)
    for number, tick in enumerate(found.now[:2]):
        weights = sum(row.weight for row in found.rows if row.now == number)
        assert weights == pytest.approx(tick.rate, rel=1e-3)


def test_ticks_are_binomial():
    found, left_out = kinds_of_ticks(RACKED._replace(nodes=11), negligible=0.0)
    assert left_out == 0.0
    lost = sum(tick.rate * tick.lost for tick in found)
    assert lost == pytest.approx(11 * (1.5 + 0.5 * 0.05 + 0.15 * 0.3))
    racks = {tick.rack for tick in found if tick.cause == "rack_outages"}
    assert racks == {2, 3}


def test_moments_of_a_compound_poisson_number():
    by_hand = moments_of([(1, 0.5), (3, 0.25)])
    assert by_hand[:3] == pytest.approx([1.0, 0.5 + 0.75, 0.25 * 3 + (0.5 + 0.75) ** 2 / 2])


def test_draws_do_not_depend_on_threads():
    found = strata(SMALL, INCIDENTS)
    one, two = (draw_shares(SMALL, found, INCIDENTS, False, 3 * CHUNK, 5, 9, threads) for threads in (1, 2))
    assert (one.sums == two.sums).all()
    assert (one.sizes.weight == two.sizes.weight).all()


def test_rare_beyond_all_counting():
    cluster = Cluster(20, 5, 5, 1e6, 1000, node_loss=0.02, detection_delay=HOUR, repair_time=2.6667 * HOUR)
    found = strata(cluster, INCIDENTS)
    assert found.solved == pytest.approx(6.129e-18, rel=1e-3)
    assert found.left_out < 1e-5 * found.solved < inf
    assert not isnan(found.rows[0].value)
