"""What the scenarios of a design add up to in a year."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from quorisk.analysis.cluster.figures import ENDS
from quorisk.say import text

COUNTED = ("losses", "hidden", "runs", "messages", "steps", "completed", "horizon", "stuck")
SUMMED = ("p", "low", "high")
SIZES = {"incident_p50": 0.5, "incident_p99": 0.01, "incident_p99_high": 0.01}
"""What an incident loses, and the part of incidents that lose as much or more."""
_WHOLE = ("kafka", "kraft")
"""Protocols whose scenarios follow a partition: an incident of one takes a record at least, and nobody knows how many.
Others follow an entry."""
_ALMOST = 1.0 - 1e-16


def added(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the year of a design from the rows of its scenarios; ends of intervals that hold together add up.

    `p`, `low` and `high` are losses a year. On a cluster they are of P(any loss in a year), and `entries` and
    `incidents`, each with its ends, what is lost in a year and how often: the cluster's with those scenarios whose
    losses are incidents of their own. The sizes of incidents are the cluster's, unless it has too few of them: then
    that of what a scenario follows, which may be the least that is lost (`incident_at_least`).
    """
    counted = {name: sum(part[name] for part in parts) for name in COUNTED}
    clustered = "any_loss" in parts[0] and parts[0].get("invariant", text.ANY_LOSS) == text.ANY_LOSS
    own = [part for part in parts if not clustered or part["incident"]]
    summed = {name: math.fsum(part["per_year"] * part[name] for part in own) for name in SUMMED}
    if not clustered:
        return {**parts[0], **counted, **summed, "yearly": True}
    found: dict[str, float] = {}
    for name, end in zip(SUMMED, ENDS, strict=True):
        found[name] = -math.expm1(math.log1p(-min(parts[0][f"any_loss{end}"], _ALMOST)) - summed[name])
        found |= {f"{what}{end}": parts[0][f"{what}{end}"] + summed[name] for what in ("entries", "incidents")}
    whole = parts[0].get("protocol") in _WHOLE
    for size, part in SIZES.items():
        if size in parts[0] and parts[0]["incidents_high"] < part * (parts[0]["incidents_high"] + summed["low"]):
            found[size] = 1.0
            found["incident_at_least"] = whole
    others = summed["high"] / (parts[0]["incidents_low"] + summed["high"]) if summed["high"] else 0.0
    if whole and "incident_p99_high" in parts[0] and others > SIZES["incident_p99_high"]:
        found["incident_p99_high"] = math.inf  # one incident in a hundred may be one of theirs
    counted["losses"] = max(counted["losses"], math.ceil(min(found["p"], 1.0)))
    return {**parts[0], **counted, **found, "yearly": True}


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
    found = added(parts) | {text.MESSAGE_LOSS: max(part[text.MESSAGE_LOSS] for part in parts)}
    own = [part for part in parts if part.get("incident")]
    if "any_loss" in found and found["invariant"] == text.ANY_LOSS:
        return found | {"incident": bool(own), "method": " or ".join(dict.fromkeys(part["method"] for part in own))}
    return found | {"method": " or ".join(dict.fromkeys(part["method"] for part in parts))}
