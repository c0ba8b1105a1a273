"""Recommendations: designs are solved exactly where chains are small, ranked, and held to targets."""

import json
import math
from types import SimpleNamespace

import pytest

from quorisk.analysis.decision import weigh
from quorisk.analysis.decision.designs import ranked_designs
from quorisk.analysis.decision.latency import BUILT_IN, write_latency
from quorisk.analysis.decision.recommend import advise, as_json
from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.estimate.estimate import estimate
from quorisk.analysis.estimate.method import ENOUGH_LOSSES, FEW_RUNS
from quorisk.analysis.experiment import config
from quorisk.analysis.statistics import sequential
from quorisk.analysis.statistics.estimator import Estimator
from quorisk.analysis.statistics.sequential import METHOD
from quorisk.analysis.statistics.yearly import confidence_of_each
from quorisk.kernels.engines import registry


def test_small_chains_are_solved_and_add_up_to_a_year(load, weigher, expected):
    rows = weigher.frame(load())
    assert set(rows["method"]) == {"exact"}
    found = ranked_designs(rows)
    assert [each.settings for each in found] == [f"clients {clients}" for clients in sorted(expected, key=expected.get)]
    for design in found:
        p = expected[int(design.settings[-1])]
        assert [design.worst[name] for name in ("p", "low", "high")] == pytest.approx([p] * 3)


def test_chains_that_are_too_large_are_estimated_by_runs(load, expected):
    weigher = Weigher(1 << 10, 1)
    rows = weigher.frame(load())
    # each at a level at which they hold together; all but the most frequent until they are close enough
    assert set(rows["method"]) == {"Clopper-Pearson", METHOD}
    assert weigher.num_estimated == 4
    for design in ranked_designs(rows):
        assert design.worst["low"] < expected[int(design.settings[-1])] < design.worst["high"]


@pytest.mark.parametrize("is_simultaneous", [False, True])
def test_intervals_hold_together_as_run_simultaneous_says(is_simultaneous):
    sizes = {"bookies": 3, "clients": 1, "write_quorum": 2, "ack_quorum": 2, "entries": 1, "inflight": 1}
    document = {
        **{"protocol": "bookkeeper", "model": sizes, "rates": {"bookie_is_lost": 0.05}, "faults": {"max_lost": 2}},
        "grid": {"ack_quorum": [1, 2], "faults.message_loss": [0.05, 0.1]},
        "run": {"runs": 20_000, "lifetime": 30.0, "method": "count", "simultaneous": is_simultaneous},
    }
    experiment, together = config.build_experiment(document, "x.toml"), 4 if is_simultaneous else 1
    rows = Weigher(1 << 10, 1).frame(experiment)
    assert set(rows["together"]) == {together}
    assert len(rows[rows["losses"] > 0]) == 4
    for row in rows.to_dict("records"):  # as those of a sweep (`results.frame`)
        ends = Estimator(0.95, together, False).interval(int(row["losses"]), int(row["runs"]), int(row["hidden"]))
        assert (row["low"], row["high"]) == pytest.approx(ends)
    said = " ".join(advise(experiment, Weigher(1 << 10, 1)).words.sentences)
    assert ("With run.simultaneous = true, all hold together" in said) != is_simultaneous
    assert ("With 95% confidence, all 4 intervals hold together" in said) == is_simultaneous


def test_with_run_simultaneous_intervals_of_scenarios_hold_together_for_all_designs(load):
    rows = Weigher(1 << 10, 1).frame(load(1000.0, "run.simultaneous=true", "run.method=count"))
    assert (len(rows), set(rows["together"])) == (4, {4})


def test_where_a_design_is_counted_anyway_few_runs_answer_for_its_other_scenarios(load):
    """A head would take longer than all runs, and be of no use: how losses follow rates is not known of the design."""
    counted = load(1000.0, "run.method=count", "run.runs=50000", "scenarios.failover.per_year=0.2")
    rows = Weigher(1 << 10, 1).frame(counted)
    often, seldom = rows[rows["run.scenario"] == "quiet"], rows[rows["run.scenario"] == "failover"]
    assert (set(often["runs"]), set(often["method"])) == ({50000}, {"Clopper-Pearson"})
    assert set(seldom["method"]) == {METHOD}
    for row in seldom.to_dict("records"):
        level = 1.0 - (1.0 - confidence_of_each(counted.run.confidence, 2)) / 2  # the other half is for more runs
        low, high = sequential.confidence_sequence(int(row["losses"]), int(row["runs"]), level)
        assert row["runs"] < 20000
        assert high - low <= 2 * weigh.CLOSE  # where 64 runs were enough, they would say 0
        assert (row["low"], row["high"]) == pytest.approx((low, high))
    solved = Weigher(1 << 10, 1).frame(load(1000.0, "run.runs=50000"))
    assert all("head" in method or method == "exact" for method in solved["method"][:2])


@pytest.mark.parametrize(("runs", "methods"), [(2000, {"auto", "count"}), (FEW_RUNS + 1, {"auto", "count", "head"})])
def test_runs_that_leave_much_open_are_not_made_again(load, monkeypatch, runs, methods):
    """Where there are too few of them for a pilot. A head is asked first if it takes fewer."""
    made = []

    def estimated(alone, *given, **named):
        made.append((alone.points[0].scenario, alone.points[0].design, alone.run.method))
        return estimate(alone, *given, **named)

    monkeypatch.setattr(weigh, "estimate", estimated)
    rows = Weigher(1 << 10, 1).frame(
        load(1000.0, f"run.runs={runs}", "scenarios.failover.rates.client_starts_recovery=0.3")
    )
    assert (rows["losses"] < ENOUGH_LOSSES).all()
    assert {method for *_, method in made} == methods
    assert len({each[:2] for each in made}) == len([each for each in made if each[2] != "head"]) == 4


def test_designs_that_make_the_same_runs_are_estimated_once(monkeypatch):
    """Whether rolls are gated plays no part in a scenario without rolls."""
    made = []

    def estimated(alone, *given, **named):
        made.append(alone.points[0].scenario)
        return estimate(alone, *given, **named)

    monkeypatch.setattr(weigh, "estimate", estimated)
    model = {"brokers": 2, "replication_factor": 2, "min_isr": 1, "values": 1}
    faults = {"max_clean_shutdowns": 1}
    rolls = {"per_year": 1.0, "faults": {"max_rolls": 1}}
    document = {
        **{"protocol": "kraft", "model": model, "faults": faults, "run": {"runs": 300, "method": "count"}},
        "scenarios": {"crash": {"per_year": 1000.0}, "roll": rolls},
        "grid": {"gated_rolls": [True, False]},
    }
    rows = Weigher(1 << 10, 1).frame(config.build_experiment(document, "x.toml"))
    assert made == ["crash", "roll", "roll"]
    crash = rows[rows["run.scenario"] == "crash"]
    assert (len(crash), crash["steps"].nunique()) == (2, 1)
    assert rows[rows["run.scenario"] == "roll"]["steps"].nunique() == 2


def test_after_two_heads_that_tell_no_more_than_counting_others_are_counted(monkeypatch):
    """However many threads there are: numbers must not depend on which of two is done first."""
    methods = []

    def counted(alone, *given, **named):
        methods.append(alone.run.method)
        return estimate(alone._replace(run=alone.run._replace(method="count")), *given, **named)

    monkeypatch.setattr(weigh, "estimate", counted)
    document = {
        "protocol": "kraft",
        "model": {"brokers": 2, "replication_factor": 2, "min_isr": 1, "values": 1},
        "faults": {"max_clean_shutdowns": 1},
        "run": {"runs": 100},
        "scenarios": {"roll": {"per_year": 1.0, "faults": {"max_rolls": 1}}},
        "grid": {"gated_rolls": [True, False], "unclean_leader_election": [True, False]},
    }
    Weigher(1 << 10, 4).frame(config.build_experiment(document, "x.toml"))
    assert methods == ["auto", "auto", "count", "count"]


def test_the_engine_is_told_of_all_that_are_estimated_before_it_runs_any(load, monkeypatch):
    """Of one at a time it would compile a kernel for each of the first ones."""
    told, engine_of = [], registry.engine_of

    def noting(name):
        engine = engine_of(name)

        def simulate(model, points, *given, **named):
            told.append(len(points.params))
            return engine.simulate(model, points, *given, **named)

        return SimpleNamespace(NAME=engine.NAME, simulate=simulate)

    monkeypatch.setattr(registry, "engine_of", noting)
    Weigher(1 << 10, 1).frame(load())
    assert told[0] == 4
    assert set(told[1:]) == {1}


@pytest.mark.parametrize("end", ["lifetime", "horizon"])
def test_losses_at_any_time_are_not_those_of_a_lifetime(load, end):
    """What a chain knows ends with the lifetime: runs count those that ended before it was known."""
    rows = Weigher(1 << 26, 1).frame(load(1000.0, "run.at_any_time=true", f"run.{end}=3.0"))
    assert (rows["hidden"] >= rows["horizon"]).all()
    assert (rows["horizon"] > 0).all()
    assert (rows["high"] >= (rows["losses"] + rows["horizon"]) / rows["runs"]).all()


def test_a_design_whose_runs_may_go_on_for_ever_costs_more_than_any_other(weigher):
    sizes = {"brokers": 2, "replication_factor": 2, "min_isr": 1, "values": 1}
    document = {"protocol": "kraft", "model": sizes, "faults": {"max_clean_shutdowns": 2}}
    document["variant"] = {"semantics": "specification"}  # in which brokers may ask for ever
    rows = weigher.frame(config.build_experiment(document, "x.toml"))
    assert rows["unfinished"].item() > 0.0
    [design] = ranked_designs(rows)
    assert design.cost("steps") == math.inf


def test_what_is_advised_is_what_the_verdicts_say(load, weigher, expected):
    safest, other = sorted(expected, key=expected.get)
    found = as_json(advise(load(sum(expected.values()) / 2), weigher))
    assert found["chosen"] == f"clients {safest}"
    assert [(each["design"], each["rank"], each["meets"], each["chosen"]) for each in found["designs"]] == [
        (f"clients {safest}", 1, True, True),
        (f"clients {other}", 2, False, False),
    ]
    assert found["designs"][0]["copies"] == 1
    assert found["designs"][0]["survives"] == "no bookie"
    assert found["designs"][0]["write_p99_ms"] == write_latency(BUILT_IN["LNKD-SSD"], 1, 1)[1].ms
    assert set(found["designs"][0]["scenarios"]) == {"failover", "quiet"}
    json.dumps(found, allow_nan=False)
    assert as_json(advise(load(expected[safest] / 2), weigher))["chosen"] is None


def test_the_verb_says_what_to_choose_and_fails_if_asked_to(quorisk, refused, load):
    path = load(1000.0).path
    code, out, _ = quorisk("recommend", path, "--fail-on-target", "--break-even", "none", "--details")
    assert code == 0
    assert out.startswith("Run clients")
    assert "2 of 2 designs meet the target: losses of at most 1000 a year. Of these," in out
    assert "PBS" in out
    code, out, _ = quorisk("recommend", load(1e-9).path, "--break-even", "none", "--fail-on-target", "--json")
    assert code == 3
    assert json.loads(out)["chosen"] is None
    assert quorisk("recommend", load(1e-9).path, "--break-even", "none", "--json")[0] == 0
    said = refused("recommend", path, "--break-even", "rates.nothing")
    assert said.startswith("--break-even rates.nothing: one of scenarios.failover.per_year")
