"""A run of the engines once more, in plain Python: the same random numbers, the same steps, every state at hand."""

from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels import paths
from quorisk.kernels.engines.philox import (
    RETRY,
    draw_pair,
    fates_of,
    first_draws,
    is_accepted,
    multiply_high,
    pick,
    place,
)
from quorisk.kernels.engines.points import Point, Points, pack
from quorisk.kernels.engines.tally import parts
from quorisk.kernels.model import (
    HORIZON,
    LOST,
    UNFINISHED,
    Model,
    data_loss_mask,
    exposures,
    fault_bits,
)
from quorisk.kernels.ops import deposit, nth_bit, popcount
from quorisk.kernels.paths import Path, Step
from quorisk.kernels.rule import group_words, groups, losses, member


class Rerun(NamedTuple):
    """What an engine would record of the run, and the run."""

    path: Path
    outcome: int
    """How the run ended: its place in OUTCOMES."""
    broken_mask: int
    met_mask: int
    """Kinds of faults that it met; see `model.fault_kinds`."""
    exposed: tuple[float, ...]
    """For how long each exposure lasted; see `model.exposures`."""
    messages: int
    """Messages sent."""
    time: float
    """Model time at which it ended."""

    def record(self) -> tuple[int, ...]:
        """The row that engines write of it; its columns are `engines.job.RECORD`."""
        masks = self.broken_mask, self.met_mask
        return self.outcome, *masks, len(self.path.steps), self.messages, *parts(self.time)


def rerun(model: Model, point: Point, seed: int, run: int) -> Rerun:
    """The run of that index of a point, as `engines.Engine.record` counts it."""
    params, points = model.make_params(point.values), pack(model, [point])
    weights, accepts = points.weights[0].tolist(), points.accepts[0].tolist()
    max_steps, horizon, unit = int(points.max_steps[0]), float(points.horizons[0]), float(points.time_units[0])
    data_loss, words = data_loss_mask(model), group_words(model)
    choice = _choice(model.initial_choices(params), seed, run)
    state, steps = model.initial(params, choice), list[Step]()
    broken_mask, met_mask, messages, time, block = 0, 0, 0, 0.0, 0
    exposed = _Exposed(model)
    while True:
        broken_now = paths.broken(model, state, params)
        broken_mask |= broken_now
        exposed.note(broken_now, time)
        masks = _masks(model, state, params)
        outcome = UNFINISHED
        if broken_mask & data_loss:
            outcome = LOST
        elif not any(weight and mask for weight, mask in zip(weights, masks, strict=False)):
            outcome = int(model.outcome(state, params))
        elif len(steps) < max_steps:
            masks.append(1)  # the end of a lifetime, always possible
            total = sum(weight * popcount(mask) for weight, mask in zip(weights, masks, strict=True))
            source = tuple(map(np.uint64, (seed, run, len(steps) + 1, block, 0)))
            choose, wait, _ = first_draws(source)
            time += float(wait) / float(total)  # as compiled code divides
            word, group = _chosen(masks, weights, int(place(choose, np.uint64(total), source)))
            if time <= horizon and not is_accepted(np.uint64(accepts[word]), source):
                block += RETRY
                continue
            if time <= horizon and word < len(words):
                action, first = words[word]
                step, sent = _taken(model, points, state, params, action, first + group, source)
                steps.append(step)
                messages += popcount(sent)
                met_mask |= fault_bits(model)[action] | (step.lost & sent != 0)
                state, block = paths.after(model, state, params, step), 0
                continue
            outcome, time = HORIZON, min(time, horizon)
        exposed.note(0, time)
        lasted = tuple(each * unit for each in exposed.lasted)
        return Rerun(Path(choice, tuple(steps)), outcome, broken_mask, met_mask, lasted, messages, time * unit)


def _masks(model: Model, state: Any, params: Any) -> list[int]:
    """The words of `group_words`."""
    return [int(mask) for action in model.actions for mask in groups(action, action.enabled(state, params))]


def _taken(
    model: Model, points: Points, state: Any, params: Any, place_of: int, group: int, source: Any
) -> tuple[Step, int]:
    """The step of a group of an action, and the messages that it sends, as a mask."""
    action, loss = model.actions[place_of], losses(model)[place_of]
    instance = member(action, action.enabled(state, params), group, pick(source)) if action.shared > 1 else group
    subset = int(action.sends(state, params, instance))
    fates = fates_of((*source[:-1], points.losses[0, loss]), popcount(subset))
    return Step(place_of, instance, deposit(int(fates), subset)), 0 if loss else subset


class _Exposed:
    """For how long each exposure lasts."""

    def __init__(self, model: Model) -> None:
        self.places = exposures(model)
        self.lasted, self.before = [0.0] * len(self.places), 0

    def note(self, broken_now: int, time: float) -> None:
        """Takes the time at which exposures begin off what each lasted, and adds that at which they end."""
        for k, invariant in enumerate(self.places):
            is_exposed = broken_now >> invariant & 1
            if is_exposed != self.before >> invariant & 1:
                self.lasted[k] += -time if is_exposed else time
        self.before = broken_now


def _choice(choices: int, seed: int, run: int) -> int:
    """The number of the initial state."""
    if choices == 1:
        return 0
    draw, _ = draw_pair(*map(np.uint64, (seed, run, 0, 0)))
    return int(multiply_high(np.uint64(draw), np.uint64(choices)))


def _chosen(masks: list[int], weights: list[int], drawn: int) -> tuple[int, int]:
    """The word and the group in it at a place between 0 and the sum of all weights."""
    for word, (weight, mask) in enumerate(zip(weights, masks, strict=True)):
        if drawn < weight * popcount(mask):
            return word, nth_bit(mask, drawn // weight)
        drawn -= weight * popcount(mask)
    raise AssertionError("drawn beyond the sum of all weights")
