"""The runs of a configuration one by one, for users' own statistics."""

from typing import TYPE_CHECKING

import numpy as np

from quorisk.analysis.estimate.estimate import only_point
from quorisk.analysis.experiment.config import Experiment
from quorisk.kernels.cores import side_by_side
from quorisk.kernels.engines import registry
from quorisk.kernels.engines.job import RECORD, Job
from quorisk.kernels.engines.points import Point, pack
from quorisk.kernels.engines.tally import TIME_TICK, ticks
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import LOST, OUTCOMES, UNFINISHED, Model, fault_kinds

if TYPE_CHECKING:
    import pandas as pd

MOST_RUNS = 20_000_000
"""Most runs whose records fit into memory."""
_TOGETHER = 1 << 14
"""Most runs of a job."""


def runs_losing(model: Model, point: Point, seed: int, runs: range, enough: int = MOST_RUNS) -> tuple[list[int], int]:
    """Returns those of these runs that lose data, and how many are cut off, up to where `enough` of them do."""
    engine, packed = registry.engine_of("numba"), pack(model, [point])
    found, hidden = list[int](), 0
    for first in range(runs.start, runs.stop, _TOGETHER):
        rows = engine.record(model, packed, Job(0, first, min(_TOGETHER, runs.stop - first)), seed)
        outcomes = rows[:, RECORD.index("outcome")]
        found += (first + np.flatnonzero(outcomes == LOST)).tolist()
        hidden += int((outcomes == UNFINISHED).sum())
        if len(found) >= enough:
            break
    return found, hidden


def rows_of_runs(experiment: Experiment, threads: int) -> "pd.DataFrame":
    """Returns a row for each run of an experiment's one point, as `quorisk.runs` says. Raises ConfigError."""
    import pandas as pd

    model, run, point = experiment.model, experiment.run, only_point(experiment).point
    if run.runs > MOST_RUNS:
        raise ConfigError(f"{experiment.path}: run.runs = {run.runs:,}: at most {MOST_RUNS:,} for records of each run")
    points, engine, end = pack(model, [point]), registry.engine_of(run.engine), run.first_run + run.runs
    jobs = [Job(0, first, min(_TOGETHER, end - first)) for first in range(run.first_run, end, _TOGETHER)]
    rows = np.concatenate(list(side_by_side(lambda job: engine.record(model, points, job, run.seed), jobs, threads)))
    column = dict(zip(RECORD, rows.T, strict=True))
    time = np.array([ticks(*both) * TIME_TICK for both in zip(column["time_high"], column["time_low"], strict=True)])
    return pd.DataFrame(
        {
            "run": np.arange(run.first_run, end),
            "outcome": pd.Categorical.from_codes(column["outcome"], categories=list(OUTCOMES)),
            "steps": column["steps"],
            "messages": column["messages"],
            "time": time,
            **{each.name: column["broken_mask"] >> i & 1 == 1 for i, each in enumerate(model.invariants)},
            **{f"met {kind}": column["met_mask"] >> k & 1 == 1 for k, kind in enumerate(fault_kinds(model))},
        }
    )
