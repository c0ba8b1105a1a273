"""One step of one run as a function without branches, which `jax.vmap` turns into a step of a batch of runs.

It computes what `numba_engine._run` computes, to the bit: all guards, the draws, every action's effect, of which the
one that was drawn is kept. Times are float64, all else integers, so `jax_enable_x64` must be on.
"""

from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quorisk.kernels.engines.philox import draw_pair, minus_log2, multiply_high
from quorisk.kernels.model import (
    HORIZON,
    LOST,
    OUTCOMES,
    UNFINISHED,
    Model,
    data_loss_mask,
    instance_words,
    leaves,
    smallest_params,
)
from quorisk.kernels.ops import as_int64, as_uint64, nth_bit, popcount

_once = jax.lax.optimization_barrier
"""Keeps XLA from computing a value again in every kernel that needs it."""
RUNNING, IDLE = -1, len(OUTCOMES)
"""Outcomes of lanes whose run goes on, and of lanes that have none."""


class Lane(NamedTuple):
    """A run under way. In a batch every array has an axis of lanes."""

    job: Any  # int32, its row of Settings
    run: Any  # int64, the run's index
    state: tuple[Any, ...]  # the leaves of the model's state, each in the narrowest unsigned integer that holds it
    outcome: Any  # int32: RUNNING, IDLE or one of OUTCOMES
    broken_mask: Any  # int32
    first_steps: tuple[Any, ...]  # int32, by invariant: the step at which it broke first
    steps: Any  # int32
    messages: Any  # int64
    time: Any  # float64, in the engines' unit


class Settings(NamedTuple):
    """What a run of a job depends on; in tables the first axis is the job. See `points.Points`."""

    params: tuple[Any, ...]  # int64, the leaves of Params
    weights: tuple[Any, ...]  # int64, by word of instances
    loss: Any  # uint64
    max_steps: Any  # int64
    horizon: Any  # float64


class _Drawn(NamedTuple):
    """An action instance; `action` is -1 if the run has ended."""

    action: Any
    instance: Any


def start(model: Model, settings: Settings, seed: Any, job: Any, run: Any) -> Lane:
    """A run before its first step. `seed` is uint64."""
    params = _params(model, settings)
    draw, _ = draw_pair(seed, as_uint64(run), np.uint64(0), np.uint64(0))
    choices = jnp.asarray(model.initial_choices(params), jnp.uint64)
    choice = as_int64(multiply_high(draw, choices))  # 0 if there is but one
    zero = jnp.int32(0)
    return Lane(
        job=job,
        run=run,
        state=_narrow(model, model.initial(params, choice)),
        outcome=jnp.int32(RUNNING),
        broken_mask=zero,
        first_steps=(zero,) * len(model.invariants),
        steps=zero,
        messages=jnp.int64(0),
        time=jnp.float64(0.0),
    )


def step(model: Model, settings: Settings, seed: Any, lane: Lane) -> Lane:
    """A run one step on, or ended; unchanged if it had ended before."""
    params, state = _params(model, settings), _wide(model, lane.state)
    running = lane.outcome == RUNNING
    broken_mask = sum(jnp.where(v.holds(state, params), 0, 1 << i) for i, v in enumerate(model.invariants))
    masks = [jnp.asarray(mask, jnp.int64) for action in model.actions for mask in action.enabled(state, params)]
    broken_mask, masks = _once((broken_mask, masks))
    newly_broken = jnp.where(running, broken_mask & ~lane.broken_mask, 0)
    first_steps = [jnp.where(newly_broken >> i & 1, lane.steps, before) for i, before in enumerate(lane.first_steps)]
    sums = list(accumulate(weight * popcount(mask) for weight, mask in zip(settings.weights, masks, strict=True)))
    total = sums[-1]

    counter = as_uint64(lane.steps + 1)
    choose, wait = draw_pair(seed, as_uint64(lane.run), counter, np.uint64(0))
    time = lane.time + minus_log2(wait) / total
    ends = jnp.where(time > settings.horizon, HORIZON, RUNNING)
    ends = jnp.where(lane.steps >= settings.max_steps, UNFINISHED, ends)
    ends = jnp.where(total == 0, model.outcome(state, params), ends)
    ends = jnp.where((newly_broken & data_loss_mask(model)) != 0, LOST, ends)
    outcome = jnp.where(running, ends, lane.outcome)
    goes_on = outcome == RUNNING
    ended_late = running & (outcome == HORIZON)

    drawn = _draw(model, settings.weights, masks, sums, as_int64(multiply_high(choose, as_uint64(total))))
    drawn = _once(drawn._replace(action=jnp.where(goes_on, drawn.action, -1)))
    sent = _select(drawn.action, 0, [a.sends(state, params, drawn.instance) for a in model.actions])
    losses = _losses(model, settings.loss, seed, lane.run, counter)
    after = _apply(model, state, params, drawn, _once(_deposit(losses, sent, model.max_sends)))
    return Lane(
        job=lane.job,
        run=lane.run,
        state=_narrow(model, after),
        outcome=outcome.astype(jnp.int32),
        broken_mask=lane.broken_mask | newly_broken.astype(jnp.int32),
        first_steps=tuple(first_steps),
        steps=lane.steps + goes_on,
        messages=lane.messages + popcount(jnp.asarray(sent, jnp.int64)),
        time=jnp.where(goes_on, time, jnp.where(ended_late, settings.horizon, lane.time)),
    )


def state_types(model: Model) -> list[Any]:
    """The dtype in which a lane holds each leaf of the state."""
    return [_narrowest(width) for width in leaves(model.widths)]


def _narrowest(width: int) -> Any:
    return next((kind for kind in (np.uint8, np.uint16, np.uint32) if width <= np.iinfo(kind).bits), np.uint64)


def _narrow(model: Model, state: Any) -> tuple[Any, ...]:
    leaves_and_types = zip(jax.tree.leaves(state), state_types(model), strict=True)
    return tuple(jnp.asarray(leaf, jnp.int64).astype(kind) for leaf, kind in leaves_and_types)


def _wide(model: Model, held: tuple[Any, ...]) -> Any:
    return jax.tree.unflatten(_shape(model).state, [leaf.astype(jnp.int64) for leaf in held])


def _params(model: Model, settings: Settings) -> Any:
    return jax.tree.unflatten(_shape(model).params, settings.params)


class _Shape(NamedTuple):
    params: Any
    state: Any


@cache
def _shape(model: Model) -> _Shape:
    params = smallest_params(model)
    return _Shape(jax.tree.structure(params), jax.tree.structure(model.initial(params, 0)))


def _draw(model: Model, weights: Any, masks: Any, sums: Any, chosen: Any) -> _Drawn:
    """The instance in whose share of the total `chosen` lies: the words' shares end at `sums`."""
    words = instance_words(model)
    action, first, mask, weight, before = jnp.int64(0), jnp.int64(0), masks[0], weights[0], jnp.int64(0)
    for i in range(1, len(words)):
        further = sums[i - 1] <= chosen
        action = jnp.where(further, words[i][0], action)
        first = jnp.where(further, words[i][1], first)
        mask = jnp.where(further, masks[i], mask)
        weight = jnp.where(further, weights[i], weight)
        before = jnp.where(further, sums[i - 1], before)
    return _Drawn(action, first + nth_bit(mask, (chosen - before) // weight))


def _select(action: Any, otherwise: Any, values: Any) -> Any:
    """`values[action]`, or `otherwise` if there is none; values that are `otherwise` itself cost nothing."""
    result = otherwise
    for i, value in enumerate(values):
        if value is not otherwise:
            result = jnp.where(action == i, value, result)
    return result


def _apply(model: Model, state: Any, params: Any, drawn: _Drawn, lost: Any) -> Any:
    """The next state; leaves that an action leaves alone are not selected for it."""
    befores, tree = jax.tree.flatten(state)
    afters = [jax.tree.leaves(a.apply(state, params, drawn.instance, lost)) for a in model.actions]
    chosen = [_select(drawn.action, *each) for each in zip(befores, zip(*afters, strict=True), strict=True)]
    return jax.tree.unflatten(tree, chosen)


def _losses(model: Model, loss: Any, seed: Any, run: Any, counter: Any) -> Any:
    """Bit j: the j-th message sent in this step, counted from the lowest bit, is lost."""
    losses = jnp.int64(0)
    for block in range((model.max_sends + 1) // 2):
        for i, draw in enumerate(draw_pair(seed, as_uint64(run), counter, np.uint64(block + 1))):
            losses |= jnp.where(draw >> np.uint64(1) < loss, 1 << (2 * block + i), 0)
    return losses


def _deposit(bits: Any, mask: Any, width: int) -> Any:
    """`ops.deposit` for masks of up to `width` bits."""
    result, num_below = 0, 0
    for i in range(width):
        is_set = mask >> i & 1
        result |= (is_set & (bits >> num_below)) << i
        num_below += is_set
    return result
