"""What the scenarios of a design add up to in a year."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from quorisk.say import text

COUNTED = ("losses", "hidden", "runs", "messages", "steps", "completed", "horizon", "stuck")
SUMMED = ("p", "low", "high")


def added(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the year of a design from the rows of its scenarios; ends of intervals that hold together add up."""
    summed = {name: math.fsum(part["per_year"] * part[name] for part in parts) for name in SUMMED}
    counted = {name: sum(part[name] for part in parts) for name in COUNTED}
    return {**parts[0], **counted, **summed, "yearly": True}


def of(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns a frame with scenarios as one without: `p`, `low` and `high` are times a year.

    What only scenarios differ in is in no column any more; message loss is the largest of theirs.
    """
    keys = [key for key in text.varied(frame) if key != text.SCENARIO]
    others = [key for key in text.parameters(frame) if frame[key].nunique(dropna=False) > 1 and key not in keys]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in frame.to_dict("records"):
        groups.setdefault((row["invariant"], *(row[key] for key in keys)), []).append(row)
    years = pd.DataFrame([_year(parts) for parts in groups.values()])
    return years.drop(columns=[key for key in others if key != text.MESSAGE_LOSS])


def _year(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    methods = " or ".join(dict.fromkeys(part["method"] for part in parts))
    return added(parts) | {text.MESSAGE_LOSS: max(part[text.MESSAGE_LOSS] for part in parts), "method": methods}
