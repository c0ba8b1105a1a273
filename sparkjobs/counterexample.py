"""The run that a report shows: how the configuration that loses data most often loses it."""

import json
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.grid import GridPoint
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.traces import find, formats
from quorisk.analysis.traces.trace import replay_in_words
from quorisk.plots.report import LosingTrace

MOST_RUNS = 1 << 20
"""The most runs that are computed again to find one that lost data: about a second's."""


def counterexample(table: pa.Table, experiments: Sequence[Experiment]) -> LosingTrace | None:
    """Returns one of the runs of a merged table that lost data, minimised, of the point where most did.

    None if no run lost data, if none of the point's first MOST_RUNS did, or if no experiment has the point.
    """
    worst = max(table.to_pylist(), key=lambda row: row["lost"] / row["num_runs"])
    points = ((each, point) for each in experiments for point in each.points if point.point_id == worst["point_id"])
    experiment, point = next(points, (None, None))
    if worst["lost"] == 0 or experiment is None or point is None:
        return None
    model, first_run = experiment.model, worst["first_run"]
    wanted = find.wanted_invariants(model, DATA_LOSS)
    runs = range(first_run, first_run + min(worst["num_runs"], MOST_RUNS))
    trace = find.find_in_runs(model, point, wanted, worst["seed"], runs).trace
    if trace is None:
        return None
    chosen = [f"{key}={_written(key, value, point)}" for key, value in point.varied.items()]
    command = experiment.command("trace", "--run", f"{trace.seed}:{trace.run}", changes=chosen)
    caption = f"From the configuration that loses data most often. The run as it was, unshortened: {command}"
    story = formats.step_lines(trace, replay_in_words(trace))
    return LosingTrace(formats.picture(trace).encode(), caption, story)


def _written(key: str, value: Any, point: GridPoint) -> str:
    """Returns a value as an override writes it, with its unit if the file has units."""
    if value == math.inf:
        return "inf"
    if point.point.time_unit and key.startswith("rates."):
        return f"{value!r} / {point.point.time_unit}"
    if point.point.time_unit and key in ("run.horizon", "run.lifetime"):
        return f"{value!r} {point.point.time_unit}"
    return json.dumps(value)
