"""Nodes that are not alike: each has a rate of its own, and all sets of nodes that are down are enumerated."""

from itertools import combinations
from math import sqrt

import pytest

from quorisk.analysis.cluster.certified import DrawPlan, certified
from quorisk.kernels.cluster.setting import Cluster, Event
from quorisk.kernels.cluster.years import INCIDENTS, draw_years
from tests.external.incidents import EVERY_SET
from tests.references.cluster import enumerated

DAY, YEARS = 24.0 / 8766.0, 40_000
OLD, OLDER = Event("old", "node", 3.0, 1.0, 2, first=1), Event("older", "node", 10.0, 0.5, 1, first=2)
ALL = Event("all", "node", 0.4, 0.5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("nodes", "copies", "known"), [(3, 2, False), (4, 2, True), (5, 3, False)], ids=("2 of 3", "known sets", "3 of 5")
)
def test_incidents_are_those_of_an_enumeration(nodes, copies, known):
    sets = tuple(combinations(range(nodes), copies)) if known else ()
    events = (OLD, OLDER, ALL)
    cluster = Cluster(nodes, copies, copies, EVERY_SET, 1, sets=sets, node_loss=0.2, detection_delay=DAY, events=events)
    expected = enumerated.incidents(cluster)
    found = certified(cluster, 0.99999, DrawPlan(1, 1, None, 1e-2)).incidents
    assert found.low < expected < found.high
    assert found.value == pytest.approx(expected, rel=2e-2)
    tally = draw_years(cluster, 0, YEARS, 3)
    off = sqrt((tally.mean(INCIDENTS + 1) - tally.mean(INCIDENTS) ** 2) / YEARS)
    assert abs(tally.mean(INCIDENTS) - expected) < 4.5 * off
    alike = cluster._replace(node_loss=cluster.hits, events=())
    assert abs(enumerated.incidents(alike) / expected - 1.0) > 0.1  # what the average node would have told


def test_an_event_of_all_nodes_is_one_of_the_first_to_the_last():
    first = Cluster(5, 2, 2, 60, 10, detection_delay=DAY, events=(Event("a", "node", 2.0, 1.0),))
    every = first._replace(events=(first.events[0]._replace(nodes=5),))
    ours, theirs = (certified(each, 0.95, DrawPlan(1, 1, None, 1e-2)).incidents for each in (every, first))
    assert ours.low < theirs.value < ours.high


def test_the_node_that_is_taken_most_often_has_all_events_that_may_happen_to_it():
    cluster = Cluster(5, 2, 2, 60, 10, node_loss=0.5, events=(OLD, OLDER, ALL, Event("c", "cluster", 1.0, 0.1)))
    assert cluster.most_hits == pytest.approx(0.5 + 3.0 + 5.0 + 0.2 + 0.1)
    assert cluster.hits == pytest.approx(0.5 + 3.0 * 2 / 5 + 5.0 / 5 + 0.2 + 0.1)
    assert cluster.lost_alone == pytest.approx(cluster.hits - 0.1)
