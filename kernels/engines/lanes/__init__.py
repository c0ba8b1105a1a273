"""The CPU engine for long sweeps: each configuration gets machine code of its own, with all that is fixed folded.

It falls back to the generic engine, `numba_engine`, for whatever it cannot do, and gives the same results bit for bit.
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.lanes.switch import Switch
from quorisk.kernels.engines.points import Points, alone, key
from quorisk.kernels.model import Model

NAME = "lanes"
_MOST_SWITCHES = 1 << 10
_switches: dict[Any, Switch] = {}
"""By configuration, so that a kernel serves all calls of a process."""
_lock = threading.Lock()


def simulate(
    model: Model,
    points: Points,
    jobs: Sequence[Job],
    seed: int,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Runs the jobs; returns int64 tallies of shape (jobs, num_columns(model)).

    `progress` is called in this thread with the number of runs that have ended since its last call. The result does
    not depend on `threads`, nor on when a kernel takes over from the generic engine.
    """
    if len(points.starts.cumulative):  # kernels start at the beginning
        return numba_engine.simulate(model, points, jobs, seed, threads, progress)
    left = Counter[int]()
    for job in jobs:
        left[job.point] += job.num_runs

    def work(job: Job) -> np.ndarray:
        with _lock:
            left[job.point] -= job.num_runs
            runs_left = left[job.point]
        return switch_of(model, points, job.point).tally(seed, job, runs_left)

    return numba_engine.in_chunks(model, jobs, threads, progress, work)


def record(model: Model, points: Points, job: Job, seed: int) -> np.ndarray:
    """One row of RECORD a run, int64 of shape (runs, len(RECORD))."""
    if len(points.starts.cumulative):
        return numba_engine.record(model, points, job, seed)
    return switch_of(model, points, job.point).record(seed, job)


def switch_of(model: Model, points: Points, point: int) -> Switch:
    """What runs a point in this process."""
    configuration = model.name, *key(points, point)
    with _lock:
        if configuration not in _switches:
            if len(_switches) >= _MOST_SWITCHES:
                _switches.pop(next(iter(_switches)))
            _switches[configuration] = Switch(model, alone(points, point), 0)
        return _switches[configuration]
