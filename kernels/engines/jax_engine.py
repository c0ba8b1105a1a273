"""The XLA engine: runs on a GPU, or on the CPU, with the Numba engine's results bit for bit.

The host fills a queue with jobs and checks a few times a second while the device works it off: the first that JAX sees.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import jax
import numpy as np

from quorisk.kernels import packing
from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.jax_batch import MAX_JOBS, MAX_RECORDS, Batch, Queue, advance, fresh
from quorisk.kernels.engines.jax_step import Table, state_types
from quorisk.kernels.engines.job import RECORD, Job
from quorisk.kernels.engines.points import ALWAYS, Points
from quorisk.kernels.engines.starts import FLOW_UNIT, Starts
from quorisk.kernels.engines.step import Settings
from quorisk.kernels.engines.tally import num_columns
from quorisk.kernels.errors import EngineError
from quorisk.kernels.keeping import cache_folder
from quorisk.kernels.model import Model
from quorisk.kernels.progress import Progress

NAME = "jax"
_CPU_LANES, _GPU_LANES = 1 << 12, 1 << 18  # docs/gpus.md has what more and fewer cost
_LOOK_S = 0.1, 0.4
"""Seconds between two looks at the devices."""

# JAX would take three quarters of a GPU's memory, but the tasks of a sweep share the GPU
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "xla"))


def simulate(
    model: Model,
    points: Points,
    jobs: Sequence[Job],
    seed: int,
    threads: int = 1,
    progress: Progress | None = None,
    later: int = 0,
) -> np.ndarray:
    """See `registry.Engine`. `later` is not used, and `threads` only where runs are hurried: XLA takes all cores of a
    CPU. Raises EngineError if devices lack memory."""
    if points.starts.places:  # only CPUs hurry runs
        return numba_engine.simulate(model, points, jobs, seed, threads, progress)
    tallies = [np.zeros((0, num_columns(model)), np.int64)]
    for first in range(0, len(jobs), MAX_JOBS):
        some = jobs[first : first + MAX_JOBS]
        done = _work_off(model, _queue(model, points, some, seed), sum(job.num_runs for job in some), progress)
        sums = np.asarray(done.tallies).reshape(-1, MAX_JOBS, num_columns(model)).sum(0)  # each copy has some lanes'
        tallies.append(sums[: len(some)])
    return np.concatenate(tallies)


def record(model: Model, points: Points, job: Job, seed: int) -> np.ndarray:
    """See `registry.Engine`. Raises EngineError if the devices lack memory."""
    if points.starts.places:
        return numba_engine.record(model, points, job, seed)
    rows = [np.zeros((0, len(RECORD)), np.int64)]
    for start in range(0, job.num_runs, MAX_RECORDS):
        some = Job(job.point, job.first_run + start, min(MAX_RECORDS, job.num_runs - start))
        done = _work_off(model, _queue(model, points, [some], seed, recording=True), some.num_runs)
        rows.append(np.asarray(done.records)[: some.num_runs])
    return np.concatenate(rows)


def device() -> jax.Device:
    """The device that the engine takes: the first of this process."""
    return jax.local_devices()[0]


def num_lanes() -> int:
    """Runs that the device steps at a time."""
    return _CPU_LANES if device().platform == "cpu" else _GPU_LANES


def _queue(model: Model, points: Points, jobs: Sequence[Job], seed: int, recording: bool = False) -> Queue:
    """Tables of MAX_JOBS rows. The settings of rows without a job are never read."""
    point = np.zeros(MAX_JOBS, np.int64)
    first_runs = np.zeros(MAX_JOBS, np.int64)
    starts = np.full(MAX_JOBS, 2**62, np.int64)
    point[: len(jobs)] = [job.point for job in jobs]
    first_runs[: len(jobs)] = [job.first_run for job in jobs]
    starts[: len(jobs)] = np.cumsum([0, *(job.num_runs for job in jobs)])[:-1]
    settings = Settings(
        params=tuple(points.params[point].T),
        weights=tuple(points.weights[point].T),
        accepts=tuple(points.accepts[point].T) if (points.accepts < ALWAYS).any() else (),
        losses=tuple(points.losses[point].T),
        max_steps=points.max_steps[point],
        horizon=points.horizons[point],
    )
    return Queue(
        settings=settings,
        time_units=points.time_units[point],
        first_runs=first_runs,
        starts=starts,
        seed=np.uint64(seed),
        recording=np.bool_(recording),
        table=_table(model, points.starts) if len(points.starts.cumulative) else None,
    )


def _table(model: Model, starts: Starts) -> Table:
    """The table of starts, padded to a power of two: one compiled program serves tables of about that size."""
    missing = (1 << (len(starts.cumulative) - 1).bit_length()) - len(starts.cumulative)
    columns = zip(packing.columns(starts.rows, starts.layout, model.widths), state_types(model), strict=True)
    return Table(
        np.pad(starts.cumulative, (0, missing), constant_values=FLOW_UNIT),
        tuple(np.pad(column.astype(kind), (0, missing)) for column, kind in columns),
    )


@contextmanager
def _memory_errors() -> Iterator[None]:
    """Raises EngineError where XLA says that memory ran out."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise EngineError(f"the device's memory ran out: {str(error).splitlines()[0]}") from None


@_memory_errors()
def _work_off(model: Model, queue: Queue, num_runs: int, progress: Progress | None = None) -> Batch:
    """Makes all runs of the queue; returns the batch after them."""
    queue = jax.device_put(queue)
    batch = fresh(model, num_lanes(), num_runs)
    ended, rounds = 0, 1
    while ended < num_runs:
        start = time.perf_counter()
        batch = advance(model)(batch, queue, rounds)
        running = int(batch.running)  # waits for the device
        now = time.perf_counter()
        rounds = 2 * rounds if now - start < _LOOK_S[0] else max(1, rounds // 2) if now - start > _LOOK_S[1] else rounds
        now_ended = int(batch.next) - running
        if progress:
            progress(now_ended - ended)
        ended = now_ended
    return batch
