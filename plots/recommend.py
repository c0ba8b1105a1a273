"""What a report recommends: sentences from the verdicts on a sweep's designs, no more than the numbers hold."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from quorisk.plots import choose, numbers, text, verdict
from quorisk.plots.verdict import FAILS, MEETS, UNDECIDED, Design

_MOST_NAMED = 4


class Recommendation(NamedTuple):
    """What to do, and how far to trust it."""

    headline: str
    sentences: list[str]
    """What the headline rests on, and what qualifies it."""


def recommend(frame: pd.DataFrame, target: float, without_runs: int = 0) -> Recommendation:
    """The recommendation of a result frame, about any data loss; an infinite `target` is none.

    `without_runs`: so many configurations are not in the frame, as time was up before any of their runs was done.
    """
    rows = choose.of(frame, text.ANY_LOSS)
    found = verdict.designs(rows)
    if target == math.inf:
        headline, sentences = _without_target(found)
    else:
        headline, sentences = _with_target(found, verdict.tail(rows), target)
    if without_runs:
        sentences.insert(0, f"{without_runs:,} configurations have no runs yet: nothing said here covers them.")
    return Recommendation(headline, sentences + _qualified(rows, found))


def _with_target(found: Sequence[Design], tail: float, target: float) -> tuple[str, list[str]]:
    by_verdict = {kind: [each for each in found if each.verdict(target) == kind] for kind in (MEETS, FAILS, UNDECIDED)}
    meets, fails, undecided = by_verdict.values()
    goal = f"a probability of data loss of at most {numbers.power(target)} a run"
    said = []
    if meets:
        measure = "messages" if any(each.mean("messages") for each in meets) else "steps"
        cheapest = min(meets, key=lambda each: each.mean(measure))
        headline = f"{_count(meets, found)} meet{_s(meets)} the target: {goal}."
        if len(found) > 1:
            mean = numbers.number(cheapest.mean(measure))
            said.append(
                f"Meeting it: {_names(meets)}. Of these {cheapest.settings} costs least: {mean} {measure} a run."
            )
    else:
        headline = f"No design is shown to meet the target: {goal}."
    if len(found) == 1:
        said.append(f"In its worst case, {_told(found[0], found[0].telling(target))}.")
    elif fails:
        worst = _told(fails[-1], fails[-1].telling(target))
        said.append(f"Not meeting it: {_names(fails)}. The worst: {worst}.")
    if undecided:
        runs = max(each.runs_to_settle(tail, target) for each in undecided)
        made = max(point["runs"] for each in undecided for point in each.points)
        needed = (
            f"about {numbers.number(runs)} runs a configuration would settle them, against {made:,} made"
            if runs < math.inf
            else "more runs alone would not settle all: an estimate is at the target, or runs that ended early hide it"
        )
        said.append(f"Undecided at this precision: {_names(undecided)}; {needed}.")
    return headline, said


def _without_target(found: Sequence[Design]) -> tuple[str, list[str]]:
    best, worst = found[0], found[-1]
    headline = "No target was set (run.target), so none is passed or failed here; designs are ranked."
    unseen = [each for each in found if not any(point["losses"] for point in each.points)]
    said = []
    if unseen:
        most = numbers.number(numbers.above(unseen[-1].worst["high"]))
        said.append(f"No run of {_names(unseen)} lost data: at most {most}, no more is known.")
    else:
        said.append(f"The lowest upper end: {_told(best, best.worst)}.")
    if worst.worst["losses"] and len(found) > 1:
        said.append(f"The highest: {_told(worst, worst.worst)}.")
    return headline, said


def _qualified(rows: pd.DataFrame, found: Sequence[Design]) -> list[str]:
    """What all of these sentences are subject to."""
    said, confidence = [], numbers.percent(rows["confidence"].iloc[0])
    if len(rows) > 1 and text.is_simultaneous(rows):
        said.append(f"With {confidence} confidence all {len(rows):,} intervals hold together, and so do all verdicts.")
    elif len(rows) > 1:
        wrong = (1.0 - rows["confidence"].iloc[0]) * len(rows)
        said.append(
            f"Each interval holds with {confidence} confidence for itself: of {len(rows):,} up to "
            f"{wrong:.2g} may be expected to miss. run.simultaneous = true makes all hold together."
        )
    if hidden := int(rows["hidden"].sum()):
        said.append(f"{hidden:,} runs ended before it was known whether they would lose data; each counts as a loss at "
                    "the upper ends.")  # fmt: skip
    if any(len(each.points) > 1 for each in found):
        said.append("A design is judged by its worst faults: to meet a target it has to under all faults of this grid.")
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
    return f"{design.settings}: {numbers.probability(point)}{f', interval {interval}' if interval else ''}{at}"
