"""Results for notebooks: what a sweep left behind, as pandas frames with tidy columns.

Example:

    from quorisk.analysis.results.sweeps import load
    from quorisk.plots.loss import loss

    sweep = load("results/demo")
    sweep.frame.groupby("model.ack_quorum")["p"].max()
    loss(sweep.frame)
"""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorisk.analysis.cluster.joined import with_cluster
from quorisk.analysis.decision import promises
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.scenarios import SCENARIO
from quorisk.analysis.results import provenance, schema, sealed, sums
from quorisk.analysis.results.frame import estimator_of
from quorisk.analysis.results.frame import frame as frame_of
from quorisk.kernels.engines.tally import STEP_BINS, TIME_BINS, TIME_TICK
from quorisk.kernels.errors import ResultError
from quorisk.kernels.model import OUTCOMES
from quorisk.say import text
from quorisk.say.quantities import say_time

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is used, since it takes its time

RESULTS, TASKS, EXPERIMENT = "results.parquet", "tasks", provenance.EXPERIMENT
"""In a sweep's folder: its table, the folder with what each task found, and the experiment file."""
TASK_SCHEMA = (
    schema.SCHEMA.append(pa.field("attempt", pa.int64(), metadata={"doc": "0 if the task's first attempt did it"}))
    .append(pa.field("host", pa.string(), metadata={"doc": "where it did"}))
)  # fmt: skip
"""Of the files in TASKS: a row is a job, which is a range of runs of one point."""
NOT_OURS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What comes of numbers and words that no sweep writes."""


class Sweep(NamedTuple):
    """What a sweep's folder holds."""

    frame: "pd.DataFrame"
    """One row for each point and invariant; see `frame.frame`. The grid's parameters come first, in its order."""
    histograms: "pd.DataFrame"
    """See `histograms`."""
    losses_by_faults: "pd.DataFrame"
    """See `losses_by_faults`."""


def load(path: str | Path, confidence: float | None = None) -> Sweep:
    """Loads the results in a sweep's folder, or in a table alone, judged as the experiment file beside the table says.

    Without such a file, intervals hold with 95% confidence, each on its own; with `confidence`, they hold with that
    confidence, each on its own, whatever the file says. Raises ResultError if there are no results that can be read,
    and ConfigError if the experiment file cannot be used, or is that of other points.
    """
    path = Path(path)
    table_path = path / RESULTS if path.is_dir() else path
    if not table_path.is_file():
        raise ResultError(f"{path}: has no results; `quorisk run FILE --out DIR` writes them to a folder")
    experiment = provenance.load(table_path.parent) if os.path.lexists(table_path.with_name(EXPERIMENT)) else None
    table = result_rows(path) if path.is_dir() else schema.read(table_path)
    if table.num_rows == 0:
        raise ResultError(f"{table_path}: no rows")
    if experiment:
        provenance.check(experiment, table, table_path)
    if experiment and confidence is not None:
        experiment = experiment._replace(run=experiment.run._replace(confidence=confidence, simultaneous=False))
    try:
        return tidy(table, experiment, 0.95 if confidence is None else confidence)
    except NOT_OURS as error:
        raise ResultError(f"{table_path}: not what a sweep writes: {error!r}") from None


def tasks(folder: Path) -> pa.Table:
    """Returns the rows of all jobs of a sweep that have ended, of TASK_SCHEMA. Raises ResultError."""
    tables = [TASK_SCHEMA.empty_table()]
    for path in task_files(folder):
        tables.append(sealed.read(path, TASK_SCHEMA))
        schema.check(tables[-1], path)
    return pa.concat_tables(tables)


def task_files(folder: Path) -> list[Path]:
    """Returns the files of a sweep's folder that `tasks` reads, in their order."""
    return sorted(path for path in (folder / TASKS).glob("*.parquet") if path.stem.isdecimal())


def result_rows(folder: Path) -> pa.Table:
    """Returns the rows of a sweep's table, and the seconds that they took: `results.SCHEMA`. Raises ResultError."""
    table = schema.read(folder / RESULTS)
    seconds = tasks(folder).group_by("point_id").aggregate([("wall_s", "sum")])
    at = pc.index_in(table["point_id"], seconds["point_id"].combine_chunks())
    place = table.schema.get_field_index("wall_s")
    return table.set_column(place, schema.SCHEMA.field("wall_s"), seconds["wall_s_sum"].take(at))


def tidy(table: pa.Table, experiment: Experiment | None, confidence: float = 0.95) -> Sweep:
    """Returns a result table, judged as an experiment says, or if there is none with this confidence.

    Raises ValueError or the like if no sweep wrote the table.
    """
    if experiment is None:
        frame = _checked(frame_of(table, confidence))
        return Sweep(frame, histograms(table), losses_by_faults(table, confidence))
    run, num_scenarios = experiment.run, max(len(experiment.scenarios), 1)
    frame = frame_of(table, run.confidence, run.simultaneous, run.at_any_time, run.target, num_scenarios)
    by_faults = losses_by_faults(table, run.confidence)
    return Sweep(described(_checked(frame), experiment), histograms(table), by_faults)


def described(frame: "pd.DataFrame", experiment: Experiment) -> "pd.DataFrame":
    """Returns a frame of an experiment with its scenarios, and what designs promise (`promises.with_promises`).

    `exposed_for` is `mean_exposed` in words, empty where there is none.
    With scenarios: `run.scenario`, and `per_year`, how many times a year it happens; without designs that lack runs of
    a scenario, as what they lose a year would be too low. With [cluster]: `with_cluster`. The grid's parameters come
    first.
    """
    frame = promises.with_promises(frame, experiment)
    if "mean_exposed" in frame:
        physical = "run.time_unit" in frame
        frame = frame.assign(exposed_for=[_exposed_for(mean, physical) for mean in frame["mean_exposed"]])
    names = _scenarios(frame, experiment)
    if names and None not in names.values() and (whole := _is_whole(frame, experiment, names)).any():
        frame = frame[whole].reset_index(drop=True)
        scenarios = [names[point_id] for point_id in frame["point_id"]]
        per_year = [experiment.scenarios[str(name)].per_year for name in scenarios]
        frame = frame.assign(**{SCENARIO: scenarios, "per_year": per_year})
    if not names or SCENARIO in frame:
        frame = with_cluster(frame, experiment)
    first = [column for column in experiment.varied if column in frame]
    return frame[[*first, *(column for column in frame.columns if column not in first)]]


def _exposed_for(mean: float, physical: bool) -> str:
    """A mean time for people; empty if there is none."""
    if math.isnan(mean):
        return ""
    return say_time(mean) if physical else f"{mean:.3g} units of model time"


def _scenarios(frame: "pd.DataFrame", experiment: Experiment) -> dict[str, str | None]:
    """The scenario of each point; none are told if the experiment has none.

    Points that were merged from other sweeps are told by what a scenario sets, by the most of it if several are alike;
    None if nothing fits.
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
    """Of each row whether its design has runs of every scenario that the experiment, or the frame, has points of."""
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


def losses_by_faults(table: pa.Table, confidence: float) -> "pd.DataFrame":
    """Returns what losses are made of: a row for each point and set of kinds of faults met, the most first.

    Columns: `point_id`; `faults`, a sorted tuple of names, empty if a loss needed none; `losses`; their `share` in all
    losses of the point, and `low` and `high` of its interval, each on its own, with this confidence.
    """
    import pandas as pd

    columns = ["point_id", "faults", "losses", "share", "low", "high"]
    estimator = estimator_of(table, confidence)
    rows = [
        (row["point_id"], tuple(sorted(faults)), losses, losses / row["lost"], *estimator.interval(losses, row["lost"]))
        for row in table.select(["point_id", "lost", "stopped", "losses_by_faults"]).to_pylist()
        for faults, losses in sums.losses_by_faults(row)
    ]
    return pd.DataFrame(rows, columns=columns)


def histograms(table: pa.Table) -> "pd.DataFrame":
    """Returns one row for each point, quantity and bin that is not empty.

    Columns: `point_id`; `quantity`, which is "steps" (of every run) or "time to loss" (model time of the lost runs);
    `bin_low` and `bin_high`, the smallest value in the bin and the one that all values in it are at most (steps) or
    less than (model time), infinite for the last bin; `runs`.
    """
    import pandas as pd

    powers = np.exp2(np.arange(TIME_BINS))
    step_lows, time_lows = np.append(0, powers[: STEP_BINS - 1]), np.append(0, powers[: TIME_BINS - 1]) * TIME_TICK
    time_highs = np.append(time_lows[1:], np.inf)
    bins = [
        _bins(table, "step_histogram", "steps", step_lows, np.append(step_lows[1:] - 1, np.inf)),
        _bins(table, "loss_time_histogram", "time to loss", time_lows, time_highs),
    ]
    return pd.concat([pd.DataFrame(columns) for columns in bins], ignore_index=True)


def _bins(table: pa.Table, column: str, quantity: str, lows: np.ndarray, highs: np.ndarray) -> dict[str, Any]:
    counts = np.array(table[column].to_pylist(), np.int64).reshape(table.num_rows, len(lows))
    point, place = np.nonzero(counts)
    return {
        "point_id": np.array(table["point_id"].to_pylist(), object)[point],
        "quantity": quantity,
        "bin_low": lows[place],
        "bin_high": highs[place],
        "runs": counts[point, place],
    }
