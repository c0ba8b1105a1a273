"""How likely one configuration is to break each invariant, by random runs."""

import math
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from analysis.config import Experiment, GridPoint
from analysis.errors import ConfigError
from analysis.identity import dotted_values
from analysis.intervals import METHOD, clopper_pearson
from kernels.model import LOST, OUTCOMES, UNFINISHED, Model
from kernels.numba_engine import Job, simulate
from kernels.points import Point, pack
from kernels.tally import TIME_TICK, Tally, read

ENGINE = "numba"


class Risk(NamedTuple):
    """How often something was lost, and how often it may be."""

    losses: int
    """Runs in which it was."""
    p: float
    """losses / runs."""
    low: float
    high: float
    """Clopper-Pearson, unfinished runs counted as unknown."""


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
    data_loss: Risk
    """Of breaking any invariant whose breach is data loss; such runs end there."""
    invariants: dict[str, Risk]
    data_loss_invariants: list[str]
    mean_time_to_loss: float | None
    """Model time of the runs that lost data; None if there were none."""
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
            f"where one is wanted; pick one with --set {open_keys[0]}=..., or sweep all with `quorisk run`"
        )
    return experiment.points[0]


def estimate(experiment: Experiment, threads: int, progress: Callable[[int], None] | None = None) -> Estimate:
    """Runs the one point of an experiment. `progress` is called with the number of runs that ended since its last call.

    Raises ConfigError if there are several points.
    """
    point_id, point = only_point(experiment).point_id, only_point(experiment).point
    model, run = experiment.model, experiment.run
    points = pack(model, [point])
    start = time.perf_counter()
    simulate(model, points, [Job(0, 0, 1)], run.seed)
    compiled = time.perf_counter()
    tally = read(model, simulate(model, points, [Job(0, 0, run.runs)], run.seed, threads, progress)[0].tolist())
    seconds = time.perf_counter() - compiled
    lost = tally.outcomes[OUTCOMES[LOST]]
    return Estimate(
        protocol=experiment.protocol,
        point_id=point_id,
        parameters=dotted_values(model, point),
        engine=ENGINE,
        threads=threads,
        seed=run.seed,
        runs=tally.runs,
        steps=tally.steps,
        mean_steps=tally.steps / tally.runs,
        outcomes=tally.outcomes,
        confidence=run.confidence,
        method=METHOD,
        data_loss=_risk(lost, tally, run.confidence),
        invariants={name: _risk(broken, tally, run.confidence) for name, broken in tally.broken.items()},
        data_loss_invariants=_data_loss_invariants(model),
        mean_time_to_loss=tally.loss_time_ticks * TIME_TICK / lost if lost else None,
        compile_s=compiled - start,
        seconds=seconds,
        steps_per_s=tally.steps / seconds,
        runs_per_s=tally.runs / seconds,
        assumptions=assumptions(model, point),
    )


def _risk(losses: int, tally: Tally, confidence: float) -> Risk:
    hidden = tally.outcomes[OUTCOMES[UNFINISHED]]
    return Risk(losses, losses / tally.runs, *clopper_pearson(losses, tally.runs, confidence, hidden))


def _data_loss_invariants(model: Model) -> list[str]:
    return [invariant.name for invariant in model.invariants if invariant.data_loss]


def assumptions(model: Model, point: Point) -> list[str]:
    """What the probabilities of a point rest on, a sentence each."""
    rates = ", ".join(f"{name} {rate:g}" for name, rate in point.rates.items() if rate != 1.0)
    said = [
        "Each step is drawn at random from the action instances that are enabled, in proportion to their rates: "
        + (f"{rates}; all others 1." if rates else "all 1."),
        f"Each message is lost independently with probability {point.message_loss:g}."
        if model.max_sends
        else "There are no messages that could be lost.",
        f"Data loss is a breach of {' or '.join(_data_loss_invariants(model))}; it ends the run.",
    ]
    if point.horizon < math.inf:
        said.append(f"So does model time {point.horizon:g}: what breaks later is not counted.")
    return said


def as_json(result: Estimate) -> dict[str, Any]:
    """For `json.dumps`: named tuples as objects."""
    invariants = {name: risk._asdict() for name, risk in result.invariants.items()}
    return result._asdict() | {"data_loss": result.data_loss._asdict(), "invariants": invariants}
