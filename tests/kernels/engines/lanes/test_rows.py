"""Rows of kernels' runs, and counters that need not hold every run, against the generic engine."""

import math
import time
from typing import Any

import numpy as np
import pytest

from quorisk.analysis import bench
from quorisk.kernels import keeping
from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.job import RECORD, Job, runs_of
from quorisk.kernels.engines.lanes import runs
from quorisk.kernels.engines.lanes.build import QUEUED
from quorisk.kernels.engines.lanes.parts import lane_kernel
from quorisk.kernels.engines.lanes.parts.rows import add_rows_at_once
from quorisk.kernels.engines.lanes.plan import columns_of, counted_steps, limits_of, weights_of
from quorisk.kernels.engines.lanes.queued import queues
from quorisk.kernels.engines.lanes.switch import Switch
from quorisk.kernels.engines.lanes.traced import traced_for
from quorisk.kernels.engines.points import Point, Points, pack, params_at
from quorisk.kernels.engines.tally import empty
from quorisk.kernels.model import Model
from quorisk.kernels.protocols import registry
from quorisk.kernels.tracing.observe import observe
from tests.external import two_copies
from tests.kernels.engines import fuzz
from tests.kernels.engines.losing import OF_16_BITS, RUNS, losing, prepared
from tests.support import point_of

pytestmark = pytest.mark.usefixtures("no_kernels_at_hand")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", [OF_16_BITS, QUEUED])
def test_runs_too_long_for_what_counts_their_steps_change_no_result(monkeypatch, shape):
    """There is room for 20 steps: runs that take as many are repeated, and no others."""
    model, point = registry.load("kafka"), bench.random_runs("kafka").points[0].point
    monkeypatch.setattr(lane_kernel, "counted_steps", lambda *_: 20)
    steps = fuzz.make(model, point, 6, RUNS).records[:, RECORD.index("steps")]
    assert fuzz.compare(model, point, shape, True, 6, RUNS).repeated == (steps >= 20).sum()


@pytest.mark.parametrize(
    ("mean_steps", "messages", "most"),
    [(12.0, 0, 32767), (511.0, 1, 32767), (513.0, 1, 100_000), (12.0, 3, 10_922), (math.inf, 0, 100_000)],
)
def test_counters_are_narrow_if_hardly_any_run_takes_that_many_steps(mean_steps, messages, most):
    model, point = losing()
    points = pack(model, [point._replace(max_steps=100_000)])
    limits, weights = limits_of(points, 0, True), weights_of(points, 0)
    traced = traced_for(model, params_at(model, points, 0), weights, limits, OF_16_BITS)
    traced = traced._replace(bounds=traced.bounds._replace(mean_steps=mean_steps))
    assert counted_steps(traced, limits, 16, messages) == most


def test_it_takes_all_runs_to_end_to_say_how_many_steps_they_take(monkeypatch):
    """If one in hundreds went on for ever, it would hold most steps."""
    model, point = registry.load("kafka"), bench.random_runs("kafka").points[0].point
    points = pack(model, [point])
    given = model, params_at(model, points, 0), weights_of(points, 0), [0.0]
    assert 20 < observe(*given).mean_steps < 40
    monkeypatch.setattr("quorisk.kernels.tracing.observe.MAX_ROUNDS", 20)
    assert math.isinf(observe(*given).mean_steps)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", [OF_16_BITS, QUEUED])
def test_a_model_without_invariants(shape):
    model = two_copies.MODEL._replace(name="two_unwatched", invariants=())  # compiled code is kept by the model's name
    point = Point({"houses": 1}, {"copy_is_lost": 0.5, "copy_is_made": 2.0, "fire": 0.05}, 0.2, 10**6, math.inf, 10.0)
    fuzz.compare(model, point, shape, True, 6, 100)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("num_runs", [1, 15, 16, 17, 31, 32, 33, 64, 65, 100])
@pytest.mark.parametrize("shape", [OF_16_BITS, QUEUED])
def test_every_run_has_its_row_however_many_there_are(monkeypatch, shape, num_runs):
    """Rows are written a step after their runs ended, those of the last ones, too, and none of other runs; nothing is
    written beside the memory that a kernel asks for."""
    monkeypatch.setattr(queues, "POOL", 32)
    found, job = prepared(shape), Job(0, 7, num_runs)
    assert np.array_equal(found.tally_all(1, job), numba_engine.tally_of(found.model, found.points, 1, job))
    kernel, nothing, beside = found.kernel, 12345, 64
    assert kernel is not None
    rows, scratch = np.full((num_runs + 2 * beside, kernel.row_words), nothing), np.full(kernel.scratch_words + 128, -1)
    kernel.run(1, 0, 7, num_runs, scratch[beside:].ctypes.data, rows[beside:].ctypes.data)
    assert (rows[beside:-beside] != nothing).all()
    assert (rows[:beside] == nothing).all()
    assert (rows[-beside:] == nothing).all()
    assert (scratch[:beside] == -1).all()
    assert (scratch[-beside:] == -1).all()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "watched", "exposed"), [("compaction", (0, 2), ()), ("bookkeeper", (6,), (6,))])
@pytest.mark.parametrize("shape", [OF_16_BITS, QUEUED])
def test_rows_tell_when_invariants_broke_and_for_how_long(name, watched, exposed, shape):
    model, point = registry.load(name), bench.random_runs(name).points[0].point
    compared = fuzz.compare(model, point, shape, True, 9, RUNS)
    assert compared.repeated < RUNS
    found = Switch(model, pack(model, [point]), 0)
    found.prepare(timed=True, shape=OF_16_BITS)
    assert found.kernel is not None
    assert list(found.kernel.columns) == list(columns_of(model, watched, exposed))


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("name", ["compaction", pytest.param("bookkeeper", marks=pytest.mark.exhaustive)])
def test_numpy_adds_up_rows_as_compiled_code_does(monkeypatch, name, timed):
    model, point = losing() if name == "compaction" else (registry.load(name), bench.random_runs(name).points[0].point)
    found, job = Switch(model, pack(model, [point]), 0), Job(0, 3, RUNS)
    found.prepare(timed=timed, shape=OF_16_BITS)
    assert found.kernel is not None

    def made(compiled: bool) -> tuple[np.ndarray, ...]:
        monkeypatch.setattr(keeping, "is_at_hand", lambda add: compiled)
        monkeypatch.setattr(runs, "add_rows_at_once", add_rows_at_once if not compiled else None)
        assert found.kernel is not None
        tally, records = empty(model, 0)
        return runs.add_runs(found.kernel, found._where, 4, runs_of(job), tally, records), tally

    assert all(map(np.array_equal, made(True), made(False)))
    left, tally = made(False)
    assert tally.sum() > 0
    assert (len(left) > 0) == (not timed)


def test_trials_of_kernels_repeat_what_these_leave_to_the_generic_engine(monkeypatch):
    """Two runs are observed for a few steps, so that most others leave the bounds."""
    model, made, make = registry.load("kafka"), list[int](), numba_engine.tally_of_runs

    def count(model: Model, points: Points, seed: int, point: int, runs: np.ndarray, recording: bool = False) -> Any:
        made.append(len(runs))
        return make(model, points, seed, point, runs, recording)

    monkeypatch.setattr("quorisk.kernels.tracing.observe.MAX_ROUNDS", 5)
    monkeypatch.setattr("quorisk.kernels.tracing.observe.NUM_RUNS", 2)
    monkeypatch.setattr(numba_engine, "tally_of_runs", count)
    Switch(model, pack(model, [point_of(model)]), 0).prepare(timed=True)
    in_trials = set(made) - {1}  # but for the runs that come before trials
    assert len(in_trials) == 2
    assert min(in_trials) > max(in_trials) / 2


def test_what_is_loaded_first_does_not_count_in_trials():
    """Else the first kernel of a process, whose rows' code is loaded then, would never seem to be faster."""
    loaded: list[Job] = []

    def take(seconds: float) -> None:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    def new(job: Job) -> None:
        take(0.001 if loaded else 0.2)
        loaded.append(job)

    assert prepared(OF_16_BITS)._times_as_fast(new, lambda job: take(0.02), 0.0) > 2
