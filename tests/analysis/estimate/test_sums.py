"""Sums of any size, from engines that count in 64 bits."""

from types import SimpleNamespace

import numpy as np
import pytest

from quorisk.analysis.estimate import estimate
from quorisk.analysis.estimate.sums import most_runs, run_sums
from quorisk.analysis.experiment.config import build_experiment
from quorisk.analysis.experiment.keys import MAX_STEPS
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import pack
from quorisk.kernels.engines.registry import engine_of
from quorisk.kernels.engines.tally import LOSS_TIME_HIGH, MOST_HIGH_TICKS, STEPS_SQUARED, num_columns
from quorisk.kernels.protocols import registry
from tests.support import point_of

MODEL = registry.load("compaction")


@pytest.mark.parametrize("max_steps", [1, 300, 10**5, 2**19, 2**19 + 1, 10**7, MAX_STEPS])
def test_no_sum_of_so_many_runs_can_wrap(max_steps):
    most = most_runs(max_steps)
    assert most >= 1
    for largest in (max_steps**2, MOST_HIGH_TICKS, 63 * max_steps):
        assert most * largest < 2**63
    assert (most + 1) * max(max_steps**2, MOST_HIGH_TICKS) >= 2**63  # nor is a job smaller than it needs to be


def test_sums_beyond_64_bits_are_exact():
    """An engine of which every run takes MAX_STEPS steps and loses as late as it counts."""
    points, jobs = pack(MODEL, [point_of(MODEL, max_steps=MAX_STEPS)]), []

    def simulate(model, points, given, seed, threads=1, progress=None, later=0):
        jobs.extend(given)
        tallies = np.zeros((len(given), num_columns(model)), np.int64)
        for tally, job in zip(tallies, given, strict=True):
            tally[STEPS_SQUARED] = job.num_runs * MAX_STEPS**2
            tally[LOSS_TIME_HIGH] = job.num_runs * MOST_HIGH_TICKS
        assert (tallies >= 0).all()
        return tallies

    sums = run_sums(SimpleNamespace(simulate=simulate), MODEL, points, Job(0, 3, 100_000), 1)
    assert sums[STEPS_SQUARED] == 10**5 * 10**18 > 2**63
    assert sums[LOSS_TIME_HIGH] == 10**5 * MOST_HIGH_TICKS
    assert [run for job in jobs for run in range(job.first_run, job.first_run + job.num_runs)] == list(
        range(3, 100_003)
    )


def test_they_are_the_engines_own_where_it_does_not_matter():
    points = pack(MODEL, [point_of(MODEL)] * 2)
    engine, told = engine_of("numba"), list[int]()
    [expected] = engine.simulate(MODEL, points, [Job(1, 5, 3000)], 7).tolist()
    assert run_sums(engine, MODEL, points, Job(1, 5, 3000), 7, 2, told.append) == expected
    assert sum(told) == 3000


def test_estimates_of_runs_that_may_be_very_long_and_parts_of_one_are_the_whole():
    topic = {"protocol": "compaction", "model": {"messages": 3, "compactions": 3, "keys": 1, "values": 1}}

    def steps(*overrides):
        return estimate.estimate(
            build_experiment(topic, "topic", ["max_crashes=2", "max_steps=1000000000", *overrides]), 2
        ).steps

    assert steps("runs=500") == steps("runs=200") + steps("runs=300", "first_run=200")
    assert steps("runs=300") != steps("runs=300", "first_run=200")
