"""Data of the report's script, which judges designs anew: by other targets, without some scenarios."""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from quorisk.analysis.cluster.figures import ENDS
from quorisk.analysis.decision.designs import Design, order_in_rank
from quorisk.analysis.decision.doubt import Doubt
from quorisk.analysis.decision.years import SUMMED, part_of
from quorisk.analysis.statistics.yearly import Ends, YearPart, incidents, lost_a_year
from quorisk.say import numbers

_MOST_FIGURES = 4
"""The most rates that have a slider: those that decide most."""


def data(found: Sequence[Design], sure: Doubt | None = None) -> str:
    """Returns the designs as JSON, in the order of their rows; `sure` says how they depend on rates."""
    places = {design.settings: number for number, design in enumerate(sorted(found, key=order_in_rank))}
    return json.dumps([_design(design, places[design.settings], sure) for design in found], allow_nan=False)


def slider_figures(found: Sequence[Design], sure: Doubt | None) -> list[str]:
    """Returns the names of the figures that have a slider: those on which the losses of all designs are known to
    depend, and which decide most."""
    if sure is None or not all(design.settings in sure.allowed for design in found):
        return []
    powers = [sure.allowed[design.settings] for design in found]
    names = dict.fromkeys(name for each in powers for name, share in each.shares.items() if share > 0.01)
    ranked = sorted(names, key=lambda name: -max(each.shares.get(name, 0.0) for each in powers))
    return ranked[:_MOST_FIGURES]


def controls(found: Sequence[Design], target: float) -> dict[str, Any]:
    """Returns the sliders' ranges, in powers of ten, and the scenarios; a slider at its upper end sets no limit."""
    highs = [high for design in found for point in design.points if (high := point["high"]) > 0] or [1.0]
    asked = [target] if math.isfinite(target) else []
    low, high = (round(math.log10(limit), 1) for limit in (min(highs + asked) / 10, max(highs + asked) * 10))
    result: dict[str, Any] = {"low": low, "high": high, "target": math.log10(target) if asked else high}
    result["said"] = numbers.short(target) if asked else "any"
    worst = found[0].worst
    result["scenarios"] = [part["run.scenario"] for part in worst.get("parts", []) if part.get("incident", True)]
    if "write_p99_high_ms" in worst:
        times = [time for each in found if math.isfinite(time := each.worst["write_p99_high_ms"])] or [1.0]
        wanted = worst.get("wants_write_p99_ms", math.inf)
        ends = [*times, wanted] if math.isfinite(wanted) else times
        first, last = round(math.log10(min(ends) / 2), 2), round(math.log10(max(ends) * 2), 2)
        result["p99"] = {"low": first, "high": last, "at": math.log10(wanted) if math.isfinite(wanted) else last}
    if "copies" in worst:
        wanted = worst.get("wants_copies", 0)
        result["copies"] = {"high": max(wanted, *(design.worst["copies"] for design in found)), "at": wanted}
    return result


def _design(design: Design, number: int, sure: Doubt | None) -> dict[str, Any]:
    worst = design.worst
    p99_ms = worst.get("write_p99_high_ms", 0.0)
    return {
        "name": design.settings,
        "place": number,
        "changed": design.is_changed,
        "stops": int(design.stops_writes),
        "copies": int(worst.get("copies", 0)),
        "stored": int(worst.get("stored", 0)),
        "p99": float(worst.get("write_p99_ms", 0.0)),
        "p99_high": float(p99_ms) if math.isfinite(p99_ms) else 1e300,
        "cost": min(design.steps, 1e300),
        "wants": bool(worst.get("wants_nodes", 0) or worst.get("wants_zones", 0)),
        "short": design.shortfalls("p99", "copies"),
        "powers": sure.allowed[design.settings].powers if sure and design.settings in sure.allowed else {},
        "cases": [_case(point) for point in design.points],
    }


def _case(point: dict[str, Any]) -> dict[str, Any]:
    """Returns a case's parts and, where designs are judged on their clusters, P(any loss in a year) without these."""
    parts = [row for row in point.get("parts", [point]) if row.get("incident", True)]
    cluster = (
        {name: point[f"any_loss{end}"] for name, end in zip(SUMMED, ENDS, strict=True)} if "any_loss" in point else None
    )
    return {"parts": [_part(row, incidents if cluster else lost_a_year) for row in parts], "cluster": cluster}


def _part(row: dict[str, Any], in_year: Callable[[list[YearPart]], Ends]) -> dict[str, Any]:
    """Returns a scenario's contribution to the losses of a year; in a file without scenarios, of a run."""
    ends = in_year([part_of({"per_year": 1.0, **row})])
    known = {name: float(end) for name, end in zip(SUMMED, ends, strict=True)}
    return {"scenario": row.get("run.scenario", ""), "losses": float(row["losses"]), **known}
