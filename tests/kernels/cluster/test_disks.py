"""Disks of a node: a ledger is on the one of its number, and one that is lost alone takes no others with it."""

from math import log1p

import numpy as np
import pytest

from quorisk.analysis.cluster.certified import DrawPlan, certified
from quorisk.kernels.cluster.fate import ALL, Down, fate, kinds_of_units, room_for_fate
from quorisk.kernels.cluster.placement import law_of
from quorisk.kernels.cluster.setting import Cluster, Event, Thin, units
from quorisk.kernels.cluster.years import ENTRIES, INCIDENTS, draw_years
from tests.analysis.cluster.clusters import outage
from tests.external.incidents import EVERY_SET
from tests.kernels.cluster.test_fate import listed
from tests.kernels.cluster.test_years import YEARS, standard_error, years_as_simulated
from tests.references.cluster import enumerated

HOUR = 1.0 / 8766.0
SMALL = Cluster(
    9, 3, 3, 24, 10, detection_delay=24 * HOUR, repair_time=48 * HOUR, node_loss=0.5, disks_per_node=3, disk_loss=1.5
)
LITERALLY = {
    "with outages": SMALL._replace(events=(outage(1.0, 0.2),)),
    "disks alone": SMALL._replace(node_loss=0.0, write_quorum=2, ensemble_size=2),
    "2 of 4 in two racks": SMALL._replace(
        write_quorum=2, ensemble_size=4, ledgers=8, racks=3, placement="two_racks", disks_per_node=2
    ),
    "copysets in a queue": SMALL._replace(
        write_quorum=2, ensemble_size=2, placement="copysets", scatter_width=6, repair_queue=True, repair_time=12 * HOUR
    ),
    "thin entries and batches": SMALL._replace(
        ledgers=6,
        disks_per_node=2,
        thin=(Thin(2, 12, False), Thin(1, 4, True)),
        events=(outage(0.5, 0.2), Event("b", "batch", 1.0, 0.7, 5)),
    ),
}
LITERAL_YEARS = 600


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", LITERALLY)
def test_years_and_strata_are_those_of_a_simulation_of_single_disks(name):
    cluster = LITERALLY[name]
    tally = years_as_simulated(cluster, LITERAL_YEARS)
    strata = certified(cluster, 0.99999, DrawPlan(1, 1, None, 1e-2))
    for what, figure in ((INCIDENTS, strata.incidents), (ENTRIES, strata.entries)):
        scale = cluster.entries if what == ENTRIES else 1.0
        off = 4.5 * scale * standard_error(tally, what)
        assert figure.low - off < scale * tally.mean(what) < figure.high + off


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", LITERALLY)
def test_sizes_are_those_of_a_simulation_of_single_disks(name):
    """Entries that incidents lose are drawn, disk by disk, with the mean that is computed."""
    tally = draw_years(LITERALLY[name], 0, YEARS, 3)
    drawn = (tally.weight[0] * tally.largest[0]).sum() * 2.0**-40 / YEARS
    assert drawn == pytest.approx(tally.mean(ENTRIES) * LITERALLY[name].entries, rel=0.05)


@pytest.mark.parametrize(
    ("nodes", "copies", "disks", "node_loss"),
    [(4, 2, 3, 0.0), (4, 3, 2, 3.0), (5, 2, 2, 1.0), (4, 2, 1, 1.0)],
    ids=("disks alone", "3 copies", "2 of 5", "one disk"),
)
def test_incidents_are_those_of_an_enumeration(nodes, copies, disks, node_loss):
    cluster = Cluster(
        nodes, copies, copies, EVERY_SET, 1, detection_delay=24 * HOUR, node_loss=node_loss, disks_per_node=disks
    )._replace(disk_loss=3.0)
    expected = enumerated.incidents_of_disks(cluster)
    found = certified(cluster, 0.99999, DrawPlan(1, 1, None, 1e-2)).incidents
    assert found.low < expected < found.high
    assert found.value == pytest.approx(expected, rel=2e-2)
    tally = draw_years(cluster, 0, YEARS, 3)
    assert abs(tally.mean(INCIDENTS) - expected) < 4.5 * standard_error(tally, INCIDENTS)


@pytest.mark.parametrize("outage", [False, True])
def test_chances_are_those_of_each_disk_by_itself(outage):
    cluster = Cluster(7, 3, 3, 10, 6, disks_per_node=3, thin=(Thin(2, 5.0, False), Thin(1, 7.0, True)))
    law, kinds = law_of(cluster), kinds_of_units(units(cluster))
    nodes, shares, disks, old = [4, 0, 6, 1, 2], [0.3, 0.6, 0.8, 1.0, 1.0], [ALL, 1, 2, 1, ALL], 3
    down = Down(np.array(nodes), np.array(shares), np.array(disks))
    found = fate(law, kinds, down, old, len(nodes), outage, room_for_fate(law, kinds))
    log_ledgers = log_all = entries = 0.0
    for disk in range(3):
        there = [i for i in range(len(nodes)) if disks[i] in (ALL, disk)]
        before = [nodes[i] for i in there if i < old]
        its = [shares[i] for i in there if i < old]
        sets, thin = listed(cluster, before, its, [nodes[i] for i in there if i >= old], outage)
        # 10 / 3 ledgers are three, and a fourth with a chance of a third; and so on
        log_ledgers += 3 * log1p(-sets[1]) + log1p(-sets[1] / 3)
        log_all += log1p(-thin[0]) + log1p(-thin[0] * 2 / 3) + 2 * log1p(-thin[1]) + log1p(-thin[1] / 3)
        entries += 10 / 3 * 6 * sets[1] + 5 / 3 * thin[0] + 7 / 3 * thin[1]
    assert found == pytest.approx((log_ledgers, log_ledgers + log_all, entries), rel=1e-9)


def test_disks_that_nothing_else_happens_to_are_clusters_of_their_own():
    """Four disks a node are four clusters, each with a quarter of the ledgers; one disk a node is a node."""
    four = Cluster(21, 3, 3, 2e4, 1e3, racks=3, placement="distinct_racks", detection_delay=HOUR, repair_time=HOUR)
    one = four._replace(ledgers=5e3, node_loss=0.01)
    plan = DrawPlan(1, 1, None, 1e-2)
    found, its = (certified(each, 0.95, plan) for each in (four._replace(disks_per_node=4, disk_loss=0.01), one))
    assert found.incidents.value == pytest.approx(4 * its.incidents.value, rel=1e-6)
    assert found.entries.value == pytest.approx(4 * its.entries.value, rel=1e-3)
    disk = certified(four._replace(ledgers=5e3, disk_loss=0.01), 0.95, plan)
    assert disk.incidents.value == pytest.approx(its.incidents.value, rel=1e-9)
    assert disk.incidents.low <= its.incidents.value <= disk.incidents.high
