"""What a report says first, for who reads no more: the design, its risk, the doubt, and what it costs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from quorisk.analysis.decision import verdict
from quorisk.analysis.decision.designs import Design, estimate, loses_at_least
from quorisk.analysis.decision.doubt import Doubt, of_draws
from quorisk.say import numbers
from quorisk.say.quantities import YEAR_S, say_time


def summary(found: Sequence[Design], target: float, sure: Doubt | None) -> list[tuple[str, str]]:
    """Returns what is to be said of the design that is chosen, or else of the safest one: about what, and in words."""
    picks = verdict.choice(list(found), target)
    design = picks[0] if picks else found[0]
    standing = "recommended" if picks else "the safest, not recommended" if len(found) > 1 else "not recommended"
    named = "design", f"{design.settings or 'this one'} ({standing})"
    return [named, *_risk(design), *_doubt(design, sure, bool(picks)), *_costs(design)]


def _risk(design: Design) -> Iterator[tuple[str, str]]:
    worst, year = design.worst, "parts" in design.worst
    if not design.is_clustered:
        yield ("losses a year" if year else "P(data loss) of a run"), _with_interval(worst)
    else:
        between = f"; once in {say_time(YEAR_S / worst['incidents'])}" if worst["incidents"] else ""
        yield "P(any loss) in a year", f"{_with_interval(worst)}{between}"
        median, most = numbers.in_full(worst["incident_p50"]), numbers.in_full(worst["incident_p99"])
        if worst["incidents"]:
            entries = "entry" if median == "1" else "entries"
            if loses_at_least(worst):
                yield (
                    "lost at once",
                    f"at least {median} {entries} (median): a partition that a scenario loses counts as one",
                )
            else:
                yield "lost at once", f"{median} {entries} (median); in 99 of 100 incidents at most {most}"
    if causes := design.by_cause:
        yield "mostly because of", max(causes, key=lambda cause: causes[cause])


def _with_interval(worst: Mapping[str, Any]) -> str:
    interval = numbers.interval(worst)
    return f"{estimate(worst)}{f' (interval {interval})' if interval else ''}"


def _doubt(design: Design, sure: Doubt | None, is_chosen: bool) -> Iterator[tuple[str, str]]:
    if sure is None:
        yield "how sure", "not known: nothing is said of how well the rates behind it are known"
        return
    known = sure.allowed.get(design.settings)
    if design.is_proved:
        yield "how sure", "proved, whatever the rates"
        return
    if known is None:
        yield "how sure", f"not known: {sure.open.get(design.settings, 'its losses were not solved')}"
        return
    ends = numbers.between(numbers.below(known.low), numbers.above(known.high))
    said = f"given how well the rates are known, nine times in ten {ends}"
    if is_chosen and len(sure.allowed) > 1:
        said += f"; in {of_draws(sure.choice.get(design.settings, 0.0))} of cases it is the design to choose"
    yield "how sure", said


def _costs(design: Design) -> Iterator[tuple[str, str]]:
    worst = design.worst
    if "stored" in worst:
        size = f"; {numbers.size(worst['stored_bytes'])} in all" if "stored_bytes" in worst else ""
        yield "it stores", f"{numbers.counted(int(worst['stored']), 'copy', 'copies')} of each entry{size}"
        yield "it survives the loss of", str(worst.get("survives"))
    if "write_p50_ms" in worst:
        half, most = numbers.number(worst["write_p50_ms"]), numbers.number(worst["write_p99_ms"])
        yield "a write takes", f"{half} ms (median); 99 of 100 at most {most} ms"
