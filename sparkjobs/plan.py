"""The plan: which runs of which points make a task. It decides who computes what, never what comes out."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kernels.model import Model
from kernels.numba_engine import Job, simulate
from kernels.points import Points
from kernels.tally import STEPS

TASK_S = 10.0
"""Seconds that a task of a long sweep takes: short beside the sweep, long beside Spark's own work for a task."""
TASKS_PER_CORE = 4
PLAN_SCHEMA = pa.schema({"task": pa.int64(), "point": pa.int64(), "first_run": pa.int64(), "num_runs": pa.int64()})
"""A row is a range of runs of one point; a task has one or several."""
_PILOT_RUNS = 256


class Cost(NamedTuple):
    """What runs cost on one core."""

    run_s: np.ndarray
    """Seconds of a run, by point."""
    compile_s: float
    """Seconds until the engine was compiled, or loaded from the cache on disk."""


def pilot(model: Model, points: Points, ranges: Sequence[range], seed: int, threads: int) -> Cost:
    """Times a few runs of each range; leaves the engine compiled in the cache on disk, where tasks find it."""
    start = time.perf_counter()
    simulate(model, points, [Job(0, 0, 1)], seed)
    compiled = time.perf_counter()
    jobs = [Job(point, runs.start, min(len(runs), _PILOT_RUNS)) for point, runs in enumerate(ranges)]
    num_runs = np.maximum([job.num_runs for job in jobs], 1)
    steps = simulate(model, points, jobs, seed, threads)[:, STEPS] / num_runs + 1.0  # a run costs a bit besides
    core_s = (time.perf_counter() - compiled) * threads
    return Cost(steps * core_s / (steps @ num_runs), compiled - start)


def num_tasks(ranges: Sequence[range], cost: Cost, cores: int) -> int:
    """Tasks of about TASK_S seconds, but enough that all cores are busy until the end."""
    total_s = float(np.array([len(runs) for runs in ranges]) @ cost.run_s)
    return max(TASKS_PER_CORE * cores, round(total_s / TASK_S))


def plan(ranges: Sequence[range], run_s: np.ndarray, num_tasks: int) -> pa.Table:
    """Cuts the runs of all points, laid end to end, into at most `num_tasks` tasks of equal cost: PLAN_SCHEMA.

    `ranges[i]` are the runs of point i, and each of them costs `run_s[i]`. No range of a point is empty.
    """
    num_runs = np.array([len(runs) for runs in ranges], np.int64)
    ends = np.concatenate([[0], np.cumsum(num_runs)])
    costs = np.concatenate([[0.0], np.cumsum(num_runs * run_s)])
    cuts = np.interp(np.linspace(0.0, costs[-1], num_tasks + 1), costs, ends)
    cuts = np.unique(np.rint(cuts).astype(np.int64))
    edges = np.union1d(cuts, ends)
    starts = edges[:-1]
    point = np.searchsorted(ends, starts, "right") - 1
    first_run = np.array([runs.start for runs in ranges], np.int64)[point] + starts - ends[point]
    task = np.searchsorted(cuts, starts, "right") - 1
    return pa.table([task, point, first_run, np.diff(edges)], schema=PLAN_SCHEMA)
