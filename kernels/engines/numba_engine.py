"""The CPU engine: one run at a time on each thread, each a pure function of (seed, run index)."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np

from quorisk.kernels import keeping
from quorisk.kernels.engines.job import Job, chunks_of, runs_of
from quorisk.kernels.engines.numba_run import RunLimits, Words, batch_function
from quorisk.kernels.engines.points import Point, Points, pack
from quorisk.kernels.engines.starts import NO_STARTS
from quorisk.kernels.engines.tally import empty, num_columns
from quorisk.kernels.model import Model, fault_bits, smallest_params
from quorisk.kernels.progress import Progress
from quorisk.kernels.rule import group_words, losses

NAME = "numba"
_CHUNK_RUNS, _FEWEST_RUNS = 1 << 14, 1 << 8
"""Most runs of a chunk, and fewest where a job is shared among threads."""


def simulate(
    model: Model,
    points: Points,
    jobs: Sequence[Job],
    seed: int,
    threads: int = 1,
    progress: Progress | None = None,
    later: int = 0,
) -> np.ndarray:
    """See `registry.Engine`; `later` is not used."""
    return in_chunks(model, jobs, threads, progress, partial(tally_of, model, points, seed))


def in_chunks(
    model: Model, jobs: Sequence[Job], threads: int, progress: Progress | None, work: Callable[[Job], np.ndarray]
) -> np.ndarray:
    """Returns the jobs' tallies; `work` makes those of chunks of each job, on `threads` threads; see `simulate`."""
    tallies = np.zeros((len(jobs), num_columns(model)), np.int64)
    share = max(_FEWEST_RUNS, -(-sum(job.num_runs for job in jobs) // threads))
    chunks = ((i, chunk) for i, job in enumerate(jobs) for chunk in chunks_of(job, min(_CHUNK_RUNS, share)))
    with ThreadPoolExecutor(threads) as pool:

        def start(num: int) -> dict[Future[np.ndarray], tuple[int, Job]]:
            return {pool.submit(work, chunk): (index, chunk) for index, chunk in islice(chunks, num)}

        running = start(2 * threads)
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                index, chunk = running.pop(future)
                tallies[index] += future.result()
                running |= start(1)
                if progress:
                    progress(chunk.num_runs)
    return tallies


def tally_of(model: Model, points: Points, seed: int, job: Job) -> np.ndarray:
    """The tally of a job, on this thread: int64 of length `num_columns(model)`."""
    return tally_of_runs(model, points, seed, job.point, runs_of(job))[0]


def tally_of_runs(
    model: Model, points: Points, seed: int, point: int, runs: np.ndarray | range, recording: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The tally of any runs of a point, given by their indices, on this thread; if `recording`, their records, else
    none."""
    tally, records = empty(model, len(runs) if recording else 0)
    make = batch_function(model, hurried=points.starts.places > 0)
    make(*_arguments(model, points, point), np.uint64(seed), np.asarray(runs, np.int64), tally, records)
    return tally, records


def compile_for_exits(model: Model, point: Point) -> None:
    """Compiles the engine for runs that start at the exits of a point's head, hurried if the model has a margin."""
    starts = NO_STARTS._replace(places=1 if model.margin else 0)
    tally_of_runs(model, pack(model, [point])._replace(starts=starts), 0, 0, range(0))


def is_at_hand(model: Model) -> bool:
    """Whether the engine is compiled for the model, in this process or on disk."""
    return keeping.is_at_hand(batch_function(model, hurried=False))


def record(model: Model, points: Points, job: Job, seed: int) -> np.ndarray:
    """See `registry.Engine`."""
    return tally_of_runs(model, points, seed, job.point, runs_of(job), recording=True)[1]


def _arguments(model: Model, points: Points, point: int) -> tuple[Any, ...]:
    """Returns the arguments of compiled code for a point, in the order of `numba_run._batch`."""
    like, words = _tables(model)
    by_action = points.losses[point][np.array(losses(model))]
    limits = RunLimits(points.losses[point, 0], by_action, points.max_steps[point], points.horizons[point])
    weights = points.weights[point], points.accepts[point]
    return like, points.params[point], *weights, words, limits, points.time_units[point], points.starts


@cache
def _tables(model: Model) -> tuple[Any, Words]:
    """Returns Params, for their type alone, and the table of words of groups."""
    action, first = np.array(group_words(model), np.int64).T
    return smallest_params(model), Words(action.copy(), first.copy(), np.array(fault_bits(model), np.int64)[action])
