"""Running a plan on Spark: a partition and a core for each task; its rows come back as it ends.

They come in an accumulator: Spark applies the updates of an action's task once, however often the task was tried and
whichever of its copies came first. So a row counts once. Driver and workers need no disk in common.
"""

import fcntl
import gc
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numba
import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import Accumulator, AccumulatorParam, Broadcast, SparkContext, TaskContext

from quorisk.analysis import heads, method, results
from quorisk.analysis.experiment.config import RunSettings
from quorisk.analysis.sums import run_sums
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import Point, Points, pack
from quorisk.kernels.engines.registry import Engine, choose
from quorisk.kernels.engines.tally import num_columns, read
from quorisk.kernels.protocols import registry
from quorisk.sparkjobs.gpu import assigned

POLL_S = 0.25
_COMPILED: set[tuple[str, str]] = set()
"""Engine and protocol of what this process has compiled or loaded."""


class Work(NamedTuple):
    """What the tasks of a sweep share."""

    protocol: str
    engine: str
    """As an experiment names it: `auto` is for each machine to choose."""
    seed: int
    points: Points
    run: RunSettings | None = None
    """What heads are solved by; None if none is."""
    grid: tuple[Point, ...] = ()
    """The points, of which heads are solved."""


class Done(NamedTuple):
    """What came of a job."""

    job: Job
    sums: list[int]
    """Its tally; see `kernels.engines.tally.read`."""
    attempt: int
    """0 if the task's first attempt did it."""
    host: str
    engine: str
    versions: list[str]
    wall_s: float
    head: dict[str, Any] | None = None
    """See `analysis.heads`; of a job without runs, which solves its point's head."""


class Rows(AccumulatorParam[list[Done]]):
    """Gathers what tasks have done."""

    def zero(self, value: list[Done]) -> list[Done]:
        return []

    def addInPlace(self, value1: list[Done], value2: list[Done]) -> list[Done]:
        value1.extend(value2)
        return value1


def run(
    context: SparkContext,
    work: "Broadcast[Work]",
    plan: pa.Table,
    deadline: float,
    take: Callable[[list[Done]], None],
    description: str = "",
) -> bool:
    """Runs a plan, and calls `take` again and again with what was done since its last call (nothing, perhaps).

    Returns False if `time.monotonic()` passed `deadline` before all was done; tasks that run then are given up.
    Whatever ends this, `take` gets all that was done before. Raises what Spark raises if a task fails too often.
    """
    if time.monotonic() >= deadline:
        return False
    finished: Accumulator[list[Done]] = context.accumulator([], Rows())
    tasks = jobs_by_task(plan)

    def compute() -> None:
        context.setJobDescription(description)  # of this thread's jobs
        context.parallelize(tasks, len(tasks)).foreachPartition(_Task(work, finished))

    def keep() -> None:
        take(_drain(finished))

    # Ctrl-C stops the main thread alone. It must not stop halfway what keeps rows, nor a call to Java, upon which Py4J
    # breaks the calls of other threads, too, and makes them again: all tasks would run, and count, once more.
    with ThreadPoolExecutor(1) as computing, ThreadPoolExecutor(1) as keeping:
        job = computing.submit(compute)
        try:
            while not wait([job], POLL_S).done and time.monotonic() < deadline:
                keeping.submit(keep).result()
            in_time = job.done()
            if in_time:
                job.result()
            return in_time
        finally:
            if not job.done():
                with suppress(Py4JError, ConnectionError):
                    keeping.submit(context.cancelAllJobs).result()
                wait([job])
            keeping.submit(keep).result()


def jobs_by_task(plan: pa.Table) -> list[list[Job]]:
    """The jobs of each task of a plan."""
    tasks: list[list[Job]] = [[] for _ in range(plan["task"][-1].as_py() + 1)]
    columns = (plan[name].to_pylist() for name in ("task", *Job._fields))
    for task, *job in zip(*columns, strict=True):
        tasks[task].append(Job(*job))
    return tasks


def _drain(finished: "Accumulator[list[Done]]") -> list[Done]:
    """What is there, which is gone then. Spark's thread may add to the end of the list meanwhile."""
    there = finished.value
    taken = there[:]
    del there[: len(taken)]
    return taken


class _Task:
    """What a worker does with a partition, which is a task."""

    def __init__(self, work: "Broadcast[Work]", finished: "Accumulator[list[Done]]") -> None:
        self.work, self.finished = work, finished

    def __call__(self, tasks: Iterable[Sequence[Job]]) -> None:
        attempt = TaskContext.get()
        for jobs in tasks:
            done = [run_job(self.work.value, job, attempt.attemptNumber() if attempt else 0) for job in jobs]
            self.finished.add(done)


def run_job(work: Work, job: Job, attempt: int) -> Done:
    """Runs a job on one thread; one without runs solves the head of its point, and runs what leaves it."""
    if job.num_runs == 0:
        return _solve(work, job, attempt)
    model, engine = registry.load(work.protocol), choose(work.engine)
    with assigned(engine.NAME):
        _compile_once(engine, work)
        start = time.perf_counter()
        sums = run_sums(engine, model, work.points, job, work.seed)
        wall_s = time.perf_counter() - start
    return Done(job, sums, attempt, socket.gethostname(), engine.NAME, results.versions(engine.NAME), wall_s)


def _solve(work: Work, job: Job, attempt: int) -> Done:
    """What `quorisk estimate` does with a point whose losses are rare: the same numbers, bit for bit."""
    assert work.run
    model, engine, point = registry.load(work.protocol), choose(work.engine), work.grid[job.point]
    with assigned(engine.NAME):
        _compile_once(engine, work)
        _once("head", work.protocol, lambda: method.warm(model, point))
        start = time.perf_counter()
        where = method.Where(engine, model, pack(model, [point]), 1, None)
        pilot = method.count(where, work.run, method.pilot_runs(point, work.run))
        found = method.solve(where, point, work.run, read(model, pilot.sums), num_points=len(work.grid))
        head = heads.record(model, found, work.run.first_run)
        wall_s = time.perf_counter() - start
    sums = [0] * num_columns(model)
    return Done(job, sums, attempt, socket.gethostname(), engine.NAME, results.versions(engine.NAME), wall_s, head)


def _compile_once(engine: Engine, work: Work) -> None:
    """Compiles what a job runs."""
    call = partial(engine.simulate, registry.load(work.protocol), work.points, [Job(0, 0, 1)], work.seed)
    _once(engine.NAME, work.protocol, call)


def _once(what: str, protocol: str, call: Callable[[], object]) -> None:
    """Has one process of a machine compile, while others that need the same wait for what it leaves on disk."""
    key = (what, protocol)
    if key in _COMPILED:
        return
    folder = Path(numba.config.CACHE_DIR)
    folder.mkdir(parents=True, exist_ok=True)
    ready = folder / f"{'-'.join(key)}.ready"
    with ready.with_suffix(".lock").open("w") as lock:
        if not ready.exists():
            fcntl.flock(lock, fcntl.LOCK_EX)
        call()
    ready.touch()
    gc.freeze()  # Spark has a worker collect garbage after every task: it need not go through Numba's objects, in 80 ms
    _COMPILED.add(key)
