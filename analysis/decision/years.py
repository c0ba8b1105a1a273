"""Sums of the scenarios of a design in a year."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from quorisk.analysis.cluster.figures import COLUMNS, ENDS
from quorisk.analysis.statistics.yearly import FATES, NOTHING, Ends, YearPart, incidents, is_open, lost_a_year, p_any
from quorisk.say import text

COUNTED = ("losses", "hidden", "runs", "messages", "steps", "completed", "horizon", "stuck")
SUMMED = ("p", "low", "high")
SIZES = {"incident_p50": 0.5, "incident_p99": 0.01, "incident_p99_high": 0.01}
"""Columns of the sizes of incidents, each with the part of incidents that lose as much or more."""
_WHOLE = ("kafka", "kraft")
"""Protocols whose scenarios follow a partition: an incident of one takes at least a record, and the number is unknown.
Others follow an entry."""
AT_LEAST = "at least: a partition that a scenario loses counts as one"
"""Addition to the method of entries lost a year where that is so."""


def part_of(row: Mapping[str, Any]) -> YearPart:
    """Returns the contribution to a year of the scenario of a frame's row."""
    return YearPart(row["per_year"], row["p"], row["low"], row["high"], row.get("hits", 1.0), row.get("fates", ""))


def year_of_scenarios(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the year of a design from the rows of its scenarios; ends of intervals that hold together add up.

    `p_any` is P(any loss in a year), `incidents` and `entries` are the incidents and the losses in a year, each with
    its ends: the cluster's, if there is one, with those scenarios whose losses are incidents of their own.
    `p_any_shared` and `p_any_independent` are there if a scenario does not say how the objects of an event fail
    together, and it matters. `p`, `low` and `high` are losses a year, or on a cluster P(any loss in a year). Sizes of
    incidents are the cluster's, unless it has too few of them: then one object of a scenario, which may be the least
    that is lost (`incident_at_least`).
    """
    first = rows[0]
    counted = {name: sum(row[name] for row in rows) for name in COUNTED}
    clustered = "any_loss" in first and first.get("invariant", text.ANY_LOSS) == text.ANY_LOSS
    parts = [part_of(row) for row in rows if not clustered or row["incident"]]
    of_cluster = {name: ends(first, name) if clustered else NOTHING for name in COLUMNS}
    rate, lost = incidents(parts), lost_a_year(parts)
    found: dict[str, Any] = _columns("p_any", p_any(rate, of_cluster["any_loss"]))
    found |= _columns("incidents", of_cluster["incidents"].plus(rate))
    found |= _columns("entries", of_cluster["entries"].plus(lost))
    if is_open(parts):
        either = {fates: p_any(incidents(parts, fates), of_cluster["any_loss"]).value for fates in FATES}
        found |= {f"p_any_{fates}": value for fates, value in either.items()}
    found |= dict(zip(SUMMED, ends(found, "p_any" if clustered else "entries"), strict=True))
    if clustered:
        found |= _sizes(first, rate) | {"entries_at_least": lost.high > 0.0 and first.get("protocol") in _WHOLE}
        counted["losses"] = max(counted["losses"], math.ceil(min(found["p"], 1.0)))
    return {**first, **counted, **found, "yearly": True}


def method_of_entries(method: str, year: Mapping[str, Any]) -> str:
    """Returns the method of a year's entries, given that of its incidents."""
    return f"{method}, {AT_LEAST}" if year.get("entries_at_least") else method


def ends(row: Mapping[str, Any], name: str) -> Ends:
    """Returns a figure of a row with the ends of its interval."""
    return Ends(*(row[f"{name}{end}"] for end in ENDS))


def _columns(name: str, ends: Ends) -> dict[str, float]:
    return {f"{name}{end}": value for end, value in zip(ENDS, ends, strict=True)}


def _sizes(first: Mapping[str, Any], rate: Ends) -> dict[str, Any]:
    """Changes in the sizes of a cluster's incidents that are due to incidents of scenarios at this rate."""
    found: dict[str, Any] = {}
    whole = first.get("protocol") in _WHOLE
    for size, part in SIZES.items():
        if size in first and first["incidents_high"] < part * (first["incidents_high"] + rate.low):
            found |= {size: 1.0, "incident_at_least": whole}
    others = rate.high / (first["incidents_low"] + rate.high) if rate.high else 0.0
    if whole and "incident_p99_high" in first and others > SIZES["incident_p99_high"]:
        found["incident_p99_high"] = math.inf  # one incident in a hundred may be one of theirs
    return found


def yearly_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns a frame with scenarios as one without: `p`, `low` and `high` are times a year.

    Keys in which only scenarios differ have no column any more; message loss and runs are the largest of theirs.
    """
    keys = [key for key in text.varied(frame) if key != text.SCENARIO]
    others = [key for key in text.parameter_keys(frame) if frame[key].nunique(dropna=False) > 1 and key not in keys]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in frame.to_dict("records"):
        groups.setdefault((row["invariant"], *(row[key] for key in keys)), []).append(row)
    years = pd.DataFrame([_year(parts) for parts in groups.values()])
    return years.drop(columns=[key for key in others if key != text.MESSAGE_LOSS])


def _year(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found = year_of_scenarios(parts) | {name: max(part[name] for part in parts) for name in (text.MESSAGE_LOSS, "runs")}
    own = [part for part in parts if part.get("incident")]
    if "any_loss" in found and found["invariant"] == text.ANY_LOSS:
        return found | {"incident": bool(own), "method": " or ".join(dict.fromkeys(part["method"] for part in own))}
    return found | {"method": " or ".join(dict.fromkeys(part["method"] for part in parts))}
