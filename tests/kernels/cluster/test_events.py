"""Common causes: batches of nodes against an enumeration, and shares of node losses that strike together."""

from itertools import combinations
from math import comb, exp, hypot, sqrt

import pytest

from quorisk.analysis.cluster.certified import DrawPlan, certified
from quorisk.kernels.cluster.setting import Cluster, Event, Thin
from quorisk.kernels.cluster.years import ANY, BY_CAUSE, INCIDENTS, draw_years

DRAWS, YEARS = DrawPlan(1, 1), 40_000
HOUR = 1.0 / 8766.0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("p_lost", [0.4, 1.0])
@pytest.mark.parametrize("ledgers", [20.0, 20_000.0])
def test_batches_of_5_of_100_nodes_lose_what_an_enumeration_says(p_lost, ledgers):
    """Write sets within the nodes that one batch loses, set by set; nodes are back before the next batch."""
    cluster = Cluster(100, 3, 3, ledgers, 1000, events=(Event("firmware", "batch", 2.0, p_lost, 5),))
    batch, write_sets = set(range(5)), list(combinations(range(100), 3))
    hit, p_any = 0.0, 0.0
    for lost in (set(some) for number in range(6) for some in combinations(batch, number)):
        chance = p_lost ** len(lost) * (1.0 - p_lost) ** (5 - len(lost))
        part = sum(lost.issuperset(each) for each in write_sets) / len(write_sets)
        hit, p_any = hit + chance * part, p_any + chance * (1.0 - (1.0 - part) ** ledgers)
    found = certified(cluster, 0.95, DRAWS)
    assert found.incidents.value == pytest.approx(2.0 * p_any, rel=1e-9)
    assert found.p_any.value == pytest.approx(1.0 - exp(-2.0 * p_any), rel=1e-9)
    assert found.entries.value == pytest.approx(2.0 * hit * cluster.entries, rel=1e-9)
    assert found.by_cause["firmware"].share == pytest.approx(1.0)
    tally = draw_years(cluster, 0, YEARS, 3)
    off = sqrt((tally.mean(ANY + 1) - tally.mean(ANY) ** 2) / YEARS)
    assert abs(tally.mean(ANY) - found.p_any.value) < 4.5 * off
    assert tally.mean(BY_CAUSE + 2) == tally.mean(INCIDENTS) > 0.0


@pytest.mark.parametrize("beta", [0.0, 0.1, 1.0])
def test_a_share_of_node_losses_that_strike_both_copies_is_the_beta_factor_model(beta):
    """Of two channels, one of which is enough, dangerous failures come at beta x rate + 2 ((1 - beta) x rate)^2 x time
    to repair (IEC 61508-6, B.3.3.2.1), but for a part of rate x time."""
    rate, repair = 0.02, 12 * HOUR
    both = Event("common cause", "batch", beta * rate, 1.0, 2)
    cluster = Cluster(2, 2, 2, 1, 10, node_loss=(1 - beta) * rate, detection_delay=repair, events=(both,))
    found = certified(cluster, 0.95, DRAWS)
    expected = beta * rate + 2.0 * ((1.0 - beta) * rate) ** 2 * repair
    assert found.incidents.value == pytest.approx(expected, rel=10 * rate * repair)
    assert found.by_cause["common cause"].share == pytest.approx(beta * rate / expected, abs=1e-3)


@pytest.mark.parametrize("beta", [0.0, 0.1, 1.0])
def test_batches_take_the_place_of_single_losses_at_the_same_rate_of_each_node(beta):
    """Batches of ten of 100 nodes: what any number of them strikes is the sum of what they and single losses do."""
    rate = 0.05
    batch = Event("batch", "batch", beta * rate * 100 / 10, 1.0, 10)
    cluster = Cluster(100, 3, 3, 1e5, 100, node_loss=(1 - beta) * rate, detection_delay=6 * HOUR, events=(batch,))
    assert cluster.hits == pytest.approx(rate)
    found = certified(cluster, 0.95, DRAWS)
    in_batch = 1.0 - (1.0 - comb(10, 3) / comb(100, 3)) ** 1e5
    assert found.by_cause["batch"].incidents.value == pytest.approx(beta * rate * 10 * in_batch, rel=2e-2)
    assert beta == 0.0 or found.by_cause["batch"].share > 0.98
    tally = draw_years(cluster, 0, YEARS, 5)
    off = sqrt(max(0.0, tally.mean(INCIDENTS + 1) - tally.mean(INCIDENTS) ** 2) / YEARS)
    width = (found.incidents.high - found.incidents.low) / 3.9
    assert abs(tally.mean(INCIDENTS) - found.incidents.value) < 4.5 * hypot(off, width)


def test_an_event_of_single_nodes_is_a_loss_of_one():
    """Half of those that come twice as often."""
    alone = Cluster(9, 2, 2, 60, 10, node_loss=1.0, detection_delay=24 * HOUR)
    event = alone._replace(node_loss=0.0, events=(Event("wiped", "node", 2.0, 0.5),))
    ours, theirs = (certified(each, 0.95, DRAWS) for each in (event, alone))
    assert ours.incidents.value == pytest.approx(theirs.incidents.value, rel=1e-9)
    assert ours.by_cause["wiped"].incidents.value == pytest.approx(theirs.by_cause["single_losses"].incidents.value)


@pytest.mark.parametrize("repair_time", [0.0, 6 * HOUR])
def test_a_node_lost_alone_after_an_event_is_told_apart(repair_time):
    """Two nodes hold both copies of a ledger. The other one went alone, or in an outage that took just one of the two,
    less than a day before, or less than a random share of a repair more."""
    rate, outages, p = 0.05, 0.3, 0.2
    cluster = Cluster(2, 2, 2, 1, 10, node_loss=rate, detection_delay=24 * HOUR, repair_time=repair_time)
    one = outages * p * (1.0 - p)
    alone, after = (2.0 * rate * before * (24 * HOUR + repair_time / 2) for before in (rate, one))
    event = Event("outages", "cluster", outages, p)
    found = certified(cluster._replace(events=(event,)), 0.95, DRAWS).by_cause
    off = 4 * (rate + outages) * (24 * HOUR + repair_time)
    assert found["single_losses"].incidents.value == pytest.approx(alone, rel=off)
    assert found["single_losses_after_event"].incidents.value == pytest.approx(after, rel=off)
    of_single_nodes = certified(cluster._replace(events=(event._replace(scope="node"),)), 0.95, DRAWS).by_cause
    assert of_single_nodes["single_losses_after_event"].incidents.high == 0.0


@pytest.mark.parametrize("takes_unflushed", [False, True])
def test_entries_in_flight_go_with_events_that_take_what_is_in_memory(takes_unflushed):
    """Two entries have one copy each, on one of nine nodes of which each is lost with 0.3; writers keep others."""
    event = Event("bug", "cluster", 1.0, 0.3, takes_unflushed=takes_unflushed)
    cluster = Cluster(9, 3, 3, 1, 1, thin=(Thin(1, 2.0, True),), events=(event,))
    found = certified(cluster, 0.95, DRAWS)
    both = found.by_cause["thin_entries"].incidents.value + found.by_cause["bug"].incidents.value
    lost = [comb(9, b) * 0.3**b * 0.7 ** (9 - b) for b in range(10)]
    ledgers = [1.0 - comb(b, 3) / comb(9, 3) for b in range(10)]
    entries = [(1.0 - b / 9) ** (2 * takes_unflushed) for b in range(10)]
    expected = 1.0 - sum(p * a * b for p, a, b in zip(lost, ledgers, entries, strict=True))
    assert both == pytest.approx(found.incidents.value) == pytest.approx(expected, rel=1e-9)
    assert (found.by_cause["thin_entries"].incidents.value > 0.0) == takes_unflushed
