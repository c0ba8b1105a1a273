"""Counterexamples: the shortest that a search of all states finds, or a random run minimised."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from quorisk.analysis.estimate.estimate import only_point
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.grid import GridPoint
from quorisk.analysis.experiment.keys import DATA_LOSS, MAX_RUNS
from quorisk.analysis.explore import too_much
from quorisk.analysis.traces import json_file, minimise
from quorisk.analysis.traces.trace import Kind, Trace, of_run
from quorisk.kernels import paths
from quorisk.kernels.engines import points, registry
from quorisk.kernels.engines.job import RECORD, Job
from quorisk.kernels.engines.rerun import rerun
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import Model
from quorisk.kernels.states import search
from quorisk.kernels.states.shortest import shortest
from quorisk.say.numbers import counted

Tell = Callable[[str], None]
INCIDENT_BYTES = 256 << 20
"""Memory for the search for an incident's shortest trace; if it is too little, a trace comes from random runs."""
_BATCH = 1 << 14
"""Random runs in a batch; the shortest that breaks an invariant is taken."""


class FoundTrace(NamedTuple):
    """Result of a search for a counterexample."""

    trace: Trace | None
    proved: bool
    """Whether it is proved that no counterexample exists: every reachable state was visited."""
    reason: str
    """The method that found the trace, or the reason for the lack of one."""


def wanted_invariants(model: Model, name: str) -> list[str]:
    """Returns the invariants that a name stands for: one, or all whose breach is data loss. Raises ConfigError."""
    known = [invariant.name for invariant in model.invariants]
    if name not in (DATA_LOSS, *known):
        raise ConfigError(
            f" {name!r}: {', '.join(known)}, or {DATA_LOSS!r} for any whose breach is data loss", "invariant"
        )
    return [i.name for i in model.invariants if i.name == name or (name == DATA_LOSS and i.data_loss)]


def find_counterexample(
    model: Model,
    grid_point: GridPoint,
    wanted: Sequence[str],
    memory_bytes: int,
    seed: int,
    max_runs: int,
    tell: Tell | None = None,
) -> FoundTrace:
    """Finds a counterexample to any wanted invariant: a shortest one, or a minimised one from random runs.

    The search goes on beyond states that break another invariant and follows every action and loss whatever their
    rates; random runs, at most `max_runs`, are made if it does not fit `memory_bytes`, and end at data loss. `tell` is
    called with progress messages.
    """
    params, places = model.make_params(grid_point.point.values), _places(model, wanted)
    found = None
    progress = (lambda count, depth: tell(f"search: {count:,} states, depth {depth}")) if tell else None
    with suppress(search.SearchError):
        found = shortest(model, params, memory_bytes, places, progress)
    if found is None or not (found.path or found.proved):
        in_runs = find_in_runs(model, grid_point, wanted, seed, range(max_runs), tell)
        too_large = "" if in_runs.trace else ", and the search of all states does not fit the memory"
        return in_runs._replace(reason=in_runs.reason + too_large)
    states = f"{counted(found.distinct_states, 'state')}, depth {found.depth}"
    if found.path:
        path = minimise.losing_less(model, params, found.path, places)
        return FoundTrace(
            _counterexample(model, grid_point, path, places, "shortest"), False, f"shortest; {states} searched"
        )
    others = search.explore(model, params, memory_bytes, progress).breaking_states
    broken = [name for name, count in others.items() if count]
    return FoundTrace(None, True, f"no reachable state breaks {' or '.join(wanted)}: {states}{_others(broken)}")


def of_incident(experiment: Experiment, tell: Tell | None = None, memory_bytes: int = INCIDENT_BYTES) -> FoundTrace:
    """Returns a counterexample to the invariant of an experiment's table [incident], as `find_counterexample` does."""
    incident = experiment.tables["incident"]
    shown = experiment.changed(*incident.shown_with)
    wanted, run = wanted_invariants(shown.model, incident.invariant), shown.run
    return find_counterexample(shown.model, only_point(shown), wanted, memory_bytes, run.seed, run.runs, tell)


def find_in_runs(
    model: Model, grid_point: GridPoint, wanted: Sequence[str], seed: int, runs: range, tell: Tell | None = None
) -> FoundTrace:
    """Returns a counterexample to any wanted invariant, minimised: of the first batch of these runs that has one."""
    params, places = model.make_params(grid_point.point.values), _places(model, wanted)
    engine, packed = registry.engine_of("numba"), points.pack(model, [grid_point.point])
    mask, steps, seen = sum(1 << i for i in places), RECORD.index("steps"), 0
    for first in range(runs.start, runs.stop, _BATCH):
        if tell:
            tell(f"random runs from {first:,} on")
        records = engine.record(model, packed, Job(0, first, min(_BATCH, runs.stop - first)), seed)
        masks = records[:, RECORD.index("broken_mask")]
        broke = (masks & mask).nonzero()[0]
        seen |= int(np.bitwise_or.reduce(masks))
        if len(broke):
            run = first + int(broke[records[broke, steps].argmin()])
            path = rerun(model, grid_point.point, seed, run).path
            path = minimise.minimised(model, params, path, places, tell)
            trace = _counterexample(model, grid_point, path, places, "minimised")._replace(seed=seed, run=run)
            return FoundTrace(trace, False, f"from run {seed}:{run}; no step can be left out")
    others = _others([invariant.name for i, invariant in enumerate(model.invariants) if seen >> i & 1])
    return FoundTrace(None, False, f"none of {len(runs):,} random runs broke {' or '.join(wanted)}{others}")


def _others(broken: Sequence[str]) -> str:
    """Words on other invariants that can break, where no wanted one does."""
    return f"; {' and '.join(broken)} can break: `invariant` shows how" if broken else ""


def _places(model: Model, wanted: Iterable[str]) -> list[int]:
    names = [invariant.name for invariant in model.invariants]
    return [names.index(name) for name in wanted]


def _counterexample(model: Model, grid_point: GridPoint, path: paths.Path, places: Sequence[int], kind: Kind) -> Trace:
    """The trace of a path whose last state breaks at least one of these invariants: of the first of them."""
    params = model.make_params(grid_point.point.values)
    broken = paths.broken(model, paths.replay(model, params, path)[-1], params)
    name = next(model.invariants[i].name for i in places if broken >> i & 1)
    return Trace(model, grid_point, path, name, kind)


def requested_trace(
    experiment: Experiment, invariant: str, run: str | None, saved: Path | None, memory_bytes: int, tell: Tell | None
) -> FoundTrace:
    """Returns a trace of an experiment's one point: a counterexample, unless that of a run or of a file is asked for.

    Args:
        experiment: of one point.
        invariant: the one to break; DATA_LOSS is any whose breach is data loss.
        run: the run to trace, as SEED:INDEX.
        saved: the file of a trace.
        memory_bytes: most memory that a search takes.
        tell: called with progress messages.

    Raises:
        ConfigError: if an argument cannot be used, or memory is too small for a search.
    """
    model, grid_point = experiment.model, only_point(experiment)
    wanted = wanted_invariants(model, invariant)
    if run is not None:
        seed, index = _parsed(run)
        trace = of_run(model, grid_point, seed, index)
        return FoundTrace(trace, False, f"run {seed}:{index} {trace.ended}")
    if saved is not None:
        return FoundTrace(json_file.load_trace(saved, model, grid_point), False, f"replayed from {saved}")
    try:
        settings = experiment.run
        return find_counterexample(model, grid_point, wanted, memory_bytes, settings.seed, settings.runs, tell)
    except MemoryError:
        raise too_much(memory_bytes) from None


def _parsed(run: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,20}):(\d{1,13})", run)
    if not match or int(match[1]) >= 2**64 or int(match[2]) >= MAX_RUNS:
        allowed = f"SEED:INDEX, a seed from 0 to {2**64 - 1} and a run's index from 0 to {MAX_RUNS - 1}"
        raise ConfigError(f" {run!r}: {allowed}", "run")
    return int(match[1]), int(match[2])
