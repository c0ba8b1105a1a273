"""Jobs of engines, and the columns of a run's record."""

from collections.abc import Iterator
from typing import NamedTuple

RECORD = ("outcome", "broken_mask", "met_mask", "steps", "messages", "time_high", "time_low")
"""Columns of the records that `Engine.record` returns; the last two are the run's time (see `tally.ticks`)."""


class Job(NamedTuple):
    """Runs first_run to first_run + num_runs - 1 of one point."""

    point: int
    first_run: int
    num_runs: int


def runs_of(job: Job) -> range:
    """The indices of a job's runs."""
    return range(job.first_run, job.first_run + job.num_runs)


def chunks_of(job: Job, most: int) -> Iterator[Job]:
    """Yields a job in parts of at most `most` runs."""
    last = job.first_run + job.num_runs
    for start in range(job.first_run, last, most):
        yield Job(job.point, start, min(most, last - start))
