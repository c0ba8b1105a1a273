"""Stalls, rolls and leaders that are cut off: what they break, by the literal interpreter, and what files may say."""

import json
import random
from collections import Counter
from typing import Any

import pytest

import quorisk
from quorisk.analysis.estimate.amounts import with_amount
from quorisk.analysis.estimate.estimate import estimate
from quorisk.analysis.experiment.config import ConfigError, build_experiment, load
from quorisk.kernels.model import instance_words
from quorisk.kernels.ops import bits
from quorisk.kernels.protocols.kraft import MODEL
from quorisk.kernels.protocols.kraft.describe import spec_state
from quorisk.kernels.protocols.kraft.params import Params, most_records
from quorisk.kernels.tracing.demand import leaf_names
from quorisk.kernels.tracing.general import PARAMS, general
from tests.analysis.exact import chains
from tests.references import kafka_operations as operations
from tests.references import kraft as reference
from tests.references.kraft.chain import p_loss
from tests.references.searching import search
from tests.support import ROOT, point_of, values_of

PAIR: dict[str, Any] = {"brokers": 2, "replication_factor": 2, "min_isr": 1, "init_isr": 2, "values": 1}
ACKED = reference.PROPERTIES["AckedRecordsSurvive"]
FILE: dict[str, Any] = {"protocol": "kraft", "model": dict(PAIR)}
NOTHING_ELSE = {"max_lossy_shutdowns": 0}


def reached(**given):
    """The values, and all states that the interpreter reaches from the initial one, up to those that lose data."""
    values = values_of(MODEL, **(PAIR | NOTHING_ELSE | given))
    found = search(reference.initial(values), lambda s: reference.successors(s, values) if ACKED(s, values) else ())
    return values, found.states


def loses(**given):
    values, states = reached(**given)
    return any(not ACKED(s, values) for s in states)


def test_a_leader_that_is_cut_off_loses_what_it_acknowledges_alone():
    assert loses(max_isolations=1, acks="1")
    assert not loses(max_isolations=1)
    assert not loses(max_isolations=1, min_isr=2)


def test_a_gate_that_no_roll_can_reach_is_the_same_gate():
    """Nothing but a restart of a roll asks for it, so that designs which differ in it make the same runs without."""
    traced = general(MODEL)
    gate, words = (PARAMS, Params._fields.index("gated_rolls")), instance_words(MODEL)
    asking = {
        MODEL.actions[place].name
        for (place, _), mask in zip(words, traced.masks, strict=True)
        if gate in leaf_names([mask])
    }
    assert asking == {"roll_restarts"}
    assert all("max_rolls" in action.bounds for action in MODEL.actions if action.name in asking)
    others = [*traced.initial, *traced.sends, *sum(traced.after, ()), traced.broken, traced.outcome, traced.needed]
    assert gate not in leaf_names([*others, traced.initial_choices])
    gated, free = (MODEL.make_params(values_of(MODEL, **PAIR, gated_rolls=each)) for each in (True, False))
    assert gated == free
    gated, free = (MODEL.make_params(values_of(MODEL, **PAIR, max_rolls=1, gated_rolls=each)) for each in (True, False))
    assert gated != free


@pytest.mark.parametrize("gated", [True, False])
def test_a_gated_roll_restarts_one_broker_at_a_time(gated):
    _, states = reached(max_rolls=1, gated_rolls=gated)
    assert max(len(s.restarting) for s in states) == (1 if gated else 2)
    down = [s for s in states if s.restarting and not s.to_restart and s.aux_ctrs.roll_ctr]
    assert down
    assert any(not s.restarting and not s.to_restart and s.aux_ctrs.roll_ctr for s in states)


@pytest.mark.parametrize(
    "given",
    [
        {"max_rolls": 1, "acks": "1"},
        {"max_isolations": 1, "acks": "1"},
        pytest.param(
            {"max_stalls": 1, "stalls_go_on": True, "max_clean_shutdowns": 1, "unclean_leader_election": True},
            marks=pytest.mark.exhaustive,
        ),
    ],
    ids=lambda given: next(iter(given)),
)
def test_exact_is_the_chain_of_the_interpreter(given):
    rates = {"leader_removes_stalled": 0.3, "follower_resumes": 0.2, "session_times_out": 0.5, "isolation_ends": 0.4}
    rates |= {"roll_begins": 0.7, "restart_ends": 0.2, "broker_flushes": 0.1, "fence_broker": 0.3}
    point = point_of(MODEL, rates=rates, **PAIR, **NOTHING_ELSE, **given, lifetime=30.0)
    *_, found = chains.solved(MODEL, point)
    expected = p_loss(values_of(MODEL, **PAIR, **NOTHING_ELSE, **given), rates, 30.0)
    assert 0.0 < expected < 1.0
    assert found.data_loss == pytest.approx(expected, rel=1e-9)


def test_stalls_that_go_on_are_the_interpreters_step_for_step():
    """In runs whose fault comes late, so that the metadata log begins anew many times before it."""
    chance = random.Random(1)
    given = {"brokers": 3, "replication_factor": 3, "init_isr": 3, "values": 1, "max_stalls": 2, "stalls_go_on": True}
    values = values_of(MODEL, **given, **NOTHING_ELSE, max_clean_shutdowns=1)
    params, begun, after_fault = MODEL.make_params(values), 0, 0
    state = MODEL.initial(params, 0)
    for _ in range(500):
        spec, found = spec_state(state, params), list[Any]()
        assert len(spec.con_metadata_log) <= most_records(values)
        for action in MODEL.actions:
            instances = [64 * w + b for w, word in enumerate(action.enabled(state, params)) for b in bits(word)]
            after = [action.apply(state, params, i, 0) for i in instances]
            expected = Counter(reference.ACTIONS[action.name](spec, values))
            assert Counter(spec_state(each, params) for each in after) == expected, action.name
            found += [(0.002 if action.fault in ("crash", "clean shutdown") else 1.0, each) for each in after]
        if not found:
            state = MODEL.initial(params, 0)
            continue
        (later,) = chance.choices([each for _, each in found], [weight for weight, _ in found])
        begun += later.con.partition_epoch < state.con.partition_epoch
        after_fault += state.con.leader_epoch > 1
        state = later
    assert begun > 20
    assert after_fault > 20


def test_stalls_that_go_on_lose_what_three_lose_where_more_are_rare():
    """And one alone loses less, as a run in twenty has a second."""
    rates = {"follower_stalls": 0.02, "leader_removes_stalled": 0.5, "follower_resumes": 0.5, "broker_start": 0.0}
    rates |= {"write_record_to_leader": 0.3, "no_data_loss_shutdown": 0.0, "no_data_loss_unclean_shutdown": 0.2}

    def p_lost(**given):
        faults = {"max_clean_shutdowns": 1, "unclean_leader_election": True, **NOTHING_ELSE, **given}
        *_, found = chains.solved(MODEL, point_of(MODEL, rates=rates, **PAIR, **faults, lifetime=5.0))
        return found.data_loss

    three = p_lost(max_stalls=3)
    assert p_lost(max_stalls=2, stalls_go_on=True) == pytest.approx(three, rel=1e-4)
    assert p_lost(max_stalls=1) < 0.99 * three


def test_isrs_that_shrink_without_a_reason_are_the_specifications_alone():
    specification = {"variant": {"semantics": "specification"}, "faults": {"max_isr_shrinks": 1}}
    assert build_experiment(FILE | specification | {"rates": {"leader_shrink_isr": 0.1}}, "specification.toml")
    with pytest.raises(ConfigError, match=r"faults\.max_isr_shrinks = 1: 0, unless .* up to max_stalls"):
        build_experiment(FILE | {"faults": {"max_isr_shrinks": 1}}, "bound.toml")
    with pytest.raises(ConfigError, match=r"rates\.leader_shrink_isr: .*set max_stalls, rates\.follower_stalls"):
        build_experiment(FILE | {"rates": {"leader_shrink_isr": 0.1}}, "rate.toml")
    scenario = {"scenarios": {"lag": {"per_year": 1, "rates": {"leader_shrink_isr": 0.1}}}}
    with pytest.raises(ConfigError, match=r"rates\.leader_shrink_isr: goes with semantics"):
        build_experiment(FILE | scenario, "scenario.toml")


def test_lag_and_session_are_given_as_kafkas_settings_in_milliseconds():
    in_ms = {"replica.lag.time.max.ms": 30000, "broker.session.timeout.ms": 9000}
    others = {action.name for action in MODEL.actions if not action.only and not set(action.interval_ms) & set(in_ms)}
    given = build_experiment(FILE | {"rates": dict.fromkeys(others, "1 / s") | in_ms}, "lag.toml")
    rates = given.points[0].point.rates
    assert (rates["leader_removes_stalled"], rates["session_times_out"]) == pytest.approx((1 / 30, 1 / 9))


def test_rolls_that_there_is_no_room_for_are_refused():
    assert build_experiment(FILE | {"faults": {"max_rolls": 3}}, "fits.toml")
    with pytest.raises(ConfigError, match=r"fewer shutdowns in all: .* in an outage or a roll"):
        build_experiment(FILE | {"faults": {"max_rolls": 5}}, "many.toml")


LINES = (ROOT / "tests" / "data" / "kafka_operations.jsonl").read_text().splitlines()
ROWS = {row["name"]: row for row in map(json.loads, LINES)}
IN_MILLISECONDS = (
    *("receive_fetch_request", "receive_fetch_response", "receive_metadata_update", "unfence_broker"),
    *("receive_broker_reg_request", "receive_broker_reg_response"),
    *("receive_alter_partition_request", "receive_alter_partition_response"),
)


def file_of(setting, lost_without_leader=False):
    """A file that means a setting of kafka_operations.jsonl: ten records a second, with acks=1 one in two seconds, as
    what is on its way to followers takes no time there."""
    model = {"brokers": 3, "replication_factor": 3, "min_isr": setting["min_isr"], "zones": 3}
    model |= {"values": 6, "continuous_writes": True, "lost_without_leader": lost_without_leader}
    variant = {"version": "kip966" if setting["elr"] else "v3_5", "unclean_leader_election": setting["unclean"]}
    variant |= {"gated_rolls": setting["gated"], "acks": "1" if setting["acks1"] else "all"}
    faults = {"max_stalls": setting["max_stalls"] if setting["stall"] else 0, "max_rolls": int(setting["roll"])}
    faults |= {"max_clean_shutdowns": int(setting["crash"] > 0), "max_lossy_shutdowns": int(setting["disk"] > 0)}
    faults |= {"max_tail_losses": int(setting["power"] > 0), "max_zone_outages": int(setting["zone_power"] > 0)}
    rates = dict.fromkeys(IN_MILLISECONDS, 100.0) | {"send_fetch_request": 20.0}
    rates |= {"write_record_to_leader": 0.5 if setting["acks1"] else 10.0, "roll_begins": 100.0}
    rates |= {"roll_restarts": 1 / setting.get("roll_restarts_s", 1.0)}
    rates |= {"follower_stalls": setting["stall"], "follower_resumes": 1 / setting["stalled_s"]}
    rates |= {"leader_removes_stalled": 1 / setting["lag_max_s"], "broker_start": 1 / setting["down_s"]}
    rates |= {"send_alter_partition_request": 1 / setting["join_s"], "no_data_loss_shutdown": 0.0}
    rates |= {"no_data_loss_unclean_shutdown": setting["crash"], "data_loss_shutdown": setting["disk"]}
    rates |= {"tail_loss_shutdown": setting["power"], "zone_loses_power": setting["zone_power"]}
    rates |= {"broker_flushes": 1 / setting["flush_s"], "restart_ends": 1 / setting["restart_s"]}
    return {
        "protocol": "kraft",
        "model": model,
        "variant": variant | {"flush_every_message": False},
        "faults": faults,
        "rates": rates,
        "run": {"seed": 1, "method": "count", "engine": "numba", "lifetime": setting["lifetime_s"]},
    }


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        pytest.param("lag_disk_min1", 8000, marks=pytest.mark.exhaustive),
        ("lag_disk_min2_elr", 4000),
        ("lag_crash_min2_unclean_noelr", 8000),
        pytest.param("lag_power_min1", 8000, marks=pytest.mark.exhaustive),
        pytest.param("lag_disk_acks1", 2000, marks=pytest.mark.exhaustive),
        pytest.param("roll_gated_power_min2_noelr", 2000, marks=pytest.mark.exhaustive),
        pytest.param("roll_free_power_min2_noelr", 4000, marks=pytest.mark.exhaustive),
        ("roll_gated_disk_min1", 4000),
    ],
)
def test_a_partition_loses_as_much_as_another_program_says(name, runs):
    """Of all that is acknowledged while it is written to all the time; a loss is a leader that lacks some of it."""
    row = ROWS[name]
    of_file = build_experiment(file_of(row["setting"]), f"{name}.toml", [f"run.runs={runs}"])
    found, p = estimate(of_file, 1).data_loss, row["p"]
    assert abs(found.p - p) <= 4.5 * (p * (1.0 - p) * (1.0 / runs + 1.0 / row["runs"])) ** 0.5


@pytest.mark.parametrize("roll_restarts_s", [60.0, pytest.param(1.0, marks=pytest.mark.exhaustive)])
def test_brokers_that_restart_one_a_minute_write_while_one_fetches_from_a_leader_that_is_down(roll_restarts_s):
    """Such a fetch is under way until that leader starts again: records that were not merged meanwhile used up the
    model's room, and a third of what is right was lost."""
    given = ROWS["roll_free_power_min2_noelr"]["setting"] | {"min_isr": 1, "roll_restarts_s": roll_restarts_s}
    runs, many = 4000, 100_000
    found = estimate(build_experiment(file_of(given), "roll.toml", [f"run.runs={runs}"]), 1)
    p = operations.lost(operations.setting(given), many, 1)[0] / many
    assert abs(found.data_loss.p - p) <= 4.5 * (p * (1.0 - p) * (1.0 / runs + 1.0 / many)) ** 0.5
    assert found.invariants["ProducersHaveRoom"].p < 0.01


def test_room_is_made_where_two_leaders_write_by_turns():
    """One of them is cut off: the next record of its log is not the next one. Another program has 0.0170 ± 0.0013."""
    design = {"acks": "all", "version": "kip966", "gated_rolls": True, "unclean_leader_election": False, "min_isr": 1}
    given = {"run.scenario": "zone_lost_in_roll", "rates.leader_is_isolated": "1 / 3 min", "run.runs": 4000}
    faults = {"scenarios.zone_lost_in_roll.faults.max_isolations": 1}
    found = quorisk.estimate(ROOT / "configs" / "starters" / "kraft.toml", design | given | faults)
    assert found.data_loss.low < 0.0170 < found.data_loss.high
    assert found.invariants["ProducersHaveRoom"].p < 0.05


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["lag_disk_min1", "lag_crash_min2_unclean_noelr", "lag_power_min1"])
def test_an_incident_loses_as_many_records_as_another_program_says(name):
    """Ten records a second in the time in which what is lost was acknowledged."""
    given = ROWS[name]["setting"]
    experiment = build_experiment(file_of(given), f"{name}.toml", ["run.runs=16000", "run.confidence=0.999"])
    found = with_amount(experiment, estimate(experiment, 1)).amount
    losses, seconds = operations.lost(operations.setting(given), 100_000, 1)
    assert found is not None
    assert found.low < 10.0 * seconds / losses < found.high


def test_too_little_room_for_records_is_refused_and_the_key_named():
    given = file_of(ROWS["lag_disk_min1"]["setting"])
    given["model"]["values"] = 2
    with pytest.raises(ConfigError, match=r"few\.toml: model\.values = 2: too few: in .* of runs .*; 3 to 6$"):
        estimate(build_experiment(given, "few.toml", ["run.runs=500"]), 1)


UPGRADE = """
protocol = "kraft"
profile = "kafka_kraft"
[model]
brokers = 3
zones = 3
replication_factor = 3
min_isr = {min_isr}
values = 6
continuous_writes = true
[variant]
version = "v3_5"
flush_every_message = false
[faults]
max_clean_shutdowns = 2
max_tail_losses = 0
max_fencings = 0
max_stalls = 0
max_rolls = 0
max_isolations = 0
max_reassignments = 0
max_lossy_shutdowns = {disks}
max_zone_outages = {zones}
[rates]
zone_loses_power = "1 / 2 h"
data_loss_shutdown = "1 / 2 h"
no_data_loss_shutdown = "1 / 2 min"
no_data_loss_unclean_shutdown = "0 / s"
[run]
runs = {runs}
seed = 1
method = "count"
engine = "numba"
confidence = 0.999
lifetime = "10 h"
"""


@pytest.mark.parametrize(
    ("what", "min_isr", "p", "runs"),
    [
        ("disks", 1, 2.01e-3, 20_000),
        pytest.param("disks", 2, 2.01e-3, 20_000, marks=pytest.mark.exhaustive),
        pytest.param("zones", 1, 1.97e-3, 10_000, marks=pytest.mark.exhaustive),
        pytest.param("zones", 2, 1.05e-3, 10_000, marks=pytest.mark.exhaustive),
    ],
)
def test_upgrades_whose_restarts_overlap_lose_what_a_simulation_counted(what, min_isr, p, runs, tmp_path):
    """Two of three brokers are restarted within minutes, whether or not one is back, and a disk or a zone goes: a
    simulation by events, since replaced by the model, counted these in 2,000,000 upgrades."""
    path = tmp_path / "upgrade.toml"
    faults = {"disks": int(what == "disks"), "zones": int(what == "zones")}
    path.write_text(UPGRADE.format(min_isr=min_isr, runs=runs, **faults))
    found = estimate(load(path), 1).data_loss
    assert found.low < p < found.high
