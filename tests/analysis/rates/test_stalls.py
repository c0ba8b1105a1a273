"""Stops, rolls, stalls and isolations of nodes, as gauges of a cluster show them."""

import pytest

from quorisk.analysis.rates import metrics
from quorisk.kernels.protocols import evidence
from tests.analysis.rates.answers import START, STEP, answer, minutes


def up(name, down, last=30):
    """A broker that is up but for some samples."""
    return ("up", {"instance": name, "job": "kafka"}, [int(i not in down) for i in range(last)])


URP = "kafka_server_replicamanager_underreplicatedpartitions"
FENCED = "kafka_controller_kafkacontroller_fencedbrokercount"


def test_nodes_that_are_restarted_one_after_another_are_a_roll_and_stop_in_no_other_way(read):
    found, oddities = read(answer(up("a", {3, 4}), up("b", {7, 8}), up("c", {11, 20})))
    assert found == {
        evidence.NODE_STOPS: (1, (3 * 29 - 9) * STEP),
        evidence.NODE_RETURNS: (1, STEP),
        evidence.ROLLS: (1, 29 * STEP),
        evidence.ROLL_RESTARTS: (2, 4 * STEP),
        evidence.RESTART_ENDS: (3, 5 * STEP),
    }
    assert oddities == {}


@pytest.mark.parametrize(
    "nodes",
    [
        (up("a", {3, 4}), up("b", {4, 5}), up("c", {11})),  # two at a time
        (up("a", {3}), up("b", {7}), up("a", {11})[:2] + ([1] * 30,)),  # two nodes of one cluster
        (up("a", {3}), up("b", {7}), ("up", {"instance": "c", "job": "bookie"}, up("c", {11})[2])),
        (up("a", {3}), up("b", {7}), up("c", {90}, 100)),  # more than an hour later
    ],
)
def test_other_stops_are_no_roll(read, nodes):
    found, _ = read(answer(*nodes))
    assert found.get(evidence.ROLLS, (0, 0))[0] == 0
    assert found[evidence.NODE_STOPS][0] >= 2


@pytest.mark.parametrize(
    ("metric", "begin", "end"),
    [
        (URP, evidence.FOLLOWER_STALLS, evidence.STALL_ENDS),
        (FENCED, evidence.ISOLATIONS, evidence.ISOLATION_ENDS),
    ],
)
def test_spells_that_no_stop_explains_are_stalls_or_isolations(read, metric, begin, end):
    gauge = [0] * 30
    gauge[5:8] = [2, 9, 1]
    gauge[20:26] = [4] * 6
    brokers = (up("a", {18, 19}), up("b", {}))
    found, _ = read(answer((metric, {"instance": "a"}, gauge), (metric, {"instance": "b"}, [0] * 30), *brokers))
    assert found[end] == (1, 3 * STEP)
    assert found[begin] == (1, 2 * STEP * (5 + 7 + 3))  # until 15; and from 26 on
    only_stops = [0] * 30
    only_stops[20:26] = [4] * 6
    assert read(answer((metric, {}, only_stops), *brokers))[0][begin] == (0, 2 * STEP * (15 + 3))
    assert begin not in read(answer((metric, {}, gauge)))[0]


SPELL = [int(10 <= i < 16) for i in range(30)]
"""A gauge of under-replication, every minute."""


@pytest.mark.parametrize(
    ("missing", "counted"),
    [(range(10, 16), 7 + 11), (range(9, 13), 6 + 13), (range(14, 17), 9 + 10), (range(10, 11), 7 + 13)],
)
def test_a_node_that_has_no_samples_of_up_for_a_while_may_have_stopped_and_does_not_stall(read, missing, counted):
    pairs = [(START + STEP * i, 1) for i in range(30) if i not in missing]
    found, oddities = read(answer((URP, {}, SPELL), up("a", {}), ("up", {"instance": "b"}, pairs)))
    assert found[evidence.FOLLOWER_STALLS] == (0, 2 * STEP * counted)
    assert evidence.STALL_ENDS not in found
    assert oddities == {metrics.GAPS: 1}


@pytest.mark.parametrize("late_s", [7, 53, -7])
def test_stalls_are_found_also_if_up_was_sampled_a_while_earlier_or_later(read, late_s):
    brokers = [
        ("up", {"instance": name}, [(START + late_s + STEP * i, int(i not in down)) for i in range(30)])
        for name, down in (("a", (24, 25)), ("b", ()))
    ]
    gauge = [each or int(i in (25, 26)) for i, each in enumerate(SPELL)]
    found, oddities = read(answer((URP, {}, gauge), *brokers))
    assert found[evidence.FOLLOWER_STALLS][0] == 1
    assert found[evidence.STALL_ENDS] == (1, 6 * STEP)
    assert oddities == {metrics.NOT_KNOWN: 1}  # the first sample or the last


def test_samples_at_which_a_node_is_not_known_to_be_up_do_not_count_and_are_told(read):
    """`up` every five minutes: every fifth sample of the gauge and the one after it count."""
    found, oddities = read(answer((URP, {}, SPELL), minutes("up", [1] * 7, step=5), up("b", {})))
    assert oddities == {metrics.NOT_KNOWN: 18}
    assert found[evidence.FOLLOWER_STALLS] == (0, 2 * 4 * STEP)
    assert found[evidence.STALL_ENDS] == (1, 2 * STEP)


def test_up_of_another_time_tells_nothing_of_stalls_and_this_is_told(read):
    found, oddities = read(answer((URP, {}, SPELL), minutes("up", [1] * 30, since=1000)))
    assert oddities == {metrics.NOT_KNOWN: 30}
    assert found.keys().isdisjoint({evidence.FOLLOWER_STALLS, evidence.STALL_ENDS})


def test_a_stall_that_is_not_over_adds_its_time_alone(read):
    found, _ = read(answer((URP, {}, [0] * 20 + [1] * 10), up("a", {})))
    assert found[evidence.FOLLOWER_STALLS] == (1, 20 * STEP)
    assert found[evidence.STALL_ENDS] == (0, 9 * STEP)
