"""Result frames as lines of text: for reports and for the screen."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from quorisk.say import choose, numbers, text

OUTCOMES = ("completed", "stuck", "lost", "horizon", "unfinished")


class RiskLine(NamedTuple):
    """The risk that an invariant breaks, in words."""

    losses: str
    """Losses among the runs, where they were counted; empty where they were solved."""
    p: str
    interval: str
    high: float
    """The upper end of the interval, to sort by."""


class Line(NamedTuple):
    """A configuration and its results."""

    point_id: str
    settings: list[str]
    """Values of the parameters of `text.varied`, in words."""
    values: list[Any]
    """Values that `settings` spell, to sort by."""
    risks: list[RiskLine]
    """Risks of the invariants of `text.shown`."""
    runs: str
    outcomes: dict[str, str]
    steps_per_run: float


def lines(frame: pd.DataFrame, most: int, number: Callable[[float], str] = numbers.number) -> list[Line]:
    """Returns a line for each point of a result frame, in its order: for the `most` points whose intervals of any data
    loss reach highest. `number` writes probabilities.
    """
    keys, invariants = text.varied(frame), text.shown(frame)
    kept = choose.worst(choose.rows_of(frame, text.ANY_LOSS), most)["point_id"]
    rows = frame[frame["point_id"].isin(kept) & frame["invariant"].isin(invariants)]
    by_point: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows.to_dict("records"):
        by_point.setdefault(row["point_id"], {})[row["invariant"]] = row
    result = []
    for point_id, by_invariant in by_point.items():
        first = by_invariant[text.ANY_LOSS]
        result.append(
            Line(
                point_id=point_id,
                settings=[text.value(first[key]) for key in keys],
                values=[_sortable(first[key]) for key in keys],
                risks=[_risk(by_invariant[invariant], number) for invariant in invariants],
                runs=f"{first['runs']:,}",
                outcomes={name: f"{first[name]:,}" for name in OUTCOMES},
                steps_per_run=first["steps"] / first["runs"],
            )
        )
    return result


def _sortable(value: Any) -> Any:
    """Returns a value as the report's script sorts it."""
    if isinstance(value, bool):
        return int(value)
    return "Infinity" if value == float("inf") else value


def _risk(row: Mapping[str, Any], number: Callable[[float], str]) -> RiskLine:
    losses = "" if numbers.is_solved(row["method"]) else f"{int(row['losses']):,}"
    return RiskLine(losses, numbers.probability(row, number), numbers.interval(row, number), row["high"])
