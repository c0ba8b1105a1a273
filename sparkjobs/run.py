"""Running a plan on Spark: a partition and a core for each task; its rows come back as it ends.

They come in an accumulator: Spark applies the updates of an action's task once, however often the task was tried and
whichever of its copies came first. So a row counts once. Driver and workers need no disk in common.
"""

import secrets
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import Accumulator, AccumulatorParam, Broadcast, SparkContext, TaskContext

from quorisk.analysis.estimate.ahead import compile_for_exits
from quorisk.analysis.estimate.sums import run_sums
from quorisk.analysis.experiment.config import RunSettings
from quorisk.analysis.experiment.grid import GridPoint
from quorisk.analysis.results import schema
from quorisk.kernels.compiled import once
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import Points, kin
from quorisk.kernels.engines.registry import Engine, engine_of
from quorisk.kernels.engines.tally import num_columns
from quorisk.kernels.protocols import registry
from quorisk.sparkjobs.tails import run_tail

T = TypeVar("T")
POLL_S = 0.25


class Work(NamedTuple):
    """The data that the tasks of a sweep share."""

    protocol: str
    run: RunSettings
    """The run settings of the experiment; with the engine `auto`, each machine chooses one."""
    points: Points
    grid: tuple[GridPoint, ...] = ()
    """The points whose heads may be solved."""
    enough: tuple[float, ...] = ()
    """Width of an interval of any data loss, by point, at which a head need not go on; 0 if there is none."""


class TaskPiece(NamedTuple):
    """A part of a task: runs of one point, computed by one core."""

    job: Job
    head: int = 0
    """The most transitions of the point's head, from whose exits the runs start; 0 if they start at the beginning."""
    later: int = 0
    """About the number of runs from the beginning, of the point and its kin, left for each core after these."""


class Done(NamedTuple):
    """The result of a job."""

    job: Job
    sums: list[int]
    """The tally of runs from the beginning, see `kernels.engines.tally.named_tally`: zeros if there are none."""
    attempt: int
    """Number of the task's attempt that did it, from 0."""
    host: str
    engine: str
    versions: list[str]
    wall_s: float
    head: dict[str, Any] | None = None
    """The head and the sums of runs from its exits, see `analysis.results.heads`; None of runs from the beginning."""


class RowsAccumulator(AccumulatorParam[list[Any]]):
    """The accumulator of tasks' results."""

    def zero(self, value: list[Any]) -> list[Any]:
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:
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
    """Runs a plan, as `gather` does."""
    if time.monotonic() >= deadline:
        return False
    tasks = pieces_of(plan, context.defaultParallelism, kin(work.value.points))
    return gather(
        context, tasks, lambda piece, attempt: run_piece(work.value, piece, attempt), deadline, take, description
    )


def gather(
    context: SparkContext,
    tasks: Sequence[Sequence[Any]],
    do: Callable[[Any, int], Any],
    deadline: float,
    take: Callable[[list[Any]], None],
    description: str = "",
) -> bool:
    """Has Spark `do` each piece of the tasks, given the number of the attempt, and calls `take` again and again with
    the results since its last call (none, perhaps).

    Returns False if `time.monotonic()` passed `deadline` before all was done; tasks that run then are given up.
    Whatever ends this, `take` gets all results before. Raises what Spark raises if a task fails too often.
    """
    finished: Accumulator[list[Any]] = context.accumulator([], RowsAccumulator())

    def compute() -> bool:
        context.parallelize(tasks, len(tasks)).foreachPartition(partial(_do_all, do, finished))
        return True

    return attended(context, compute, lambda: take(_drain(finished)), deadline, description) or False


def attended(
    context: SparkContext, compute: Callable[[], T], look: Callable[[], None], deadline: float, description: str
) -> T | None:
    """Returns the result of a job of Spark; calls `look` now and then meanwhile, and at the end, whatever ends it.

    Returns None if `time.monotonic()` passed `deadline` before; the job is given up then, and others of this Spark go
    on. Raises what Spark raises.
    """
    group = f"quorisk-{secrets.token_hex(8)}"

    def grouped() -> T:
        context.setJobGroup(group, description)  # of this thread's jobs
        return compute()

    # Ctrl-C stops the main thread alone. It must not stop halfway what keeps rows, nor a call to Java, upon which Py4J
    # breaks the calls of other threads, too, and makes them again: all tasks would run, and count, once more.
    with ThreadPoolExecutor(1) as computing, ThreadPoolExecutor(1) as looking:
        job = computing.submit(grouped)
        try:
            while not wait([job], POLL_S).done and time.monotonic() < deadline:
                looking.submit(look).result()
            return job.result() if job.done() else None
        finally:
            while not job.done():
                with suppress(Py4JError, ConnectionError):
                    looking.submit(context.cancelJobGroup, group).result()
                wait([job], POLL_S)  # then again: a job that had not reached Spark yet was not cancelled
            looking.submit(look).result()


def pieces_of(plan: pa.Table, cores: int, kin_of: Sequence[int]) -> list[list[TaskPiece]]:
    """Returns the pieces of each task of a plan for this many cores; `kin_of` is `points.kin`."""
    tasks: list[list[TaskPiece]] = [[] for _ in range(plan["task"][-1].as_py() + 1)]
    columns = [plan[name].to_pylist() for name in ("task", "head", *Job._fields)]
    left = Counter[int]()
    for _, head, point, _, num_runs in zip(*columns, strict=True):
        left[kin_of[point]] += 0 if head else num_runs
    for number, head, *job in zip(*columns, strict=True):
        piece = TaskPiece(Job(*job), head)
        left[kin_of[piece.job.point]] -= 0 if head else piece.job.num_runs
        tasks[number].append(piece._replace(later=left[kin_of[piece.job.point]] // cores))
    return tasks


def _drain(finished: "Accumulator[list[Any]]") -> list[Any]:
    """Takes all elements off the list, and returns them. Spark's thread may add to its end meanwhile."""
    there = finished.value
    taken = there[:]
    del there[: len(taken)]
    return taken


def _do_all(
    do: Callable[[Any, int], Any], finished: "Accumulator[list[Any]]", partition: Iterable[Sequence[Any]]
) -> None:
    """Does the pieces of a partition, which is a task, on a worker."""
    attempt = TaskContext.get()
    for pieces in partition:
        finished.add([do(piece, attempt.attemptNumber() if attempt else 0) for piece in pieces])


def run_piece(work: Work, piece: TaskPiece, attempt: int) -> Done:
    """Runs a piece on one thread."""
    model, engine = registry.load(work.protocol), engine_of(work.run.engine)
    sums, head = [0] * num_columns(model), None
    compile_once(engine, work)
    if piece.head:
        point = work.grid[piece.job.point]
        compile_for_exits(work.protocol, point.point)
        start = time.perf_counter()
        head = run_tail(engine, model, point, work.run, piece.job, piece.head, work.enough[piece.job.point])
    else:
        start = time.perf_counter()
        sums = run_sums(engine, model, work.points, piece.job, work.run.seed, later=piece.later)
    wall_s = time.perf_counter() - start
    host, versions = socket.gethostname(), schema.versions(engine.NAME)
    return Done(piece.job, sums, attempt, host, engine.NAME, versions, wall_s, head)


def compile_once(engine: Engine, work: Work) -> None:
    """Compiles what jobs run, unless this process has done so before."""
    call = partial(engine.simulate, registry.load(work.protocol), work.points, [Job(0, 0, 1)], work.run.seed)
    once(engine.NAME, work.protocol, call)
