"""Years of clusters: the same whoever makes them; and against the literal simulator."""

from math import hypot, sqrt

import numpy as np
import pytest

from quorisk.kernels.cluster.fate import compiled
from quorisk.kernels.cluster.placement import catalogue
from quorisk.kernels.cluster.setting import Cluster, Event, Thin
from quorisk.kernels.cluster.years import ANY, BY_CAUSE, ENTRIES, INCIDENTS, _years, draw_years, warm_up_of
from tests.analysis.cluster.clusters import outage, rack_outage
from tests.references.cluster import literal

HOUR = 1.0 / 8766.0
SMALL = Cluster(
    9, 3, 3, 20, 10, node_loss=2.0, detection_delay=24 * HOUR, repair_time=48 * HOUR, events=(outage(1.0, 0.15),)
)
RACKED = SMALL._replace(nodes=11, racks=4, events=(*SMALL.events, rack_outage(0.3, 0.6)))
LITERALLY = {
    "random 2 of 4": SMALL._replace(write_quorum=2, ensemble_size=4, ledgers=8),
    "two racks 3 of 4": RACKED._replace(ensemble_size=4, placement="two_racks"),
    "distinct racks 2 of 3": RACKED._replace(write_quorum=2, ensemble_size=3, placement="distinct_racks", ledgers=8),
    "copysets that coincide": SMALL._replace(
        nodes=5, write_quorum=2, ensemble_size=2, placement="copysets", scatter_width=6
    ),
    "thin entries": SMALL._replace(ledgers=5, thin=(Thin(2, 12, False), Thin(1, 3, True))),
    "a queue, slow": SMALL._replace(node_loss=1.0, repair_time=120 * HOUR, repair_queue=True),
    "common causes of batches and nodes": RACKED._replace(
        node_loss=0.5,
        thin=(Thin(2, 8, True),),
        events=(Event("b", "batch", 1.5, 0.7, 5), Event("n", "node", 1.0, 0.5), Event("c", "cluster", 0.5, 0.3)),
    ),
    "nodes that are not alike": RACKED._replace(
        node_loss=0.5, placement="two_racks", events=(rack_outage(0.3, 0.6), Event("old", "node", 6.0, 0.9, 5, first=4))
    ),
    "batches that wear out": SMALL._replace(lifetime_shape=3.0, service_life=2.0, batches=2),
    "early failures": SMALL._replace(lifetime_shape=0.6, service_life=2.0),
}
YEARS, LITERAL_YEARS = 60_000, 500


def standard_error(tally, what):
    return sqrt((tally.mean(what + 1) - tally.mean(what) ** 2) / tally.years)


def years_as_simulated(cluster, literal_years):
    """The years that are drawn, after comparing them with those of the literal simulator."""
    tally = draw_years(cluster, 0, YEARS, 3)
    told = list(literal.years(cluster, catalogue(cluster), literal_years, 4))
    values = {
        ANY: [float(bool(year.incidents)) for year in told],
        INCIDENTS: [float(len(year.incidents)) for year in told],
        ENTRIES: [sum(year.incidents) / cluster.entries for year in told],
    }
    for what, ours in values.items():
        mean, spread = np.mean(ours), np.std(ours) / sqrt(literal_years)
        assert abs(mean - tally.mean(what)) < 4.5 * hypot(spread, standard_error(tally, what)), what
    return tally


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LITERALLY)
def test_years_are_those_of_a_literal_simulation(name):
    years_as_simulated(LITERALLY[name], LITERAL_YEARS)


@pytest.mark.parametrize("name", ["thin entries", "batches that wear out", "two racks 3 of 4"])
def test_years_do_not_depend_on_who_adds_them_up(name):
    cluster = LITERALLY[name]
    whole = draw_years(cluster, 0, 10_000, 7, threads=2)
    parts = (
        draw_years(cluster, 0, 1, 7).plus(draw_years(cluster, 5_000, 5_000, 7)).plus(draw_years(cluster, 1, 4_999, 7))
    )
    assert whole.years == parts.years == 10_000
    assert whole.sums == parts.sums
    assert (whole.weight == parts.weight).all()
    assert (whole.largest == parts.largest).all()
    assert draw_years(cluster, 0, 10_000, 8).sums != whole.sums


def test_years_are_compiled_once_for_whole_numbers_and_others():
    whole = SMALL._replace(ledgers=20, entries_per_ledger=10)
    tallies = [draw_years(each, 0, 100, 3) for each in (whole, whole._replace(ledgers=20.0, entries_per_ledger=10.0))]
    assert tallies[0].sums == tallies[1].sums
    assert len(compiled(_years).signatures) == 1


@pytest.mark.parametrize("queue", [False, True])
def test_a_node_that_is_down_is_not_repaired_again(queue):
    """Of a single node losses are a renewal process: once it is lost, it is down for the delay and the repair."""
    cluster = Cluster(
        1, 1, 1, 1, 1, node_loss=2.0, detection_delay=240 * HOUR, repair_time=1440 * HOUR, repair_queue=queue
    )
    tally, truth = draw_years(cluster, 0, 4 * YEARS, 1, threads=2), 2.0 / (1.0 + 2.0 * 1680 * HOUR)
    off = sqrt((tally.mean(INCIDENTS + 1) - tally.mean(INCIDENTS) ** 2) / tally.years)
    assert abs(tally.mean(INCIDENTS) - truth) < 4.5 * off


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("cluster", "num_years"),
    [
        (Cluster(3, 3, 3, 1, 1, events=(outage(10.0, 1.0),), detection_delay=2400 * HOUR), YEARS),
        (Cluster(1, 1, 1, 1, 1, node_loss=10.0, detection_delay=1440 * HOUR), 2 * YEARS),
        (Cluster(1, 1, 1, 1, 1, node_loss=30.0, detection_delay=2400 * HOUR), YEARS // 4),
    ],
    ids=("all at once", "one", "one that is seldom up"),
)
def test_where_nodes_are_often_down_a_year_does_not_begin_with_more_of_them_up_than_others_do(cluster, num_years):
    """Losses are a renewal process: as often as anything is up, it is lost."""
    tally, rate = draw_years(cluster, 0, num_years, 1, threads=2), cluster.node_loss + cluster.outages
    off = sqrt((tally.mean(INCIDENTS + 1) - tally.mean(INCIDENTS) ** 2) / tally.years)
    assert abs(tally.mean(INCIDENTS) - rate / (1.0 + rate * cluster.detection_delay)) < 4.5 * off


def test_where_nodes_are_seldom_down_a_year_warms_up_for_two_windows():
    seldom = Cluster(20, 3, 3, 1e6, 1000, node_loss=0.02, detection_delay=HOUR, repair_time=10 * HOUR)
    assert warm_up_of(seldom) == 2.0 * seldom.window(1)


def test_causes_add_up():
    cluster = RACKED._replace(thin=(Thin(1, 2, False),))
    tally = draw_years(cluster, 0, 5_000, 1)
    causes = [tally.mean(BY_CAUSE + 2 * i) for i in range(len(cluster.causes))]
    assert min(causes) > 0.0
    assert sum(causes) == pytest.approx(tally.mean(INCIDENTS))


def test_ageing_of_shape_1_is_none():
    """Losses of ageing nodes are drawn node by node, yet are as many: here with a hazard that nearly is constant."""
    ageing = draw_years(SMALL._replace(lifetime_shape=1.0 + 1e-9), 0, YEARS, 2)
    constant = draw_years(SMALL, 0, YEARS, 3)
    for what in (ANY, INCIDENTS, ENTRIES):
        off = sum((tally.mean(what + 1) - tally.mean(what) ** 2) / YEARS for tally in (ageing, constant))
        assert abs(ageing.mean(what) - constant.mean(what)) < 4.5 * sqrt(off)


def test_a_cluster_that_loses_nothing():
    tally = draw_years(Cluster(5, 2, 2, 10, 10, node_loss=5.0), 0, 100, 1)
    assert tally.sums == (0,) * len(tally.sums)
