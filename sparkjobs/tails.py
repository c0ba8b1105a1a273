"""Heads where tasks run, and runs from their exits: a machine solves a head once, whatever tasks ask for it.

A head is a function of its point, as a run is of its number: so nobody sends it anywhere. What a process has solved it
leaves to the other processes of its executor in the folder that Spark gives them, which is theirs alone.
"""

import json
import os
from contextlib import nullcontext, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from quorisk.analysis.estimate import method
from quorisk.analysis.estimate.sums import run_sums
from quorisk.analysis.experiment.config import RunSettings
from quorisk.analysis.experiment.grid import GridPoint
from quorisk.analysis.results import heads
from quorisk.kernels import keeping
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import Points, pack
from quorisk.kernels.engines.registry import Engine
from quorisk.kernels.engines.tally import read
from quorisk.kernels.model import Model
from quorisk.kernels.packing import Layout
from quorisk.kernels.states.exits import Exits, from_exits

ROOM_BYTES = 1 << 31
"""That the heads of an executor may take on disk; the oldest ones go first."""


class Tail(NamedTuple):
    """A head, and where the runs from its exits start."""

    head: dict[str, Any]
    """See `analysis.results.heads`; without runs."""
    points: Points | None
    """The point alone, whose runs start at the exits; None if there is nothing to sample."""


_LATEST: dict[str, Tail] = {}
"""The one that this process used last, by key: tasks of one point come one after another."""


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
    tail = tail_of(model, point, run, most_transitions, enough, job.num_runs)
    if tail.points is None:
        return tail.head
    sums = run_sums(engine, model, tail.points, Job(0, method.TAIL + job.first_run, job.num_runs), run.seed)
    return heads.with_runs(tail.head, read(model, sums), job.first_run)


def tail_of(
    model: Model, point: GridPoint, run: RunSettings, most_transitions: int, enough: float = 0.0, num_runs: int = 0
) -> Tail:
    """Returns the tail of a point: this process's, or this executor's, or solved now while others who want it wait.

    Nobody else wants it if all of its runs are the `num_runs` that are made here.
    """
    key = f"{point.point_id}-{run.method}-{run.relative_precision!r}-{most_transitions}-{enough!r}"
    if key not in _LATEST:
        path = _place(key)
        with keeping.alone(path) if path else nullcontext():
            found = _load(path) if path else None
            if found is None:
                solved = method.known(model, point.point, run, most_transitions, method.HEAD_BYTES, None, enough)
                found = heads.record(model, solved, most_transitions), solved.exits if solved else None
                if path and num_runs < heads.wanted_runs(found[0], run, enough):
                    _save(path, *found)
        head, exits = found
        _LATEST.clear()
        _LATEST[key] = Tail(head, from_exits(pack(model, [point.point]), exits) if exits else None)
    return _LATEST[key]


def _place(key: str) -> Path | None:
    """Where the processes of an executor share a head; None if there is no such place."""
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return Path(folder, f"head-{key}.npz") if folder and Path(folder).is_dir() else None


def _save(path: Path, head: dict[str, Any], exits: Exits | None) -> None:
    """All of it or nothing: where there is no room, the next process solves the head again."""
    arrays: dict[str, np.ndarray] = {"head": np.frombuffer(json.dumps(head).encode(), np.uint8)}
    if exits:
        hurry = np.array([exits.places, exits.p])
        arrays |= {"rows": exits.rows, "flows": exits.flows, "hurry": hurry, **exits.layout._asdict()}
    np.savez(content := BytesIO(), allow_pickle=False, **arrays)
    with suppress(OSError):
        _make_room(path.parent, content.getbuffer().nbytes)
        keeping.write(path, content.getvalue())


def _make_room(folder: Path, num_bytes: int) -> None:
    """Removes the oldest heads until there is room for one of so many bytes. Who is reading one can go on."""
    found = sorted((each.stat().st_mtime, each.stat().st_size, each) for each in folder.glob("head-*.npz"))
    taken = sum(size for _, size, _ in found)
    for _, size, each in found:
        if taken + num_bytes <= ROOM_BYTES:
            break
        each.unlink(missing_ok=True)
        taken -= size


def _load(path: Path) -> tuple[dict[str, Any], Exits | None] | None:
    """None if there is nothing, or not what was saved."""
    content = keeping.read(path)
    if content is None:
        return None
    with np.load(BytesIO(content), allow_pickle=False) as file:
        head = json.loads(file["head"].tobytes())
        if head["exits"] == 0:
            return head, None
        layout = Layout(*(file[name] for name in Layout._fields))
        places, p = file["hurry"]
        return head, Exits(file["rows"], layout, file["flows"], head["left_out"], int(places), float(p))
