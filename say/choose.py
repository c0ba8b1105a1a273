"""The part of a big table that a figure or a report shows: the worst configurations, and a word on the rest."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from quorisk.say import text

FULL_TABLE = "all of them are in results.parquet"
_LONGEST = 100
"""The most characters of a label."""
_DESIGN = ("model.", "variant.", "cluster.")


def rows_of(frame: pd.DataFrame, invariant: str) -> pd.DataFrame:
    """Returns the rows of one invariant: one for each point."""
    return frame[frame["invariant"] == invariant]


def worst(rows: pd.DataFrame, most: int) -> pd.DataFrame:
    """Returns the rows whose intervals reach highest, `most` at most, in the order in which they are."""
    if len(rows) <= most:
        return rows
    return rows.loc[rows["high"].nlargest(most, keep="first").index.sort_values()]


def succeeded(rows: Any) -> Any:
    """Returns the number of runs that completed or reached the horizon, of rows or of one row."""
    return rows["completed"] + rows["horizon"]


def left_out_note(num_shown: int, num_all: int, which: str = "configurations whose intervals reach highest") -> str:
    """Returns a sentence for a caption, led by a space; empty if all are shown."""
    return f" Shown: the {which}, {num_shown:,} of {num_all:,}; {FULL_TABLE}." if num_shown < num_all else ""


def keys_of_design(keys: Sequence[str]) -> list[str]:
    """Returns the parameters that a design chooses: quorums, sizes, mechanisms."""
    return [key for key in keys if key.startswith(_DESIGN)]


def faults(keys: Sequence[str]) -> list[str]:
    """Returns the parameters that a design does not choose: message loss, rates, the time that it is watched."""
    return [key for key in keys if not key.startswith(_DESIGN)]


def rows_with(rows: pd.DataFrame, values: Mapping[str, Any]) -> pd.DataFrame:
    """Returns the rows with these settings."""
    for key, value in values.items():
        rows = rows[rows[key] == value]
    return rows


def labels(rows: pd.DataFrame, keys: Sequence[str]) -> list[str]:
    """Returns each row's settings of these parameters, cut off where they get too long."""
    if not keys:
        return ["the one configuration"] * len(rows)
    return [text.shortened(text.settings(row, keys), _LONGEST) for row in rows[list(keys)].to_dict("records")]
