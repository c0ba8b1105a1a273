"""Probabilities that one configuration breaks each invariant, by random runs."""

import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from quorisk.analysis.estimate import method, rare
from quorisk.analysis.estimate.method import Rare, Where
from quorisk.analysis.estimate.stopping import estimator_of_run
from quorisk.analysis.experiment.config import Experiment, RunSettings
from quorisk.analysis.experiment.grid import GridPoint, one_wanted
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.kernels.engines import registry
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import Point, pack, rates_in_force
from quorisk.kernels.engines.tally import TIME_TICK, Tally, named_tally
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import LOST, OUTCOMES, UNFINISHED, Model, loses_messages
from quorisk.kernels.progress import Progress
from quorisk.say.quantities import say_rate, say_time

FEWEST_TICKS = 1000
"""Fewest ticks of a mean time that is given: each time is rounded down to a whole number of them."""
MOST_WITHOUT_ROOM = 0.05
"""Largest share of runs that may use up a model's room where a parameter gives more."""


class Risk(NamedTuple):
    """Probability of a loss, with its interval, and the number of runs that lost."""

    losses: int
    """The runs in which it was lost; with a head, only those from its exits count if it is data loss, and only those
    from the beginning if it is not."""
    p: float
    """The estimate: losses / runs; of data loss with a head, L + F losses / runs."""
    low: float
    high: float
    """The upper end of the interval, made by `Estimate.method`; unfinished runs count as possible losses."""
    bounds: bool = False
    """Whether high is more than ten times low: then these are bounds, and `p` is not an estimate."""


class MetFaults(NamedTuple):
    """The losses whose runs met exactly these kinds of faults, as a share of all losses."""

    faults: list[str]
    """The kinds, sorted by name; empty if these runs met no fault."""
    losses: int
    share: float
    low: float
    high: float
    """The ends of the share's own interval, with `Estimate.confidence`."""


class Exposure(NamedTuple):
    """Time for which an invariant whose breach is exposure stayed broken."""

    runs: int
    """The runs that broke it."""
    mean_time: float | None
    """Mean model time, over these runs, until it was repaired or the run ended; None if there were no such runs."""


class Amount(NamedTuple):
    """Mean number of records lost in runs that lose any, of those that a run writes, with the ends of Student's
    interval. Where a leader comes back empty, older records are lost as well."""

    mean: float
    low: float
    high: float
    runs: int
    """Number of runs in which they were counted."""


class Estimate(NamedTuple):
    """Estimates for one configuration from its runs."""

    protocol: str
    point_id: str
    parameters: dict[str, Any]
    """All parameters by dotted key, including defaults."""
    engine: str
    threads: int
    seed: int
    runs: int
    """Runs from the beginning, which give outcomes, steps and times; with a head, the runs that found losses rare."""
    steps: int
    mean_steps: float | None
    """The mean number of steps of a run; None if there were no runs."""
    outcomes: dict[str, int]
    confidence: float
    method: str
    stopped: str
    """Reason for no more runs: `runs` (their number was fixed), `precision` (it was reached), `budget` (it was
    not, and the runs were spent) or `certain` (none were needed)."""
    data_loss: Risk
    """The risk of breaking any invariant whose breach is data loss; a run that does so ends there."""
    invariants: dict[str, Risk]
    data_loss_invariants: list[str]
    mean_time_to_loss: float | None
    """The mean model time until runs lost data; None if no run did, or if times are too short or too long to count."""
    losses_by_faults: list[MetFaults]
    """Losses by the faults that their runs met, the largest share first."""
    exposures: dict[str, Exposure]
    """Times for which entries were exposed, by invariant whose breach is exposure."""
    compile_s: float
    """Seconds until the engine was compiled, or loaded from the cache on disk."""
    seconds: float
    """Seconds that the runs took, without `compile_s`."""
    steps_per_s: float
    runs_per_s: float
    head: rare.HeadPart | None
    """The part that was solved exactly; None if all losses were counted."""
    assumptions: list[str]
    amount: Amount | None = None
    """Records that an incident loses: see `amounts.with_amount`."""
    expected_records: float | None = None
    """`data_loss.p` times the mean of `amount`."""


def _of_head(found: method.Rare) -> list[str]:
    """Assumption of a head's answer, with the cost of each of its runs that was cut off."""
    cut_off, runs = found.tail.outcomes[OUTCOMES[UNFINISHED]], found.tail.runs
    if not cut_off:
        return [rare.ASSUMPTION]
    said = rare.CUT_OFF.format(cut_off=cut_off, runs=runs, each=found.known.solved.beyond / runs)
    return [f"{rare.ASSUMPTION} {said}"]


def only_point(experiment: Experiment) -> GridPoint:
    """Returns the one point of an experiment. Raises ConfigError if it has several."""
    if len(experiment.points) > 1:
        raise ConfigError(f"{experiment.path}: {one_wanted([point.varied for point in experiment.points])}")
    return experiment.points[0]


def estimate(
    experiment: Experiment,
    threads: int,
    progress: Progress | None = None,
    memory_bytes: int = method.HEAD_BYTES,
    solving: rare.Solving | None = None,
    enough: float = 0.0,
) -> Estimate:
    """Runs the one point of an experiment, until its precision is reached if it asks for one.

    Args:
        experiment: the experiment; its `run.method` says whether all is counted, or the likeliest paths are solved
            exactly.
        threads: cores to use; the result does not depend on them.
        progress: called with the number of runs that ended since its last call.
        memory_bytes: memory for the likeliest paths.
        solving: called while these are solved, as by `rare.solve_head`.
        enough: width of an interval that ends the solving.

    Returns:
        The probability of each breach with its interval; times as the rates are, in seconds or units of model time.

    Raises:
        ConfigError: if there are several points, or if `run.method` cannot be used.
    """
    point, point_id, _ = only_point(experiment)
    model, run, points = experiment.model, experiment.run, pack(experiment.model, [point])
    start = time.perf_counter()
    engine = registry.engine_of(run.engine)
    engine.simulate(model, points, [Job(0, 0, 1)], run.seed, later=run.runs)
    compiled = time.perf_counter()
    where = Where(engine, model, points, threads, progress, enough)
    made, found = method.runs_and_head(experiment, where, point, memory_bytes, solving)
    seconds = time.perf_counter() - compiled
    counted = named_tally(model, made.sums)
    tally, stopped = (found.tail, found.stopped) if found else (counted, made.stopped)
    parts = rare.parts_by_invariant(model, *found.known) if found else {}
    losing = data_loss_invariants(model)
    return Estimate(
        protocol=experiment.protocol,
        point_id=point_id,
        parameters=dotted_values(model, point),
        engine=engine.NAME,
        threads=threads,
        seed=run.seed,
        runs=counted.runs,
        steps=counted.steps,
        mean_steps=counted.steps / counted.runs,
        outcomes=counted.outcomes,
        confidence=run.confidence,
        method=method_of(found, run),
        stopped=stopped,
        data_loss=risk_of(DATA_LOSS, tally, run, parts.get(DATA_LOSS)),
        invariants={
            name: risk_of(name, tally if name in losing else counted, run, parts.get(name), name in losing)
            for name in tally.broken
        },
        data_loss_invariants=losing,
        mean_time_to_loss=_mean_time_to_loss(counted),
        losses_by_faults=_met(counted, run),
        exposures={name: _exposure(name, counted) for name in counted.exposed_ticks},
        compile_s=compiled - start,
        seconds=seconds,
        steps_per_s=counted.steps / seconds,
        runs_per_s=counted.runs / seconds,
        head=rare.head_part(*found.known, tally.outcomes[OUTCOMES[LOST]], tally.runs, run.confidence)
        if found
        else None,
        assumptions=[
            *assumptions(model, point, run.at_any_time),
            *room_used_up(experiment, point, counted),
            *(_of_head(found) if found else []),
        ],
    )


def method_of(found: Rare | None, run: RunSettings) -> str:
    """Returns the name of an answer's method in results."""
    if found is None:
        return estimator_of_run(run).method
    return rare.named(found.known.solved.beyond, found.known.exits is not None, estimator_of_run(run))


def _mean_time_to_loss(tally: Tally) -> float | None:
    lost, late = tally.outcomes[OUTCOMES[LOST]], tally.loss_time_histogram[-1]
    too_coarse = tally.loss_time_ticks < FEWEST_TICKS * lost
    return None if lost == 0 or late or too_coarse else tally.loss_time_ticks * TIME_TICK / lost


def _met(tally: Tally, run: RunSettings) -> list[MetFaults]:
    """Losses by the set of faults met. Each share is estimated among losses as a probability is among runs."""
    lost, estimator = tally.outcomes[OUTCOMES[LOST]], estimator_of_run(run)
    return [
        MetFaults(sorted(faults), losses, losses / lost, *estimator.interval(losses, lost))
        for faults, losses in sorted(tally.losses_by_faults.items(), key=lambda each: (-each[1], sorted(each[0])))
    ]


def _exposure(invariant: str, tally: Tally) -> Exposure:
    runs = tally.broken[invariant]
    return Exposure(runs, tally.exposed_ticks[invariant] * TIME_TICK / runs if runs else None)


def risk_of(invariant: str, tally: Tally, run: RunSettings, part: rare.LossPart | None, is_tail: bool = True) -> Risk:
    """Returns the risk of an invariant, or DATA_LOSS, by a tally of runs: with a `part`, runs from a head's exits, or
    else from the beginning, within the head's bounds.
    """
    losses, hidden = method.judged(tally.outcomes, tally.broken, run._replace(precision_of=invariant))
    estimator = estimator_of_run(run)
    if part and is_tail:
        p, low, high = part.p(losses, tally.runs), *part.interval(estimator, losses, tally.runs, hidden)
    elif part:
        p, low, high = part.counted(estimator, losses, tally.runs, hidden)
    else:
        p, (low, high) = losses / tally.runs, estimator.interval(losses, tally.runs, hidden)
    return Risk(losses, p, low, high, estimator.far_apart(low, high))


def room_used_up(experiment: Experiment, point: Point, counted: Tally) -> list[str]:
    """Returns the shares of runs in which a model ran out of room, one sentence for each invariant that says so.

    Raises ConfigError where a share is above `MOST_WITHOUT_ROOM`, and a parameter gives more room.
    """
    said = []
    parameters = {parameter.name: parameter for parameter in experiment.model.parameters}
    for invariant in experiment.model.invariants:
        share = counted.broken[invariant.name] / counted.runs
        if not invariant.room or not share:
            continue
        value, allowed = point.values[invariant.room], parameters[invariant.room].allowed
        assert allowed is not None, "integers: the lowest and the highest"
        key, most = f"{parameters[invariant.room].table}.{invariant.room}", int(allowed[1])
        if share > MOST_WITHOUT_ROOM and value < most:
            what = f"too few: in {share:.2g} of runs nothing could be written for a while; {value + 1} to {most}"
            raise ConfigError(f"{experiment.path}: {key} = {value}: {what}")
        waited = f"In {share:.2g} of runs nothing could be written for a while, as {key} is {value} (at most {most})"
        said.append(f"{waited}: P may be too low.")
    return said


def data_loss_invariants(model: Model) -> list[str]:
    """Returns the names of the invariants whose breach is data loss."""
    return [invariant.name for invariant in model.invariants if invariant.data_loss]


def _other_losses(model: Model, point: Point) -> Iterator[str]:
    """Sentences with the probabilities at which a point loses something other than messages."""
    rates = rates_in_force(model, point)
    happens = {action.lost_with for action in model.actions if rates[action.name] > 0}
    for probability in model.probabilities:
        if probability.name in happens:
            yield f"The probability {probability.doc} is {point.p_lost(probability.name):g}, independently of others."


def assumptions(model: Model, point: Point, at_any_time: bool = False) -> list[str]:
    """Returns the assumptions behind the probabilities of a point, in sentences."""
    physical, losing = point.time_unit is not None, data_loss_invariants(model)
    said_time = say_time(point.horizon) if physical else f"model time {point.horizon:g}"
    one = "1 / s" if physical else "1"
    rates = ", ".join(
        f"{name} {say_rate(rate) if physical else f'{rate:g}'}" for name, rate in point.rates.items() if rate != 1.0
    )
    said = [
        "Each step is drawn at random from the enabled action instances, in proportion to their rates: "
        + (f"{rates}; all others {one}." if rates else f"all {one}."),
        f"Each message is lost independently with probability {point.message_loss:g}."
        if loses_messages(model)
        else "There are no messages that could be lost.",
        *_other_losses(model, point),
        f"Data loss is a breach of {' or '.join(losing)}; it ends the run"
        + (", so other invariants count what breaks before." if len(losing) < len(model.invariants) else "."),
    ]
    counted = "may be a loss, and upper bounds count all of these runs" if at_any_time else "is not counted"
    if point.horizon < math.inf:
        said.append(f"A run also ends at {said_time}; what breaks later {counted}.")
    if point.lifetime < math.inf:
        mean = say_time(point.lifetime) if physical else f"{point.lifetime:g} units of model time"
        said.append(
            f"A run also ends with its lifetime, at a constant rate, after {mean} on average; what breaks later "
            f"{counted}."
        )
    return said
