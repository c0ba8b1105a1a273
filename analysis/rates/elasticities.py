"""Elasticities of a probability of loss that was solved in each rate, exactly and all at once.

The elasticity of P in a rate r is e = d log P / d log r: as long as it stays the same, twice the rate makes P 2^e times
as high. With v the expected visits of states, u the probabilities of loss from them, and p the odds of steps,

    P e[k] = sum over the steps of k, from i to j, of v[i] p (u[j] - u[i])
    P e[m] = sum over the steps that lose l of n members with probability m each, of v[i] p u[j] (l - n m) / (1 - m)

One solution forward gives v, and one backward gives u. The end of a lifetime is a step like any other, at the rate
1 / lifetime; all rates have the sum 0, since P does not depend on the unit of time. From the same two vectors follows
what happens on a run that loses data: step k sum(v[i] p u[j]) / P times on average.

A head is left with probability F; what comes then is not solved. Let S be the sum, over a run's steps, of 1 for a step
of k less the odds of one: P e[k] = E[S; loss]. Of runs that leave the head and lose data, S is at most the number of
their steps of k, and at least minus the sum of the odds: inside the head both are known, of all that leave. Outside, S
is a martingale whose variance is at most the number of steps of k that a lifetime has room for, on average: E|S| is at
most the root of that, and what S adds to a probability, or takes off, at most half.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from quorisk.kernels.engines.points import Point, may_happen
from quorisk.kernels.model import EVERYTHING, LOST_MESSAGE, MESSAGE_LOSS, Model, loses_messages, num_words
from quorisk.kernels.rule import loss_names, losses
from quorisk.kernels.states import absorption
from quorisk.kernels.states.moves import Moves

LIFETIME = "run.lifetime"
"""The key of the end of a lifetime: its elasticity is that of the rate 1 / lifetime."""


class Elasticity(NamedTuple):
    """The elasticity of P(loss) in one rate or probability."""

    value: float | None
    """The estimate; None if it is not known."""
    low: float | None
    """The least that it may be; equal to `value` if all is solved, None if nothing bounds it."""
    high: float | None

    def of_inverse(self) -> "Elasticity":
        """Returns the elasticity in the inverse of the rate, such as a mean time."""
        value, low, high = (None if each is None else 0.0 - each for each in (self.value, self.high, self.low))
        return Elasticity(value, low, high)


class MovesSolved(NamedTuple):
    """Results of a head's steps on runs that lose data."""

    lost: float
    """L, the probability that a run loses data inside the head."""
    leaves: float
    """F, the probability that it leaves the head."""
    elasticities: dict[str, Elasticity]
    """Elasticities by key: rates.NAME, faults.NAME, LIFETIME."""
    actions: dict[str, float]
    """Mean number of times that an action happens on a run that loses data inside the head, if above 0."""
    faults: dict[str, float]
    """Mean number of times that such a run meets each kind of fault."""


class _Parts(NamedTuple):
    """Sums over steps for one key."""

    inside: float
    """The elasticity times L, of runs that lose data inside the head; NaN if it is not known."""
    most: float
    """The most that runs that leave the head add inside it, if all of them lose data."""
    least: float
    """The most that these runs take off, as a number above 0."""
    beyond: float
    """The most that the rest of such a run adds or takes off, on average."""


class _Vectors(NamedTuple):
    """The two solutions."""

    flows: np.ndarray
    """float64 by step, how often a run takes it on average."""
    lost: np.ndarray
    """float64 by state, the probability that a run from there loses data inside the head."""
    leaves: np.ndarray
    """float64 by state, the probability that it leaves the head."""


def keys_of_figures(model: Model, point: Point) -> list[str]:
    """Returns the keys of a point's rates, the lifetime and the probabilities, whether or not they matter: empty texts
    stand for those that do not."""
    rates = [f"rates.{action.name}" if may_happen(model, action, point.values) else "" for action in model.actions]
    lifetime = LIFETIME if point.lifetime < math.inf else ""
    of = [key_of(name) if name != MESSAGE_LOSS or loses_messages(model) else "" for name in loss_names(model)]
    return [*rates, lifetime, *of]


def key_of(name: str) -> str:
    """Returns the key of a probability of `kernels.rule.loss_names`."""
    return f"faults.{name}"


def solve_moves(model: Model, point: Point, moves: Moves) -> MovesSolved:
    """Returns the results of the steps of a point's head; without a path to a loss, elasticities are not known."""
    chain, num_actions = moves.chain, len(model.actions)
    visits = absorption.visits(chain, moves.parts)
    p_lost, p_leaves = float(visits[moves.is_lost].sum()), float(visits[-1])
    goals = moves.is_lost, moves.is_outside
    lost, leaves = (absorption.hits(chain, moves.parts, goal.astype(float)) for goal in goals)
    vectors = _Vectors(visits[moves.source] * chain.p, lost, leaves)
    sums = dict(_of_rates(model, point, moves, vectors)) | dict(_of_probabilities(model, point, moves, vectors))
    shares = vectors.flows * lost[chain.target] / p_lost if p_lost else np.zeros(len(chain.p))
    times = np.bincount(moves.action, shares, num_actions + 1).tolist()
    return MovesSolved(
        lost=p_lost,
        leaves=p_leaves,
        elasticities={key: _elasticity(each, p_lost, p_leaves) for key, each in sums.items()},
        actions={action.name: times[i] for i, action in enumerate(model.actions) if times[i] > 0.0},
        faults=faults_of(model, times, float(shares @ _messages(model, moves))),
    )


def _of_rates(model: Model, point: Point, moves: Moves, vectors: _Vectors) -> Iterator[tuple[str, _Parts]]:
    (flows, lost, leaves), source, target = vectors, moves.source, moves.chain.target
    inside, most, least = (
        np.bincount(moves.action, flows * each, len(model.actions) + 1).tolist()
        for each in (lost[target] - lost[source], leaves[target], leaves[source])
    )
    for i, action in enumerate(model.actions):
        if may_happen(model, action, point.values):
            yield f"rates.{action.name}", _Parts(inside[i], most[i], least[i], _beyond(_most_steps(model, i, point)))
    if point.lifetime < math.inf:
        yield LIFETIME, _Parts(inside[-1], most[-1], least[-1], 1.0)


def _of_probabilities(model: Model, point: Point, moves: Moves, vectors: _Vectors) -> Iterator[tuple[str, _Parts]]:
    flows, lost, leaves = vectors
    lost_with = np.array([*losses(model), -1])
    for place, name in enumerate(loss_names(model)):
        p = point.p_lost(name)
        if name == MESSAGE_LOSS and not loses_messages(model):
            continue
        if p == 1.0:  # it can only fall
            yield key_of(name), _Parts(math.nan, 0.0, 0.0, 0.0)
            continue
        of_it = (lost_with[moves.action] == place) & (moves.size > 0) & (p > 0.0)
        source, target = moves.source[of_it], moves.chain.target[of_it]
        scores = flows[of_it] * (moves.lost[of_it] - moves.size[of_it] * p) / (1.0 - p)
        inside, left = scores * (lost[target] - lost[source]), scores * leaves[target]
        members = model.max_sends * math.fsum(
            _most_steps(model, i, point) for i in range(len(model.actions)) if lost_with[i] == place
        )
        ends = float(left[left > 0.0].sum()), -float(left[left < 0.0].sum())
        yield key_of(name), _Parts(float(inside.sum()), *ends, _beyond(members * p / (1.0 - p) if p else 0.0))


def _most_steps(model: Model, action: int, point: Point) -> float:
    """Bound of the mean number of times that an action happens in a lifetime."""
    shared = model.actions[action].shared
    groups = 1 if shared == EVERYTHING else num_words(model)[action] * (64 // shared)
    rate = float(point.rates.get(model.actions[action].name, 1.0))
    return rate * groups * point.lifetime if rate else 0.0


def _beyond(most_steps: float) -> float:
    """The most that steps outside of a head can add or take off, by a bound of their number: half of E|S|."""
    return min(math.sqrt(most_steps) / 2.0, most_steps)


def _elasticity(parts: _Parts, p_lost: float, p_leaves: float) -> Elasticity:
    if p_lost == 0.0 or math.isnan(parts.inside):
        return Elasticity(None, None, None)
    value = parts.inside / p_lost
    if p_leaves == 0.0:
        return Elasticity(value, value, value)
    if parts.beyond == math.inf:
        return Elasticity(value, None, None)
    least = parts.inside - parts.least - p_leaves * parts.beyond
    most = parts.inside + parts.most + p_leaves * parts.beyond
    ends = [end / p for end in (least, most) for p in (p_lost, p_lost + p_leaves)]
    return Elasticity(value, min(ends), max(ends))


def faults_of(model: Model, times: Sequence[float], messages: float) -> dict[str, float]:
    """Returns the mean number of times that each kind of fault is met, given `times` by action and lost `messages`."""
    found: dict[str, float] = {}
    for action, often in zip(model.actions, times, strict=False):
        if action.fault and often > 0.0:
            found[action.fault] = found.get(action.fault, 0.0) + often
    return found | ({LOST_MESSAGE: messages} if messages else {})


def _messages(model: Model, moves: Moves) -> np.ndarray:
    """Number of messages that are lost, by step."""
    sends = np.array([*(loss == 0 for loss in losses(model)), False])
    return np.where(sends[moves.action], moves.lost, 0)
