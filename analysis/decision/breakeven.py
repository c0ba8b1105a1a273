"""Break-even points: how far a figure would have to change for another design to be chosen.

A figure is scaled by more and more until the choice is another one; the factor at which it flips is then narrowed down
between two that have both been run, one with either choice.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from quorisk.analysis.decision import verdict
from quorisk.analysis.decision.designs import Design, ranked_designs
from quorisk.analysis.decision.flips import FLIP, MOST, NARROW, NONE, Flip, flip
from quorisk.analysis.decision.levers import PER_YEAR, Lever, is_off, levers, scaled
from quorisk.analysis.decision.pace import Pace
from quorisk.analysis.decision.weigh import OutOfTime, Weigher
from quorisk.analysis.experiment.config import Experiment
from quorisk.kernels.engines.points import RateError

if TYPE_CHECKING:
    import pandas as pd

_MOST_NAMED = 4
_NARROW_BY_RUNS = 1.2
"""Largest ratio of the two sides of a flip if runs decide: a narrower one costs runs, and intervals would not show
it."""


class BreakEvenSearch(NamedTuple):
    """Results of scaling some figures."""

    chosen: str | None
    """The design chosen with unchanged figures; None if there was no time to find it."""
    found: list[tuple[Lever, Flip]]
    """The flips, by values of the figures."""
    tried: list[Lever]
    untried: list[Lever]
    """Figures not tried: time was up, or rates would differ too much to be drawn exactly."""
    off: list[Lever]
    """Figures without any effect, as their mechanism is switched off: they are not tried."""
    of_scenarios: bool = False

    def told(self) -> list[str]:
        """Returns the results in sentences."""
        flipped = {lever for lever, _ in self.found}
        names = tuple(dict.fromkeys(lever.name for lever in self.tried if lever not in flipped))
        sentences = [self._flips(*each) for each in self.found]
        if names:
            sentences.append(f"These change nothing if scaled up or down by {MOST:g}: {'; '.join(names)}.")
        if self.off:
            where = ", and so never enabled in these scenarios" if self.of_scenarios else ""
            sentences.append(f"Switched off{where}: {'; '.join(dict.fromkeys(lever.name for lever in self.off))}.")
        untried = [lever.name for lever in self.untried]
        more = [f"and {len(untried) - _MOST_NAMED} more"] if len(untried) > _MOST_NAMED else []
        if untried:
            named = "; ".join(untried[:_MOST_NAMED] + more)
            sentences.append(f"Not tried: {named}.")
        return sentences

    def _flips(self, lever: Lever, found: Flip) -> str:
        side = "up" if found.beyond > lever.value else "down"
        there, still = found.instead or NONE, f"still {self.chosen}" if self.chosen else NONE
        name, now = lever.name + ("" if lever.own_key == PER_YEAR else " at"), f"{side} from {lever.said(lever.value)}"
        return f"{FLIP}{name} {lever.said(found.beyond)} ({now}): {there}; with {lever.said(found.before)}, {still}."


def break_even(
    experiment: Experiment, lever: Lever, choose: Callable[[Experiment], str], chosen: str, narrow: float = NARROW
) -> Iterator[Flip]:
    """Yields the nearest flip above and below, where there is one within a factor of `flips.MOST`: at once by that
    factor, as each try takes its time, so that a choice which is the same again there is not seen to flip on the way.

    `choose` names the design that is chosen of an experiment, or none (an empty text); `chosen` is that of this one.
    Raises RateError where rates get too different to be drawn exactly.
    """
    for step in (MOST, 1.0 / MOST):
        if found := flip(lambda factor: choose(scaled(experiment, lever, factor)), chosen, step, narrow):
            before, beyond = (lever.scaled(lever.value, factor) for factor in (found.before, found.beyond))
            yield Flip(found.instead, before, beyond)


def find_break_even(
    experiment: Experiment, rows: "pd.DataFrame", weigher: Weigher, tried: Sequence[Lever], within_s: float = math.inf
) -> BreakEvenSearch:
    """Returns the break-even points of some figures, as many as there is time for. `rows` are of the experiment, about
    any loss; designs that cannot be chosen whatever they lose are not weighed again.
    """
    target = float(rows["target"].iloc[0])
    off = [lever for lever in tried if is_off(experiment, lever)]
    tried = [lever for lever in tried if lever not in off]
    on = {lever.own_key for lever in levers(experiment) if not is_off(experiment, lever)}
    off = [lever for lever in off if lever.own_key not in on]  # else some scenario has a figure of its own that counts
    weigher.deadline = time.monotonic() + within_s
    weighed = can_be_chosen(ranked_designs(rows))
    pace, trying = Pace(1), iter(["before break-even points: "])
    chosen: str | None = None
    found: list[tuple[Lever, Flip]] = []
    done: list[Lever] = []

    def choose(there: Experiment) -> str:
        now = chosen or ""  # which stands as long as losses do not tell it from the first
        weigher.say(next(trying), pace)
        picked = verdict.chosen(ranked_designs(weigher.renewed(rows, experiment, there, weighed)), target, now)
        if there.points is not experiment.points:  # else only scenarios happen more often, which takes no time
            pace.took(picked != now)
        return picked

    with suppress(OutOfTime):
        chosen = choose(experiment)
        narrow = _NARROW_BY_RUNS if weigher.num_estimated else NARROW
        pace = Pace(0, math.ceil(math.log2(math.log(MOST) / math.log(narrow))))
        for number, lever in enumerate(tried, 1):
            pace.left = 2 * sum(each.own_key != PER_YEAR for each in tried[number - 1 :])  # the others take no time
            trying = map(f"break-even of {lever.key} ({number} of {len(tried)}), try {{}}: ".format, count(1))
            with suppress(RateError):
                apart = NARROW if lever.own_key == PER_YEAR else narrow
                found += [(lever, each) for each in break_even(experiment, lever, choose, chosen, apart)]
                done.append(lever)
    untried = [each for each in tried if each not in done]
    return BreakEvenSearch(chosen, found, done, untried, off, bool(experiment.scenarios))


def can_be_chosen(found: Sequence[Design]) -> set[str]:
    """Returns the ids of the configurations of designs that may be chosen, whatever they lose: those that fall short of
    nothing that is wanted, have all mechanisms on and are of today's version.
    """
    open_to = [each for each in found if not each.shortfalls() and not each.is_changed]
    return {row["point_id"] for each in open_to for point in each.points for row in point.get("parts", [point])}
