"""What is wanted next: holes, rounds to a precision or as time allows; and where points stop."""

import random
from itertools import pairwise

import numpy as np
import pytest

from quorisk.analysis.estimate import estimate
from quorisk.analysis.estimate.method import judged
from quorisk.analysis.experiment import config
from quorisk.analysis.statistics.sequential import confidence_sequence, looks
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.registry import engine_of
from quorisk.kernels.engines.tally import named_tally
from quorisk.sparkjobs.ledger import Ledger, PointEnd, RowCounts
from quorisk.sparkjobs.plan import cost_s, cut_tasks, leading_runs
from quorisk.sparkjobs.sweep import work_of
from tests.support import LOSING

LEAK = "CompactedLedgerLeak"
TOPIC = LOSING | {
    "grid": {"variant": {"persist_cursor_before_delete": [True, False]}, "rates": {"broker_crash": [0.1, 1.0]}},
    "run": {"runs": 20_000, "seed": 5, "first_run": 7},
}


def experiment(*overrides):
    return config.build_experiment(TOPIC, "topic", overrides)


def compute(given, jobs):
    """(point, first run, counts) of each job."""
    work, engine = work_of(given), engine_of("numba")
    for job, sums in zip(jobs, engine.simulate(given.model, work.points, jobs, work.run.seed), strict=True):
        tally = named_tally(given.model, sums.tolist())
        counts = judged(tally.outcomes, tally.broken, given.run)
        yield job.point, job.first_run, RowCounts(job.num_runs, *counts)


def split(jobs, rng):
    """The jobs in pieces, in any order."""
    pieces = []
    for job in jobs:
        cuts = sorted({0, job.num_runs, *(rng.randrange(job.num_runs) for _ in range(2))})
        pieces += [Job(job.point, job.first_run + a, b - a) for a, b in pairwise(cuts)]
    return rng.sample(pieces, len(pieces))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("rule", "stopped"),
    [
        ("precision=0.02", {"precision"}),
        ("relative_precision=0.1", {"precision", "budget"}),
        ("precision=0.001", {"budget"}),
    ],
)
def test_a_point_stops_where_an_estimate_of_it_does_however_it_is_cut(rule, stopped):
    given = experiment(rule, f"precision_of={LEAK}")
    one_by_one = [estimate.estimate(given._replace(points=(point,)), 1) for point in given.points]
    for seed in range(3):
        ledger, rng = Ledger(given.run, len(given.points)), random.Random(seed)
        while jobs := ledger.wanted():
            pieces = split(jobs, rng)
            for row in compute(given, pieces[: rng.randrange(len(pieces)) + 1]):  # some get lost on the way
                ledger.add(*row)
        assert ledger.stops() == [PointEnd(each.runs, each.stopped) for each in one_by_one]
        assert ledger.num_stopped == 4
    assert {each.stopped for each in one_by_one} == stopped


def test_points_that_hold_together_stop_later_and_hidden_runs_hold_them_up():
    def stops_at(num_points, counts, *overrides):
        ledger = Ledger(experiment("precision=0.05", *overrides).run, num_points)
        while not ledger.stops()[0].why:
            for job in ledger.wanted():
                ledger.add(job.point, job.first_run, RowCounts(job.num_runs, *counts(job.num_runs)))
        return ledger.stops()[0]

    alone = stops_at(3, lambda runs: (runs // 4, 0))
    together = stops_at(3, lambda runs: (runs // 4, 0), "simultaneous=true")
    assert alone.why == together.why == "precision"
    assert alone.num_runs < together.num_runs
    for stop, confidence in ((alone, 0.95), (together, 1 - 0.05 / 3)):
        low, high = confidence_sequence(stop.num_runs // 4, stop.num_runs, confidence)
        assert 0.045 < (high - low) / 2 <= 0.05
    assert stops_at(1, lambda runs: (0, runs // 4)) == PointEnd(
        20_000, "budget"
    )  # what is hidden stays so, however many runs


def test_rounds_go_where_the_width_is():
    """The first round is the same for all; a point that is narrow enough gets no more, others the more the wider."""
    ledger = Ledger(experiment("precision=0.02").run, 3)
    assert ledger.wanted()[-1] == Job(2, 7 + 960, 64)
    for job in ledger.wanted():
        ledger.add(job.point, job.first_run, RowCounts(64, (0, 8, 32)[job.point], 0))
    assert [(stop.why != "") for stop in ledger.stops()] == [True, False, False]
    runs = [sum(job.num_runs for job in ledger.wanted() if job.point == point) for point in range(3)]
    assert 0 == runs[0] < runs[1] < runs[2] <= 3 * 1024 + 1024 / 16


@pytest.mark.parametrize("rule", [["relative_precision=0.1"], ["relative_precision=0.1", "precision=0.02"]])
def test_without_a_loss_rounds_grow_as_fast_as_they_may(rule):
    """A relative precision has no scale yet, however narrow the interval is in absolute terms."""
    ledger, rounds = Ledger(experiment("runs=10_000_000", *rule).run, 1), 0
    while jobs := ledger.wanted():
        rounds += 1
        for job in jobs:
            ledger.add(0, job.first_run, RowCounts(job.num_runs, 0, 0))
    assert ledger.stops() == [PointEnd(10_000_000, "budget")]
    assert rounds == 8  # 1024 times 4^7 are more than 10^7


def test_rounds_are_cut_at_the_looks():
    ledger = Ledger(experiment("precision=0.001").run, 1)
    ends = set()
    for _ in range(2):
        jobs = ledger.wanted()
        ends |= {job.first_run - 7 + job.num_runs for job in jobs}
        for job in jobs:
            ledger.add(0, job.first_run, RowCounts(job.num_runs, job.num_runs // 2, 0))
    assert ends == {look for look in looks(20_000) if look <= max(ends)}
    assert max(ends) > 1024


def test_a_fixed_number_of_runs_wants_the_holes_alone():
    ledger = Ledger(experiment("runs=100").run, 2)
    assert ledger.wanted() == [Job(0, 7, 100), Job(1, 7, 100)]
    for first, num_runs in ((17, 10), (97, 10), (30, 2), (32, 3)):
        ledger.add(0, first, RowCounts(num_runs, 0, 0))
    assert ledger.wanted() == [Job(0, 7, 10), Job(0, 27, 3), Job(0, 35, 62), Job(1, 7, 100)]
    assert ledger.stops() == [PointEnd(0, ""), PointEnd(0, "")]
    for job in ledger.wanted()[:3]:
        ledger.add(0, job.first_run, RowCounts(job.num_runs, 0, 0))
    assert ledger.stops() == [PointEnd(100, "runs"), PointEnd(0, "")]
    assert ledger.wanted() == [Job(1, 7, 100)]


def test_a_round_gives_every_point_as_many_runs_as_the_time_allows():
    jobs = [Job(0, 7, 10), Job(0, 20, 1000), Job(1, 7, 30), Job(2, 7, 1000)]
    run_s = np.array([0.5, 1.0, 2.0])
    assert leading_runs(jobs, run_s, 100.0) == [Job(0, 7, 10), Job(0, 20, 18), Job(1, 7, 28), Job(2, 7, 28)]
    assert leading_runs(jobs, run_s, 280.0) == [Job(0, 7, 10), Job(0, 20, 90), Job(1, 7, 30), Job(2, 7, 100)]
    assert leading_runs(jobs, run_s, 0.0) == [Job(0, 7, 1), Job(1, 7, 1), Job(2, 7, 1)]
    assert leading_runs(jobs, run_s, 1e9) == jobs
    assert cost_s(jobs, run_s) == 505.0 + 30.0 + 2000.0


def test_so_many_runs_that_no_plan_holds_them_are_planned_in_rounds():
    first = leading_runs(Ledger(experiment(f"runs={10**12}").run, 2).wanted(), np.array([1e-6, 1e-6]), 600.0)
    assert first == [Job(0, 7, 300_000_000), Job(1, 7, 300_000_000)]
    assert len(cut_tasks(first, np.array([1e-6, 1e-6]), 2)) <= 100
