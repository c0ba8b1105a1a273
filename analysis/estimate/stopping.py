"""Intervals that an experiment asks for, and the rule by which there are enough runs."""

import math

from quorisk.analysis.experiment.config import Experiment, RunSettings
from quorisk.analysis.statistics.estimator import Estimator
from quorisk.analysis.statistics.sequential import Rule
from quorisk.kernels.errors import ConfigError


def rule_of(run: RunSettings) -> Rule | None:
    """Returns the stopping rule that an experiment asks for; None for a fixed number of runs."""
    rule = Rule(run.precision, run.relative_precision)
    return rule if min(rule) < math.inf else None


def estimator_of_run(run: RunSettings, num_points: int = 1) -> Estimator:
    """Returns the estimator of intervals for an experiment whose grid has this many points."""
    return Estimator(run.confidence, num_points if run.simultaneous else 1, rule_of(run) is not None)


def is_precise(run: RunSettings, losses: int, runs: int, hidden: int, num_points: int = 1) -> bool:
    """Whether the interval after `runs` runs is as narrow as an experiment asks for; never if it does not ask."""
    rule = rule_of(run)
    interval = estimator_of_run(run, num_points).interval(losses, runs, hidden)
    return rule is not None and rule.is_met(losses, runs, *interval)


def fixed_runs(experiment: Experiment) -> int:
    """Returns the number of runs, for verbs that only count and never stop early. Raises ConfigError otherwise."""
    if experiment.run.method in ("head", "exact"):
        raise ConfigError(
            f"{experiment.path}: run.method = {experiment.run.method!r}: count, because only `quorisk estimate` and "
            "`quorisk run` have other methods"
        )
    for name in ("precision", "relative_precision"):
        value = getattr(experiment.run, name)
        if value < math.inf:
            raise ConfigError(
                f"{experiment.path}: run.{name} = {value}: inf, because only `quorisk estimate` and `quorisk run` stop "
                "early"
            )
    return experiment.run.runs
