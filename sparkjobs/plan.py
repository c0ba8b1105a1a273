"""The plan: which runs of which points make a task. It decides who computes what, never what comes out."""

import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from analysis import protocols
from analysis.estimate import num_cores
from kernels.engines import Job, choose
from kernels.tally import STEPS
from sparkjobs.run import Work

SHORTEST_S, LONGEST_S = 0.5, 10.0
"""Seconds that a task takes, about. Spark spends a few hundredths of a second on each."""
TASKS_PER_CORE = 8
"""Of a sweep whose tasks may be shorter than LONGEST_S."""
PLAN_SCHEMA = pa.schema({"task": pa.int64(), "point": pa.int64(), "first_run": pa.int64(), "num_runs": pa.int64()})
"""A row is a range of runs of one point; a task has one or several."""
_FIRST_PILOT, _PILOT_S = 16, 0.1


def pilot(work: Work, ranges: Sequence[range]) -> np.ndarray:
    """Seconds that a run takes on one core, by point, from some of the runs in `ranges`: a hundredth at the most.

    Leaves the engine compiled in the cache on disk, where tasks on this machine find it.
    """
    model, threads = protocols.load(work.protocol), num_cores()
    simulate = choose(work.engine).simulate
    simulate(model, work.points, [Job(0, 0, 1)], work.seed)
    hundredth = np.array([-(-len(runs) // 100) for runs in ranges])
    num_runs = np.minimum(hundredth, _FIRST_PILOT)
    while True:
        jobs = [Job(point, runs.start, int(num_runs[point])) for point, runs in enumerate(ranges)]
        start = time.perf_counter()
        steps = simulate(model, work.points, jobs, work.seed, threads)[:, STEPS]
        took_s = time.perf_counter() - start
        if took_s > _PILOT_S or (num_runs == hundredth).all():
            break
        num_runs = np.minimum(hundredth, 4 * num_runs)
    cost = steps / np.maximum(num_runs, 1) + 1.0  # beginning a run costs about a step
    return cost * took_s * threads / (cost @ num_runs)


def num_tasks(ranges: Sequence[range], run_s: np.ndarray, cores: int) -> int:
    """Tasks long enough to be worth their start, and enough of them that all cores are busy until the end."""
    total_s = float(np.array([len(runs) for runs in ranges]) @ run_s)
    return max(cores, min(TASKS_PER_CORE * cores, int(total_s / SHORTEST_S)), int(total_s / LONGEST_S))


def plan(ranges: Sequence[range], run_s: np.ndarray, num_tasks: int) -> pa.Table:
    """Cuts the runs of all points, laid end to end, into at most `num_tasks` tasks of equal cost: PLAN_SCHEMA.

    `ranges[i]` are the runs of point i, and each of them takes `run_s[i]` seconds.
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
