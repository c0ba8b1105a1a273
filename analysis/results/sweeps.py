"""Results of a sweep: its table, the rows of its tasks, and histograms and losses by faults as pandas frames."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorisk.analysis.results import provenance, schema, sealed
from quorisk.analysis.results.frame import estimator_of_table
from quorisk.kernels.engines.tally import STEP_BINS, TIME_BINS, TIME_TICK

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is used, since it takes its time

RESULTS, TASKS, EXPERIMENT = "results.parquet", "tasks", provenance.EXPERIMENT
"""Names in a sweep's folder: its table, the folder with the results of each task, and the experiment file."""
TASK_SCHEMA = (
    schema.SCHEMA.append(pa.field("attempt", pa.int64(), metadata={"doc": "0 if the task's first attempt did it"}))
    .append(pa.field("host", pa.string(), metadata={"doc": "where it did"}))
)  # fmt: skip
"""Schema of the files in TASKS: a row is a job, which is a range of runs of one point."""


def tasks(folder: Path) -> pa.Table:
    """Returns the rows of all jobs of a sweep that have ended, of TASK_SCHEMA. Raises ResultError."""
    tables = [TASK_SCHEMA.empty_table()]
    for path in numbered(folder / TASKS):
        tables.append(sealed.read_sealed(path, TASK_SCHEMA))
        schema.check_rows(tables[-1], path)
    return pa.concat_tables(tables)


def numbered(folder: Path) -> list[Path]:
    """Returns the tables of a folder whose names are numbers, as TASKS has them, in their order."""
    return sorted(path for path in folder.glob("*.parquet") if path.stem.isdecimal())


def result_rows(folder: Path) -> pa.Table:
    """Returns the rows of a sweep's table, and the seconds that they took: `results.SCHEMA`. Raises ResultError."""
    table = schema.read_rows(folder / RESULTS)
    seconds = tasks(folder).group_by("point_id").aggregate([("wall_s", "sum")])
    at = pc.index_in(table["point_id"], seconds["point_id"].combine_chunks())
    place = table.schema.get_field_index("wall_s")
    return table.set_column(place, schema.SCHEMA.field("wall_s"), seconds["wall_s_sum"].take(at))


def losses_by_faults(table: pa.Table, confidence: float) -> "pd.DataFrame":
    """Returns losses by faults: a row for each point and set of kinds of faults met, the most first.

    Columns: `point_id`; `faults`, a sorted tuple of names, empty if a loss needed none; `losses`; their `share` in all
    losses of the point, and `low` and `high` of its interval, each on its own, with this confidence; `p`, their part of
    all runs.
    """
    import pandas as pd

    columns = ["point_id", "faults", "losses", "share", "low", "high", "p"]
    estimator = estimator_of_table(table, confidence)
    rows = [
        (
            row["point_id"],
            tuple(sorted(faults)),
            losses,
            losses / row["lost"],
            *estimator.interval(losses, row["lost"]),
            losses / row["num_runs"],
        )
        for row in table.select(["point_id", "num_runs", "lost", "stopped", "losses_by_faults"]).to_pylist()
        for faults, losses in schema.by_faults(row)
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
