"""The plan: which runs of which points make a task. It decides where runs are computed, never their results."""

import math
import time
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorisk.analysis.estimate.stopping import rule_of
from quorisk.analysis.experiment.config import RunSettings
from quorisk.analysis.statistics import sequential
from quorisk.kernels.cores import num_cores
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.registry import engine_of
from quorisk.kernels.engines.tally import STEPS
from quorisk.kernels.progress import Progress
from quorisk.kernels.protocols import registry
from quorisk.sparkjobs.run import Work

SHORTEST_S, LONGEST_S = 0.25, 10.0
"""Seconds of the shortest and the longest task, about. Spark spends a hundredth of a second on each."""
TASKS_PER_CORE = 24
"""The most tasks per core while they are shorter than LONGEST_S: the more, the less cores wait for the last of them."""
PLAN_SCHEMA = pa.schema(
    [
        pa.field("task", pa.int64(), metadata={"doc": "number of the task"}),
        pa.field("head", pa.int64(), metadata={"doc": "the most transitions of a head; 0 of runs from the beginning"}),
        pa.field("point", pa.int64(), metadata={"doc": "number of the point, in the experiment's order"}),
        pa.field("first_run", pa.int64(), metadata={"doc": "index of the first run"}),
        pa.field("num_runs", pa.int64(), metadata={"doc": "number of runs"}),
        pa.field("expected_s", pa.float64(), metadata={"doc": "seconds that they take on one core, by the pilot"}),
    ]
)
"""A row is a range of runs of one point. A task has one or several."""
LEFT_PART = 1 / 8
"""Part of a budget's remaining seconds for the runs that are made at once with a head."""
_FIRST_PILOT, _PILOT_S, _REPETITIONS = 16, 0.05, 3
_UNDISTURBED_S = 1.0
"""Fewest seconds of runs for which other load of the machine matters little."""
_TOGETHER = 1 << 12
"""Points that are timed together: the tallies of many more would take gigabytes."""


def pilot(work: Work, progress: Progress | None = None) -> np.ndarray:
    """Returns the seconds that a run takes on one core, by point, from at most a hundredth of `run.runs`.

    Leaves the engine compiled in the cache on disk, where tasks on this machine find it. `progress` is called with the
    number of points that have been timed.
    """
    model, run, threads = registry.load(work.protocol), work.run, num_cores()
    simulate = engine_of(run.engine).simulate
    simulate(model, work.points, [Job(0, run.first_run, 1)], run.seed)
    hundredth = -(-run.runs // 100)
    tried = min(hundredth, _FIRST_PILOT)
    while True:
        jobs = [Job(point, run.first_run, tried) for point in range(len(work.points.losses))]
        took_s, steps = math.inf, np.zeros(len(jobs), np.int64)
        for _ in range(_REPETITIONS):  # what else goes on, Spark's start say, may hold up one of them
            start = time.perf_counter()
            for begin in range(0, len(jobs), _TOGETHER):
                part = slice(begin, begin + _TOGETHER)
                steps[part] = simulate(model, work.points, jobs[part], run.seed, threads)[:, STEPS]
                if progress:
                    progress(min(begin + _TOGETHER, len(jobs)))
            took_s = min(took_s, time.perf_counter() - start)
            if took_s > _UNDISTURBED_S:
                break
        if took_s > _PILOT_S or tried == hundredth:
            break
        tried = min(hundredth, 4 * tried)
    cost = steps / tried + 1.0  # beginning a run costs about a step
    return np.asarray(cost * took_s * threads / (cost.sum() * tried))


def leading_runs(jobs: Sequence[Job], run_s: np.ndarray, core_s: float) -> list[Job]:
    """Returns the first runs of each point among `jobs`, as many of each, that take about `core_s` seconds together.

    A point that has fewer left gives its share to the others; every point gets one run at least.
    """
    points, _, num_runs = np.array(jobs, np.int64).reshape(-1, 3).T
    left = np.bincount(points, num_runs, len(run_s))
    low, high = 1, max(1, int(left.max()))
    while low < high:
        middle = (low + high + 1) // 2
        affordable = float(np.minimum(left, middle) @ run_s) <= core_s
        low, high = (middle, high) if affordable else (low, middle - 1)
    open_runs = dict.fromkeys(points.tolist(), low)
    shared = []
    for job in jobs:
        taken = min(job.num_runs, open_runs[job.point])
        open_runs[job.point] -= taken
        if taken:
            shared.append(job._replace(num_runs=taken))
    return shared


def cost_s(jobs: Sequence[Job], run_s: np.ndarray) -> float:
    """Returns the seconds that jobs take on one core."""
    points, _, num_runs = np.array(jobs, np.int64).reshape(-1, 3).T
    return float(num_runs @ run_s[points])


def cut_tasks(jobs: Sequence[Job], run_s: np.ndarray, cores: int, heads: Mapping[int, int] | None = None) -> pa.Table:
    """Cuts jobs, laid end to end, into tasks of about equal cost for this many cores: PLAN_SCHEMA.

    A run of point i takes `run_s[i]` seconds. Tasks are long enough to be worth starting, and numerous enough to keep
    all cores busy until the end. `heads` has the most transitions of the heads from which runs of some points start.
    """
    if not jobs:
        return PLAN_SCHEMA.empty_table()
    point, first_run, num_runs = np.array(jobs, np.int64).reshape(-1, 3).T
    ends = np.concatenate([[0], np.cumsum(num_runs)])
    costs = np.concatenate([[0.0], np.cumsum(num_runs * run_s[point])])
    num_tasks = max(cores, min(TASKS_PER_CORE * cores, int(costs[-1] / SHORTEST_S)), int(costs[-1] / LONGEST_S))
    cuts = np.interp(np.linspace(0.0, costs[-1], num_tasks + 1), costs, ends)
    cuts = np.unique(np.rint(cuts).astype(np.int64))
    edges = np.union1d(cuts, ends)
    starts, lengths = edges[:-1], np.diff(edges)
    job = np.searchsorted(ends, starts, "right") - 1
    task = np.searchsorted(cuts, starts, "right") - 1
    of_head = np.array([(heads or {}).get(index, 0) for index in range(len(run_s))])
    first_runs = first_run[job] + starts - ends[job]
    columns = [task, of_head[point[job]], point[job], first_runs, lengths, lengths * run_s[point[job]]]
    return pa.table(columns, schema=PLAN_SCHEMA)


def solving(heads: Mapping[int, int], run: RunSettings, run_s: np.ndarray, left_s: float = math.inf) -> pa.Table:
    """Returns a task for each point whose head is wanted, given its most transitions, the longest first: PLAN_SCHEMA.

    It makes the first runs from the exits, too: up to the first look, if there are any, and for LONGEST_S at the
    most, or a part of the `left_s` seconds of a budget: if time is up before these end, the head is lost with them.
    """
    order = sorted(heads, key=lambda point: -run_s[point])
    first = next(sequential.looks(run.runs)) if rule_of(run) else run.runs
    num_runs = np.clip(min(LONGEST_S, LEFT_PART * left_s) / run_s[order], 1, first).astype(np.int64)
    columns = {
        "task": np.arange(len(order)),
        "head": [heads[point] for point in order],
        "point": order,
        "first_run": [run.first_run] * len(order),
        "num_runs": num_runs,
        "expected_s": run_s[order] * (run.runs + num_runs),  # a head takes as long as the runs, at the most
    }
    return pa.table(columns, schema=PLAN_SCHEMA)


def join_plans(first: pa.Table, then: pa.Table) -> pa.Table:
    """Returns two plans as one."""
    place = PLAN_SCHEMA.get_field_index("task")
    later = pc.add(then["task"], first.num_rows)
    return pa.concat_tables([first, then.set_column(place, PLAN_SCHEMA.field("task"), later)])
