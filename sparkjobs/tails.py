"""Heads where tasks run, and runs from their exits.

A head is a function of its point, as a run is of its number: so nobody sends it anywhere, and each process solves it
for all tasks of the point that come to it.
"""

from typing import Any, NamedTuple

from quorisk.analysis.estimate import method
from quorisk.analysis.estimate.sums import run_sums
from quorisk.analysis.experiment.config import RunSettings
from quorisk.analysis.experiment.grid import GridPoint
from quorisk.analysis.results import heads
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import Points, pack
from quorisk.kernels.engines.registry import Engine
from quorisk.kernels.engines.tally import named_tally
from quorisk.kernels.model import Model
from quorisk.kernels.states.exits import from_exits


class Tail(NamedTuple):
    """A head, and the point from whose exits runs start."""

    head: dict[str, Any]
    """See `analysis.results.heads`; without runs."""
    points: Points | None
    """The point alone, whose runs start at the exits; None if there is nothing to sample."""


_LATEST: dict[str, Tail] = {}
"""The tail that this process used last, by key: tasks of one point come one after another."""


def run_tail(
    engine: Engine,
    model: Model,
    point: GridPoint,
    run: RunSettings,
    job: Job,
    most_transitions: int,
    enough: float = 0.0,
) -> dict[str, Any]:
    """Returns a point's head with the runs of a job from its exits, on one thread; without runs if none are needed."""
    tail = tail_of(model, point, run, most_transitions, enough)
    if tail.points is None:
        return tail.head
    sums = run_sums(engine, model, tail.points, Job(0, method.TAIL + job.first_run, job.num_runs), run.seed)
    return heads.with_runs(tail.head, named_tally(model, sums), job.first_run)


def tail_of(model: Model, point: GridPoint, run: RunSettings, most_transitions: int, enough: float = 0.0) -> Tail:
    """Returns the tail of a point: the one that this process used last, or solved now."""
    key = f"{point.point_id}-{run.method}-{run.relative_precision!r}-{most_transitions}-{enough!r}"
    if key not in _LATEST:
        solved = method.known_head(model, point.point, run, most_transitions, method.HEAD_BYTES, None, enough)
        exits = solved.exits if solved else None
        head = heads.head_record(model, solved, most_transitions)
        _LATEST.clear()
        _LATEST[key] = Tail(head, from_exits(pack(model, [point.point]), exits) if exits else None)
    return _LATEST[key]
