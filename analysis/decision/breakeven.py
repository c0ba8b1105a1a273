"""Break-even points: by how much a figure would have to be another one for another design to be chosen.

A figure is scaled by more and more until the choice is another one; the factor at which it flips is then narrowed down
between two that have both been run, one with either choice.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from quorisk.analysis.experiment.config import Experiment, GridPoint
from quorisk.analysis.experiment.identity import point_id
from quorisk.kernels.engines.points import RateError
from quorisk.plots.flips import STEP, flip


class Lever(NamedTuple):
    """A figure of an experiment: a rate, the message loss, or how often a scenario happens a year."""

    key: str
    """Dotted: rates.bookie_is_lost, faults.message_loss, scenarios.failover.per_year."""
    value: float
    """As it is; the largest of the scenarios', if they have several."""


class BreakEven(NamedTuple):
    """Where the choice flips."""

    lever: Lever
    instead: str
    """What is chosen beyond; empty if no design meets the targets there."""
    factor_before: float
    factor_beyond: float
    """Of the figure: with the first the choice is as it is, with the second another. Both have been run."""


def levers(experiment: Experiment) -> list[Lever]:
    """All figures of an experiment that can be scaled: those that it sets, and that are not 0."""
    points = [point.point for point in experiment.points]
    found = [Lever(f"scenarios.{name}.per_year", each.per_year) for name, each in experiment.scenarios.items()]
    rates = {name: max(float(point.rates.get(name, 0.0)) for point in points) for name in points[0].rates}
    found += [Lever(f"rates.{name}", rate) for name, rate in rates.items() if f"rates.{name}" in experiment.given]
    found.append(Lever("faults.message_loss", max(float(point.message_loss) for point in points)))
    return [lever for lever in found if lever.value > 0]


def scaled(experiment: Experiment, lever: Lever, factor: float) -> Experiment:
    """The experiment with a figure multiplied; probabilities are 1 at the most."""
    table, _, name = lever.key.partition(".")
    if table == "scenarios":
        scenario = name.removesuffix(".per_year")
        there = experiment.scenarios[scenario]
        other = there._replace(per_year=factor * there.per_year)
        return experiment._replace(scenarios={**experiment.scenarios, scenario: other})

    def moved(each: GridPoint) -> GridPoint:
        point = each.point
        if table == "rates":
            # in few digits, since rates enter as exact ratios
            point = point._replace(rates={**point.rates, name: float(f"{factor * point.rates[name]:.3g}")})
        else:
            point = point._replace(message_loss=min(float(f"{factor * point.message_loss:.3g}"), 1.0))
        return each._replace(point=point, point_id=point_id(experiment.model, point))

    return experiment._replace(points=tuple(map(moved, experiment.points)))


def break_even(experiment: Experiment, lever: Lever, choose: Callable[[Experiment], str]) -> Iterator[BreakEven]:
    """The nearest flip above and below, where there is one within a factor of `flips.MOST`.

    `choose` names the design that is chosen of an experiment, or none (an empty text). The search on a side ends where
    rates get too different to be drawn exactly.
    """
    chosen = choose(experiment)
    for step in (STEP, 1.0 / STEP):
        with suppress(RateError):
            if found := flip(lambda factor: choose(scaled(experiment, lever, factor)), chosen, step):
                yield BreakEven(lever, found.instead, found.before, found.beyond)
