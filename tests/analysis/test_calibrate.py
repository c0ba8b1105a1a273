"""Calibration: the known answers by exact enumeration, and that intervals which are too narrow are found out."""

import json
from fractions import Fraction
from functools import cache
from itertools import islice

import pytest

from quorisk.analysis import calibrate
from quorisk.analysis.calibrate import PROTOCOL, PROTOCOL_P, kinds
from quorisk.analysis.experiment import config
from quorisk.analysis.statistics import intervals
from quorisk.kernels.engines.numba_engine import simulate
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
    experiment = config.build_experiment(PROTOCOL, "protocol")
    point = experiment.points[0].point
    assert (point.message_loss, set(point.rates.values())) == (0.0, {1.0})
    params = experiment.model.make_params(point.values)
    exact = {each.name: exact_probability(experiment.model, params, each) for each in experiment.model.invariants}
    assert exact.pop("CompactionHorizonCorrectness") == 0  # so that no run ends before the others may break
    assert exact == {name: Fraction(p) for name, p in PROTOCOL_P.items()}


def test_every_interval_holds_as_often_as_it_says_and_stops_where_it_should():
    rare = ("until half-width P/2", "CompactedLedgerLeak")  # takes long
    chosen = [each for each in kinds([0.5, 0.05], 500, 3) if each[:2] != rare]
    rows = [calibrate.calibrate(each, 100) for each in chosen]
    assert {row.chain for row in rows} == {"Bernoulli", "multinomial", *PROTOCOL_P}
    assert len(rows) == 15
    for row in rows:
        assert row.coverage_low < row.coverage <= row.coverage_high
        assert row.coverage_high >= 0.95
        if row.method == "until half-width 0.05":
            assert row.mean_width is not None
            assert 0.05 < row.mean_width <= 0.1
            assert row.mean_runs == pytest.approx({0.5: 1600, 0.05: 260}.get(row.truth, 75), rel=0.15)


def test_an_interval_that_is_too_narrow_is_found_out(monkeypatch, printed):
    def narrow(losses, runs, confidence, hidden=0):
        return intervals.clopper_pearson(losses, runs, confidence if runs == 100 else 0.7, hidden)

    monkeypatch.setattr(calibrate, "clopper_pearson", narrow)
    monkeypatch.setattr(calibrate, "kinds", lambda *_, seed: islice(kinds([0.5], 1000, seed), 3))
    out = printed("calibrate", "--repetitions", "100")
    assert "warning: coverage below 95%: Clopper-Pearson at 0.5" in out
    assert "until" not in out.partition("warning")[2]


def test_repetitions_are_pure_functions_and_share_no_runs(monkeypatch):
    for kind in kinds([0.3], 200, 7):
        assert kind.interval(4) == kind.interval(4)
        assert len({kind.interval(repetition)[1:] for repetition in range(15)}) > 1
    drawn = []

    def noted(model, points, jobs, seed):
        drawn.extend(jobs)
        return simulate(model, points, jobs, seed)

    monkeypatch.setattr(calibrate, "simulate", noted)
    [leak] = [each for each in kinds([], 200, 7) if each[:2] == ("until half-width 0.05", "CompactedLedgerLeak")]
    for repetition in range(12):
        leak.interval(repetition)
    runs = [run for job in drawn for run in range(job.first_run, job.first_run + job.num_runs)]
    assert len(runs) == len(set(runs)) > 12 * 64


@pytest.mark.parametrize("p", [0.001, 0.5, 0.999])
def test_the_cells_of_a_pair_add_up(p):
    both, only_variant, only_baseline, neither = cells = calibrate.pair_of(p)
    assert min(cells) > 0
    assert sum(cells) == pytest.approx(1)
    assert both + only_variant == pytest.approx(p)
    assert only_baseline / (only_baseline + neither) == pytest.approx(p / 4)


def test_the_verb_as_json_and_text(monkeypatch, printed):
    monkeypatch.setattr(calibrate, "kinds", lambda *_, seed: kinds([0.5], 100, seed))
    out = printed("calibrate", "--repetitions", "2", "--seed", "2", "--json")
    assert {row["truth"] for row in json.loads(out) if row["chain"] != "multinomial"} == {0.5, 3 / 1024}
    out = printed("calibrate", "--repetitions", "2", "--seed", "2")
    assert "2 repetitions of 95% intervals" in out
