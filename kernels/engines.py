"""The engines by name. All of them give the same results bit for bit; they differ in speed and in what they need."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple, Protocol

import numpy as np

from kernels.model import Model
from kernels.points import Points

RECORD = ("outcome", "broken_mask", "steps", "messages", "time_ticks")
"""Columns of the records that `Engine.record` returns."""
ENGINES = {"numba": "kernels.numba_engine"}
"""The module that is an engine, by name."""


class Job(NamedTuple):
    """Runs first_run to first_run + num_runs - 1 of one point."""

    point: int
    first_run: int
    num_runs: int


class Engine(Protocol):
    """What a module of ENGINES has."""

    NAME: str

    def simulate(
        self,
        model: Model,
        points: Points,
        jobs: Sequence[Job],
        seed: int,
        threads: int = 1,
        progress: Callable[[int], None] | None = None,
    ) -> np.ndarray:
        """Runs the jobs; returns int64 tallies of shape (jobs, num_columns(model)).

        `progress` is called in this thread with the number of runs that have ended since its last call.
        """

    def record(self, model: Model, points: Points, job: Job, seed: int) -> np.ndarray:
        """One row of RECORD a run, int64 of shape (runs, len(RECORD))."""


def choose(name: str) -> Engine:
    """The engine of a name; `auto` is the fastest that this machine has."""
    engine: Engine = import_module(ENGINES["numba" if name == "auto" else name])
    return engine
