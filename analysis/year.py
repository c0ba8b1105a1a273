"""A design's year: each of its scenarios estimated or solved, and what they add up to."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from quorisk.analysis.estimate.estimate import Estimate, estimate
from quorisk.analysis.estimate.method import HEAD_BYTES
from quorisk.analysis.exact.exact import ExactResult, exact
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.grid import GridPoint
from quorisk.analysis.experiment.scenarios import SCENARIO, Scenario
from quorisk.analysis.statistics import yearly
from quorisk.analysis.statistics.yearly import Losses, Part
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.states.chain import Progress
from quorisk.say.plain import plain
from quorisk.say.quantities import YEAR_S

Result = TypeVar("Result", Estimate, ExactResult)


class Year(NamedTuple, Generic[Result]):
    """What a design loses in a year, and in which scenarios."""

    design: dict[str, Any]
    """The design's values of the grid's keys, by dotted key."""
    of: dict[str, Scenario]
    """The scenarios by name: how often each happens, what it is, and what it simplifies."""
    scenarios: dict[str, Result]
    """The results by scenario. Their intervals hold together, each at the confidence of `confidence_of_each`."""
    losses: Losses

    @property
    def per_year(self) -> dict[str, float]:
        """Returns how many times a year each scenario happens."""
        return {name: scenario.per_year for name, scenario in self.of.items()}

    @property
    def unseen(self) -> list[str]:
        """Scenarios without a loss in their runs whose upper bound is above all losses that were seen: they decide."""
        return [
            name
            for name, result in self.scenarios.items()
            if isinstance(result, Estimate)
            and result.data_loss.low == 0.0
            and self.per_year[name] * result.data_loss.high > self.losses.p
        ]

    def share(self, scenario: str) -> float | None:
        """Returns a scenario's part of the estimated losses; None if there are none, or some are unseen."""
        p = self.scenarios[scenario].data_loss.p
        return self.per_year[scenario] * p / self.losses.p if self.losses.p and not self.unseen else None


def by_design(experiment: Experiment) -> dict[tuple[tuple[str, Any], ...], list[GridPoint]]:
    """Returns the points of each design, one for each of its scenarios, in the experiment's order."""
    designs: dict[tuple[tuple[str, Any], ...], list[GridPoint]] = {}
    for point in experiment.points:
        designs.setdefault(point.design, []).append(point)
    return designs


def has_year(experiment: Experiment) -> bool:
    """Whether the experiment is one design under several scenarios."""
    return len(experiment.points) > 1 and len(by_design(experiment)) == 1 and bool(experiment.scenarios)


def estimate_year(
    experiment: Experiment,
    threads: int,
    progress: Callable[[int], None] | None = None,
    memory_bytes: int = HEAD_BYTES,
) -> Year[Estimate]:
    """Estimates every scenario of an experiment's one design, each with as many runs as it asks for.

    `memory_bytes` are for the likeliest paths of a scenario whose losses are rare. `progress` is called with the number
    of runs that ended since its last call. Raises ConfigError.
    """
    level = yearly.confidence_of_each(experiment.run.confidence, len(experiment.points))
    alone = one_by_one(experiment, level)
    return _year(experiment, {name: estimate(each, threads, progress, memory_bytes) for name, each in alone.items()})


def exact_year(experiment: Experiment, memory_bytes: int, progress: Progress | None = None) -> Year[ExactResult]:
    """Solves every scenario of an experiment's one design.

    `progress` is called with the numbers of states and transitions found. Raises ConfigError.
    """
    alone = one_by_one(experiment, experiment.run.confidence)
    results = {}
    for name, each in alone.items():
        try:
            results[name] = exact(each, memory_bytes, progress=progress)
        except ConfigError as error:
            raise ConfigError(f"{error.text} (scenario {name})", error.argument) from None
    return _year(experiment, results)


def one_by_one(experiment: Experiment, confidence: float) -> dict[str, Experiment]:
    """Returns an experiment of one point by scenario. Raises ConfigError if there are none, or several designs."""
    designs = by_design(experiment)
    open_keys = [key for key, _ in next(iter(designs)) if len({dict(design)[key] for design in designs}) > 1]
    if open_keys:
        raise ConfigError(
            f"{experiment.path}: {', '.join(f'grid.{key}' for key in open_keys)}: {len(designs)} designs, but one is "
            f"needed; pick one with `overrides` {open_keys[0]}=..., or sweep all with `quorisk run`"
        )
    if not experiment.scenarios:
        raise ConfigError(f"{experiment.path}: scenarios: there are none, so there is no year; add [scenarios.NAME]")
    run = experiment.run._replace(confidence=confidence)
    return {point.varied[SCENARIO]: experiment._replace(points=(point,), run=run) for point in experiment.points}


def _year(experiment: Experiment, results: Mapping[str, Result]) -> Year[Result]:
    scenarios = {name: experiment.scenarios[name] for name in results}
    parts = [_part(scenarios[name].per_year, result) for name, result in results.items()]
    losses = yearly.add_up(parts, experiment.run.confidence)
    return Year(dict(experiment.points[0].design), scenarios, dict(results), losses)


def _part(per_year: float, result: Estimate | ExactResult) -> Part:
    if isinstance(result, ExactResult):
        return Part(per_year, *[result.data_loss.p] * 3)
    return Part(per_year, result.data_loss.p, result.data_loss.low, result.data_loss.high)


def as_json(year: Year[Any]) -> dict[str, Any]:
    """Returns an object for `json.dumps`: `losses_per_year`, the mean time between losses, and all results."""
    between_s = [YEAR_S * years for years in year.losses.years_between]
    scenarios = {
        name: {"per_year": year.per_year[name], "share": year.share(name)} | plain(result)
        for name, result in year.scenarios.items()
    }
    # JSON has no infinity
    keys = ("p", "low", "high")
    return {
        "design": year.design,
        "losses_per_year": year.losses._asdict(),
        "mean_time_between_losses_s": {
            key: time_s if time_s < float("inf") else None for key, time_s in zip(keys, between_s, strict=True)
        },
        "scenarios": scenarios,
    }
