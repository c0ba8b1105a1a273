"""A run of the engines once more, in plain Python: the same random numbers, the same steps, every state at hand."""

from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.engines.philox import (
    RETRY,
    draw_pair,
    first_draws,
    is_accepted,
    later_fates,
    multiply_high,
    place,
    settled_fates,
)
from quorisk.kernels.engines.points import Point, pack
from quorisk.kernels.engines.tally import parts
from quorisk.kernels.model import (
    HORIZON,
    LOST,
    UNFINISHED,
    Model,
    data_loss_mask,
    exposures,
    fault_bits,
    instance_words,
)
from quorisk.kernels.ops import deposit, nth_bit, popcount
from quorisk.kernels.states import paths
from quorisk.kernels.states.paths import Path, Step


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
    words = instance_words(model)
    weights, accepts = points.weights[0].tolist(), points.accepts[0].tolist()
    max_steps, horizon, unit = int(points.max_steps[0]), float(points.horizons[0]), float(points.time_units[0])
    data_loss, fault_bit = data_loss_mask(model), fault_bits(model)
    choice = _choice(model.initial_choices(params), seed, run)
    state, steps = model.initial(params, choice), list[Step]()
    broken_mask, met_mask, messages, time, block = 0, 0, 0, 0.0, 0
    exposed = _Exposed(model)
    while True:
        broken_now = paths.broken(model, state, params)
        broken_mask |= broken_now
        exposed.note(broken_now, time)
        masks = [int(mask) for mask in _masks(model, state, params)]
        outcome = UNFINISHED
        if broken_mask & data_loss:
            outcome = LOST
        elif not any(weight and mask for weight, mask in zip(weights, masks, strict=False)):
            outcome = int(model.outcome(state, params))
        elif len(steps) < max_steps:
            masks.append(1)  # the end of a lifetime, always possible
            total = sum(weight * popcount(mask) for weight, mask in zip(weights, masks, strict=True))
            source = tuple(map(np.uint64, (seed, run, len(steps) + 1, block, points.losses[0])))
            choose, wait, fates = first_draws(source)
            time += float(wait) / float(total)  # as compiled code divides
            word, instance = _chosen(masks, weights, int(place(choose, np.uint64(total), source)))
            if time <= horizon and not is_accepted(np.uint64(accepts[word]), source):
                block += RETRY
                continue
            if time <= horizon and word < len(words):
                step = Step(words[word][0], words[word][1] + instance, 0)
                sent = paths.sends(model, state, params, step)
                steps.append(step._replace(lost=deposit(_fates(fates, source, popcount(sent)), sent)))
                messages += popcount(sent)
                met_mask |= fault_bit[steps[-1].action] | (steps[-1].lost != 0)
                state, block = paths.after(model, state, params, steps[-1]), 0
                continue
            outcome, time = HORIZON, min(time, horizon)
        exposed.note(0, time)
        lasted = tuple(each * unit for each in exposed.lasted)
        return Rerun(Path(choice, tuple(steps)), outcome, broken_mask, met_mask, lasted, messages, time * unit)


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


def _masks(model: Model, state: Any, params: Any) -> list[Any]:
    return [mask for action in model.actions for mask in action.enabled(state, params)]


def _chosen(masks: list[int], weights: list[int], drawn: int) -> tuple[int, int]:
    """The word and the instance in it at a place between 0 and the sum of all weights."""
    for word, (weight, mask) in enumerate(zip(weights, masks, strict=True)):
        if drawn < weight * popcount(mask):
            return word, nth_bit(mask, drawn // weight)
        drawn -= weight * popcount(mask)
    raise AssertionError("drawn beyond the sum of all weights")


def _fates(fates: int, source: Any, messages: int) -> int:
    """Bit j: message j of a step is lost."""
    return int(settled_fates(fates, source)) | int(later_fates(source, messages))
