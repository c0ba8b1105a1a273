"""Result frames as lines of text: for reports and for the screen."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from plots import text

OUTCOMES = ("completed", "stuck", "lost", "horizon", "unfinished")


class Risk(NamedTuple):
    """How often an invariant broke."""

    losses: str
    p: str
    interval: str


class Line(NamedTuple):
    """A configuration and what came of it."""

    point_id: str
    settings: list[str]
    """Values of `text.varied`."""
    risks: list[Risk]
    """Of `text.shown`."""
    runs: str
    outcomes: dict[str, str]
    steps_per_run: str


def lines(frame: pd.DataFrame, number: Callable[[float], str] = text.number) -> list[Line]:
    """A line for each point of a result frame, in its order; `number` writes probabilities."""
    keys, invariants = text.varied(frame), text.shown(frame)
    result = []
    for point_id, rows in frame.groupby("point_id", sort=False):
        first, by_invariant = rows.iloc[0], rows.set_index("invariant")
        result.append(
            Line(
                point_id=str(point_id),
                settings=[text.value(first[key]) for key in keys],
                risks=[_risk(by_invariant.loc[invariant], number) for invariant in invariants],
                runs=f"{first['runs']:,}",
                outcomes={name: f"{first[name]:,}" for name in OUTCOMES},
                steps_per_run=text.number(first["steps"] / first["runs"]),
            )
        )
    return result


def _risk(row: Mapping[str, Any], number: Callable[[float], str]) -> Risk:
    return Risk(f"{row['losses']:,}", text.probability(row, number), text.interval(row, number))
