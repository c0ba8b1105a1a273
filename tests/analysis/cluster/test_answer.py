"""What is said of a cluster: by which method, when it is available, and as JSON."""

import json
import math
from itertools import combinations, permutations
from typing import Any

import pytest

from quorisk.analysis.cluster import answer as module
from quorisk.analysis.cluster.answer import Effort, answer, as_json
from quorisk.analysis.cluster.availability import Restarts, Writers, availability
from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.placed import Placed
from quorisk.kernels.cluster.setting import DISTINCT_RACKS, RANDOM, TWO_RACKS, Cluster, Thin
from quorisk.say.numbers import plain
from quorisk.say.quantities import YEAR_S
from tests.analysis.cluster.clusters import cluster_of, outage, rack_outage
from tests.support import ROOT

EFFORT = Effort(years=20_000, seed=1)
RARE = cluster_of("g9 random 3 of 20")


def placed(cluster: Cluster, ack_quorum: int | None = None) -> Placed:
    return Placed({}, cluster, ack_quorum, 1024.0, 26.0, 120.0, 1800.0)


def test_rare_losses_are_left_to_strata():
    found = answer(placed(RARE), EFFORT)
    assert found.years == 0
    assert found.losses.p_any.method == "strata"


def test_years_are_drawn_where_strata_leave_much_open():
    cluster = cluster_of("g8 random 3, thin entries")._replace(nodes=6, ledgers=20)
    found = answer(placed(cluster)._replace(thin=(Thin(1, 2, False),)), EFFORT)
    assert found.years == EFFORT.years
    assert found.losses.p_any.method == "sampled years"
    assert found.losses.incidents.method == "strata"
    assert found.losses.p_any.low < found.losses.p_any.value < found.losses.p_any.high
    certain = answer(placed(RARE), EFFORT._replace(method="count"))
    assert certain.losses.p_any.method == certain.losses.entries.method == "sampled years"


BUSY = Cluster(7, 3, 3, 20, 1000, node_loss=1.0, detection_delay=5e-5, repair_time=6 / 365, repair_queue=True)
"""Repairs wait for each other so often that strata leave everything open."""


def test_causes_and_sizes_come_from_where_the_rate_of_incidents_does():
    losses = answer(placed(BUSY), EFFORT).losses
    assert losses.incidents.method == losses.by_cause["single_losses"].incidents.method == "sampled years"
    assert losses.by_cause["single_losses"].incidents == losses.incidents
    assert losses.at_least[1.0].value == losses.incidents.value
    assert losses.at_least[1.0].high < 1.1 * losses.incidents.high


@pytest.mark.exhaustive
def test_what_strata_leave_open_may_be_any_cause_s_that_there_is():
    losses = answer(placed(BUSY._replace(events=(outage(1e-3, 0.01),))), EFFORT._replace(method="head")).losses
    single, power = (losses.by_cause[name].incidents for name in ("single_losses", "outages"))
    assert single.low == losses.incidents.low == 0.0
    assert 2 * losses.incidents.value < single.high == pytest.approx(losses.incidents.high, rel=1e-4)
    assert power.value < 1e-3 * losses.incidents.value < losses.incidents.value < power.high < single.high
    for method in ("head", "count"):
        idle = BUSY._replace(events=(outage(1e-3, 0.0), rack_outage(0.0, 0.5)))
        others = answer(placed(idle), EFFORT._replace(method=method)).losses.by_cause
        for name in ("outages", "rack_outages", "thin_entries"):
            assert others[name].incidents[:3] == (0.0, 0.0, 0.0)


def test_nodes_that_age_are_left_to_years():
    found = answer(placed(RARE._replace(lifetime_shape=2.0)), EFFORT)
    assert found.losses.incidents.method == "sampled years"
    assert not any("whatever their age" in line for line in found.assumptions)


def test_nothing_seen_is_an_upper_bound():
    found = answer(placed(cluster_of("g11 random 5 of 20, no outages")), EFFORT._replace(method="count"))
    for figure in (found.losses.p_any, found.losses.incidents, found.losses.entries):
        assert figure.value == 0.0 < figure.high
    assert not found.losses.in_entries


def test_an_ack_quorum_that_leaves_copies_behind_is_told():
    assert not any("ack quorum" in line for line in answer(placed(RARE, 3), EFFORT).assumptions)
    thin = answer(placed(RARE, 2)._replace(thin=(Thin(2, 1.5, True), Thin(2, 7.0, False))), EFFORT)
    assert any(line.startswith("At any time 1.5 acknowledged entries") for line in thin.assumptions)
    assert any(line.startswith("7 stored entries have fewer copies for good") for line in thin.assumptions)
    healing = answer(placed(RARE, 2)._replace(thin=(Thin(2, 1.5, True),)), EFFORT)
    assert not any("for good" in line for line in healing.assumptions)


@pytest.mark.parametrize("method", ["auto", "count"])
@pytest.mark.parametrize("number", [0.06, 1.5])
def test_of_a_fraction_of_a_thin_entry_no_more_is_lost_than_there_is(number, method):
    """An outage takes each of two nodes with the same chance: the only copy of an entry is gone as often."""
    cluster = Cluster(2, 2, 2, 1, 10, events=(outage(0.01, 0.25),), repair_time=1e-9)
    found = answer(placed(cluster)._replace(thin=(Thin(1, number, True),)), EFFORT._replace(method=method)).losses
    thin = found.by_cause["thin_entries"].incidents
    p_any_of_them = number / 2 if number < 1 else 1 - 0.5 * 0.75
    assert thin.low <= 0.01 * 2 * 0.25 * 0.75 * p_any_of_them <= thin.high
    assert thin.value == pytest.approx(0.01 * 2 * 0.25 * 0.75 * p_any_of_them, rel=0.05 if method == "auto" else 0.2)


def test_a_thin_entry_is_one_of_a_ledger():
    """Ledgers have copies on all nodes, which are never lost together; an entry alone is lost with any of them."""
    cluster = Cluster(3, 3, 3, 5, 10, node_loss=0.01, repair_time=1e-9)
    found = answer(placed(cluster)._replace(thin=(Thin(1, 6.0, False),)), EFFORT).losses
    assert found.in_ledgers["p50"].value == found.in_entries["p50"].value == 2
    assert found.in_ledgers["p99"].value <= 5


def test_json():
    found = answer(placed(RARE, 2)._replace(varied={"cluster.nodes": 20}), EFFORT)
    told = json.loads(json.dumps(as_json([found]), allow_nan=False))
    for key, name in (
        ("p_any_loss_per_year", "p"),
        ("incidents_per_year", "value"),
        ("expected_entries_per_year", "value"),
    ):
        assert set(told[key]) == {name, "low", "high", "method"}
    assert set(told["incident_entries"]) == {"p50", "p90", "p99", "intervals"}
    assert told["incident_bytes"]["p50"] == 1024 * told["incident_entries"]["p50"]
    causes = {"single_losses", "single_losses_after_event", "outages", "rack_outages", "thin_entries"}
    assert set(told["causes"]) == causes
    assert set(told["availability"]["reading"]) == {"part", "ledgers", "per_year", "mean_s"}
    assert told["design"] == {"cluster.nodes": 20}
    at_least = [each["incidents_per_year"] for each in told["at_least"]]
    assert at_least == sorted(at_least, reverse=True)
    assert at_least[0] == pytest.approx(told["incidents_per_year"]["value"])
    assert all(each["low"] <= each["incidents_per_year"] <= each["high"] for each in told["at_least"])
    every, known = told["at_least"][0], told["incidents_per_year"]
    assert every["high"] == pytest.approx(known["high"]) != pytest.approx(known["value"])
    assert every["low"] <= known["low"]
    assert [each["design"] for each in as_json([found, found])["designs"]] == [{"cluster.nodes": 20}] * 2
    lost = told["expected_entries_per_year"]["value"] / RARE.entries
    assert told["expected_bytes_per_petabyte_year"]["value"] == pytest.approx(lost * 1e15)


@pytest.mark.parametrize(("ensemble", "write_quorum", "pairs"), [(6, 3, 12), (5, 2, 5), (4, 2, 4)])
def test_pairs_of_bookies_that_keep_a_ledger_open(ensemble, write_quorum, pairs):
    """With an ack quorum of 2: of all pairs that do not answer, those that are in one write set."""
    seldom = 1e-9
    cluster = Cluster(9, write_quorum, ensemble, 1, 1)
    closing = availability(cluster, Restarts(1.0, seldom), 2).closing
    assert closing is not None
    assert closing.part / seldom**2 == pytest.approx(pairs, rel=1e-6)
    # it begins when the second of a pair goes, either of them, and ends when one is back
    assert closing.per_year == pytest.approx(2 * pairs * seldom, rel=1e-6)
    assert closing.mean_s == pytest.approx(seldom / 2 * YEAR_S, rel=1e-6)


@pytest.mark.parametrize("ensemble", [5, 6])
def test_bookies_without_which_an_entry_cannot_be_read(ensemble):
    cluster, seldom = Cluster(9, 3, ensemble, 1, 1), 1e-6
    sets = [{(first + i) % ensemble for i in range(3)} for first in range(ensemble)]
    fatal = sum(set(some) in sets for some in combinations(range(ensemble), 3))
    assert fatal == {5: 5, 6: 6}[ensemble]
    reading = availability(cluster, Restarts(1.0, seldom), None).reading
    assert reading.part / seldom**3 == pytest.approx(fatal, rel=1e-4)


def test_copies_that_are_being_made_anew_cannot_be_read():
    events = (outage(2.0, 0.0),)
    cluster = Cluster(9, 2, 2, 1, 1, node_loss=1.0, detection_delay=0.001, repair_time=0.002, events=events)
    found = availability(cluster, Restarts(outage_time=0.01), None)
    assert found.reading.part == pytest.approx((0.002 / 1.002) ** 2)
    assert found.outage_s_per_year == pytest.approx(0.02 * YEAR_S)
    assert found.closing is None


def test_several_designs_tell_how_far_they_are():
    told: list[int] = []
    both = [placed(RARE), placed(RARE._replace(lifetime_shape=2.0))]
    module.answers(both, EFFORT, told.append)
    assert sum(told) == 2 * EFFORT.years


@pytest.mark.parametrize(
    ("placement", "racks", "ack_quorum", "said"),
    [
        (DISTINCT_RACKS, 3, 2, (0.0, 0.0, 1.0, False)),
        (DISTINCT_RACKS, 4, 3, (0.0, 0.0, 0.75, True)),
        (TWO_RACKS, 2, 2, (0.0, 0.5, 1.0, False)),
        (TWO_RACKS, 2, 3, (0.0, 0.0, 1.0, False)),
        (RANDOM, 2, 3, (1 / 11, 1 / 11, 10 / 11, True)),
    ],
)
def test_a_rack_that_is_down(placement, racks, ack_quorum, said):
    """Of 12 bookies with three copies. By hand: of sets in two of two racks, half have two in the one that is down. A
    ledger is closed where no bookie may take the place of one that is down."""
    cluster = Cluster(12, 3, 3, 1, 1, racks=racks, placement=placement)
    writers = Writers(ack_quorum, 30.0)
    found = availability(cluster, Restarts(), ack_quorum, writers).rack_down
    assert found == pytest.approx(said)
    assert json.loads(json.dumps(found)) == list(found or ())  # no number of NumPy's, which --json could not print
    assert availability(cluster._replace(racks=1), Restarts(), ack_quorum, writers).rack_down is None


def test_a_kafka_partition_takes_no_writes_below_min_isr_and_no_broker_takes_a_place():
    cluster = Cluster(12, 3, 3, 1, 1, racks=2, placement=TWO_RACKS)
    assert availability(cluster, Restarts(), None, Writers(2)).rack_down == pytest.approx((0.0, None, 0.5, False))


@pytest.mark.parametrize(
    ("nodes", "writers", "said"),
    [
        (30, Writers(3), (0.1, False, lambda p: 1 - (1 - p) ** 3)),  # RF 3, min ISR 3: any of the three
        (30, Writers(2), (0.0, False, lambda p: 3 * p**2 - 2 * p**3)),  # min ISR 2: any two
        (30, Writers(3, 30.0), (0.1, True, lambda p: 1 - (1 - p / 10) ** 3)),  # WQ 3, AQ 3: a tenth of the restart
        (30, Writers(2, 30.0), (0.0, True, lambda p: 3 * (p / 10) ** 2 - 2 * (p / 10) ** 3)),
        (3, Writers(2, 30.0), (1.0, False, lambda p: 1 - (1 - p) ** 3)),  # no other bookie: the ledger is closed
        (30, Writers(3, math.nan), (0.1, True, None)),
    ],
)
def test_a_restart_stops_writes_where_no_other_node_takes_the_place(nodes, writers, said):
    """Twelve restarts a year of five minutes: each node is away for so long, for a part p of the time."""
    restarts = Restarts(12.0, 300.0 / YEAR_S)
    away = 12 * 300.0 / YEAR_S
    part, has_room, of_time = said
    found = availability(Cluster(nodes, 3, 3, 1, 1), restarts, None, writers).writing
    assert found is not None
    assert found.node_down == pytest.approx(part)
    assert found.has_room == has_room
    assert found.stops == (part > 0.0 and not has_room)
    minutes = of_time and pytest.approx(of_time(away) * YEAR_S / 60.0, rel=1e-3)
    assert found.minutes_per_year == minutes


@pytest.mark.parametrize("min_isr", [1, 2, 3])
def test_writes_stop_for_restarts_while_a_rack_is_out(min_isr):
    """Replicas in racks of their own: each is away if it restarts or its rack is out, a part p of the time."""
    cluster = Cluster(9, 3, 3, 1, 1, racks=3, placement=DISTINCT_RACKS, events=(rack_outage(1.0, 0.0),))
    restarting, out = 12 / 8766, 4 / 8766
    p = 1.0 - 1.0 / (1.0 + restarting) * (1.0 - out)
    enough = sum(math.comb(3, k) * (1 - p) ** k * p ** (3 - k) for k in range(min_isr, 4))
    found = availability(cluster, Restarts(12.0, 1 / 8766, out), None, Writers(min_isr)).writing
    assert found is not None
    assert found.minutes_per_year == pytest.approx((1.0 - enough) * YEAR_S / 60.0, rel=1e-6)


def test_writes_stop_for_restarts_while_a_rack_with_several_replicas_is_out():
    """Two replicas on any two of two nodes in each of two racks, of which never both are out: by listing all cases."""
    out, away = 0.02, 0.01 / 1.01
    cluster, parts = Cluster(4, 2, 2, 1, 1, racks=2, events=(rack_outage(1.0, 0.0),)), []
    for pair in permutations(range(4), 2):
        for down, chance in ((None, 1 - 2 * out), (0, out), (1, out)):
            silent = [1.0 if node // 2 == down else away for node in pair]
            parts.append(chance * (1.0 - (1.0 - silent[0]) * (1.0 - silent[1])) / 12)
    found = availability(cluster, Restarts(1.0, 0.01, out), None, Writers(2)).writing
    assert found is not None
    assert found.minutes_per_year == pytest.approx(math.fsum(parts) * YEAR_S / 60.0, rel=1e-6)


def test_each_stop_of_a_leader_takes_an_election():
    """Each node restarts twelve times, is lost once and has 0.1 outages of its rack a year, with or without copies."""
    cluster = Cluster(30, 3, 3, 1, 1, racks=3, placement=DISTINCT_RACKS, node_loss=1.0, events=(rack_outage(0.1, 0.0),))
    found: list[Any] = [
        availability(cluster, Restarts(12.0), None, Writers(2, math.inf, time)).writing for time in (0.0, 1.5, math.nan)
    ]
    without, timed, unknown = (each.minutes_per_year for each in found)
    assert found[1].electing_minutes == pytest.approx(13.1 * 1.5 / 60)
    assert timed == pytest.approx(without + 13.1 * 1.5 / 60)
    assert unknown is None


def test_outages_of_racks_and_of_the_cluster_stop_writes_for_as_long_as_they_last():
    """An hour each: of each of three zones 0.1 a year, in which two of three replicas are never, and 0.02 of all."""
    events = outage(0.02, 0.0), rack_outage(0.1, 0.0)
    cluster = Cluster(30, 3, 3, 1, 1, racks=3, placement=DISTINCT_RACKS, events=events)
    restarts = Restarts(outage_time=3600.0 / YEAR_S)
    for needs, expected in ((3, 60.0 * (0.02 + 3 * 0.1)), (2, 60.0 * 0.02)):
        found = availability(cluster, restarts, None, Writers(needs)).writing
        assert found is not None
        assert found.minutes_per_year == pytest.approx(expected, rel=1e-3)


def test_an_answer_says_what_empty_disks_of_brokers_would_add():
    """Outages of 30 brokers: one or more loses its disk with probability 1 - 0.9925^30."""
    experiment = config.load(ROOT / "configs" / "kafka_cluster.toml", ["flush_every_message=true"])
    said = answer(experiment.clusters[0], EFFORT).assumptions
    [about] = [each for each in said if "empty one under its old id" in each]
    assert f"up to {plain(0.02 * (1 - 0.9925**30))} incidents a year more" in about
    assert not any("empty one" in each for each in answer(placed(RARE), EFFORT).assumptions)
