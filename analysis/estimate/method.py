"""Choice of the method for a point: runs from the beginning, or its likeliest paths and the runs that leave them.

`auto` begins with the first PILOT_RUNS of the runs. If these lose data ENOUGH_LOSSES times, the other runs follow, as
if there were no other method. Else a head is solved, and where that is not enough runs start from its exits.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from quorisk.analysis.estimate import rare
from quorisk.analysis.estimate.ahead import compiling_for_exits
from quorisk.analysis.estimate.stopping import estimator_of_run, is_precise, rule_of
from quorisk.analysis.estimate.sums import run_sums
from quorisk.analysis.experiment.config import Experiment, RunSettings
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.statistics import sequential
from quorisk.kernels import declared
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import Point, Points
from quorisk.kernels.engines.registry import Engine
from quorisk.kernels.engines.tally import Tally, named_tally, num_columns
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import HORIZON, LOST, OUTCOMES, UNFINISHED, Model
from quorisk.kernels.progress import Progress
from quorisk.kernels.protocols import registry
from quorisk.kernels.states import lumped
from quorisk.kernels.states.exits import Exits, exits_of, from_exits
from quorisk.kernels.states.head import SolvedHead

FEWEST_PILOT_RUNS, PILOT_RUNS = 25_000, 1 << 17
"""Fewest and most runs of the pilot, by whose losses `auto` chooses; it counts if an experiment has fewer in all."""
FEW_RUNS = 20_000
"""Runs for outcomes and steps, where a head may give losses as closely as is enough."""
ENOUGH_LOSSES = 30
"""Losses among the pilot's runs from which losses are not rare, and counting them is best."""
MOST_CUT_OFF = 1 / 1000
"""Largest part of the pilot's runs that `run.max_steps` may cut off where losses are rare: more would decide, not
losses."""
TAIL = 1 << 41
"""Offset of the numbers of runs from exits: they share no random numbers with any run from the beginning."""
HEAD_BYTES = 1 << 30
"""Default memory for a head and its exits."""


class Where(NamedTuple):
    """One point to run, and how: its engine, threads and progress callback."""

    engine: Engine
    model: Model
    points: Points
    """Points that hold the one point alone."""
    threads: int
    progress: Progress | None
    """Called with the number of runs that ended since its last call."""
    enough: float = 0.0
    """The width of an interval of any data loss for which no head need go on."""


class Made(NamedTuple):
    """Runs that were made."""

    sums: list[int]
    """The runs' tally, of length `num_columns(model)`."""
    runs: int
    stopped: str
    """Reason for no more runs: `runs` (their number was fixed), `precision` (it was reached), `budget` (it was not, and
    the runs were spent), `certain` (none were needed); empty if there are more to come."""


class KnownHead(NamedTuple):
    """Knowledge of losses too rare to count, before anything is sampled: a solved head."""

    solved: SolvedHead
    exits: Exits | None
    """The head's exits; None if nothing needs to be sampled."""


class Rare(NamedTuple):
    """Knowledge of losses too rare to count: a solved head, and the runs from its exits."""

    known: KnownHead
    tail: Tally
    """Tally of the runs from the exits."""
    stopped: str
    """Reason for no more runs, as in `Made`."""


def pilot_runs(point: Point, run: RunSettings) -> int:
    """Returns the number of runs after which it is decided whether losses are rare; 0 if losses are counted anyway."""
    if run.method == "count" or not rare.applies(point, run):
        return 0
    return min(run.runs, PILOT_RUNS) if run.method != "auto" or run.runs >= FEWEST_PILOT_RUNS else 0


def counts(run: RunSettings) -> bool:
    """Whether runs from the beginning may give the answer; else they are only a pilot."""
    return run.method in ("auto", "count")


def is_rare(run: RunSettings, losses: int, hidden: int) -> bool:
    """Whether a point is to have a head, if its pilot lost data in `losses` runs and may have in `hidden` runs more.

    Where `run.max_steps` cuts off many runs the question is about runs cut off, and a head's are not: `auto` counts.
    A few are no matter: upper ends count those from the exits as lost.
    """
    return run.method != "auto" or (losses < ENOUGH_LOSSES and hidden <= MOST_CUT_OFF * min(run.runs, PILOT_RUNS))


def judged(outcomes: Mapping[str, int], broken: Mapping[str, int], run: RunSettings) -> tuple[int, int]:
    """Returns the losses that an experiment's precision is about, and the runs that may hide one."""
    losses = outcomes[OUTCOMES[LOST]] if run.precision_of == DATA_LOSS else broken[run.precision_of]
    return losses, sum(outcomes[OUTCOMES[outcome]] for outcome in unknown_outcomes(run))


def unknown_outcomes(run: RunSettings) -> tuple[int, ...]:
    """Returns the outcomes of runs that may hide a loss: one that would have come later."""
    return (UNFINISHED, HORIZON) if run.at_any_time else (UNFINISHED,)


def count_runs(where: Where, run: RunSettings, end: int, before: Made | None = None) -> Made:
    """Returns the tally of the first `end` runs, given the tally of those `before`; fewer runs if they are precise
    enough."""

    def enough(losses: int, runs: int, hidden: int) -> bool:
        return counts(run) and is_precise(run, losses, runs, hidden)

    return _make(where, run, end, before, enough)


def _make(where: Where, run: RunSettings, end: int, made: Made | None, enough: Callable[[int, int, int], bool]) -> Made:
    """Makes runs up to `end`, or until `enough`. The looks, and so the result, do not depend on the threads. None is
    made where not even runs without a loss, after which an interval is narrowest, would be enough."""
    rule = rule_of(run)
    looks = {*sequential.looks(run.runs)} if rule else {run.runs}
    if rule and rule.relative == math.inf:
        looks = {look for look in looks if enough(0, look, 0)}
    sums, runs, _ = made or Made([0] * num_columns(where.model), 0, "")
    for look in sorted({look for look in looks if runs < look < end} | {end}):
        job = Job(0, run.first_run + runs, look - runs)
        more = run_sums(where.engine, where.model, where.points, job, run.seed, where.threads, where.progress)
        sums, runs = [a + b for a, b in zip(sums, more, strict=True)], look
        tally = named_tally(where.model, sums)
        losses, hidden = judged(tally.outcomes, tally.broken, run)
        if rule and look in looks and enough(losses, runs, hidden):
            return Made(sums, runs, "precision")
    return Made(sums, runs, "" if runs < run.runs else "budget" if rule else "runs")


def most_transitions(run: RunSettings, pilot_steps: int, pilot_runs: int) -> int:
    """Returns the size at which a point's head stops growing, given the steps of the pilot's runs: a power of two, so
    that other runs of the same point, whose mean is nearly the same, nearly always have the same head.
    """
    if run.method == "exact":
        return rare.MOST_TRANSITIONS
    steps = run.runs * (pilot_steps / pilot_runs)
    most = 1 << round(math.log2(max(steps / rare.STEPS_A_TRANSITION, 1.0)))
    return max(rare.FEWEST_TRANSITIONS, min(rare.MOST_TRANSITIONS, most))


def known_head(
    model: Model,
    point: Point,
    run: RunSettings,
    most: int,
    memory_bytes: int = HEAD_BYTES,
    progress: rare.Solving | None = None,
    enough: float = 0.0,
) -> KnownHead | None:
    """Returns a point's head of `most` transitions, or fewer, and where runs leave it; None if `run.method` has none.

    A pure function of its arguments. `progress` is called as by `rare.solve_head`. Raises ModelError where a protocol
    that is not Quorisk's own has a head keep states in the place of others that do not go on alike
    (`kernels.states.lumped`), or is wrong about its margin.
    """
    rule = rule_of(run)
    certain = 0.0 if run.method == "exact" else min(rare.MAX_UNSAMPLED, rule.relative if rule else rare.MAX_UNSAMPLED)
    found = rare.solve_head(model, point, memory_bytes // 2, most, progress, certain, enough, by_margin=True)
    if found is None or (run.method == "exact" and not found[1].complete):
        return None
    head, solved = found
    if model.name in registry.foreign():
        lumped.check_stand_ins(model, point)
        declared.check_margin(model, head.odds.params)
    if solved.beyond <= max(certain * solved.lost, enough):
        return KnownHead(solved, None)
    if run.method == "auto" and solved.lost == 0.0 and solved.leaves > rare.LITTLE_KNOWN:
        return None
    exits = exits_of(head, solved, memory_bytes - head.num_bytes)
    while exits.left_out > rare.upper(solved, exits, most) / 2.0:  # more than all else; a smaller head has fewer exits
        del head  # exits have the memory of a smaller one
        given = model, point, memory_bytes // 2, solved.transitions // 4, progress, certain
        smaller = rare.solve_head(*given, is_patient=False, by_margin=True)
        if smaller is None or smaller[1].transitions >= solved.transitions:
            break
        head, less = smaller
        others = exits_of(head, less, memory_bytes - head.num_bytes)
        if rare.upper(less, others, most) >= rare.upper(solved, exits, most):
            break
        solved, exits = less, others
    return KnownHead(sampled_head(solved, exits), exits) if len(exits.flows) else KnownHead(solved, None)


def sampled_head(solved: SolvedHead, exits: Exits) -> SolvedHead:
    """Returns a solved head as sampled from its exits: where less than F may be lost, with B as those runs have it."""
    return solved._replace(beyond=exits.beyond) if solved.beyond < solved.leaves else solved


def solve_and_sample(
    where: Where,
    point: Point,
    run: RunSettings,
    pilot: Tally,
    memory_bytes: int = HEAD_BYTES,
    progress: rare.Solving | None = None,
) -> Rare | None:
    """Returns a point's head and the runs from its exits; None if `run.method` has none.

    `pilot` says how long its runs are. `progress` is as for `known_head`.
    """
    most = most_transitions(run, pilot.steps, pilot.runs)
    found = known_head(where.model, point, run, most, memory_bytes, progress, where.enough)
    if found is None:
        return None
    parts = rare.parts_by_invariant(where.model, *found)
    nothing = named_tally(where.model, [0] * num_columns(where.model))
    _hold_against(where.model, run, parts, pilot, nothing)
    if found.exits is None:
        return Rare(found, nothing, "certain")
    part = parts[run.precision_of]
    where = where._replace(points=from_exits(where.points, found.exits))
    num_runs = parts[DATA_LOSS].num_runs(estimator_of_run(run), run.runs, where.enough)
    run = run._replace(first_run=TAIL + run.first_run, runs=num_runs)
    made = _make(where, run, run.runs, None, lambda k, n, hidden: part.is_precise(run, k, n, hidden))
    tail = named_tally(where.model, made.sums)
    _hold_against(where.model, run, parts, pilot, tail)
    return Rare(found, tail, made.stopped)


def _hold_against(
    model: Model, run: RunSettings, parts: Mapping[str, rare.LossPart], pilot: Tally, tail: Tally
) -> None:
    """Raises ModelError where the pilot's runs contradict a head and the runs from its exits."""
    for name, part in parts.items():
        asked = run._replace(precision_of=name)
        losses, hidden = judged(pilot.outcomes, pilot.broken, asked)
        after, unknown = judged(tail.outcomes, tail.broken, asked)
        part.hold_against(model.name, name, (losses, pilot.runs, hidden), (after, tail.runs, unknown))


def runs_and_head(
    experiment: Experiment,
    where: Where,
    point: Point,
    memory_bytes: int = HEAD_BYTES,
    solving: rare.Solving | None = None,
) -> tuple[Made, Rare | None]:
    """Returns the runs of a point from the beginning, and its head with its runs if losses are too rare for those.

    `solving` is called as by `rare.solve_head`. Raises ConfigError if
    `run.method` cannot be used, and ModelError if what the model declares is wrong.
    """
    run = experiment.run
    if not (pilot := pilot_runs(point, run)):
        if run.method in ("head", "exact"):
            why = "because runs end at a fixed time, or run.at_any_time asks for losses after a lifetime"
            raise ConfigError(f"{experiment.path}: run.method = {run.method!r}: count or auto, {why}")
        return count_runs(where, run, run.runs), None
    made = count_runs(where, run, pilot)
    tally = named_tally(where.model, made.sums)
    if made.stopped == "precision":
        return made, None
    if is_rare(run, *judged(tally.outcomes, tally.broken, run)):
        with compiling_for_exits(where.model.name, [point]):
            found = solve_and_sample(where, point, run, tally, memory_bytes, solving)
        if found:
            return made, found
        if run.method != "auto":
            why = "its chain does not fit in memory, or runs move back and forth among too many states"
            raise ConfigError(f"{experiment.path}: run.method = {run.method!r}: {why}; use auto or count")
    return count_runs(where, run, run.runs, made) if made.runs < run.runs else made, None
