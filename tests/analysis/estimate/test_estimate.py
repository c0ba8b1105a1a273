"""Estimates: intervals against published and independent values, and what runs are summed up to."""

import io
import re
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy.special import betainc, betaincc
from scipy.stats import binom, binomtest

from quorisk.analysis import bench
from quorisk.analysis.estimate import estimate
from quorisk.analysis.estimate.estimate import Exposure, MetFaults
from quorisk.analysis.experiment.config import build_experiment, load
from quorisk.analysis.statistics import sequential
from quorisk.analysis.statistics.intervals import clopper_pearson
from quorisk.command import show
from quorisk.kernels.cores import num_cores
from quorisk.kernels.engines import jax_engine, numba_engine
from quorisk.kernels.engines.job import RECORD, Job
from quorisk.kernels.engines.numba_engine import record
from quorisk.kernels.engines.points import pack
from quorisk.kernels.engines.tally import MOST_HIGH_TICKS, TIME_TICK, ticks
from quorisk.kernels.model import LOST, OUTCOMES
from quorisk.kernels.protocols import registry
from quorisk.say import numbers
from tests.support import LOSING, ROOT, refusal

CONFIGS = ROOT / "configs"
TOPIC = LOSING | {"run": {"runs": 20_000, "seed": 5}}


@pytest.mark.parametrize("losses", [0, 1, 17, 999_999, 1_000_000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999])
def test_intervals_are_those_of_scipys_exact_test(losses, confidence):
    exact = binomtest(losses, 1_000_000).proportion_ci(confidence, "exact")
    assert clopper_pearson(losses, 1_000_000, confidence) == pytest.approx((exact.low, exact.high), rel=1e-9)


def test_no_loss_in_many_runs_is_a_small_upper_bound():
    low, high = clopper_pearson(0, 10**12, 0.95)
    assert low == 0.0
    assert high == pytest.approx(3.6888794541e-12, rel=1e-9)  # ln 40 / n


@pytest.mark.parametrize("runs", [10**4, 10**8, 10**9, 10**10, 10**12])
@pytest.mark.parametrize("losses", [1, 999, 1000, 1001, 5000])
def test_at_the_ends_the_tails_are_what_they_should_be_for_any_counts(losses, runs):
    """SciPy's inverse functions are wrong at shapes of just 1000: losses of 999 and 1000, or so many runs without."""
    low, high = clopper_pearson(losses, runs, 0.95)
    assert (betainc(losses, runs - losses + 1, low), betaincc(losses + 1, runs - losses, high)) == pytest.approx(
        (0.025, 0.025), rel=1e-5
    )
    mirrored = clopper_pearson(runs - losses, runs, 0.95)
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high), rel=0.01, abs=1e-15)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_hold_the_probability_at_least_as_often_as_they_say(confidence):
    for runs in (20, 50, 100):
        bounds = [clopper_pearson(losses, runs, confidence) for losses in range(runs + 1)]
        covered = {
            p: sum(binom.pmf(k, runs, p) for k, (low, high) in enumerate(bounds) if low <= p <= high)
            for p in (1e-6, 0.001, 0.01, 0.05, 0.2, 0.37, 0.5, 0.63, 0.8, 0.99)
        }
        assert min(covered.values()) >= confidence
        assert min(covered.values()) < 1 - (1 - confidence) / 2  # nor are they needlessly wide


def test_runs_that_may_hide_a_loss_widen_the_interval_upwards():
    low, high = clopper_pearson(3, 1000, 0.95, hidden=20)
    assert (low, high) == (clopper_pearson(3, 1000, 0.95)[0], clopper_pearson(23, 1000, 0.95)[1])
    assert clopper_pearson(3, 1000, 0.95, hidden=999)[1] == 1.0  # two of the losers were cut off later


@pytest.fixture(scope="module")
def topic():
    return estimate.estimate(build_experiment(TOPIC, "topic"), 2)


def test_an_estimate_sums_up_the_engines_runs(topic):
    experiment = build_experiment(TOPIC, "topic")
    points = pack(experiment.model, [experiment.points[0].point])
    runs = record(experiment.model, points, Job(0, 0, 20_000), 5)
    columns = dict(zip(RECORD, runs.T, strict=True))
    assert topic.runs == 20_000
    assert topic.steps == columns["steps"].sum()
    assert topic.mean_steps == pytest.approx(columns["steps"].mean())
    assert topic.outcomes == {name: (columns["outcome"] == i).sum() for i, name in enumerate(OUTCOMES)}
    for i, invariant in enumerate(experiment.model.invariants):
        risk = topic.invariants[invariant.name]
        assert risk.losses == (columns["broken_mask"] >> i & 1).sum() > 0
        assert risk.p == risk.losses / 20_000
        assert (risk.low, risk.high) == clopper_pearson(risk.losses, 20_000, 0.95)
    lost = columns["outcome"] == OUTCOMES.index("lost")
    times = [ticks(*time) for time in runs[lost, -2:].tolist()]
    assert topic.data_loss.losses == lost.sum()
    assert topic.mean_time_to_loss == pytest.approx(np.mean(times) * TIME_TICK)
    assert topic.point_id == experiment.points[0].point_id
    assert topic.steps_per_s * topic.seconds == pytest.approx(topic.steps)


def test_only_1_is_written_1():
    def shown(losses, runs, hidden=0):
        return show.probability_text(estimate.Risk(losses, losses / runs, *clopper_pearson(losses, runs, 0.95, hidden)))

    assert shown(999_980, 1_000_000) == "0.99998"
    assert shown(545_382, 1_000_000) == "0.545"
    assert shown(10, 10) == "1"
    assert shown(0, 10) == "< 0.309"
    assert shown(0, 10, hidden=10) == "at most 1"


def test_confidence_is_never_written_100_percent(topic):
    out = io.StringIO()
    show.print_estimate(topic._replace(confidence=1 - 1e-12), Console(file=out, width=200))
    assert "99.9999999999% interval" in out.getvalue()
    assert numbers.percent(1 - 1e-12) == "99.9999999999%"


def test_times_too_long_or_too_short_to_be_counted_make_no_mean(capsys):
    """Losses come after some 6 by rates of 1, after 6e14 by rates of 1e-14: then all count as MOST_TIME."""
    names = [action.name for action in build_experiment(TOPIC, "topic").model.actions]
    late, fast, slow = (
        build_experiment(TOPIC | {"rates": dict.fromkeys(names, rate)}, "scaled") for rate in (1e-14, 1e8, 1e-12 / 3)
    )
    soon = estimate.estimate(build_experiment(TOPIC, "topic"), 1)
    assert soon.mean_time_to_loss is not None
    for scaled in (late, fast):
        found = estimate.estimate(scaled, 1)
        assert (found.outcomes, found.mean_time_to_loss) == (soon.outcomes, None)
        show.print_estimate(found, Console())
        assert "mean model time to data loss: outside 2^-20 to 2^46; scale the rates" in capsys.readouterr().out
    found = estimate.estimate(slow, 1)
    assert found.outcomes == soon.outcomes
    assert found.mean_time_to_loss == pytest.approx(3e12 * soon.mean_time_to_loss)


@pytest.mark.parametrize("engine", [numba_engine, pytest.param(jax_engine, marks=pytest.mark.exhaustive)])
def test_times_too_long_to_be_counted_are_the_longest_that_are(engine):
    names = [action.name for action in build_experiment(TOPIC, "topic").model.actions]
    late = build_experiment(TOPIC | {"rates": dict.fromkeys(names, 1e-14)}, "scaled")
    runs = engine.record(late.model, pack(late.model, [late.points[0].point]), Job(0, 0, 20_000), 5)
    lost = runs[runs[:, 0] == OUTCOMES.index("lost")]
    assert {tuple(times) for times in lost[:, -2:].tolist()} == {(MOST_HIGH_TICKS, 0)}


def test_what_losses_met_and_how_long_exposure_lasts_is_said(topic):
    def shown(**changed):
        out = io.StringIO()
        show.print_estimate(topic._replace(**changed), Console(file=out, width=120))
        return out.getvalue()

    lost = topic.data_loss.losses
    assert topic.losses_by_faults == [([], lost, 1.0, *clopper_pearson(lost, lost, 0.95))]
    assert f"what losses are made of: all {lost:,} met no fault\n" in shown()
    parts = [MetFaults(["lost bookie", "lost message"], 91, 0.91, 0.836, 0.958), MetFaults([], 9, 0.09, 0.042, 0.164)]
    table = shown(losses_by_faults=parts)
    assert re.search(r"met lost bookie and lost message +│ +91 │ +91% │ +\[83.6%, 95.8%\]", table)
    assert re.search(r"met no fault +│ +9 │ +9% │ +\[4.2%, 16.4%\]", table)
    assert "what losses are made of" not in shown(losses_by_faults=[])
    shares = {
        0.912: "91.2%",
        5e-4: "0.05%",
        0.99984: "99.984%",
        1.234e-4: "0.0123%",
        1.0: "100%",
        0.0: "0%",
        1 - 1e-9: "over 99.99%",
        1e-9: "under 0.01%",
    }
    assert {value: numbers.share(value) for value in shares} == shares
    exposed = {"Exposed": Exposure(62, 3481.0), "Never": Exposure(0, None)}
    unit = topic.parameters | {"run.time_unit": "s"}
    said = "Exposed: broken in 0.0031 of runs, for 58 min on average, until it is repaired or the run ends\n"
    assert said in shown(exposures=exposed, parameters=unit)
    assert "for 3481 units of model time on average" in shown(exposures=exposed)
    assert "Never" not in shown(exposures=exposed)


def test_progress_counts_every_run_once():
    ended: list[int] = []
    estimate.estimate(build_experiment(TOPIC, "topic", ["runs=40000"]), 2, ended.append)
    assert len(ended) > 1
    assert sum(ended) == 40_000


@pytest.mark.parametrize("loses", [True, False])
@pytest.mark.parametrize("precision", [0.02, 0.002, 1e-5])
def test_runs_end_at_the_first_of_all_looks_that_is_precise(loses, precision):
    overrides = [
        f"persist_cursor_before_delete={'false' if loses else 'true'}",
        f"precision={precision}",
        "method=count",
    ]
    given = build_experiment(TOPIC, "topic", overrides)
    rows = record(given.model, pack(given.model, [given.points[0].point]), Job(0, 0, 20_000), 5)
    lost = np.cumsum(rows[:, RECORD.index("outcome")] == LOST)
    for look in sequential.looks(20_000):
        low, high = sequential.confidence_sequence(int(lost[look - 1]), look, 0.95)
        if (high - low) / 2 <= precision:
            break
    found = estimate.estimate(given, 2)
    assert (lost[-1] > 0) == loses
    assert (found.runs, found.data_loss.losses, found.data_loss.high) == (look, lost[look - 1], high)
    assert found.stopped == ("budget" if precision == 1e-5 else "precision")


def test_unfinished_runs_count_as_possible_losses(topic):
    short = estimate.estimate(build_experiment(TOPIC, "topic", ["max_steps=18"]), 1)
    unfinished = short.outcomes["unfinished"]
    assert 0 < unfinished < 20_000
    for name, risk in short.invariants.items():
        assert risk.high == clopper_pearson(risk.losses, 20_000, 0.95, unfinished)[1]
        assert risk.low <= topic.invariants[name].p <= risk.high


def test_runs_that_the_horizon_ends_are_answers(topic):
    early = estimate.estimate(build_experiment(TOPIC, "topic", ["horizon=2"]), 1)
    assert early.outcomes["horizon"] > 0
    for risk in early.invariants.values():
        assert risk.high == clopper_pearson(risk.losses, 20_000, 0.95)[1]
    assert "model time 2" in early.assumptions[-1]
    assert len(early.assumptions) == len(topic.assumptions) + 1


def test_assumptions_name_rates_losses_and_what_counts_as_data_loss():
    experiment = load(CONFIGS / "defect1.toml")
    scheduler, messages, data_loss = estimate.assumptions(experiment.model, experiment.points[0].point)
    assert "client_starts_recovery 0.2" in scheduler
    assert "bookie_sends_read_response" not in scheduler  # its rate is 1
    assert "probability 0.1" in messages
    assert "NoDivergenceBetweenClientAndMetaData or AllAckedEntriesAreReadable" in data_loss
    assert "OnlyValidFragments" not in data_loss


def test_rates_that_a_result_rests_on_are_listed_below_it_only_if_they_are_few(topic, capsys):
    def shown(file, *overrides):
        experiment = load(file, overrides, one=True)
        said = estimate.assumptions(experiment.model, experiment.points[0].point)
        show.print_estimate(topic._replace(assumptions=said), Console(width=120))
        return capsys.readouterr().out

    assert "client_starts_recovery 0.2" in shown(CONFIGS / "defect1.toml")
    quorums = ("scenario=entry", "write_quorum=3", "ack_quorum=2", "bookies=4")
    said = shown(CONFIGS / "pulsar.toml", *quorums)
    assert "bookie_is_lost" not in said
    assert "in proportion to their rates; --json lists them. Each message is lost" in said


def test_an_estimate_is_of_one_point():
    grid = ["grid.keys=[1, 2]", "grid.values=[1]", "grid.max_crashes=[0, 1]"]
    assert refusal(estimate.estimate, build_experiment(TOPIC, "topic", grid), 1) == (
        "topic: grid.model.keys, grid.model.max_crashes: 4 grid points, but one is needed; "
        "set model.keys and model.max_crashes to pick one, or sweep all with `quorisk run`"
    )


def test_an_estimate_is_of_one_scenario():
    only = ["write_quorum=2", "ack_quorum=2", "bookies=3"]
    assert refusal(estimate.estimate, load(CONFIGS / "pulsar.toml", only), 1).endswith(
        "pulsar.toml: scenarios: 3 scenarios, but one is needed; "
        "set scenario=entry or scenario=failover or scenario=power_outage, or sweep all with `quorisk run`"
    )


@pytest.mark.parametrize(
    ("file", "switch", "broken"),
    [
        ("defect1.toml", "fence_recovery_reads", "NoDivergenceBetweenClientAndMetaData"),
        ("defect2.toml", "recovery_lac_floor", "OnlyValidFragments"),
    ],
)
def test_the_defects_break_what_their_files_say_and_their_mechanisms_prevent_it(file, switch, broken):
    runs = "runs=20000"
    off = estimate.estimate(load(CONFIGS / file, [runs]), 2)
    assert off.invariants[broken].low > 1e-4
    assert off.data_loss.losses > 0
    on = estimate.estimate(load(CONFIGS / file, [runs, f"{switch}=true"]), 2)
    measured = {each.name for each in load(CONFIGS / file).model.invariants if each.about}
    assert not any(risk.losses for name, risk in on.invariants.items() if name not in measured)


@pytest.mark.exhaustive
def test_the_benchmark_measures_every_model_on_one_thread_and_more_and_the_search(monkeypatch):
    monkeypatch.setattr(bench, "REPETITION_S", 0.01)
    tables: Any = {"model": TOPIC["model"]}
    searched = registry.cases("compaction")._replace(bench_search=tables)
    monkeypatch.setattr(registry, "names", lambda: ["compaction"])
    monkeypatch.setattr(registry, "cases", {"compaction": searched}.get)
    told: list[str] = []
    rows = list(bench.bench(None, 2, told.append))
    assert [(row.model, row.engine, row.threads) for row in rows] == [
        ("compaction", "numba", 1),
        ("compaction", "numba", 2),
        *[("compaction", "lanes", 1)] * 5,
        ("compaction", "jax", num_cores()),
        ("compaction", "search", 1),
    ]
    assert all(row.steps_per_s > 1e3 for row in rows)
    assert [row.runs_per_s is None for row in rows] == [False] * (len(rows) - 1) + [True]
    assert told == ["compaction (numba)", "compaction (lanes)", "compaction (jax)", "compaction (search)"]
    assert rows[-2].device == "cpu"
    assert {row.engine for row in bench.bench("search", 1)} == {"search"}
