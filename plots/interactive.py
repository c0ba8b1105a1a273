"""What the report's script needs to judge designs anew: by other targets, without some scenarios."""

import json
import math
from collections.abc import Sequence
from typing import Any

from quorisk.analysis.decision.designs import Design, place
from quorisk.say import numbers

_PART = ("per_year", "p", "low", "high", "losses")


def data(found: Sequence[Design]) -> str:
    """Returns the designs as JSON, in the order of their rows."""
    places = {design.settings: number for number, design in enumerate(sorted(found, key=place))}
    return json.dumps([_design(design, places[design.settings]) for design in found], allow_nan=False)


def controls(found: Sequence[Design], target: float) -> dict[str, Any]:
    """Returns what can be dragged, in powers of ten, and the scenarios; a slider at its upper end sets no limit."""
    highs = [high for design in found for point in design.points if (high := point["high"]) > 0] or [1.0]
    asked = [target] if math.isfinite(target) else []
    low, high = (round(math.log10(limit), 1) for limit in (min(highs + asked) / 10, max(highs + asked) * 10))
    result: dict[str, Any] = {"low": low, "high": high, "target": math.log10(target) if asked else high}
    result["said"] = numbers.number(target) if asked else "any"
    worst = found[0].worst
    result["scenarios"] = [part["run.scenario"] for part in worst.get("parts", [])]
    if "write_p99_high_ms" in worst:
        times = [time for each in found if math.isfinite(time := each.worst["write_p99_high_ms"])] or [1.0]
        wanted = worst.get("wants_write_p99_ms", math.inf)
        ends = [*times, wanted] if math.isfinite(wanted) else times
        first, last = round(math.log10(min(ends) / 2), 2), round(math.log10(max(ends) * 2), 2)
        result["p99"] = {"low": first, "high": last, "at": math.log10(wanted) if math.isfinite(wanted) else last}
    if "copies" in worst:
        result["copies"] = {"high": max(design.worst["copies"] for design in found), "at": worst.get("wants_copies", 0)}
    return result


def _design(design: Design, number: int) -> dict[str, Any]:
    worst = design.worst
    p99_ms = worst.get("write_p99_high_ms", 0.0)
    return {
        "name": design.settings,
        "place": number,
        "changed": design.is_changed,
        "copies": int(worst.get("copies", 0)),
        "stored": int(worst.get("stored", 0)),
        "p99": float(worst.get("write_p99_ms", 0.0)),
        "p99_high": float(p99_ms) if math.isfinite(p99_ms) else 1e300,
        "cost": min(design.cost("messages") or design.cost("steps"), 1e300),
        "wants": bool(worst.get("wants_nodes", 0) or worst.get("wants_zones", 0)),
        "short": any(worst.get(each, 0) < worst.get(f"wants_{each}", 0) for each in ("nodes", "zones")),
        "cases": [[_part(row) for row in point.get("parts", [point])] for point in design.points],
    }


def _part(row: dict[str, Any]) -> dict[str, Any]:
    known = {name: float(row.get(name, 1.0)) for name in _PART}
    return {"scenario": row.get("run.scenario", ""), **known}
