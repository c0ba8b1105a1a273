"""Calibration: the known answers by exact enumeration, and that intervals which are too narrow are found out."""

import json
from fractions import Fraction
from functools import cache
from itertools import islice

import pytest

from quorisk.analysis import calibrate
from quorisk.analysis.calibrate import PROTOCOL, PROTOCOL_P, estimators
from quorisk.analysis.experiment import config
from quorisk.analysis.statistics import intervals
from quorisk.kernels.engines.numba_engine import simulate
from quorisk.kernels.errors import ConfigError
from tests.support import instances


def exact_probability(model, params, invariant):
    """That a run breaks an invariant, as a fraction; every state is reached along paths without loops."""

    @cache
    def breaks(state):
        if not invariant.holds(state, params):
            return Fraction(1)
        enabled = list(instances(model, state, params))
        after = [breaks(action.apply(state, params, instance, 0)) for action, instance in enabled]
        return sum(after, Fraction(0)) / max(len(after), 1)

    choices = model.initial_choices(params)
    return sum((breaks(model.initial(params, choice)) for choice in range(choices)), Fraction(0)) / choices


def test_the_known_answers_are_exact():
    experiment = config.build(PROTOCOL, "protocol")
    point = experiment.points[0].point
    assert (point.message_loss, set(point.rates.values())) == (0.0, {1.0})
    params = experiment.model.make_params(point.values)
    exact = {each.name: exact_probability(experiment.model, params, each) for each in experiment.model.invariants}
    assert exact.pop("CompactionHorizonCorrectness") == 0  # so that no run ends before the others may break
    assert exact == {name: Fraction(p) for name, p in PROTOCOL_P.items()}


def test_every_interval_holds_as_often_as_it_says_and_stops_where_it_should():
    rare = ("until half-width P/2", "CompactedLedgerLeak")  # takes long
    chosen = [each for each in estimators([0.5, 0.05], 500, 0.9, 3) if (each.method, each.chain) != rare]
    result = calibrate.calibrate(chosen, 100, 0.9, 3)
    assert {row.chain for row in result.rows} == {"Bernoulli", "multinomial", *PROTOCOL_P}
    assert len(result.rows) == len(chosen) == 15
    for row in result.rows:
        assert row.coverage_low < row.coverage == row.covered / 100 <= row.coverage_high
        assert row.coverage_high >= 0.9
        if row.method == intervals.METHOD:
            assert (row.mean_runs, row.mean_width) == (500, row.mean_reference)
        elif row.method.startswith("until"):
            assert row.mean_width is not None
            assert row.mean_width > 1.3 * row.mean_reference
        if row.method == "until half-width 0.05":
            assert row.mean_width is not None
            assert 0.05 < row.mean_width <= 0.1
            assert row.mean_runs == pytest.approx({0.5: 1200, 0.05: 250}.get(row.p, 75), rel=0.15)
    assert result.fixed_size == 600


def test_an_interval_that_is_too_narrow_is_found_out(monkeypatch, quorisk):
    def narrow(losses, runs, confidence, hidden=0):
        return intervals.clopper_pearson(losses, runs, confidence if runs == 100 else 0.7, hidden)

    monkeypatch.setattr(calibrate, "clopper_pearson", narrow)
    monkeypatch.setattr(calibrate, "estimators", lambda *arguments: islice(estimators(*arguments), 3))
    code, out, _ = quorisk("calibrate", "--repetitions", "100", "--runs", "1000", "--p", "0.5")
    assert code == 0
    assert "warning: coverage below 95%: Clopper-Pearson at 0.5" in out
    assert "until" not in out.partition("warning")[2]


def test_repetitions_are_pure_functions_and_share_no_runs(monkeypatch):
    for estimator in estimators([0.3], 200, 0.95, 7):
        assert estimator.sample(4) == estimator.sample(4)
        assert len({estimator.sample(repetition)[1:3] for repetition in range(30)}) > 1
    drawn = []

    def noted(model, points, jobs, seed):
        drawn.extend(jobs)
        return simulate(model, points, jobs, seed)

    monkeypatch.setattr(calibrate, "simulate", noted)
    [leak] = [
        each for each in estimators([], 200, 0.95, 7) if each[:2] == ("until half-width 0.05", "CompactedLedgerLeak")
    ]
    for repetition in range(12):
        leak.sample(repetition)
    runs = [run for job in drawn for run in range(job.first_run, job.first_run + job.num_runs)]
    assert len(runs) == len(set(runs)) > 12 * 64


@pytest.mark.parametrize("p", [0.001, 0.5, 0.999])
def test_the_cells_of_a_pair_add_up(p):
    both, only_variant, only_baseline, neither = cells = calibrate.pair_of(p)
    assert min(cells) > 0
    assert sum(cells) == pytest.approx(1)
    assert both + only_variant == pytest.approx(p)
    assert only_baseline / (only_baseline + neither) == pytest.approx(p / 4)


def test_calibrate_as_json_and_text(quorisk):
    few = ("calibrate", "--repetitions", "5", "--p", "0.5,0.1", "--runs", "100", "--seed", "2")
    code, out, err = quorisk(*few, "--json")
    result = json.loads(out)
    assert (code, err) == (0, "")
    assert (result["confidence"], result["seed"], result["fixed_size"]) == (0.95, 2, 738)
    assert {row["p"] for row in result["rows"]} == {0.5, 0.1, 3 / 1024}
    code, out, err = quorisk(*few)
    assert (code, err) == (0, "")
    assert "takes 738 runs, whatever p is." in out
    assert "warning" not in out


@pytest.mark.parametrize("text", ["", "0", "1", "0.5,", "half", "0.5;0.1", "nan", "1e-9"])
def test_what_are_no_probabilities(text):
    with pytest.raises(ConfigError, match=r"^p .*: numbers from 1e-06 to 1, without 1, with commas between them$"):
        calibrate.parse_probabilities(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--p", "2"], "--p 2: numbers from 1e-06 to 1"),
        (["--confidence", "1"], "--confidence 1.0: a number between 0 and 1"),
        (["--repetitions", "0"], "Invalid value for '--repetitions'"),
    ],
)
def test_bad_input_ends_with_2_and_one_line(quorisk, arguments, said):
    code, out, err = quorisk("calibrate", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {said}")


def test_help_has_an_example(quorisk):
    code, out, _ = quorisk("calibrate", "--help")
    assert code == 0
    assert "Example: quorisk calibrate" in out
