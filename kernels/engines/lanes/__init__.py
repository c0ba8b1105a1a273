"""The CPU engine for long sweeps: each configuration gets machine code of its own, with all fixed values folded.

    model, one configuration
      |  traced   its guards, effects and invariants as expressions, with fixed values folded
      |  plan     the layout of a run in lanes: their width, the places of masks of enabled instances, the row
      v
    one of two forms, emitted as LLVM of the same parts (parts/: draws, choice, affected, rows, lane_kernel)
      |  vector/   a run in each lane of a register, every effect computed for all
      |  queued/   runs wait in memory for others that draw the same, and step side by side
      v
    build     compiled, kept on disk, loaded
    switch    decides: starts on `base`, compares each form with it bit for bit, goes on with the fastest

Runs that it cannot make it leaves to the generic engine, `numba_engine`, whose results it equals bit for bit. `base` is
that engine, or, where it is not compiled and configurations are few, a form that assumes nothing of runs.
"""

import threading
from collections import Counter
from collections.abc import Sequence

import numpy as np

from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.lanes.base import MAX_EARLY_KERNELS
from quorisk.kernels.engines.lanes.by_configuration import ByConfiguration
from quorisk.kernels.engines.lanes.switch import Switch
from quorisk.kernels.engines.points import Points
from quorisk.kernels.model import Model
from quorisk.kernels.progress import Progress

NAME = "lanes"
switches = ByConfiguration(lambda model, points: Switch(model, points, 0), 1 << 10)
"""Switches of this process: each makes the runs of one configuration."""


def simulate(
    model: Model,
    points: Points,
    jobs: Sequence[Job],
    seed: int,
    threads: int = 1,
    progress: Progress | None = None,
    later: int = 0,
) -> np.ndarray:
    """See `registry.Engine`; the result does not depend on when a kernel takes over from the generic engine."""
    if len(points.starts.cumulative):  # kernels start at the beginning
        return numba_engine.simulate(model, points, jobs, seed, threads, progress)
    left, lock = Counter({job.point: later for job in jobs}), threading.Lock()
    for job in jobs:
        left[job.point] += job.num_runs

    def work(job: Job) -> np.ndarray:
        with lock:
            left[job.point] -= job.num_runs
            runs_left = left[job.point]
        return _switch(model, points, job.point, job.num_runs + runs_left).tally(seed, job, runs_left)

    return numba_engine.in_chunks(model, jobs, threads, progress, work)


def record(model: Model, points: Points, job: Job, seed: int) -> np.ndarray:
    """See `registry.Engine`."""
    if len(points.starts.cumulative):
        return numba_engine.record(model, points, job, seed)
    return _switch(model, points, job.point, job.num_runs).record(seed, job)


def _switch(model: Model, points: Points, point: int, runs: int) -> Switch:
    switch = switches.get(model, points, point)
    if len(points.params) <= MAX_EARLY_KERNELS:
        switch.begin(runs)
    return switch
