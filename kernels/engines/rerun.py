"""A run of the engines once more, in plain Python: the same random numbers, the same steps, every state at hand.

It takes some milliseconds, and nothing is compiled.
"""

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
from quorisk.kernels.engines.points import Point, Points, pack, params_at
from quorisk.kernels.engines.tally import add_run, empty, parts, write_record
from quorisk.kernels.model import HORIZON, LOST, UNFINISHED, Model, data_loss_mask, exposures, fault_bits
from quorisk.kernels.ops import bits, deposit, nth_bit, popcount
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
    first_steps: tuple[int, ...]
    """By invariant: the step at which it broke; 0 if it did not."""
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
    return _rerun(model, pack(model, [point]), 0, seed, run)


def tally_of_runs(
    model: Model, points: Points, seed: int, point: int, runs: np.ndarray, recording: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """What `numba_engine.tally_of_runs` returns, of a few runs."""
    tally, records = empty(model, len(runs) if recording else 0)
    for i, run in enumerate(runs.tolist()):
        ran = _rerun(model, points, point, seed, run)
        told = ran.outcome, ran.broken_mask, ran.met_mask, len(ran.path.steps), ran.messages
        high_low = add_run(*told, ran.time, 1.0, ran.first_steps, ran.exposed, tally)
        if recording:
            write_record(records, i, *told, *high_low)
    return tally, records


def _rerun(model: Model, points: Points, point: int, seed: int, run: int) -> Rerun:
    params = params_at(model, points, point)
    weights, accepts = points.weights[point].tolist(), points.accepts[point].tolist()
    max_steps, horizon = int(points.max_steps[point]), float(points.horizons[point])
    unit = float(points.time_units[point])
    data_loss, words = data_loss_mask(model), group_words(model)
    choice = _choice(model.initial_choices(params), seed, run)
    state, steps = model.initial(params, choice), list[Step]()
    broken_mask, met_mask, messages, time, block = 0, 0, 0, 0.0, 0
    exposed, first_steps = _Exposed(model), [0] * len(model.invariants)
    while True:
        broken_now = paths.broken(model, state, params)
        for i in bits(broken_now & ~broken_mask):
            first_steps[i] = len(steps)
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
                step, sent = _taken(model, points.losses[point], state, params, action, first + group, source)
                steps.append(step)
                messages += popcount(sent)
                met_mask |= fault_bits(model)[action] | (step.lost & sent != 0)
                state, block = paths.after(model, state, params, step), 0
                continue
            outcome, time = HORIZON, min(time, horizon)
        exposed.note(0, time)
        lasted = tuple(each * unit for each in exposed.lasted)
        path, firsts = Path(choice, tuple(steps)), tuple(first_steps)
        return Rerun(path, outcome, broken_mask, met_mask, lasted, firsts, messages, time * unit)


def _masks(model: Model, state: Any, params: Any) -> list[int]:
    """The words of `group_words`."""
    return [int(mask) for action in model.actions for mask in groups(action, action.enabled(state, params))]


def _taken(
    model: Model, p_lost: np.ndarray, state: Any, params: Any, place_of: int, group: int, source: Any
) -> tuple[Step, int]:
    """The step of a group of an action, and the messages that it sends, as a mask."""
    action, loss = model.actions[place_of], losses(model)[place_of]
    instance = member(action, action.enabled(state, params), group, pick(source)) if action.shared > 1 else group
    subset = int(action.sends(state, params, instance))
    fates = fates_of((*source[:-1], p_lost[loss]), popcount(subset))
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
