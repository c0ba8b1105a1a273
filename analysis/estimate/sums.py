"""Exact sums over runs: engines sum in 64 bits, which many long runs overflow, Python in as many as needed."""

from itertools import islice

import numpy as np

from quorisk.kernels.engines.job import Job, chunks_of
from quorisk.kernels.engines.points import Points
from quorisk.kernels.engines.registry import Engine
from quorisk.kernels.engines.tally import MOST_HIGH_TICKS, num_columns
from quorisk.kernels.model import Model
from quorisk.kernels.progress import Progress

_JOBS_AT_ONCE = 256


def most_runs(max_steps: int) -> int:
    """Returns how many runs of at most `max_steps` steps have sums that fit 64 bits.

    Those of squared steps and of the parts of times grow fastest, as a step sends fewer than 64 messages.
    """
    return int((2**63 - 1) // max(max_steps**2, MOST_HIGH_TICKS))


def run_sums(
    engine: Engine,
    model: Model,
    points: Points,
    job: Job,
    seed: int,
    threads: int = 1,
    progress: Progress | None = None,
    later: int = 0,
) -> list[int]:
    """Returns the tally of a job, of length `num_columns(model)`, whatever its size; the rest is as in
    `Engine.simulate`."""
    sums = np.zeros(num_columns(model), object)
    parts = chunks_of(job, most_runs(int(points.max_steps[job.point])))
    while jobs := list(islice(parts, _JOBS_AT_ONCE)):
        tallies = engine.simulate(model, points, jobs, seed, threads, progress, later)
        sums += tallies.astype(object).sum(axis=0)
    return [int(each) for each in sums]
