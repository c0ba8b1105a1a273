"""Results for notebooks and reports: those of a sweep, judged, as pandas frames with tidy columns.

Example:

    from quorisk.analysis.decision.frames import load_sweep
    from quorisk.plots.loss import loss

    sweep = load_sweep("results/demo")
    sweep.frame.groupby("model.ack_quorum")["p"].max()
    loss(sweep.frame)
"""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from quorisk.analysis.cluster.joined import events_by_point, with_cluster, with_placements
from quorisk.analysis.decision import promises
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.experiment.scenarios import SCENARIO, ScenarioEvent
from quorisk.analysis.results import provenance, schema
from quorisk.analysis.results.frame import frame as frame_of
from quorisk.analysis.results.sweeps import EXPERIMENT, RESULTS, histograms, losses_by_faults, result_rows
from quorisk.kernels.errors import ResultError
from quorisk.kernels.model import OUTCOMES
from quorisk.say import text
from quorisk.say.quantities import say_time

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is used, since it takes its time

NOT_OURS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors raised for numbers and words that no sweep writes."""


class SweepTables(NamedTuple):
    """Contents of a sweep's folder."""

    frame: "pd.DataFrame"
    """One row for each point and invariant; see `frame.frame`. The grid's parameters come first, in its order."""
    histograms: "pd.DataFrame"
    """Histograms of steps and of times to loss: see `histograms`."""
    losses_by_faults: "pd.DataFrame"
    """Losses by faults: see `losses_by_faults`."""


def load_sweep(path: str | Path, confidence: float | None = None) -> SweepTables:
    """Loads the results in a sweep's folder, or in a table alone, judged as the experiment file beside the table says,
    but with this `confidence` of each interval, if any. Raises ResultError if there are no results that can be read,
    and ConfigError if the file cannot be used."""
    path = Path(path)
    table_path = path / RESULTS if path.is_dir() else path
    if not table_path.is_file():
        raise ResultError(f"{path}: has no results; `quorisk run FILE --out DIR` writes them to a folder")
    experiment = (
        provenance.experiment_of_folder(table_path.parent)
        if os.path.lexists(table_path.with_name(EXPERIMENT))
        else None
    )
    table = result_rows(path) if path.is_dir() else schema.read_rows(table_path)
    if table.num_rows == 0:
        raise ResultError(f"{table_path}: no rows")
    if experiment:
        provenance.check_origin(experiment, table, table_path)
    if experiment and confidence is not None:
        experiment = experiment._replace(run=experiment.run._replace(confidence=confidence, simultaneous=False))
    try:
        return tidy(table, experiment, 0.95 if confidence is None else confidence)
    except NOT_OURS as error:
        raise ResultError(f"{table_path}: not what a sweep writes: {error!r}") from None


def tidy(table: pa.Table, experiment: Experiment | None, confidence: float = 0.95) -> SweepTables:
    """Returns a result table, judged as an experiment says, or if there is none with this confidence.

    Raises ValueError or the like if no sweep wrote the table.
    """
    if experiment is None:
        frame = _checked(frame_of(table, confidence))
        return SweepTables(frame, histograms(table), losses_by_faults(table, confidence))
    run, num_scenarios = experiment.run, max(len(experiment.scenarios), 1)
    frame = frame_of(table, run.confidence, run.simultaneous, run.at_any_time, run.target, num_scenarios)
    by_faults = losses_by_faults(table, run.confidence)
    return SweepTables(described(_checked(frame), experiment), histograms(table), by_faults)


def parameters(experiment: Experiment) -> "pd.DataFrame":
    """Returns the parameters of all points, a row each, before anything is known of their losses."""
    import pandas as pd

    model, run = experiment.model, experiment.run
    first = {"protocol": model.name, "model_version": model.version, "seed": run.seed}
    last = {"invariant": DATA_LOSS, "data_loss": True, "confidence": run.confidence, "target": run.target}
    return pd.DataFrame(
        {"point_id": point.point_id, **first, **dotted_values(model, point.point), **last}
        for point in experiment.points
    )


def described(frame: "pd.DataFrame", experiment: Experiment) -> "pd.DataFrame":
    """Returns a frame of an experiment with its scenarios, and designs' promises (`promises.with_promises`).

    `exposed_for` is `mean_exposed` in words, empty where there is none.
    With scenarios: `run.scenario`, and `per_year`, `hits` and `fates` of its event (`ScenarioEvent`); without designs
    that lack runs of a scenario, as what they lose a year would be too low. With [cluster]: `with_cluster`. The grid's
    parameters come first.
    """
    frame = promises.with_promises(frame, experiment)
    if "mean_exposed" in frame:
        physical = "run.time_unit" in frame
        frame = frame.assign(exposed_for=[_exposed_for(mean, physical) for mean in frame["mean_exposed"]])
    names = _scenarios(frame, experiment)
    if names and None not in names.values() and (whole := _is_whole(frame, experiment, names)).any():
        frame = frame[whole].reset_index(drop=True)
        scenarios = [names[point_id] for point_id in frame["point_id"]]
        known, some = events_by_point(experiment), next(iter(experiment.clusters), None)
        happening = [
            known.get(point_id) or experiment.scenarios[str(name)].event(some)
            for point_id, name in zip(frame["point_id"], scenarios, strict=True)
        ]
        of = {name: [getattr(each, name) for each in happening] for name in ScenarioEvent._fields}
        frame = frame.assign(**{SCENARIO: scenarios}, **of)
    if not names or SCENARIO in frame:
        frame = with_placements(with_cluster(frame, experiment), experiment)
    first = [column for column in experiment.varied if column in frame]
    return frame[[*first, *(column for column in frame.columns if column not in first)]]


def _exposed_for(mean: float, physical: bool) -> str:
    """A mean time for people; empty if there is none."""
    if math.isnan(mean):
        return ""
    return say_time(mean) if physical else f"{mean:.3g} units of model time"


def _scenarios(frame: "pd.DataFrame", experiment: Experiment) -> dict[str, str | None]:
    """The scenario of each point, by its id; empty if the experiment has none.

    A point that was merged from another sweep has the scenario whose values it has, the one with the most values if
    several fit; None if nothing fits.
    """
    if not experiment.scenarios:
        return {}
    known = {point.point_id: point.scenario for point in experiment.points}
    found: dict[str, str | None] = {}
    for row in frame.drop_duplicates("point_id").to_dict("records"):
        fits = [
            (len(scenario.values), name)
            for name, scenario in experiment.scenarios.items()
            if all(row.get(key) == value for key, value in scenario.values.items() if key not in experiment.varied)
        ]
        found[row["point_id"]] = known.get(row["point_id"]) or max(fits, default=(0, None))[1]
    return found


def _is_whole(frame: "pd.DataFrame", experiment: Experiment, names: dict[str, str | None]) -> np.ndarray:
    """Whether the design of each row has runs of every scenario that the experiment, or the frame, has points of."""
    wanted = {point.scenario for point in experiment.points} | set(names.values())
    overlaid = {key for scenario in experiment.scenarios.values() for key in scenario.values}
    overlaid |= {key for key, other in text.FOLLOWS.items() if other in overlaid}
    keys = [key for key in frame.columns if "." in key and (key in experiment.varied or key not in overlaid)]
    settings = frame[keys].astype(object).where(frame[keys].notna(), None)
    designs = [tuple(values) for values in settings.itertuples(index=False)]
    there: dict[tuple[Any, ...], set[str | None]] = {}
    for design, point_id in zip(designs, frame["point_id"], strict=True):
        there.setdefault(design, set()).add(names[point_id])
    return np.array([there[design] == wanted for design in designs])


def _checked(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The frame. Raises TypeError or ValueError if it is not of a sweep's numbers and words."""
    for column in frame.columns[frame.columns.str.contains(".", regex=False)]:
        if frame[column].map(lambda value: isinstance(value, list | dict)).any():
            raise TypeError(f"{column} is neither a number nor a word")
    counts = frame[[*OUTCOMES, "losses"]]
    if (counts < 0).any(axis=None) or (frame[list(OUTCOMES)].sum(axis=1) != frame["runs"]).any():
        raise ValueError("outcomes do not add up to runs")
    if (frame["losses"] > frame["runs"]).any():
        raise ValueError("more losses than runs")
    return frame
