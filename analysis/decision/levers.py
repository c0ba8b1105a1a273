"""The figures of an experiment that can be scaled: rates, message loss, lifetimes, and how often scenarios happen."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from quorisk.analysis.cluster.joined import is_replaced
from quorisk.analysis.experiment import file_values, switches, units
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.grid import GridPoint
from quorisk.analysis.experiment.identity import point_id
from quorisk.analysis.experiment.known import value_in
from quorisk.analysis.experiment.placed import TABLE, Placed, is_key
from quorisk.analysis.rates.draws import with_values
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.rule import loss_names
from quorisk.say import numbers, text
from quorisk.say.quantities import YEAR_S, say_time

PER_YEAR, LIFETIME = "per_year", "run.lifetime"
FAULTS = "faults."
"""Prefix of `[faults]`, of whose keys only the probabilities with which something is lost can be scaled."""


class Lever(NamedTuple):
    """A figure of an experiment: a rate, a probability, a lifetime, or how often a scenario happens a year."""

    key: str
    """Dotted key: rates.bookie_is_lost, where no scenario has its own; scenarios.power_outage.rates.bookie_is_lost."""
    value: float
    """The present figure; the largest of the grid's values."""
    is_physical: bool = False
    """Rates and times are in seconds."""
    written: str = ""
    """The figure as the file writes it, such as 0.75 % / min; empty if that is a number."""
    is_at_risk: bool = False
    """Whether entries that have few copies on a cluster follow from it."""

    @property
    def own(self) -> tuple[str, str]:
        """The scenario whose figure it is, if it is one's alone, and the key there."""
        if not self.key.startswith("scenarios."):
            return "", self.key
        _, scenario, key = self.key.split(".", 2)
        return scenario, key

    @property
    def own_key(self) -> str:
        """The key, without its scenario."""
        return self.own[1]

    @property
    def of_cluster(self) -> bool:
        """Whether it is one of [cluster]."""
        return is_key(self.key)

    @property
    def name(self) -> str:
        """The name in words: "bookie is lost", "lifetime" in power_outage."""
        scenario, key = self.own
        if key == PER_YEAR:
            return f"{scenario} happening"
        if self.of_cluster:
            return f'the cluster\'s "{text.name(key)}"'
        return f'"{text.name(key)}"' + (f" in {scenario}" if scenario else "")

    def scaled(self, value: float, factor: float) -> float:
        """Returns one of its values times a factor; in few digits, since rates enter as exact ratios, and probabilities
        are 1 at the most. Runs use the value as it is shown."""
        if factor == 1:
            return value
        if self.own_key.startswith("rates.") and self.is_physical:
            return float(units.read_rate(self.said(factor * value).replace(",", "")))
        value = float(f"{factor * value:.3g}")
        return min(value, 1.0) if self.own_key.startswith(FAULTS) or ".p_" in self.key else value

    def said(self, value: float) -> str:
        """Returns a value of the figure, for people."""
        key = self.own_key
        if key.rpartition(".")[2] in (PER_YEAR, "node_loss", "disk_loss"):
            return f"{numbers.plain(value)} times a year"
        if key in ("cluster.detection_delay", "cluster.repair_time"):
            return say_time(value * YEAR_S)
        if self.of_cluster or key.startswith(FAULTS) or not self.is_physical:
            return numbers.plain(value)
        if key == LIFETIME:
            return say_time(value)
        return units.say_like(self.written, value)


def levers(experiment: Experiment) -> list[Lever]:
    """Returns all figures of an experiment that can be scaled: those that it sets, and that are not 0.

    Faults come first, then the others from slow to fast: repairs take hours, and messages milliseconds.
    """
    found = [
        Lever(f"scenarios.{name}.{PER_YEAR}", each.per_year)
        for name, each in experiment.scenarios.items()
        if not is_replaced(experiment, name) and isinstance(each.per_year, float)
    ]
    events = dict.fromkeys(each.name for placed in experiment.clusters for each in placed.cluster.events)
    fields = ["node_loss", "disk_loss", *(f"events.{name}.{key}" for name in events for key in (PER_YEAR, "p_lost"))]
    of_cluster = [
        Lever(f"{TABLE}.{field}", max(each.figure(f"{TABLE}.{field}") for each in experiment.clusters))
        for field in (*fields, "detection_delay", "repair_time")
        if experiment.clusters
    ]
    at_risk = [
        Lever(key, max(each.figure(key) for each in experiment.clusters), is_at_risk=True)
        for key in _at_risk(experiment)
    ]
    points = [each for each in experiment.points if not is_replaced(experiment, each.scenario)]
    rates = [f"rates.{action.name}" for action in experiment.model.actions]
    rest = []
    p_lost = [key for key in _p_lost(experiment) if key not in {lever.key for lever in at_risk}]
    for key in [*(key for key in rates if key in experiment.given), LIFETIME, *p_lost]:
        for scenario in ("", *experiment.scenarios):
            values = [each.figure(key) for each in points if _owner(experiment, each, key) == scenario]
            values = [value for value in values if 0 < value < math.inf]
            if values:
                physical = experiment.points[0].point.time_unit is not None
                name = f"scenarios.{scenario}.{key}" if scenario else key
                rest.append(Lever(name, max(values), physical, _written(experiment, scenario, key)))
    faults = {LIFETIME, *p_lost, *(f"rates.{action.name}" for action in experiment.model.actions if action.fault)}
    rest.sort(key=lambda lever: (lever.own_key not in faults, lever.value ** (-1 if lever.own_key == LIFETIME else 1)))
    return [lever for lever in [*found, *of_cluster, *at_risk] if lever.value > 0] + rest


def _p_lost(experiment: Experiment) -> list[str]:
    return [f"{FAULTS}{name}" for name in loss_names(experiment.model)]


def _at_risk(experiment: Experiment) -> list[str]:
    """The keys of probabilities on which the number of entries with few copies on a cluster depends; none that a
    scenario sets for itself."""

    def matters(placed: Placed, key: str) -> bool:
        return placed.thin != placed.with_figures({key: placed.figure(key) / 2}).thin

    own = {key for scenario in experiment.scenarios.values() for key in scenario.values}
    return [
        key
        for key in _p_lost(experiment)
        if key not in own and any(matters(placed, key) for placed in experiment.clusters)
    ]


def is_off(experiment: Experiment, lever: Lever) -> bool:
    """Returns whether a figure has no effect at all, as its mechanism is switched off wherever it is used."""
    if lever.is_at_risk:
        return False
    scenario, key = lever.own
    points = [each for each in experiment.points if not is_replaced(experiment, each.scenario)]
    used = [each.point for each in points if _owner(experiment, each, key) == scenario]
    return key in switches.switched_off(experiment.model, used)


def untold(experiment: Experiment) -> list[Lever]:
    """Returns those figures whose break-even points results alone do not tell (`decision.flips`): of designs on their
    clusters the clusters' own, which decide there."""
    found = levers(experiment)
    if experiment.clusters:
        return [lever for lever in found if lever.of_cluster or lever.is_at_risk]
    return [lever for lever in found if lever.own_key != PER_YEAR]


def _written(experiment: Experiment, scenario: str, key: str) -> str:
    """A figure as an override, the file or its profile writes it, the first of its values; empty if as a number."""
    said = dict(override.split("=", 1) for override in experiment.overrides)
    figures = experiment.profile.figures if experiment.profile else {}
    profile = {name: figure.given for name, figure in figures.items()}
    for source in (said, file_values.flatten(experiment.document, {}), profile):
        for name, value in source.items():
            owner = name.split(".")[1] if name.startswith("scenarios.") else ""
            first = value_in(value[0] if isinstance(value, list) and value else value)
            same = name.strip().rpartition(".")[2] == key.rpartition(".")[2]
            if same and owner == scenario and isinstance(first, str):
                return first.strip()
    return ""


def _owner(experiment: Experiment, point: GridPoint, key: str) -> str:
    """The scenario that gives a point its value of a key; empty if the file, its profile or its grid does."""
    own = point.scenario is not None and key in experiment.scenarios[point.scenario].values and key not in point.varied
    return str(point.scenario) if own else ""


def scaled(experiment: Experiment, lever: Lever, factor: float) -> Experiment:
    """Returns the experiment with a figure multiplied by `factor`."""
    scenario, key = lever.own
    if lever.of_cluster or lever.is_at_risk:
        others = [each.with_figures({key: lever.scaled(each.figure(key), factor)}) for each in experiment.clusters]
        experiment = experiment._replace(clusters=tuple(others))
    if lever.of_cluster:
        return experiment
    if key == PER_YEAR:
        there = experiment.scenarios[scenario]
        other = there._replace(per_year=lever.scaled(lever.value, factor))
        return experiment._replace(scenarios={**experiment.scenarios, scenario: other})

    def moved(each: GridPoint) -> GridPoint:
        if _owner(experiment, each, key) != scenario:
            return each
        point, value = each.point, lever.scaled(each.figure(key), factor)
        point = point._replace(lifetime=value) if key == LIFETIME else with_values(point, {key: value})
        return each._replace(point=point, point_id=point_id(experiment.model, point))

    return experiment._replace(points=tuple(map(moved, experiment.points)))


def picked(experiment: Experiment, keys: Sequence[str] | None) -> list[Lever]:
    """Returns the figures of these keys, or all of them if None. Raises ConfigError."""
    every = {lever.key: lever for lever in levers(experiment)}
    for key in keys or ():
        if key not in every:
            raise ConfigError(f" {key}: one of {', '.join(every)}", "break_even")
    return [lever for key, lever in every.items() if keys is None or key in keys]
