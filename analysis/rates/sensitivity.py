"""Sensitivity of losses to each rate and probability of a configuration, and the method by which it is found.

A design's likeliest paths are solved, or all of them, and elasticities follow exactly (`elasticities`). If too much is
left out of them, the runs that lose data are counted, and elasticities estimated (`scores`). Else they are not known.
"""

import math
from typing import Any, NamedTuple

from quorisk.analysis.estimate import rare
from quorisk.analysis.estimate.estimate import assumptions, only_point
from quorisk.analysis.estimate.stopping import estimator_of_run
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.rates import elasticities, scores
from quorisk.analysis.rates.causes import p_loss_by_faults
from quorisk.analysis.rates.draws import unknowns
from quorisk.analysis.rates.elasticities import Elasticity
from quorisk.analysis.statistics.known import Known
from quorisk.analysis.traces.trace import Trace, replay_in_words
from quorisk.kernels import paths
from quorisk.kernels.model import Model
from quorisk.kernels.progress import Progress
from quorisk.kernels.states.head import Head, SolvedHead
from quorisk.kernels.states.likeliest import Likeliest, likeliest
from quorisk.kernels.states.moves import MOVE_BYTES, Moves, moves_of

GROW_UNTIL = 1e-9
"""F/L at which a head is certain enough, if memory allows: the rest changes no printed digit."""
MOVES_A_TRANSITION = 4
"""Approximate number of a head's single steps for each of its transitions."""
MEMORY = 1 << 30
COUNTED, UNKNOWN = "score of losing runs", "not known"


class LikeliestPath(NamedTuple):
    """The likeliest path to a loss."""

    share: float
    """Fraction of all losses on this path, or on one that differs only in which of several like things act."""
    steps: list[dict[str, Any]]
    """Steps, each with `action`, `instance`, `lost` (a mask) and `words`."""
    verdict: str
    """Words on the loss."""


class FaultShare(NamedTuple):
    """Losses of runs that met exactly these kinds of faults before."""

    faults: list[str]
    share: float
    """Fraction of the losses that were solved."""


class Sensitivity(NamedTuple):
    """Sensitivity of the losses of one configuration."""

    protocol: str
    point_id: str
    parameters: dict[str, Any]
    """All parameters by dotted key, including defaults."""
    p: float
    """The probability of data loss; 0 with `high` above it if no loss was seen."""
    low: float
    high: float
    method: str
    """Method by which elasticities were found; `not known` if they were not."""
    confidence: float | None
    """Confidence of intervals; None if they hold for certain."""
    values: dict[str, float]
    """The rates, probabilities and the lifetime, by key."""
    elasticities: dict[str, float | None]
    """d log P / d log value, by key. None if it is not known."""
    intervals: dict[str, tuple[float, float] | None]
    """Intervals of the elasticities; None if nothing bounds them."""
    actions: dict[str, float]
    """Mean number of times that each action happens on a run that loses data."""
    faults: dict[str, float]
    """Mean number of times that such a run meets each kind of fault."""
    losses_by_faults: list[FaultShare]
    """Losses by the faults met, the most first, where they were solved. Where they were counted, see `Estimate`."""
    likeliest_path: LikeliestPath | None
    assumptions: list[str]


class GrownHead(NamedTuple):
    """A design's head, and its certain bounds."""

    head: Head
    solved: SolvedHead

    def moves(self, solving: rare.Solving | None = None) -> Moves:
        """Returns the head's single steps, in as long as the head has taken. `solving` is called as by `grown_head`,
        from 0 on."""
        num = self.head.transitions
        told = (lambda place, states: solving(num * place // states, num)) if solving else None
        return moves_of(self.head, self.solved.states, told)


def grown_head(
    experiment: Experiment, memory_bytes: int = MEMORY, solving: rare.Solving | None = None, certain: float = GROW_UNTIL
) -> GrownHead | None:
    """Returns the head of an experiment's one point, grown until F/L is at most `certain` or memory ends; None if no
    head can be solved. `solving` is called as by `rare.solve_head`.
    """
    model, point, run = experiment.model, only_point(experiment).point, experiment.run
    if not rare.applies(point, run):
        return None
    most = memory_bytes // 2 // (MOVES_A_TRANSITION * MOVE_BYTES)
    try:
        found = rare.solve_head(model, point, memory_bytes // 2, most, solving, certain, is_patient=False)
    except MemoryError:
        return None
    return GrownHead(*found) if found else None


def sensitivity(
    experiment: Experiment,
    memory_bytes: int = MEMORY,
    progress: Progress | None = None,
    solving: rare.Solving | None = None,
) -> Sensitivity:
    """Returns the sensitivity of the losses of an experiment's one point.

    Args:
        experiment: the experiment.
        memory_bytes: memory for what is solved.
        progress: called with the number of losing runs made again since its last call.
        solving: called as by `grown_head`.

    Raises:
        ConfigError: if there are several points.
    """
    grown = grown_head(experiment, memory_bytes, solving)
    if grown and grown.solved.leaves <= rare.MAX_UNSAMPLED * grown.solved.lost:
        return _solved(experiment, grown, solving)
    counted = _counted(experiment, progress)
    if counted.method == UNKNOWN and grown and (grown.solved.lost or grown.solved.complete):
        return _solved(experiment, grown, solving)
    return counted


def _solved(experiment: Experiment, grown: GrownHead, solving: rare.Solving | None) -> Sensitivity:
    model, point = experiment.model, only_point(experiment).point
    head, solved = grown
    moves = grown.moves(solving)
    found = elasticities.solve_moves(model, point, moves)
    part = rare.parts_by_invariant(model, solved, None)[DATA_LOSS]
    interval = part.interval(estimator_of_run(experiment.run), 0, 0, 0) if solved.leaves else (solved.lost, solved.lost)
    way = likeliest(head, moves)
    return _made(
        experiment,
        (part.p(0, 0), *interval),
        rare.named(solved.leaves, False, estimator_of_run(experiment.run)),
        None,
        found,
        _told(experiment, way, solved.lost) if way else None,
        _made_of(model, moves),
    )


def _made_of(model: Model, moves: Moves) -> list[FaultShare]:
    made_of = p_loss_by_faults(model, moves)
    total = math.fsum(made_of.values())
    return [FaultShare(sorted(faults), p / total) for faults, p in sorted(made_of.items(), key=lambda each: -each[1])]


def _counted(experiment: Experiment, progress: Progress | None) -> Sensitivity:
    point, run = only_point(experiment).point, experiment.run
    runs = range(run.first_run, run.first_run + min(run.runs, scores.MOST_RUNS))
    found = scores.count_losing_runs(experiment.model, point, run.seed, runs, run.confidence, progress)
    interval = estimator_of_run(run).interval(found.losses, found.runs, found.hidden)
    method = COUNTED if found.elasticities and rare.applies(point, run) else UNKNOWN
    if method == UNKNOWN:
        found = found._replace(elasticities={}, actions={}, faults={})
    return _made(experiment, (found.losses / found.runs, *interval), method, run.confidence, found, None, [])


def _made(
    experiment: Experiment,
    risk: tuple[float, float, float],
    method: str,
    confidence: float | None,
    found: elasticities.MovesSolved | scores.LosingRuns,
    way: LikeliestPath | None,
    made_of: list[FaultShare],
) -> Sensitivity:
    model, (point, point_id, _) = experiment.model, only_point(experiment)
    values = dotted_values(model, point)
    known = {
        key: found.elasticities.get(key, Elasticity(None, None, None))
        for key in filter(None, elasticities.keys_of_figures(model, point))
    }
    if elasticities.LIFETIME in known:  # of the lifetime itself, and not of the rate at which it ends
        known[elasticities.LIFETIME] = known[elasticities.LIFETIME].of_inverse()
    return Sensitivity(
        experiment.protocol,
        point_id,
        values,
        *risk,
        method=method,
        confidence=confidence,
        values={key: values[key] for key in known},
        elasticities={key: each.value for key, each in known.items()},
        intervals={
            key: None if each.low is None or each.high is None else (each.low, each.high) for key, each in known.items()
        },
        actions=found.actions,
        faults=found.faults,
        losses_by_faults=made_of,
        likeliest_path=way,
        assumptions=assumptions(model, point, experiment.run.at_any_time),
    )


def _told(experiment: Experiment, found: Likeliest, p_lost: float) -> LikeliestPath:
    """The path in words."""
    model, grid_point = experiment.model, only_point(experiment)
    params = model.make_params(grid_point.point.values)
    broken = paths.broken(model, paths.replay(model, params, found.path)[-1], params)
    name = next(each.name for i, each in enumerate(model.invariants) if each.data_loss and broken >> i & 1)
    replayed = replay_in_words(Trace(model, grid_point, found.path, name, "likeliest"))
    steps = [
        step._asdict() | {"action": model.actions[step.action].name, "words": told.words}
        for step, told in zip(found.path.steps, replayed.told, strict=True)
    ]
    return LikeliestPath(found.p / p_lost, steps, replayed.verdict)


def rows(found: Sensitivity, experiment: Experiment) -> list[dict[str, Any]]:
    """Returns the rows of a tornado chart, one for each key, without an elasticity if that is not known.

    `at_low` and `at_high` are the factors on losses with the figure at the ends of 90 % of what is known of it, or half
    and twice as high if that is not `stated`, as long as the elasticity stays the same.
    """
    known = {key: each.known for point in experiment.points for key, each in unknowns(experiment, point).items()}
    return [
        tornado_row(key, value, found.values[key], known.get(key), found.intervals.get(key))
        for key, value in found.elasticities.items()
    ]


def tornado_row(
    key: str, elasticity: float | None, value: float, known: Known | None, interval: tuple[float, float] | None = None
) -> dict[str, Any]:
    """Returns one row of `rows`."""
    low, high = (float(end) for end in known.quantile([0.05, 0.95])) if known else (value / 2, value * 2)
    factors = (low / value, high / value) if value else (1.0, 1.0)
    return {
        "key": key,
        "name": key,
        "value": value,
        "elasticity": elasticity,
        "low": interval[0] if interval else None,
        "high": interval[1] if interval else None,
        "at_low": None if elasticity is None else factors[0] ** elasticity,
        "at_high": None if elasticity is None else factors[1] ** elasticity,
        "ends": f"× {factors[0]:.2g} to × {factors[1]:.3g}" if known else "",
        "stated": known is not None,
    }
