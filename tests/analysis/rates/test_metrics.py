"""Saved range queries: what metrics count, and what is oddities."""

import json
from pathlib import Path

import pytest

from quorisk.analysis.rates import metrics, prometheus
from quorisk.analysis.rates.oddities import Oddities
from quorisk.kernels.protocols import evidence, registry
from tests.analysis.rates.answers import START, STEP, answer, minutes

ROOT = Path(__file__).parents[3]
RESTARTS = "kube_pod_container_status_restarts_total"


def test_nodes_that_stop_and_return_are_counted_in_the_time_up_and_down(read):
    found, oddities = read(
        answer(("up", {"instance": "a"}, [1, 1, 0, 0, 1, 1, 0]), ("up", {"instance": "b"}, [1] * 11))
    )
    assert found == {evidence.NODE_STOPS: (2, 14 * STEP), evidence.NODE_RETURNS: (1, 2 * STEP)}
    assert oddities == {}


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
    found, oddities = read(answer(("kube_pod_container_status_restarts_total", {"pod": "a"}, [3, 3, 5, 0, 1, 1])))
    assert found == {evidence.PROCESS_RESTARTS: (3, 5 * STEP)}
    assert oddities == {metrics.RESETS: 1}


def test_isr_shrinks_are_counted_in_the_time_of_leaders(read):
    shrinks = ("kafka_server_ReplicaManager_IsrShrinks_total", {"instance": "a"}, [0, 2, 2])
    leaders = ("kafka_server_replicamanager_leadercount", {"instance": "a"}, [100, 50, 70])
    assert read(answer(shrinks, leaders)) == ({evidence.ISR_SHRINKS: (2, 150 * STEP)}, {})
    assert read(answer(shrinks)) == ({}, {metrics.NEEDS: 1})


def test_partitions_without_all_replicas_are_spells(read):
    found, _ = read(answer(("kafka_server_replicamanager_underreplicatedpartitions", {}, [0, 0, 7, 3, 0, 0])))
    assert found == {evidence.UNDER_REPLICATION: (1, 3 * STEP), evidence.FULL_REPLICATION: (1, 2 * STEP)}


def test_unclean_elections_of_all_controllers_are_counted_in_the_time_of_the_cluster(read):
    name = "kafka_controller_controllerstats_uncleanleaderelections_total"
    found, _ = read(
        answer((name, {"instance": "a"}, [0, 1, 1, 1]), (name, {"instance": "b"}, [(START + 60, 0), (START + 120, 2)]))
    )
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
    assert evidence.COPIED_LEDGERS not in registry.evidence("bookkeeper")


def test_queries_of_one_metric_follow_each_other_and_may_overlap(read):
    first = answer(("up", {"instance": "a"}, [(START + 60 * i, 1) for i in range(5)]))
    second = answer(("up", {"instance": "a"}, [(START + 60 * i, int(i != 6)) for i in range(4, 9)]))
    found, oddities = read(second, first)
    assert found == {evidence.NODE_STOPS: (1, 7 * STEP), evidence.NODE_RETURNS: (1, STEP)}
    assert oddities == {prometheus.REPEATED: 1}


def test_a_query_without_a_name_is_that_of_its_file(read):
    assert read(answer((None, {}, [1, 0])), name="up")[0][evidence.NODE_STOPS] == (1, STEP)


@pytest.mark.parametrize(
    ("pairs", "odd", "stops"),
    [
        ([(0, 1), (60, 1), (120, 1), (600, 1), (660, 1)], metrics.GAPS, (0, 3 * STEP)),
        ([(0, 1), (60, 1), (120, 1), (600, 0), (660, 0)], metrics.IN_GAP, (0, 2 * STEP)),
        ([(0, 1), (120, 1), (60, 1), (180, 0)], prometheus.JUMPS, (1, 3 * STEP)),
        ([(0, 1), (60, "NaN"), (60, 1), (120, 0)], prometheus.NOT_A_NUMBER, (1, 2 * STEP)),
    ],
)
def test_what_is_odd_in_a_series_is_told(read, pairs, odd, stops):
    found, oddities = read(answer(("up", {}, [(START + at, value) for at, value in pairs])))
    assert oddities[odd] == 1
    assert found[evidence.NODE_STOPS] == stops


def test_files_and_series_that_tell_nothing_are_told(read):
    vector = {"status": "success", "data": {"resultType": "vector", "result": []}}
    found, oddities = read(vector, "{", {"status": "error", "error": "x"}, answer(("go_goroutines", {}, [1, 2])))
    assert found == {}
    assert oddities == {prometheus.NOT_A_QUERY: 3, prometheus.OTHER: 1}


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        ([1] * 10, {evidence.NODE_STOPS: (0, 9 * STEP)}),
        ([0] * 10, {evidence.NODE_RETURNS: (0, 9 * STEP)}),
        ([1] * 9 + [0], {evidence.NODE_STOPS: (1, 9 * STEP)}),
        ([1, 1, "NaN", 1, 1], {evidence.NODE_STOPS: (0, 2 * STEP)}),
        (["0.5"] * 10, {}),
    ],
)
def test_a_cluster_in_which_nothing_happened_is_counted_in_its_time(read, values, counts):
    assert read(answer(("up", {}, values)))[0] == counts


def test_samples_of_a_switch_that_are_averages_are_told(read):
    found, oddities = read(answer(("up", {}, [1, 1, 0.5, 1, 1])))
    assert found == {evidence.NODE_STOPS: (0, 2 * STEP)}
    assert oddities == {metrics.NO_SWITCH: 1, metrics.GAPS: 1}


@pytest.mark.parametrize("value", ["1e308", "-1", "1e16", "Infinity", 10**400, "x", None, ["1"], {}])
def test_a_counter_s_sample_that_nobody_can_believe_is_left_out(written, value):
    pairs = [[START, "3"], [START + 60, value], [START + 120, "4"]]
    result = [{"metric": {"__name__": RESTARTS}, "values": pairs}]
    path = written("it.json", json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}))
    oddities: Oddities = {}
    [counted] = metrics.counts_of_queries([path], oddities)
    assert (counted.events, counted.exposure) == (1, 120)
    [(odd, seen)] = oddities.items()
    assert (odd, seen.times) == (prometheus.NOT_A_NUMBER, 1)
    assert seen.where.startswith(f"{path}: {RESTARTS}{{}}: [{START + 60}, ")


@pytest.mark.parametrize("at", [1000 * START, 0, -START, 1e308, 10**400, "x"])
def test_a_sample_of_another_age_is_left_out(read, at):
    found, oddities = read(answer(("up", {}, [(START, 1), (at, 0), (START + 60, 1)])))
    assert found == {evidence.NODE_STOPS: (0, 60)}
    assert sum(oddities.values()) == 1
    assert oddities.keys() <= {prometheus.WRONG_TIME, prometheus.NOT_A_NUMBER}


def test_counters_that_start_again_and_again_add_up_to_no_negative_number(read):
    found, _ = read(answer((RESTARTS, {}, [0, 10**15] * 20_000)))
    assert found[evidence.PROCESS_RESTARTS][0] == 20_000 * 10**15


@pytest.mark.parametrize(
    "result",
    [
        {"metric": {"__name__": "up", "instance": ["x"]}, "values": [[START, "1"], [START + 60, "1"]]},
        {"metric": {"__name__": ["up"]}, "values": []},
        {"metric": {"__name__": "up"}, "values": 5},
        {"metric": {"__name__": "up"}, "histograms": []},
        {"metric": "up", "values": []},
        {},
        "12",
        None,
    ],
)
def test_series_that_are_not_as_prometheus_writes_them_are_told(read, result):
    whole = {"status": "success", "data": {"resultType": "matrix", "result": [result]}}
    assert read(whole) == ({}, {prometheus.NOT_A_SERIES: 1})


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"data":' * 100_000, "1" * 10_000, "[]", "3", "null", '"x"', '{"data": []}', "\0", ""]
)
def test_files_that_are_no_answers_are_told(read, text):
    assert read(text) == ({}, {prometheus.NOT_A_QUERY: 1})


def test_an_answer_without_series_is_told(read):
    assert read(answer()) == ({}, {prometheus.NOT_A_QUERY: 1})


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("kafka_server_replicamanager_isrshrinks_total", {}),
        ("kafka_server_ReplicaManager_IsrShrinksPerSec", {}),
        ("kafka_server_replicamanager_isrshrinkspersec_count", {}),
        ("kafka_server_replicamanager_isrshrinkspersec_total", {}),
        ("kafka_server_ReplicaManager_Count", {"name": "IsrShrinksPerSec"}),
        ("kafka_server_replicamanager_count_total", {"name": "IsrShrinksPerSec"}),
    ],
)
def test_a_metric_is_one_whichever_exporter_named_it(name, labels):
    assert prometheus.one_name(name, labels) == "kafka_server_replicamanager_isrshrinks"


def test_pods_that_are_evicted_are_counted_in_the_time_of_pods(read):
    name = "kube_pod_status_reason"
    found, _ = read(
        answer((name, {"reason": "Evicted", "pod": "a"}, [0, 0, 1, 1]), (name, {"reason": "NodeLost"}, [0, 1, 0, 1]))
    )
    assert found == {evidence.EVICTIONS: (1, 2 * STEP)}


@pytest.mark.parametrize("prefix", ["", "bookkeeper_client_", "pulsar_managedLedger_client_bookkeeper_client_"])
def test_adds_that_time_out_are_messages_that_are_lost(read, prefix):
    name = f"{prefix}per_channel_bookie_client"
    late = (f"{name}_TIMEOUT_ADD_ENTRY_count", {"success": "true"}, [0, 1, 3])
    adds = [
        (f"{name}_ADD_ENTRY_count", {"success": "true"}, [0, 500, 900]),
        (f"{name}_ADD_ENTRY_count", {"success": "false"}, [0, 1, 100]),
    ]
    assert read(answer(late, *adds))[0] == {evidence.LOST_MESSAGES: (3, 2000)}
    assert read(answer(late, (*adds[0][:2], [0, 1, 1]))) == ({}, {metrics.TOO_MANY: 1})


LATE, ADDS = "per_channel_bookie_client_timeout_add_entry_count", "per_channel_bookie_client_add_entry_count"


@pytest.mark.parametrize(
    ("late", "adds", "counts", "left"),
    [
        (range(31), range(0, 31_000, 1000), (30, 60_000), 0),
        (range(2), range(0, 31_000, 1000), (1, 2000), 29),
        (range(31), range(0, 2000, 1000), (1, 2000), 29),
        (range(0, 31, 10), range(0, 16_000, 1000), (15, 30_000), 2),  # half of a step of 10 min, and one
    ],
)
def test_a_counter_and_what_it_is_counted_in_count_in_the_time_that_both_cover(read, late, adds, counts, left):
    found, oddities = read(answer(minutes(LATE, late, step=late.step), minutes(ADDS, adds)))
    assert found == {evidence.LOST_MESSAGES: counts}
    assert oddities == ({metrics.NOT_BOTH: left} if left else {})


def test_series_that_take_turns_cover_a_time_together_and_one_between_them_not(read):
    shrinks = [
        minutes("kafka_server_replicamanager_isrshrinks", range(11), {"pod": "a"}),
        minutes("kafka_server_replicamanager_isrshrinks", range(11), {"pod": "b"}, since=20),
    ]
    leaders = minutes("kafka_server_replicamanager_leadercount", [5] * 41, {"pod": "a"}, since=-5)
    found, oddities = read(answer(*shrinks, leaders))
    assert found == {evidence.ISR_SHRINKS: (20, 20 * 5 * STEP)}
    assert oddities == {metrics.NOT_BOTH: 5 + 10 + 5}


def test_metrics_that_share_no_time_tell_nothing_and_this_is_told(read):
    copied = "replication_worker_rereplicate"
    series = [
        minutes(f"{copied}_count", range(5), {"success": "true"}),
        minutes(f"{copied}_sum", range(0, 500, 100), {"success": "true"}, since=5),
    ]
    assert read(answer(*series)) == ({}, {metrics.NOT_BOTH: 8})
    series[1] = (series[1][0], {"success": "false"}, series[1][2])
    assert read(answer(*series)) == ({}, {metrics.NOT_BOTH: 4})


def test_ledgers_are_repaired_in_half_the_time_until_all_are_whole(read):
    name = "replication_auditor_NUM_LEDGERS_HAVING_LESS_THAN_WQ_REPLICAS_OF_AN_ENTRY"
    found, _ = read(answer((name, {}, [0, 5, 3, 0, 0, 1, 1])))
    assert found == {evidence.REPAIRS: (1, (2 + 1) * STEP / 2)}


KAFKA = ROOT / "tests" / "data" / "metrics" / "kafka.json"
"""Recorded of three brokers of Kafka 3.9.1 that were restarted one after another, and of which the second was killed
and started again later; by the JMX exporter 1.0.1, with rules as its examples and Strimzi have them (broker 1), as
Confluent has them (2), and with none (3). A script took the place of Prometheus, and the machine was so busy that many
samples are late.
"""


def test_three_spellings_of_a_real_exporter_are_one():
    oddities: Oddities = {}
    known = {name for each in metrics.METRICS for name in (each.name, each.beside)}
    kafka = {
        name: found
        for name, found in prometheus.read_series([KAFKA], known.__contains__, oddities).items()
        if name != "up"
    }
    assert kafka.keys() == {
        "kafka_server_replicamanager_isrshrinks",
        "kafka_server_replicamanager_leadercount",
        "kafka_server_replicamanager_underreplicatedpartitions",
        "kafka_controller_kafkacontroller_fencedbrokercount",
        "kafka_controller_controllerstats_uncleanleaderelections",
    }
    for found in kafka.values():
        assert sorted(each.labels["instance"][:8] for each in found) == ["broker-1", "broker-2", "broker-3"]
    assert oddities == {}
    assert all(each.values[0] == 4 for each in kafka["kafka_server_replicamanager_leadercount"])  # of 12 partitions


def test_what_was_done_to_real_brokers_is_found():
    """A roll, a broker that was killed, and no stall and no isolation: whatever was fenced or lacked replicas did so
    because of these."""
    found = {each.kind: each for each in metrics.counts_of_queries([KAFKA], {})}
    counts = {kind: each.events for kind, each in found.items()}
    assert counts[evidence.ROLLS] == counts[evidence.NODE_STOPS] == counts[evidence.NODE_RETURNS] == 1
    assert (counts[evidence.ROLL_RESTARTS], counts[evidence.RESTART_ENDS]) == (2, 3)
    assert counts[evidence.FOLLOWER_STALLS] == counts[evidence.ISOLATIONS] == counts[evidence.UNCLEAN_ELECTIONS] == 0
    assert counts[evidence.UNDER_REPLICATION] >= 3
    took_s = [found[evidence.NODE_RETURNS].exposure, found[evidence.RESTART_ENDS].exposure / 3]
    assert took_s == pytest.approx([25, 25], abs=9)


OF_BOOKIES = {
    evidence.NODE_STOPS: (2, 3 * 86_400 - 6 * 900),
    evidence.NODE_RETURNS: (2, 6 * 900),
    evidence.ROLLS: (0, 86_400),
    evidence.LOST_MESSAGES: (14, 2 * (3 * 96 * 270_000 + 16)),
    evidence.REPAIRS: (1, 3600),
    evidence.COPIED_LEDGERS: (41, 123),
}
OF_KUBERNETES = {
    evidence.NODE_STOPS: (1, 3 * 86_400 - 3 * 900),
    evidence.NODE_RETURNS: (1, 3 * 900),
    evidence.ROLLS: (0, 86_400),
    evidence.PROCESS_RESTARTS: (1, 3 * 86_400),
    evidence.EVICTIONS: (1, 3 * 86_400 - 2 * 900),
}


@pytest.mark.parametrize(
    ("product", "counts"), [("bookkeeper", OF_BOOKIES), ("pulsar", OF_BOOKIES), ("kubernetes", OF_KUBERNETES)]
)
def test_what_metrics_of_a_product_tell(product, counts):
    """Made by hand, under the names that exporters give: a day of three bookies, of which one is restarted and one is
    down for an hour, while adds to both time out; and a container that restarts, with a node that is not ready for
    three samples, whose pod is evicted."""
    oddities: Oddities = {}
    found = metrics.counts_of_queries([ROOT / "tests" / "data" / "metrics" / f"{product}.json"], oddities)
    assert {each.kind: (each.events, each.exposure) for each in found} == counts
    assert oddities == {}
