"""What engines are asked for, and what they tell of a run."""

from typing import NamedTuple

RECORD = ("outcome", "broken_mask", "steps", "messages", "time_ticks")
"""Columns of the records that `Engine.record` returns."""


class Job(NamedTuple):
    """Runs first_run to first_run + num_runs - 1 of one point."""

    point: int
    first_run: int
    num_runs: int
