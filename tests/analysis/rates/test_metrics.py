"""Saved range queries: what metrics count, and what is told."""

import json

import pytest

from quorisk.analysis.rates import metrics
from quorisk.analysis.rates.told import Told
from quorisk.kernels.protocols import evidence
from quorisk.kernels.protocols.bookkeeper.evidence import EVIDENCE

STEP = 60


def answer(*series):
    """What Prometheus answers: series of name, labels and values, every minute, or pairs of time and value."""
    result = []
    for name, labels, values in series:
        pairs = [each if isinstance(each, tuple) else (STEP * i, each) for i, each in enumerate(values)]
        named = {"__name__": name} if name else {}
        result.append({"metric": {**named, **labels}, "values": [[time, str(value)] for time, value in pairs]})
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


@pytest.fixture
def read(tmp_path):
    def read(*answers, name="metrics"):
        paths = []
        for number, each in enumerate(answers):
            paths.append(tmp_path / (f"{name}.{number}.json" if isinstance(each, dict) else f"{number}.json"))
            paths[-1].write_text(each if isinstance(each, str) else json.dumps(each))
        told: Told = {}
        found = metrics.read(paths, told)
        counts = {each.kind: (each.events, each.exposure) for each in found}
        return counts, {odd: seen.times for odd, seen in told.items()}

    return read


def test_nodes_that_stop_and_return_are_counted_in_the_time_up_and_down(read):
    found, told = read(answer(("up", {"instance": "a"}, [1, 1, 0, 0, 1, 1, 0]), ("up", {"instance": "b"}, [1] * 11)))
    assert found == {evidence.NODE_STOPS: (2, 14 * STEP), evidence.NODE_RETURNS: (1, 2 * STEP)}
    assert told == {}


def test_nodes_that_kubernetes_finds_ready_count_likewise(read):
    ready = {"condition": "Ready", "status": "true"}
    found, _ = read(
        answer(
            ("kube_node_status_condition", ready, [1, 0, 1]),
            ("kube_node_status_condition", {**ready, "status": "false"}, [0, 1, 0]),
            ("kube_node_status_condition", {"condition": "DiskPressure", "status": "true"}, [1, 0, 0]),
        )
    )
    assert found == {evidence.NODE_STOPS: (1, STEP), evidence.NODE_RETURNS: (1, STEP)}


def test_counters_are_counted_across_resets(read):
    found, told = read(answer(("kube_pod_container_status_restarts_total", {"pod": "a"}, [3, 3, 5, 0, 1, 1])))
    assert found == {evidence.PROCESS_RESTARTS: (3, 5 * STEP)}
    assert told == {metrics.RESETS: 1}


def test_isr_shrinks_are_counted_in_the_time_of_leaders(read):
    shrinks = ("kafka_server_ReplicaManager_IsrShrinks_total", {"instance": "a"}, [0, 2, 2])
    leaders = ("kafka_server_replicamanager_leadercount", {"instance": "a"}, [100, 50, 70])
    assert read(answer(shrinks, leaders)) == ({evidence.ISR_SHRINKS: (2, 150 * STEP)}, {})
    assert read(answer(shrinks)) == ({}, {metrics.ALONE: 1})


def test_partitions_without_all_replicas_are_spells(read):
    found, _ = read(answer(("kafka_server_replicamanager_underreplicatedpartitions", {}, [0, 0, 7, 3, 0, 0])))
    assert found == {evidence.UNDER_REPLICATION: (1, 3 * STEP), evidence.FULL_REPLICATION: (1, 2 * STEP)}


def test_unclean_elections_of_all_controllers_are_counted_in_the_time_of_the_cluster(read):
    name = "kafka_controller_controllerstats_uncleanleaderelections_total"
    found, _ = read(answer((name, {"instance": "a"}, [0, 1, 1, 1]), (name, {"instance": "b"}, [(60, 0), (120, 2)])))
    assert found == {evidence.UNCLEAN_ELECTIONS: (3, 3 * STEP)}


@pytest.mark.parametrize("prefix", ["", "replication_"])
def test_copied_ledgers_are_no_repairs_which_take_a_thousand_times_as_long(read, prefix):
    name = f"{prefix}replication_worker_rereplicate"
    found, _ = read(
        answer(
            (f"{name}_count", {"success": "true"}, [10, 13, 13]),
            (f"{name}_sum", {"success": "true"}, [1000, 61_000, 61_000]),
            (f"{name}_count", {"success": "false"}, [0, 5, 9]),
            (f"{name}_sum", {"success": "false"}, [0, 5000, 9000]),
        )
    )
    assert found == {evidence.COPIED_LEDGERS: (3, 60)}
    assert evidence.COPIED_LEDGERS not in EVIDENCE


def test_queries_of_one_metric_follow_each_other_and_may_overlap(read):
    first = answer(("up", {"instance": "a"}, [(60 * i, 1) for i in range(5)]))
    second = answer(("up", {"instance": "a"}, [(60 * i, int(i != 6)) for i in range(4, 9)]))
    found, told = read(second, first)
    assert found == {evidence.NODE_STOPS: (1, 7 * STEP), evidence.NODE_RETURNS: (1, STEP)}
    assert told == {metrics.REPEATED: 1}


def test_a_query_without_a_name_is_that_of_its_file(read):
    assert read(answer((None, {}, [1, 0])), name="up")[0][evidence.NODE_STOPS] == (1, STEP)


@pytest.mark.parametrize(
    ("pairs", "odd", "stops"),
    [
        ([(0, 1), (60, 1), (120, 1), (600, 1), (660, 1)], metrics.GAPS, (0, 3 * STEP)),
        ([(0, 1), (60, 1), (120, 1), (600, 0), (660, 0)], metrics.IN_GAP, (1, 2 * STEP)),
        ([(0, 1), (120, 1), (60, 1), (180, 0)], metrics.JUMPS, (1, 3 * STEP)),
        ([(0, 1), (60, "NaN"), (60, 1), (120, 0)], metrics.NOT_A_NUMBER, (1, 2 * STEP)),
    ],
)
def test_what_is_odd_in_a_series_is_told(read, pairs, odd, stops):
    found, told = read(answer(("up", {}, pairs)))
    assert told[odd] == 1
    assert found[evidence.NODE_STOPS] == stops


def test_files_and_series_that_tell_nothing_are_told(read):
    vector = {"status": "success", "data": {"resultType": "vector", "result": []}}
    found, told = read(vector, "{", {"status": "error", "error": "x"}, answer(("go_goroutines", {}, [1, 2])))
    assert found == {}
    assert told == {metrics.NOT_A_QUERY: 3, metrics.OTHER: 1}
