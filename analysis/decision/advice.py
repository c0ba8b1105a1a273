"""What a report recommends: sentences from the verdicts on a sweep's designs, no more than the numbers hold."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from quorisk.analysis.decision import flips, verdict
from quorisk.analysis.decision.designs import Design, designs, estimate
from quorisk.analysis.decision.judging import FAILS, MEETS, UNDECIDED, tail
from quorisk.say import choose, numbers, text

_MOST_NAMED = 4


class Recommendation(NamedTuple):
    """What to do, and how far to trust it."""

    headline: str
    sentences: list[str]
    """What the headline rests on, and what qualifies it."""
    flips: list[str]
    """What would change the choice, as far as these results tell."""


def recommend(frame: pd.DataFrame, without_runs: int = 0) -> Recommendation:
    """Returns the recommendation of a result frame, about any data loss.

    `without_runs`: this many configurations are not in the frame, as time was up before any of their runs was done.
    """
    rows = choose.of(frame, text.ANY_LOSS)
    found, target = designs(rows), rows["target"].iloc[0]
    if target == math.inf:
        headline, sentences = _without_target(found)
    else:
        headline, sentences = _with_target(found, tail(rows), target)
    if without_runs:
        also = ", or of designs that have none in one of the scenarios" if text.is_yearly(rows) else ""
        which = f"{numbers.counted(without_runs, 'configuration')} without any runs yet{also}"
        sentences.insert(0, f"Not covered here: {which}.")
    return Recommendation(headline, sentences + _qualified(rows, found), flips.told(rows, found, target))


def _with_target(found: Sequence[Design], tail: float, target: float) -> tuple[str, list[str]]:
    by_verdict = {kind: [each for each in found if each.verdict(target) == kind] for kind in (MEETS, FAILS, UNDECIDED)}
    meets, fails, undecided = by_verdict.values()
    goals = [
        f"at most {numbers.short(target)} losses a year"
        if "parts" in found[0].worst
        else f"a probability of data loss of at most {numbers.short(target)} a run",
        *found[0].wanted(),
    ]
    goal = f"target{'s' if len(goals) > 1 else ''}: {', '.join(goals)}"
    said = []
    if meets:
        headline = f"{_count(meets, found)} meet{_s(meets)} the {goal}."
        if len(found) > 1:
            said.append(f"These meet {'them' if len(goals) > 1 else 'it'}: {_names(meets)}.")
            said += _chosen(found, target)
    else:
        headline = f"No design is shown to meet the {goal}."
    if len(found) == 1:
        said.append(f"Under its worst faults: {_told(found[0], found[0].telling(target))}.")
    elif fails:
        last = max(fails, key=_reach)
        worst = _told(last, last.telling(target))
        said.append(f"These do not: {_names(fails)}. The worst: {worst}.")
    if undecided:
        runs = max(each.runs_to_settle(tail, target) for each in undecided)
        made = max(_made(point) for each in undecided for point in each.points)
        needed = (
            f"about {numbers.number(runs)} runs of each configuration would settle them; there are {made:,}"
            if runs < math.inf
            else "more runs of the decisive scenario would settle them, or `quorisk recommend`, which solves small ones"
            if "parts" in found[0].worst
            else "more runs alone would not settle all: an estimate is at the target, or runs that ended early hide it"
        )
        said.append(f"Undecided at this precision: {_names(undecided)}; {needed}.")
    if short := [each for each in fails if each.shortfalls()]:
        told = "; ".join(f"{each.settings} ({', '.join(each.shortfalls())})" for each in short[:_MOST_NAMED])
        said.append(f"Rejected for another target: {told}.")
    return headline, said


def _chosen(found: Sequence[Design], target: float) -> list[str]:
    """Which of the designs that meet the target to take, and why not another one."""
    picks = verdict.choice(list(found), target)
    if not picks:
        return ["None is recommended: each of them has a mechanism off, a risky setting on, or is of an older version."]
    first, *others = picks
    given = f" All of them have {first.worst['given']}." if first.worst.get("given") else ""
    said = [f"Choose: {_promised(first)}.{given}"]
    if others:
        said.append(f"The runner-up: {_promised(others[0])}.")
        said += _tie(first, others, found)
    meets = [each for each in found if each.verdict(target) == MEETS]
    if saved := [each for each in meets if each.is_clean and each.promises_less(first) and not each.is_changed]:
        these = "these" if len(saved) > 1 else "this"
        said.append(
            f"{_names(saved)}: no run of {these} lost data either, but that is no reason to have fewer copies. Rarer "
            "events may tell apart what these runs cannot."
        )
    if changed := [each for each in meets if each.is_changed]:
        why = "a mechanism is off, a risky setting is on, or the version is an older one"
        said.append(f"{_names(changed)}: not recommended, because {why}.")
    return said


def _made(point: Mapping[str, Any]) -> int:
    """The runs that an interval rests on: those from a head's exits, if it has any."""
    from_exits = point.get("exit_runs")
    return int(point["runs"] if pd.isna(from_exits) or not from_exits else from_exits)


def _tie(first: Design, picks: Sequence[Design], found: Sequence[Design]) -> list[str]:
    """What is said of designs that are as good a choice as the first, as far as losses tell."""
    tied = [each for each in picks if each.rank == first.rank]
    if not tied:
        return []
    why = verdict.deciding(first, tied[0], list(found))
    decides = f"What decides is that it {why}." if why else "Nothing else tells them apart, either."
    how = "their intervals overlap or lie less than 1% apart"
    return [f"A tie: {first.settings} and {_names(tied)} lose equally much as far as is known: {how}. {decides}"]


def _reach(design: Design) -> float:
    return float(design.worst["high"])


def _promised(design: Design) -> str:
    """A design with what it promises, how often its runs get stuck, and what is known of its losses."""
    promised = design.worst
    said = [f"{design.settings}"]
    if "copies" in promised:
        where = "on disk" if promised["on_disk"] else "in page cache"
        said.append(f"{promised['copies']} of {promised['stored']} copies {where} when acknowledged")
        said.append(f"survives {promised['survives']}")
    if stuck := design.p_stuck():
        said.append(f"{numbers.number(stuck)} of its runs get stuck")
    if "write_p99_ms" in promised:
        said.append(f"p99 of a write {numbers.number(promised['write_p99_ms'])} ms")
    if "stored_bytes" in promised:
        said.append(f"stores {numbers.size(promised['stored_bytes'])}")
    unit = "losses a year" if "parts" in promised else "P(data loss)"
    lost = f"{estimate(promised)} {unit}" if "parts" in promised else f"{unit} {estimate(promised)}"
    said.append(f"{unit} 0, proved" if design.is_proved else f"{lost}, none seen" if design.is_clean else lost)
    return "; ".join(said)


def _without_target(found: Sequence[Design]) -> tuple[str, list[str]]:
    best, worst = min(found, key=_reach), max(found, key=_reach)
    headline = "No target was set (run.target), so designs are only ranked."
    unseen = [each for each in found if each.is_clean]
    said = []
    if unseen:
        most = numbers.number(numbers.above(max(each.worst["high"] for each in unseen)))
        said.append(f"No run of {_names(unseen)} lost data: all that is known is an upper bound of {most}.")
    else:
        said.append(f"The lowest upper end: {_told(best, best.worst)}.")
    if worst.worst["losses"] and len(found) > 1:
        said.append(f"The highest: {_told(worst, worst.worst)}.")
    return headline, said


def _qualified(rows: pd.DataFrame, found: Sequence[Design]) -> list[str]:
    """What all of these sentences are subject to."""
    said, confidence = [], numbers.percent(rows["confidence"].iloc[0])
    if (rows["low"] == rows["high"]).all():
        said.append("All of these numbers are exact.")
    elif text.is_yearly(rows):
        said.append(f"A design's losses a year lie within their interval with at least {confidence} confidence.")
    elif len(rows) > 1 and text.is_simultaneous(rows):
        said.append(f"With {confidence} confidence, all {len(rows):,} intervals hold together, and so do all verdicts.")
    elif len(rows) > 1:
        wrong = (1.0 - rows["confidence"].iloc[0]) * len(rows)
        said.append(
            f"Each interval on its own holds with {confidence} confidence: about {wrong:.2g} of {len(rows):,} "
            "intervals may miss. With run.simultaneous = true, all hold together."
        )
    if hidden := int(rows["hidden"].sum()):
        said.append(f"{numbers.counted(hidden, 'run')} ended before it was known whether data would be lost; the "
                    "upper ends count each of them as a loss.")  # fmt: skip
    if any(len(each.points) > 1 for each in found):
        said.append("A design is judged by its worst faults: it meets a target only if it does so under all of them.")
    return said


def _count(some: Sequence[Design], found: Sequence[Design]) -> str:
    return f"{len(some)} of {len(found)} designs" if len(found) > 1 else "The one design"


def _s(some: Sequence[Design]) -> str:
    return "s" if len(some) == 1 else ""


def _names(some: Sequence[Design]) -> str:
    more = f", and {len(some) - _MOST_NAMED:,} more" if len(some) > _MOST_NAMED else ""
    return "; ".join(each.settings for each in some[:_MOST_NAMED]) + more


def _told(design: Design, point: Mapping[str, Any]) -> str:
    at = f" (at {point['at']})" if point["at"] else ""
    interval = numbers.interval(point)
    short = "".join(f", {each}" for each in design.shortfalls())
    return f"{design.settings}: {estimate(point)}{f', interval {interval}' if interval else ''}{at}{short}"
