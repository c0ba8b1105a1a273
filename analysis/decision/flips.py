"""Flips of a choice: how far a figure has to be off for another design to be chosen."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pandas as pd

from quorisk.analysis.decision import verdict
from quorisk.analysis.decision.designs import Design, measure_of, ranked_designs
from quorisk.analysis.decision.judging import UNDECIDED
from quorisk.say import choose, numbers, text

STEP, MOST = 10.0**0.5, 100.0
"""Factor between one try of a figure and the next, and the largest factor tried, up and down."""
NARROW = 1.05
"""Largest ratio of the two sides of a flip, unless runs decide."""
FLIP = "With "
"""The beginning of a sentence that says where the choice flips."""
_MOST_ROWS, _MOST_SETTINGS = 2_000, 12
NONE = "no design meets the targets"


class Flip(NamedTuple):
    """The nearest flip on a side; both of its ends have been tried."""

    instead: str
    """The design chosen beyond; empty if no design meets the targets there."""
    before: float
    beyond: float
    """Factors of the figure, or its values: the choice is the same with the first, and another with the second."""


def flip(choose: Callable[[float], str], chosen: str, step: float, narrow: float = NARROW) -> Flip | None:
    """Returns the nearest factor on the side of `step` at which the choice flips; None if it does not up to MOST. Its
    two sides are no further apart than `narrow`.
    """
    before, beyond = 1.0, step
    while (instead := choose(beyond)) == chosen:
        before, beyond = beyond, beyond * step
        if max(beyond, 1.0 / beyond) > 1.001 * MOST:
            return None
    while max(beyond / before, before / beyond) > narrow:
        middle = math.sqrt(before * beyond)
        other = choose(middle)
        before, beyond, instead = (middle, beyond, instead) if other == chosen else (before, middle, other)
    return Flip(instead, before, beyond)


def is_flip(sentence: str) -> bool:
    """Returns whether a sentence of `BreakEvenSearch.told` names a flip of the choice, rather than figures that were
    not tried."""
    return sentence.startswith(FLIP)


def flip_sentences(rows: pd.DataFrame, found: Sequence[Design], target: float) -> list[str]:
    """Returns sentences on changes that would flip the choice among these designs, as far as their own rows show.

    Tried are the target, how often a year each scenario happens, and each setting of the faults alone. Where no design
    meets the targets, the first sentence says which targets one would meet.
    """
    chosen = verdict.chosen(list(found), target)
    if len(rows) > _MOST_ROWS or (chosen and len(found) < 2):
        return []
    said = [*_more_runs(found, target, chosen), *([] if chosen else [_met_by(found, target)])]
    if math.isfinite(target) and chosen:
        what = "a target of" if text.is_yearly(rows) else "a target (run.target) of"
        said += _sides(what, target, chosen, lambda factor: verdict.chosen(list(found), factor * target, chosen))
    varied = text.varied(rows)
    for scenario in _scenarios(rows):

        def by(factor: float, scenario: str = scenario) -> str:
            often = rows["per_year"].mask(rows[text.SCENARIO] == scenario, rows["per_year"] * factor)
            return verdict.chosen(ranked_designs(rows.assign(per_year=often), varied), target, chosen)

        said += _sides(f'"{text.cause(scenario)}"', 1.0, chosen, by, " times as often")
    if _scenarios(rows) and not any(each.startswith(f'{FLIP}"') for each in said):
        often = "less" if not chosen else "more or less"
        said.append(f"Any one scenario {MOST:g} times {often} often: still {chosen or NONE}.")
    return said + (list(_settings(rows, varied, chosen, target)) if len(found) > 1 else [])


def _met_by(found: Sequence[Design], target: float) -> str:
    """A sentence: the targets that a design would meet, the first of those that miss the fewest beside losses."""
    open_to = [each for each in found if not each.is_changed]
    if not open_to:
        return "No target would change it: each design has a mechanism off, a risky setting on, or is an older version."
    nearest = min(open_to, key=lambda each: len(each.shortfalls()))
    high = nearest.interval[1]
    losses = [f"{measure_of(nearest)} up to {numbers.number(numbers.above(high))}"] if high > target else []
    return f"{FLIP}targets that allow {', and '.join([*losses, *nearest.shortfalls()])}: {nearest.settings}."


def _more_runs(found: Sequence[Design], target: float, chosen: str) -> Iterator[str]:
    """A sentence on the first undecided design that would be chosen if more runs showed that it meets the target."""
    for each in found:
        if each.verdict(target) == UNDECIDED:
            shown = each._replace(worst={**each.worst, "high": target})
            if verdict.chosen([shown if other is each else other for other in found], target, chosen) == each.settings:
                yield f"More runs may decide: the target lies in the interval of {each.settings}."
                return


def _scenarios(rows: pd.DataFrame) -> list[str]:
    return list(rows[text.SCENARIO].unique()) if text.is_yearly(rows) else []


def _sides(what: str, value: float, chosen: str, by: Callable[[float], str], unit: str = "") -> Iterator[str]:
    for step in (STEP, 1.0 / STEP):
        if found := flip(by, chosen, step):
            beyond, before = (numbers.number(value * factor) for factor in (found.beyond, found.before))
            yield f"{FLIP}{what} {beyond}{unit}: {found.instead or NONE}; with {before}, still {chosen or NONE}."


def _settings(rows: pd.DataFrame, varied: list[str], chosen: str, target: float) -> Iterator[str]:
    """Sentences on the design chosen under one setting of the faults alone, where it is another one."""
    by_design = rows.groupby(choose.keys_of_design(varied), dropna=False)
    keys = [key for key in choose.faults(varied) if key != text.SCENARIO]
    faults = text.independent(rows, [key for key in keys if (by_design[key].nunique(dropna=False) > 1).any()])
    if not faults:
        return
    by_choice: dict[str, list[dict[str, Any]]] = {}
    for setting in text.configurations(rows, faults)[:_MOST_SETTINGS]:
        alone = verdict.chosen(ranked_designs(choose.rows_with(rows, setting)), target, chosen)
        by_choice.setdefault(alone, []).append(setting)
    for instead, settings in by_choice.items():
        if instead != chosen:
            named = " or ".join(text.settings(setting, faults) for setting in settings)
            yield f"If there were only {named}: {instead or NONE}."
