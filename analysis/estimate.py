"""How likely one configuration is to break each invariant, by random runs."""

import math
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from quorisk.analysis.experiment import units
from quorisk.analysis.experiment.config import Experiment, GridPoint, RunSettings
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.judge import estimator_of, is_precise, rule_of
from quorisk.analysis.statistics import sequential
from quorisk.analysis.sums import run_sums
from quorisk.kernels.engines import registry
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import Point, Points, pack
from quorisk.kernels.engines.tally import MOST_TICKS, TIME_TICK, Tally, num_columns, read
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import HORIZON, LOST, OUTCOMES, UNFINISHED, Model

FEWEST_TICKS = 1000
"""A mean of fewer ticks is not told: each time is cut down to a whole number of them."""


class Risk(NamedTuple):
    """How often something was lost, and how often it may be."""

    losses: int
    """Runs in which it was."""
    p: float
    """losses / runs."""
    low: float
    high: float
    """Of `Estimate.method`, unfinished runs counted as unknown."""


class Estimate(NamedTuple):
    """What the runs of one configuration add up to."""

    protocol: str
    point_id: str
    parameters: dict[str, Any]
    """By dotted key, defaults filled in."""
    engine: str
    threads: int
    seed: int
    runs: int
    steps: int
    mean_steps: float
    outcomes: dict[str, int]
    confidence: float
    method: str
    stopped: str
    """Why there were no more runs: `runs` (their number was fixed), `precision` (it was reached) or `budget` (it was
    not, and the runs were spent)."""
    data_loss: Risk
    """Of breaking any invariant whose breach is data loss; such runs end there."""
    invariants: dict[str, Risk]
    data_loss_invariants: list[str]
    mean_time_to_loss: float | None
    """Model time of the runs that lost data; None if there were none, or ticks are too coarse or too few for it."""
    compile_s: float
    """Seconds until the engine was compiled, or loaded from the cache on disk."""
    seconds: float
    """Of the runs, without `compile_s`."""
    steps_per_s: float
    runs_per_s: float
    assumptions: list[str]


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def only_point(experiment: Experiment) -> GridPoint:
    """The point of an experiment that has just one. Raises ConfigError."""
    if len(experiment.points) > 1:
        open_keys = [k for k in experiment.varied if len({point.varied[k] for point in experiment.points}) > 1]
        raise ConfigError(
            f"{experiment.path}: {', '.join(f'grid.{key}' for key in open_keys)}: {len(experiment.points)} grid points "
            f"where one is wanted; set {open_keys[0]} to pick one, or sweep all with `quorisk run`"
        )
    return experiment.points[0]


def estimate(experiment: Experiment, threads: int, progress: Callable[[int], None] | None = None) -> Estimate:
    """Runs the one point of an experiment, until its precision is reached if it asks for one.

    `progress` is called with the number of runs that ended since its last call. Raises ConfigError if there are several
    points.
    """
    point_id, point = only_point(experiment).point_id, only_point(experiment).point
    model, run = experiment.model, experiment.run
    points = pack(model, [point])
    start = time.perf_counter()
    engine = registry.choose(run.engine)
    engine.simulate(model, points, [Job(0, 0, 1)], run.seed)
    compiled = time.perf_counter()
    tally, stopped = _run(engine, model, points, run, threads, progress)
    seconds = time.perf_counter() - compiled
    return Estimate(
        protocol=experiment.protocol,
        point_id=point_id,
        parameters=dotted_values(model, point),
        engine=engine.NAME,
        threads=threads,
        seed=run.seed,
        runs=tally.runs,
        steps=tally.steps,
        mean_steps=tally.steps / tally.runs,
        outcomes=tally.outcomes,
        confidence=run.confidence,
        method=estimator_of(run).method,
        stopped=stopped,
        data_loss=_risk(DATA_LOSS, tally, run),
        invariants={name: _risk(name, tally, run) for name in tally.broken},
        data_loss_invariants=data_loss_invariants(model),
        mean_time_to_loss=_mean_time_to_loss(tally),
        compile_s=compiled - start,
        seconds=seconds,
        steps_per_s=tally.steps / seconds,
        runs_per_s=tally.runs / seconds,
        assumptions=assumptions(model, point, run.at_any_time),
    )


def _run(
    engine: registry.Engine,
    model: Model,
    points: Points,
    run: RunSettings,
    threads: int,
    progress: Callable[[int], None] | None,
) -> tuple[Tally, str]:
    """What the runs add up to, and why there were no more. It does not depend on `threads`: nor do the looks."""
    rule = rule_of(run)
    sums = [0] * num_columns(model)
    runs = 0
    for look in sequential.looks(run.runs) if rule else [run.runs]:
        job = Job(0, run.first_run + runs, look - runs)
        more = run_sums(engine, model, points, job, run.seed, threads, progress)
        sums = [before + here for before, here in zip(sums, more, strict=True)]
        runs = look
        tally = read(model, sums)
        losses, hidden = judged(tally.outcomes, tally.broken, run)
        if is_precise(run, losses, runs, hidden):
            return tally, "precision"
    return tally, "budget" if rule else "runs"


def judged(outcomes: Mapping[str, int], broken: Mapping[str, int], run: RunSettings) -> tuple[int, int]:
    """The losses that an experiment's precision is about, and the runs that may hide one."""
    losses = outcomes[OUTCOMES[LOST]] if run.precision_of == DATA_LOSS else broken[run.precision_of]
    return losses, sum(outcomes[OUTCOMES[outcome]] for outcome in unknown_outcomes(run))


def _mean_time_to_loss(tally: Tally) -> float | None:
    lost, late = tally.outcomes[OUTCOMES[LOST]], any(tally.loss_time_histogram[int(MOST_TICKS).bit_length() :])
    too_coarse = tally.loss_time_ticks < FEWEST_TICKS * lost
    return None if lost == 0 or late or too_coarse else tally.loss_time_ticks * TIME_TICK / lost


def _risk(invariant: str, tally: Tally, run: RunSettings) -> Risk:
    losses, hidden = judged(tally.outcomes, tally.broken, run._replace(precision_of=invariant))
    return Risk(losses, losses / tally.runs, *estimator_of(run).interval(losses, tally.runs, hidden))


def unknown_outcomes(run: RunSettings) -> tuple[int, ...]:
    """How runs end that may hide a loss: one that would have come later."""
    return (UNFINISHED, HORIZON) if run.at_any_time else (UNFINISHED,)


def data_loss_invariants(model: Model) -> list[str]:
    """Those whose breach is data loss."""
    return [invariant.name for invariant in model.invariants if invariant.data_loss]


def assumptions(model: Model, point: Point, at_any_time: bool = False) -> list[str]:
    """What the probabilities of a point rest on, a sentence each."""
    physical = point.time_unit is not None
    said_time = units.say_time(point.horizon) if physical else f"model time {point.horizon:g}"
    one = "1 / s" if physical else "1"
    rates = ", ".join(
        f"{name} {units.say_rate(rate) if physical else f'{rate:g}'}"
        for name, rate in point.rates.items()
        if rate != 1.0
    )
    said = [
        "Each step is drawn at random from the action instances that are enabled, in proportion to their rates: "
        + (f"{rates}; all others {one}." if rates else f"all {one}."),
        f"Each message is lost independently with probability {point.message_loss:g}."
        if model.max_sends
        else "There are no messages that could be lost.",
        f"Data loss is a breach of {' or '.join(data_loss_invariants(model))}; it ends the run.",
    ]
    if point.horizon < math.inf:
        counted = "may be in any of these runs, and upper bounds count them all" if at_any_time else "is not counted"
        said.append(f"So does {said_time}: what breaks later {counted}.")
    if point.lifetime < math.inf:
        mean = units.say_time(point.lifetime) if physical else f"{point.lifetime:g} of model time"
        said.append(f"So does, at any moment alike, the end of a lifetime of {mean} on average.")
    return said
