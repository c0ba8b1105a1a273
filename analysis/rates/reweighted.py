"""Losses of designs by all that is known of their rates: every design is answered at the same draws of them.

A scenario's head, solved once, is asked again under each draw (`kernels.states.moves.reweighted`). Where that would
take long, only some draws are, and the others follow from elasticities, a product of powers. `error_factor` is how far
off that is where both are known; it widens intervals. At the upper end, what leaves the head counts as lost.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.grid import GridPoint, TooLarge, by_design
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.analysis.rates import elasticities
from quorisk.analysis.rates.draws import PER_YEAR, by_draw, draw_unknowns, unknowns, with_values
from quorisk.analysis.rates.sensitivity import GrownHead, grown_head
from quorisk.analysis.statistics.uncertainty import (
    LEVELS,
    Allowed,
    DrawnLosses,
    Draws,
    Figure,
    Unknown,
    bent,
    variance_shares,
)
from quorisk.kernels.progress import Progress
from quorisk.kernels.states.moves import Moves, lost_and_left, reweighted
from quorisk.say.quantities import YEAR_S

NUM_DRAWS = 256
MEMORY = 1 << 28
_CERTAIN = 1e-4
"""F/L at which a head is certain enough."""
_OPEN = 0.1
"""F/L above which a head says too little."""
_MEMORY_AT_FIRST = MEMORY // 8
"""Bytes for a first head: some 130,000 transitions, about a second. It stays at that where no run found a loss."""
_HOPELESS = 0.5
"""F of a first head above which a larger one would leave too much open as well."""
_MOST_STEPS = 1 << 23
"""Steps of a scenario's head times draws that are solved again: below a second."""
_NUM_CHECKED = 8
"""Draws that are solved again in any case."""
_WEIGHTLESS = 1e-4
"""Fraction of a design's losses up to which a scenario keeps its probability, whatever the rates."""


class _Part(NamedTuple):
    """Losses of one scenario at each draw."""

    values: np.ndarray
    left: np.ndarray
    """Losses that runs which leave the head may add: nothing more is known of them."""
    powers: dict[str, float]
    num_solved: int
    error_factor: float


def losses_by_rates(
    experiment: Experiment,
    losses: Sequence[tuple[float, float]],
    num_draws: int = NUM_DRAWS,
    tell: Progress | None = None,
) -> Allowed | None:
    """Returns the losses of an experiment's designs for draws of its uncertain figures; None if all are known exactly.

    `losses` are the ends of the intervals of P(loss) of its points, which show the scenarios that matter. `tell` is
    called with the number of designs done.
    """
    draws, of = draw_unknowns(experiment, num_draws), dict[str, Figure]()
    if not draws.names:
        return None
    found: list[DrawnLosses | None] = []
    unsolved, hopeless = dict[int, str](), TooLarge()
    ends = dict(zip((point.point_id for point in experiment.points), losses, strict=True))
    for points in by_design(experiment.points).values():
        for point in points:
            for key, each in unknowns(experiment, point).items():
                of.setdefault(each.name, _figure(experiment, point, key, each))
        design, left = _design(experiment, points, [ends[point.point_id] for point in points], draws, hopeless)
        unsolved |= {len(found): left} if left is not None else {}
        found.append(design)
        if tell:
            tell(len(found))
    return Allowed(draws, of, found, unsolved)


def _figure(experiment: Experiment, point: GridPoint, key: str, unknown: Unknown) -> Figure:
    if key == PER_YEAR:
        value = float(experiment.scenarios[str(point.scenario)].per_year)
        return Figure(unknown.known, value, value, "year", 1.0)
    value = float(dotted_values(experiment.model, point.point)[key])
    if key.startswith("faults."):
        return Figure(unknown.known, value, value, "trial")
    physical = point.point.time_unit == "s"
    return Figure(unknown.known, value, value * YEAR_S if physical else value, "year" if physical else "unit of time")


def _per_year(experiment: Experiment, point: GridPoint) -> float:
    """Objects touched in a year."""
    return experiment.scenarios[point.scenario].event(None).objects if point.scenario else 1.0


def _design(
    experiment: Experiment,
    points: Sequence[GridPoint],
    ends: Sequence[tuple[float, float]],
    draws: Draws,
    hopeless: TooLarge,
) -> tuple[DrawnLosses | None, str | None]:
    """A design's losses; if a scenario that matters is not solved, that scenario's name instead."""
    weights = [_per_year(experiment, point) * high for point, (_, high) in zip(points, ends, strict=True)]
    parts = []
    for point, weight, (low, high) in zip(points, weights, ends, strict=True):
        unknown = unknowns(experiment, point)
        if weight <= _WEIGHTLESS * sum(weights):
            value = np.full(len(draws.levels), (low + high) / 2)
            part = _Part(value, np.zeros_like(value), {}, len(draws.levels), 1.0)
        else:
            head = _head(experiment, point, low > 0.0, hopeless)
            if head is None:
                return None, point.scenario or ""
            part = _part(experiment, point, unknown, draws, head)
        parts.append(_year(experiment, point, unknown, draws, part))
    return _summed(experiment, points, parts, draws), None


def _head(experiment: Experiment, point: GridPoint, is_lost: bool, hopeless: TooLarge) -> GrownHead | None:
    """The head of a scenario that matters, which some run lost if `is_lost`; None if it leaves too much open."""
    alone, sizes = experiment._replace(points=(point,)), point.sizes(experiment.model)
    if hopeless.has(point.scenario, sizes):
        return None
    grown = grown_head(alone, _MEMORY_AT_FIRST, certain=_CERTAIN)
    if grown and grown.solved.leaves > _HOPELESS:
        hopeless.add(point.scenario, sizes)
        return None
    if is_lost and not (grown and grown.solved.leaves <= _CERTAIN * grown.solved.lost):
        grown = grown_head(alone, MEMORY, certain=_CERTAIN)  # again, with more room, as too much was left open
    is_open = grown is None or not grown.solved.lost or grown.solved.leaves > _OPEN * grown.solved.lost
    return None if is_open else grown


def _part(
    experiment: Experiment, point: GridPoint, unknown: Mapping[str, Unknown], draws: Draws, grown: GrownHead
) -> _Part:
    """The losses of a scenario that matters."""
    mine = {key: each for key, each in unknown.items() if key != PER_YEAR}
    moves = grown.moves()
    found = elasticities.solve_moves(experiment.model, point.point, moves).elasticities
    powers = {key: found[key].value or 0.0 for key in mine if key in found}
    drawn = draws.values(mine)
    num = len(draws.levels)
    at_most = max(_NUM_CHECKED, num if num * len(moves.action) <= _MOST_STEPS else 0)
    solved = _solved(experiment, point, moves, list(islice(by_draw(drawn), at_most)))
    if not mine:
        solved = np.tile([grown.solved.lost, grown.solved.leaves], (num, 1))
    values = np.full(num, grown.solved.lost)
    given = dotted_values(experiment.model, point.point)
    for key, power in powers.items():
        values *= (drawn[key] / float(given[key])) ** power
    lost, left = solved.T
    off = np.abs(np.log(values[: len(lost)] / lost)).max() if len(lost) < num else 0.0
    besides = values * (left / lost).max()
    values, besides = np.minimum(values, 1.0), np.minimum(besides, 1.0)  # as elasticities know no end
    values[: len(lost)], besides[: len(lost)] = lost, left
    named = {mine[key].name: power for key, power in powers.items()}
    return _Part(values, besides, named, len(lost), float(np.exp(off)))


def _solved(experiment: Experiment, point: GridPoint, moves: Moves, drawn: Sequence[Mapping[str, float]]) -> np.ndarray:
    """P(loss inside the head) and P(leaving it) at each draw: float64[draws, 2]."""
    model = experiment.model
    chains = (reweighted(moves, model, with_values(point.point, values)) for values in drawn)
    return np.array([lost_and_left(moves, chain) for chain in chains]).reshape(-1, 2)


def _year(experiment: Experiment, point: GridPoint, unknown: Mapping[str, Unknown], draws: Draws, part: _Part) -> _Part:
    """The losses of a scenario in a year: times the objects that it touches."""
    if PER_YEAR not in unknown:
        times: Any = _per_year(experiment, point)
        return part._replace(values=part.values * times, left=part.left * times)
    often = unknown[PER_YEAR]
    times = draws.values({PER_YEAR: often})[PER_YEAR] * experiment.scenarios[str(point.scenario)].event(None).hits
    powers = part.powers | {often.name: part.powers.get(often.name, 0.0) + 1.0}
    return part._replace(values=part.values * times, left=part.left * times, powers=powers)


def _summed(
    experiment: Experiment, points: Sequence[GridPoint], parts: Sequence[_Part], draws: Draws
) -> DrawnLosses | None:
    """Losses of all parts together; None if some draws lose nothing. Elasticities are grown by geometric means."""
    values = np.sum([part.values for part in parts], axis=0)
    if not values.min() > 0.0:
        return None
    means = [math.exp(np.log(part.values).mean()) if part.values.min() > 0.0 else 0.0 for part in parts]
    powers: dict[str, float] = {}
    for part, mean in zip(parts, means, strict=True):
        for name, power in part.powers.items():
            powers[name] = powers.get(name, 0.0) + power * mean / sum(means)
    of = {each.name: each.known for point in points for each in unknowns(experiment, point).values()}
    factor = max(part.error_factor for part in parts)
    low, high = np.quantile(values, LEVELS[0]), np.quantile(values + sum(part.left for part in parts), LEVELS[1])
    most = math.inf if points[0].scenario else 1.0
    return DrawnLosses(
        values=values,
        median=float(np.median(values)),
        low=float(low) / factor,
        high=min(float(high) * factor, most),
        error_factor=factor,
        num_solved=min(part.num_solved for part in parts),
        powers=powers,
        shares=variance_shares(of, powers),
        bent=bent(values, powers, of, draws),
    )
