"""The confidence sequence against the definition of its martingale and by exact enumeration; when estimates stop."""

import math

import pytest
from scipy.special import betaln
from scipy.stats import beta

from quorisk.analysis.estimate import estimate
from quorisk.analysis.estimate.stopping import fixed_runs
from quorisk.analysis.experiment.config import ConfigError, build_experiment
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.statistics.intervals import METHOD, clopper_pearson
from quorisk.analysis.statistics.sequential import METHOD as SEQUENTIAL
from quorisk.analysis.statistics.sequential import (
    Rule,
    confidence_sequence,
    looks,
    simultaneous,
)
from tests.support import LOSING, refusal

LEAK = "CompactedLedgerLeak"
TOPIC = LOSING | {"run": {"runs": 100_000, "seed": 5}}


def probability_of_ever_failing(p: float, runs: int, confidence: float) -> float:
    """That some interval after 1 to `runs` runs leaves p out, over all paths."""
    alive = {0: 1.0}
    failed = 0.0
    for n in range(1, runs + 1):
        after: dict[int, float] = {}
        for k, weight in alive.items():
            after[k] = after.get(k, 0.0) + weight * (1 - p)
            after[k + 1] = after.get(k + 1, 0.0) + weight * p
        alive = {}
        for k, weight in after.items():
            low, high = confidence_sequence(k, n, confidence)
            if low <= p <= high:
                alive[k] = weight
            else:
                failed += weight
    return failed


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_all_intervals_hold_together_as_often_as_they_say(confidence):
    failing = [probability_of_ever_failing(p, 60, confidence) for p in (0.001, 0.01, 0.1, 0.3, 0.5, 0.77, 0.99)]
    assert max(failing) <= 1 - confidence
    assert max(failing) > (1 - confidence) / 4  # nor are they needlessly wide


@pytest.mark.parametrize(
    ("losses", "runs"), [(0, 1), (0, 50), (1, 50), (7, 50), (25, 50), (49, 50), (50, 50), (40, 100), (3, 900)]
)
@pytest.mark.parametrize("confidence", [0.5, 0.95, 1 - 1e-9])
def test_at_the_ends_the_mixture_is_1_by_alpha(losses, runs, confidence):
    ends = confidence_sequence(losses, runs, confidence)
    for p in ends:
        if 0 < p < 1:
            mixture = betaln(losses + 0.5, runs - losses + 0.5) - betaln(0.5, 0.5)
            likelihood = losses * math.log(p) + (runs - losses) * math.log1p(-p)
            precision = 1e-8 if p < 0.9999 else 1e-5  # 1 - p has few digits
            assert mixture - likelihood == pytest.approx(-math.log(1 - confidence), rel=precision)
    assert (ends[0] == 0.0) == (losses == 0)
    assert (ends[1] == 1.0) == (losses == runs)


@pytest.mark.parametrize("runs", [10**4, 10**8, 10**12])
@pytest.mark.parametrize("share", [1e-12, 1e-6, 0.01, 0.3, 0.5, 0.9])
def test_large_numbers_of_runs(runs, share):
    """By Savage and Dickey the mixture's ratio is the prior's density by the posterior's."""
    losses = math.ceil(runs * share)
    low, high = confidence_sequence(losses, runs, 0.95)
    assert 0 < low < losses / runs < high < 1
    for p in (low, high):
        ratio = beta.pdf(p, 0.5, 0.5) / beta.pdf(p, losses + 0.5, runs - losses + 0.5)
        assert ratio == pytest.approx(20, rel=2e-3)


def test_no_loss_is_an_upper_bound_only():
    low, high = confidence_sequence(0, 10**12, 0.95)
    assert low == 0.0
    # log M = n p - log(pi n) / 2 = log 20
    assert high == pytest.approx((math.log(20) + math.log(math.pi * 10**12) / 2) / 10**12, rel=1e-9)


def test_ends_grow_with_losses_and_intervals_are_nested():
    for runs in (64, 10**6):
        ends = [confidence_sequence(losses, runs, 0.95) for losses in (*range(60), runs - 1, runs)]
        assert ends == sorted(ends)
        assert [high for _, high in ends] == sorted(high for _, high in ends)
        for losses in (0, 1, 30):
            narrow, wide = confidence_sequence(losses, runs, 0.9), confidence_sequence(losses, runs, 0.99)
            assert wide[0] <= narrow[0] <= losses / runs <= narrow[1] <= wide[1]
            assert narrow[1] - narrow[0] > clopper_pearson(losses, runs, 0.9)[1] - clopper_pearson(losses, runs, 0.9)[0]


def test_hidden_losses_widen_the_interval_upwards():
    low, high = confidence_sequence(3, 1000, 0.95, hidden=20)
    assert (low, high) == (confidence_sequence(3, 1000, 0.95)[0], confidence_sequence(23, 1000, 0.95)[1])
    assert confidence_sequence(3, 1000, 0.95, hidden=999)[1] == 1.0


def test_looks_grow_and_end_with_the_budget():
    assert list(looks(1)) == [1]
    assert list(looks(64)) == [64]
    assert list(looks(200)) == [64, 128, 192, 200]
    assert list(looks(2000))[-4:] == [1762, 1872, 1989, 2000]
    assert len(list(looks(10**12))) < 400


def test_a_rule_wants_losses_for_a_relative_precision():
    assert Rule(0.05, math.inf).is_met(0, 100, 0.0, 0.1)
    assert not Rule(0.05, math.inf).is_met(0, 100, 0.0, 0.11)
    assert not Rule(math.inf, 0.5).is_met(0, 10**12, 0.0, 1e-12)
    assert Rule(math.inf, 0.5).is_met(10, 100, 0.06, 0.16)
    assert not Rule(math.inf, 0.5).is_met(10, 100, 0.06, 0.161)
    assert not Rule(0.01, 0.5).is_met(10, 100, 0.06, 0.16)  # both


def test_simultaneous_confidence_shares_the_error():
    assert simultaneous(0.95, 1) == 0.95
    assert simultaneous(0.95, 10) == pytest.approx(0.995)
    assert confidence_sequence(3, 100, simultaneous(1 - 1e-15, 100)) == (0.0, 1.0)


def test_an_estimate_stops_at_the_precision():
    result = estimate.estimate(build_experiment(TOPIC, "topic", ["precision=0.03", f"precision_of={LEAK}"]), 2)
    risk = result.invariants[LEAK]
    assert (result.stopped, result.method) == ("precision", SEQUENTIAL)
    assert result.runs < 5000
    assert (risk.high - risk.low) / 2 <= 0.03
    assert (risk.low, risk.high) == confidence_sequence(risk.losses, result.runs, 0.95)
    previous = [runs for runs in looks(100_000) if runs < result.runs][-1]
    before = estimate.estimate(build_experiment(TOPIC, "topic", [f"runs={previous}"]), 1).invariants[LEAK].losses
    low, high = confidence_sequence(before, previous, 0.95)
    assert (high - low) / 2 > 0.03


def test_an_estimate_that_stops_early_is_that_of_so_many_runs_on_any_number_of_threads():
    early = ["relative_precision=0.2", f"precision_of={LEAK}"]
    one, three = (estimate.estimate(build_experiment(TOPIC, "topic", early), n) for n in (1, 3))
    fixed = estimate.estimate(build_experiment(TOPIC, "topic", [f"runs={one.runs}"]), 2)
    assert one.stopped == "precision"
    for result in (three, fixed):
        assert (one.runs, one.steps, one.outcomes) == (result.runs, result.steps, result.outcomes)
    assert one.invariants == three.invariants
    assert (fixed.stopped, fixed.method) == ("runs", METHOD)
    risk = one.invariants[LEAK]
    assert (risk.high - risk.low) / 2 <= 0.2 * risk.p


def test_a_precision_that_is_not_reached_spends_the_budget():
    result = estimate.estimate(build_experiment(TOPIC, "topic", ["runs=3000", "precision=0.001"]), 2)
    assert (result.runs, result.stopped) == (3000, "budget")
    never = ["runs=3000", "relative_precision=0.9", "persist_cursor_before_delete=true"]
    result = estimate.estimate(build_experiment(TOPIC, "topic", never), 2)
    assert (result.runs, result.stopped, result.data_loss.losses) == (3000, "budget", 0)
    assert result.data_loss.high < 0.01


def test_runs_that_the_horizon_ends_hide_losses_if_the_question_is_about_any_time():
    at_any_time = estimate.estimate(build_experiment(TOPIC, "topic", ["horizon=2", "at_any_time=true"]), 1)
    hidden = at_any_time.outcomes["horizon"]
    assert hidden > 0
    for risk in at_any_time.invariants.values():
        assert risk.high == clopper_pearson(risk.losses, 100_000, 0.95, hidden)[1]
    assert "may be a loss" in at_any_time.assumptions[-1]


def test_hidden_losses_keep_an_estimate_from_its_precision():
    result = estimate.estimate(build_experiment(TOPIC, "topic", ["runs=3000", "precision=0.1", "max_steps=10"]), 1)
    assert (result.runs, result.stopped, result.outcomes["unfinished"]) == (3000, "budget", 3000)


@pytest.mark.parametrize("rule", ["precision=inf", "precision=0.001"])
def test_parts_of_an_estimate_add_up_to_the_whole(rule):
    def outcomes(*overrides):
        result = estimate.estimate(build_experiment(TOPIC, "topic", [rule, *overrides]), 1)
        return [*result.outcomes.values(), result.steps, *(risk.losses for risk in result.invariants.values())]

    first, rest = outcomes("runs=1000"), outcomes("runs=2000", "first_run=1000")
    assert outcomes("runs=3000") == [a + b for a, b in zip(first, rest, strict=True)]
    assert outcomes("runs=2000") != rest


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("precision=0", "run.precision = 0: a number between 0 and 1 (inf: none)"),
        ("precision=1", "run.precision = 1: a number between 0 and 1 (inf: none)"),
        ("relative_precision=-0.1", "run.relative_precision = -0.1: a number between 0 and 1 (inf: none)"),
        ("precision_of=Leak", 'run.precision_of = "Leak": one of "data loss", "CompactedLedgerLeak"'),
        ("grid.precision=[0.1]", "grid.run.precision = [0.1]: cannot vary; set it in [run]"),
    ],
)
def test_what_is_no_precision(override, said):
    assert refusal(build_experiment, TOPIC, "topic", [override]).startswith(f"topic: {said}")


def test_what_cannot_stop_early_says_so():
    assert fixed_runs(build_experiment(TOPIC, "topic")) == 100_000
    assert build_experiment(TOPIC, "topic").run.precision_of == DATA_LOSS
    with pytest.raises(ConfigError, match=r"relative_precision = 0.1: inf, because only `quorisk estimate` and"):
        fixed_runs(build_experiment(TOPIC, "topic", ["relative_precision=0.1"]))
