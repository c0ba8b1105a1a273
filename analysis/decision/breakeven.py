"""Break-even points: by how much a figure would have to be another one for another design to be chosen.

A figure is scaled by more and more until the choice is another one; the factor at which it flips is then narrowed down
between two that have both been run, one with either choice.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from quorisk.analysis.decision.weigh import OutOfTime, Weigher
from quorisk.analysis.experiment.config import Experiment, GridPoint
from quorisk.analysis.experiment.identity import point_id
from quorisk.kernels.engines.points import RateError
from quorisk.kernels.errors import ConfigError
from quorisk.plots import numbers, text, verdict
from quorisk.plots.designs import Design, designs
from quorisk.plots.flips import MOST, flip
from quorisk.plots.quantities import YEAR_S, say_time

if TYPE_CHECKING:
    import pandas as pd

_MOST_NAMED = 4
PER_YEAR, LOSS, LIFETIME = "per_year", "faults.message_loss", "run.lifetime"


class Lever(NamedTuple):
    """A figure of an experiment: a rate, the message loss, a lifetime, or how often a scenario happens a year."""

    key: str
    """Dotted: rates.bookie_is_lost, where no scenario has its own; scenarios.power_outage.rates.bookie_is_lost."""
    value: float
    """As it is; the largest of the grid's."""
    is_physical: bool = False
    """Rates and times are in seconds."""

    @property
    def own(self) -> tuple[str, str]:
        """The scenario whose figure it is, if it is one's alone, and the key there."""
        if not self.key.startswith("scenarios."):
            return "", self.key
        _, scenario, key = self.key.split(".", 2)
        return scenario, key

    @property
    def name(self) -> str:
        """For people: "bookie is lost", "lifetime" in power_outage."""
        scenario, key = self.own
        if key == PER_YEAR:
            return f"{scenario} happening"
        return f'"{text.name(key)}"' + (f" in {scenario}" if scenario else "")

    def scaled(self, value: float, factor: float) -> float:
        """Returns one of its values times a factor; in few digits, since rates enter as exact ratios, and probabilities
        are 1 at the most. What is said of a side is what was run there."""
        value = value if factor == 1 else float(f"{factor * value:.3g}")
        return min(value, 1.0) if self.own[1] == LOSS else value

    def said(self, value: float) -> str:
        """Returns a value of the figure, for people."""
        key = self.own[1]
        if key == PER_YEAR:
            return f"{numbers.plain(value)} times a year"
        if key == LOSS or not self.is_physical:
            return numbers.plain(value)
        if key == LIFETIME:
            return say_time(value)
        a_year = value * YEAR_S
        return f"{100 * a_year:.3g} % / year" if a_year < 1 else f"1 / {say_time(1 / value)}"


class BreakEven(NamedTuple):
    """Where the choice flips."""

    lever: Lever
    chosen: str
    instead: str
    """What is chosen as it is, and beyond; empty if no design meets the targets there."""
    before: float
    beyond: float
    """The figure: with the first the choice is as it is, with the second another. Both have been run."""

    def told(self) -> str:
        """Returns where the choice flips, in a sentence."""
        lever, none = self.lever, "no design meets the targets"
        side = "up" if self.beyond > lever.value else "down"
        there, still = self.instead or none, f"still {self.chosen}" if self.chosen else none
        name, now = lever.name + ("" if lever.own[1] == PER_YEAR else " at"), f"{side} from {lever.said(lever.value)}"
        return f"With {name} {lever.said(self.beyond)} ({now}): {there}; with {lever.said(self.before)}, {still}."


class Search(NamedTuple):
    """What came of scaling some figures."""

    chosen: str | None
    """What is chosen as they are; None if there was no time to tell."""
    found: list[BreakEven]
    tried: list[Lever]
    untried: list[Lever]
    """As time was up, or rates would get too different to be drawn exactly."""

    def told(self) -> list[str]:
        """Returns what was found, in sentences."""
        flipped = {each.lever for each in self.found}
        names = tuple(dict.fromkeys(lever.name for lever in self.tried if lever not in flipped))
        sentences = [each.told() for each in self.found]
        if names:
            sentences.append(f"These change nothing if scaled up or down by {MOST:g}: {'; '.join(names)}.")
        untried = [lever.name for lever in self.untried]
        more = [f"and {len(untried) - _MOST_NAMED} more"] if len(untried) > _MOST_NAMED else []
        if untried:
            named = "; ".join(untried[:_MOST_NAMED] + more)
            sentences.append(f"Not tried: {named}.")
        return sentences


def levers(experiment: Experiment) -> list[Lever]:
    """Returns all figures of an experiment that can be scaled: those that it sets, and that are not 0.

    Faults come first, then what is slowest: repairs take hours, and messages milliseconds.
    """
    found = [Lever(f"scenarios.{name}.{PER_YEAR}", each.per_year) for name, each in experiment.scenarios.items()]
    rates = [f"rates.{action.name}" for action in experiment.model.actions]
    rest = []
    for key in [*(key for key in rates if key in experiment.given), LIFETIME, LOSS]:
        for scenario in ("", *experiment.scenarios):
            values = [_value(each, key) for each in experiment.points if _owner(experiment, each, key) == scenario]
            values = [value for value in values if 0 < value < math.inf]
            if values:
                physical = experiment.points[0].point.time_unit is not None
                rest.append(Lever(f"scenarios.{scenario}.{key}" if scenario else key, max(values), physical))
    faults = {LIFETIME, LOSS, *(f"rates.{action.name}" for action in experiment.model.actions if action.fault)}
    rest.sort(key=lambda lever: (lever.own[1] not in faults, lever.value ** (-1 if lever.own[1] == LIFETIME else 1)))
    return [lever for lever in found if lever.value > 0] + rest


def untold(experiment: Experiment) -> list[Lever]:
    """Returns those figures whose break-even points results alone do not tell (`plots.flips`)."""
    return [lever for lever in levers(experiment) if lever.own[1] != PER_YEAR]


def _owner(experiment: Experiment, point: GridPoint, key: str) -> str:
    """The scenario that gives a point its value of a key; empty if the file, its profile or its grid does."""
    own = point.scenario is not None and key in experiment.scenarios[point.scenario].values and key not in point.varied
    return str(point.scenario) if own else ""


def _value(each: GridPoint, key: str) -> float:
    point = each.point
    if key == LIFETIME:
        return point.lifetime
    return float(point.message_loss if key == LOSS else point.rates[key.removeprefix("rates.")])


def scaled(experiment: Experiment, lever: Lever, factor: float) -> Experiment:
    """Returns the experiment with a figure multiplied."""
    scenario, key = lever.own
    if key == PER_YEAR:
        there = experiment.scenarios[scenario]
        other = there._replace(per_year=lever.scaled(there.per_year, factor))
        return experiment._replace(scenarios={**experiment.scenarios, scenario: other})

    def moved(each: GridPoint) -> GridPoint:
        if _owner(experiment, each, key) != scenario:
            return each
        point, value = each.point, _value(each, key)
        if key == LIFETIME:
            point = point._replace(lifetime=lever.scaled(value, factor) if value < math.inf else value)
        elif key == LOSS:
            point = point._replace(message_loss=lever.scaled(value, factor))
        else:
            point = point._replace(rates={**point.rates, key.removeprefix("rates."): lever.scaled(value, factor)})
        return each._replace(point=point, point_id=point_id(experiment.model, point))

    return experiment._replace(points=tuple(map(moved, experiment.points)))


def break_even(experiment: Experiment, lever: Lever, choose: Callable[[Experiment, str], str]) -> Iterator[BreakEven]:
    """Yields the nearest flip above and below, where there is one within a factor of `flips.MOST`: at once by that
    factor, as each try takes its time, so that a choice which is the same again there is not seen to flip on the way.

    `choose` names the design that is chosen of an experiment, or none (an empty text); it is told which one is chosen
    now, which stands as long as losses do not tell it from the first. Raises RateError where rates get too different to
    be drawn exactly.
    """
    chosen = choose(experiment, "")
    for step in (MOST, 1.0 / MOST):
        if found := flip(lambda factor: choose(scaled(experiment, lever, factor), chosen), chosen, step):
            before, beyond = (lever.scaled(lever.value, factor) for factor in (found.before, found.beyond))
            yield BreakEven(lever, chosen, found.instead, before, beyond)


def search(
    experiment: Experiment, rows: "pd.DataFrame", weigher: Weigher, tried: Sequence[Lever], within_s: float = math.inf
) -> Search:
    """Returns the break-even points of some figures, as many as there is time for. `rows` are of the experiment, about
    any loss; designs that cannot be chosen whatever they lose are not weighed again.
    """
    target = float(rows["target"].iloc[0])
    weigher.deadline = time.monotonic() + within_s
    weighed = can_be_chosen(designs(rows))

    def choose(there: Experiment, now: str) -> str:
        return verdict.chosen(designs(weigher.renewed(rows, experiment, there, weighed)), target, now)

    chosen, found = None, []
    done: list[Lever] = []
    with suppress(OutOfTime):
        chosen = choose(experiment, "")
        for lever in tried:
            weigher.say(f"break-even of {lever.key}: ")
            with suppress(RateError):
                found += list(break_even(experiment, lever, choose))
                done.append(lever)
    return Search(chosen, found, done, [each for each in tried if each not in done])


def can_be_chosen(found: Sequence[Design]) -> set[str]:
    """Returns the ids of the configurations of designs that may be chosen, whatever they lose: those that fall short of
    nothing that is wanted, have all mechanisms on and are of today's version.
    """
    open_to = [each for each in found if not each.shortfalls() and not each.is_changed]
    return {row["point_id"] for each in open_to for point in each.points for row in point.get("parts", [point])}


def picked(experiment: Experiment, keys: Sequence[str] | None) -> list[Lever]:
    """Returns the figures of these keys, or all of them if None. Raises ConfigError."""
    every = {lever.key: lever for lever in levers(experiment)}
    for key in keys or ():
        if key not in every:
            raise ConfigError(f" {key}: one of {', '.join(every)}", "keys")
    return [lever for key, lever in every.items() if keys is None or key in keys]
