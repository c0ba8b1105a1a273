"""A cluster at its extremes: sure events, few ledgers, few years, nodes of one age, and copies that are often away."""

import math

import pytest

from quorisk.analysis.cluster.availability import Restarts, availability
from quorisk.analysis.cluster.certified import DrawPlan, certified
from quorisk.analysis.cluster.sampled import losses_of_years
from quorisk.analysis.decision.depends import YearlyElasticities, depends
from quorisk.analysis.experiment.config import load
from quorisk.analysis.experiment.scenarios import Scenario
from quorisk.kernels.cluster.setting import Cluster
from quorisk.kernels.cluster.years import draw_years
from tests.analysis.cluster.clusters import outage

RACKS = """
protocol = "bookkeeper"
[model]
bookies = 3
clients = 1
entries = 1
inflight = 1
write_quorum = 2
ack_quorum = 2
[cluster]
nodes = 9
racks = 3
ledgers = {ledgers}
entries_per_ledger = 10
node_loss = 1e-6
detection_delay = "2 days"
node_bytes = 1e12
repair_bandwidth = "2 MB/s"
disks_per_node = {disks}
[cluster.events.z]
scope = "{scope}"
per_year = 0.05
p_lost = {p}
[run]
runs = 1000
"""


def written(path, scope="rack", p=1.0, ledgers=500, disks=1):
    path.write_text(RACKS.format(scope=scope, p=p, ledgers=ledgers, disks=disks))
    return load(path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("p", [1.0, 0.99995, 0.99, 0.95, 0.5])
def test_elasticities_of_a_probability_near_1(tmp_path, p):
    """With many ledgers a rack of three is hit if two of its nodes or more are taken: p² (3 - 2p)."""
    found = depends(written(tmp_path / "x.toml", p=p), 1 << 27, 1)
    assert isinstance(found, YearlyElasticities)
    key = "cluster.events.z.p_lost"
    assert found.of_incidents[key] == pytest.approx(6.0 * (1.0 - p) / (3.0 - 2.0 * p), abs=0.02)
    assert found.of_entries[key] == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize("disks", [1, 8])
def test_one_ledger_is_on_one_disk(tmp_path, disks):
    """An event that takes all nodes takes it, however many disks a node has."""
    [placed] = written(tmp_path / "x.toml", scope="cluster", ledgers=1, disks=disks).clusters
    strata = certified(placed.cluster, 0.95, DrawPlan(1, 1, None, 1e-2))
    assert strata.incidents.value == pytest.approx(0.05, rel=2e-3)  # none is lost twice while it is made anew


def test_events_that_rarely_touch_an_object(tmp_path):
    """An event touches a fifth of a ledger on average: two copies of each of four ledgers are on 40 nodes."""
    [placed] = written(tmp_path / "x.toml").clusters
    placed = placed._replace(cluster=placed.cluster._replace(nodes=40, ledgers=4, racks=1, ensemble_size=2))
    event = Scenario(0.4, "", (), {}, hits="node_ledgers").event(placed)
    assert (event.per_year, event.hits) == pytest.approx((0.08, 1.0))
    assert event._replace(hits=5.0).objects == pytest.approx(0.4)


def test_how_often_a_ledger_begins_not_to_answer():
    """Its one copy is down for half a day after half a day of work on average: 365 times a year, not twice as often."""
    half_a_day = 0.5 / 365.0
    found = availability(Cluster(1, 1, 1, 1, 1), Restarts(1.0 / half_a_day, half_a_day), None).reading
    assert found.part == pytest.approx(0.5)
    assert found.per_year == pytest.approx(365.0)
    assert found.mean_s == pytest.approx(43_200.0, rel=0.01)


@pytest.mark.parametrize("per_year", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("years", [1, 3, 5])
def test_intervals_of_few_years_hold(years, per_year):
    cluster = Cluster(2, 1, 1, 1, 1, events=(outage(per_year, 1.0),))
    held = 0
    for seed in range(200):
        found = losses_of_years(cluster, draw_years(cluster, 0, years, seed), 0.9).incidents
        held += found.low <= per_year <= found.high
    assert held >= 170


def test_ten_years_of_nodes_that_age():
    """Nodes of one age fail in one year of ten: ten years lose more than ten independent ones would."""
    cluster = Cluster(
        6, 2, 2, 50, 10, node_loss=1.5, detection_delay=0.1, lifetime_shape=10.0, service_life=5.0, batches=1
    )
    found = losses_of_years(cluster, draw_years(cluster, 0, 2000, 1), 0.95)
    one, ten = found.p_any, found.p_any_in_ten_years
    assert (ten.low, ten.high) == (one.low, min(1.0, 10.0 * one.high))
    independent = losses_of_years(cluster._replace(lifetime_shape=1.0), draw_years(cluster, 0, 2000, 1), 0.95)
    assert independent.p_any_in_ten_years.high == pytest.approx(1.0 - (1.0 - one.high) ** 10)
    assert math.isclose(ten.value, independent.p_any_in_ten_years.value)
