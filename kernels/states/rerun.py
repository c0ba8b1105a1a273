"""A run of the engines once more, in plain Python: the same random numbers, the same steps, every state at hand."""

from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.engines.philox import draw_pair, minus_log2, multiply_high
from quorisk.kernels.engines.points import Point, pack
from quorisk.kernels.model import HORIZON, LOST, UNFINISHED, Model, data_loss_mask, instance_words
from quorisk.kernels.ops import as_int64, as_uint64, deposit, nth_bit, popcount
from quorisk.kernels.states import paths
from quorisk.kernels.states.paths import Path, Step


class Rerun(NamedTuple):
    """What an engine would record of the run, and the run."""

    path: Path
    outcome: int
    """Of OUTCOMES."""
    broken_mask: int
    messages: int
    """Messages sent."""
    time: float
    """Model time at which it ended."""


def rerun(model: Model, point: Point, seed: int, run: int) -> Rerun:
    """The run of that index of a point, as `engines.Engine.record` counts it."""
    params, points = model.make_params(point.values), pack(model, [point])
    weights = dict(zip(instance_words(model), points.weights[0].tolist(), strict=True))
    max_steps, horizon, unit = int(points.max_steps[0]), float(points.horizons[0]), float(points.time_units[0])
    data_loss = data_loss_mask(model)
    draws = _Draws(seed, run)
    choices = model.initial_choices(params)
    choice = as_int64(multiply_high(draws.pair(0, 0)[0], as_uint64(choices))) if choices > 1 else 0
    state, steps = model.initial(params, choice), list[Step]()
    broken_mask, messages, time = 0, 0, 0.0
    while True:
        broken_mask |= paths.broken(model, state, params)
        masks = {word: int(mask) for word, mask in zip(weights, _masks(model, state, params), strict=True)}
        total = sum(weights[word] * popcount(mask) for word, mask in masks.items())
        if broken_mask & data_loss:
            outcome = LOST
        elif total == 0:
            outcome = int(model.outcome(state, params))
        elif len(steps) >= max_steps:
            outcome = UNFINISHED
        else:
            choose, wait = draws.pair(len(steps) + 1, 0)
            time += float(minus_log2(wait)) / float(total)  # as compiled code divides
            if time <= horizon:
                action, instance = _chosen(masks, weights, as_int64(multiply_high(choose, as_uint64(total))))
                sent = paths.sends(model, state, params, Step(action, instance, 0))
                lost = deposit(draws.losses(len(steps) + 1, popcount(sent), points.losses[0]), sent)
                messages += popcount(sent)
                steps.append(Step(action, instance, lost))
                state = paths.after(model, state, params, steps[-1])
                continue
            outcome, time = HORIZON, horizon
        return Rerun(Path(choice, tuple(steps)), outcome, broken_mask, messages, time * unit)


def _masks(model: Model, state: Any, params: Any) -> list[Any]:
    return [mask for action in model.actions for mask in action.enabled(state, params)]


def _chosen(masks: dict[tuple[int, int], int], weights: dict[tuple[int, int], int], drawn: int) -> tuple[int, int]:
    """The action and the instance at a place between 0 and the sum of all weights."""
    for word, mask in masks.items():
        weight = weights[word] * popcount(mask)
        if drawn < weight:
            return word[0], word[1] + nth_bit(mask, drawn // weights[word])
        drawn -= weight
    raise AssertionError("drawn beyond the sum of all weights")


class _Draws(NamedTuple):
    """The random numbers of one run."""

    seed: int
    run: int

    def pair(self, step: int, block: int) -> tuple[np.uint64, np.uint64]:
        first, second = draw_pair(*map(np.uint64, (self.seed, self.run, step, block)))
        return np.uint64(first), np.uint64(second)

    def losses(self, step: int, messages: int, loss: np.uint64) -> int:
        """Bit j: message j of a step is lost; `loss` is the probability in units of 2**-63."""
        lost = 0
        for j in range(messages if loss else 0):
            lost |= int(self.pair(step, j // 2 + 1)[j % 2] >> np.uint64(1) < loss) << j
        return lost
