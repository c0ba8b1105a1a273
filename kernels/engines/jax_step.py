"""One step of one run as a function without branches, which `jax.vmap` turns into a step of a batch of runs.

It computes what `numba_run._run` computes, to the bit: all guards, the draws, every action's effect, of which the
one that was drawn is kept. Times are float64, all else integers, so `jax_enable_x64` must be on.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quorisk.kernels.engines.philox import (
    FIRST_MESSAGES,
    RETRY,
    draw_pair,
    first_draws,
    is_accepted,
    later_fates,
    multiply_high,
    pick,
    place,
    settled_fates,
)
from quorisk.kernels.model import (
    HORIZON,
    LOST,
    OUTCOMES,
    UNFINISHED,
    Model,
    data_loss_mask,
    exposure_mask,
    exposures,
    fault_bits,
    leaves,
)
from quorisk.kernels.ops import as_int64, as_uint64, nth_bit, popcount
from quorisk.kernels.rule import group_words, losses
from quorisk.kernels.tracing.arrays import Arrays
from quorisk.kernels.tracing.expressions import same
from quorisk.kernels.tracing.general import CHOICE, GROUP, INSTANCE, PARAMS, PICKED, STATE, GeneralModel, general
from quorisk.kernels.tracing.general import LOST as MESSAGES_LOST

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
    met_mask: Any  # int32: the kinds of faults that it met
    exposing: Any  # int32: the exposures that last
    first_steps: tuple[Any, ...]  # int32, by invariant: the step at which it broke first
    steps: Any  # int32
    attempt: Any  # int32: how often the next step was drawn and not accepted
    messages: Any  # int64
    time: Any  # float64, in the engines' unit
    exposed: tuple[Any, ...]  # float64, by exposure: how long it lasted, less the time at which it began if it lasts


class Settings(NamedTuple):
    """What a run of a job depends on; in tables the first axis is the job. See `points.Points`."""

    params: tuple[Any, ...]  # int64, the leaves of Params
    weights: tuple[Any, ...]  # int64, by word of groups, the last one for the end of a lifetime
    accepts: tuple[Any, ...]  # uint64, likewise; empty if everything is always accepted
    losses: tuple[Any, ...]  # uint64
    max_steps: Any  # int64
    horizon: Any  # float64


class _Drawn(NamedTuple):
    """A group; `action` is the number of actions at the end of a lifetime, -1 if nothing is to be done."""

    action: Any
    group: Any
    accept: Any


class Table(NamedTuple):
    """States in which runs start, by state; see `starts.Starts`."""

    cumulative: Any  # int64; places after the last state, which are never drawn, have UNIT as well
    columns: tuple[Any, ...]  # the leaves of the states, in the types in which lanes hold them


def start(model: Model, settings: Settings, table: Table | None, seed: Any, job: Any, run: Any) -> Lane:
    """A run before its first step, in a state of the table if there is one. `seed` is uint64."""
    to_choose, to_start = draw_pair(seed, as_uint64(run), np.uint64(0), np.uint64(0))
    if table:
        row = jnp.searchsorted(table.cumulative, as_int64(to_start >> np.uint64(2)), side="right")
        state = tuple(column[row] for column in table.columns)
    else:
        given: dict[Any, Any] = {}
        arrays = Answers(model, settings.params, (), given)
        choices = as_uint64(arrays.get(arrays.model.initial_choices, 64))
        given[CHOICE] = as_int64(multiply_high(to_choose, choices))  # 0 if there is but one
        state = tuple(map(arrays.of_type, arrays.model.initial, state_types(model)))
    zero = jnp.int32(0)
    return Lane(
        job=job,
        run=run,
        state=state,
        outcome=jnp.int32(RUNNING),
        broken_mask=zero,
        met_mask=zero,
        exposing=zero,
        first_steps=(zero,) * len(model.invariants),
        steps=zero,
        attempt=zero,
        messages=jnp.int64(0),
        time=jnp.float64(0.0),
        exposed=(jnp.float64(0.0),) * len(exposures(model)),
    )


def step(model: Model, settings: Settings, seed: Any, lane: Lane) -> Lane:
    """A run one step on, or ended; unchanged if it had ended before."""
    given: dict[Any, Any] = {}
    arrays = Answers(model, settings.params, lane.state, given)
    running = lane.outcome == RUNNING
    broken_now, masks = arrays.get(arrays.model.broken, 32), [arrays.get(mask, 64) for mask in arrays.model.groups]
    broken_now, masks = _once((broken_now, masks))
    lane, newly_broken = _noted(model, lane, broken_now)
    masks.append(jnp.int64(1))  # the end of a lifetime, always possible
    sums = list(accumulate(weight * popcount(mask) for weight, mask in zip(settings.weights, masks, strict=True)))
    total = sums[-1]

    block = as_uint64(lane.attempt) * np.uint64(RETRY)
    source = seed, as_uint64(lane.run), as_uint64(lane.steps + 1), block, settings.losses[0]
    choose, wait, fates = first_draws(source)
    drawn = _draw(model, settings, masks, sums, as_int64(place(choose, as_uint64(total), source)))
    accepted = is_accepted(drawn.accept, source) if settings.accepts else True
    time = lane.time + wait / total
    late = time > settings.horizon
    ends = jnp.where(late | accepted & (drawn.action == len(model.actions)), HORIZON, RUNNING)
    ends = jnp.where(lane.steps >= settings.max_steps, UNFINISHED, ends)
    ends = jnp.where(sums[-2] == 0, arrays.get(arrays.model.outcome, 32), ends)
    ends = jnp.where((newly_broken & data_loss_mask(model)) != 0, LOST, ends)
    outcome = jnp.where(running, ends, lane.outcome)
    goes_on = outcome == RUNNING
    moves = goes_on & accepted
    waited = goes_on | (running & (outcome == HORIZON))

    drawn = _once(drawn._replace(action=jnp.where(moves, drawn.action, -1)))
    given |= {GROUP: drawn.group, PICKED: pick(source)}
    members = [
        arrays.get(member, 64) if action.shared > 1 else drawn.group
        for action, member in zip(model.actions, arrays.model.members, strict=True)
    ]
    given[INSTANCE] = _select(drawn.action, drawn.group, members)
    sent = _select(drawn.action, jnp.int64(0), [arrays.get(sent, 64) for sent in arrays.model.sends])
    fates = _all_fates(model, settings, drawn.action, fates, source)
    given[MESSAGES_LOST] = lost = _once(_deposit(fates, sent, model.max_sends))
    messages = _select(drawn.action, sent, [jnp.int64(0) if loss else sent for loss in losses(model)])
    after = applied(arrays, lane.state, drawn.action)
    met = _select(drawn.action, 0, fault_bits(model)) | jnp.asarray(lost & messages != 0, jnp.int32)
    return lane._replace(
        state=after,
        outcome=outcome.astype(jnp.int32),
        met_mask=lane.met_mask | jnp.asarray(met, jnp.int32),
        steps=lane.steps + moves,
        attempt=jnp.where(goes_on & ~moves, lane.attempt + 1, 0),
        messages=lane.messages + popcount(jnp.asarray(messages, jnp.int64)),
        time=jnp.where(waited, jnp.minimum(time, settings.horizon), lane.time),
    )


def _noted(model: Model, lane: Lane, broken_now: Any) -> tuple[Lane, Any]:
    """A run with the invariants that its state breaks and the exposures that begin or end there; those newly broken."""
    running = lane.outcome == RUNNING
    newly_broken = jnp.where(running, broken_now & ~lane.broken_mask, 0)
    changed = jnp.where(running, (broken_now ^ lane.exposing) & exposure_mask(model), 0)
    exposed = [
        before + jnp.where(changed >> i & 1, jnp.where(lane.exposing >> i & 1, lane.time, -lane.time), 0.0)
        for i, before in zip(exposures(model), lane.exposed, strict=True)
    ]
    first_steps = [jnp.where(newly_broken >> i & 1, lane.steps, before) for i, before in enumerate(lane.first_steps)]
    noted = lane._replace(
        broken_mask=lane.broken_mask | newly_broken.astype(jnp.int32),
        exposing=lane.exposing ^ changed.astype(jnp.int32),
        first_steps=tuple(first_steps),
        exposed=tuple(exposed),
    )
    return noted, newly_broken


def state_types(model: Model) -> list[Any]:
    """The dtype in which a lane holds each leaf of the state."""
    return [_narrowest(width) for width in leaves(model.widths)]


def _narrowest(width: int) -> Any:
    return next((kind for kind in (np.uint8, np.uint16, np.uint32) if width <= np.iinfo(kind).bits), np.uint64)


class Answers(Arrays):
    """What a model's functions say of one state. `given` has the leaves of a step by name, which may come later."""

    def __init__(self, model: Model, params: Sequence[Any], state: Sequence[Any], given: Mapping[Any, Any]) -> None:
        self.model = general(model, within_widths=True)
        leaves = {STATE: state, PARAMS: params}
        super().__init__(
            _outputs(self.model), lambda name: given[name] if isinstance(name, str) else leaves[name[0]][name[1]]
        )

    def of_type(self, leaf: Any, kind: Any) -> Any:
        """A leaf of the state as a lane holds it; see `state_types`."""
        return self.get(leaf, max(32, np.dtype(kind).itemsize * 8)).astype(kind)


def _outputs(model: GeneralModel) -> list[Any]:
    """All that a run is asked for."""
    return [
        *(model.initial_choices, *model.initial, *model.groups, model.broken, model.outcome, *model.sends),
        *model.members,
        *(leaf for after in model.after for leaf in after),
    ]


def _draw(model: Model, settings: Settings, masks: Any, sums: Any, chosen: Any) -> _Drawn:
    """The group in whose share of the total `chosen` lies: the words' shares end at `sums`."""
    words = [*group_words(model), (len(model.actions), 0)]
    accepts: Any = settings.accepts or (None,) * len(words)
    action, first, before = jnp.int64(0), jnp.int64(0), jnp.int64(0)
    mask, weight, accept = masks[0], settings.weights[0], accepts[0]
    for i in range(1, len(words)):
        further = sums[i - 1] <= chosen
        action = jnp.where(further, words[i][0], action)
        first = jnp.where(further, words[i][1], first)
        mask = jnp.where(further, masks[i], mask)
        weight = jnp.where(further, settings.weights[i], weight)
        before = jnp.where(further, sums[i - 1], before)
        accept = jnp.where(further, accepts[i], accept) if settings.accepts else None
    return _Drawn(action, first + nth_bit(mask, (chosen - before) // weight), accept)


def _select(action: Any, otherwise: Any, values: Any) -> Any:
    """`values[action]`, or `otherwise` if there is none; values that are `otherwise` itself cost nothing."""
    result = otherwise
    for i, value in enumerate(values):
        if value is not otherwise:
            result = jnp.where(action == i, value, result)
    return result


def applied(arrays: Answers, state: Sequence[Any], action: Any) -> tuple[Any, ...]:
    """The state after an action; leaves that an action leaves alone are not selected for it."""
    after = zip(arrays.model.state, state, zip(*arrays.model.after, strict=True), strict=True)
    return tuple(
        _select(action, before, [before if same(new, leaf) else arrays.of_type(new, before.dtype) for new in news])
        for leaf, before, news in after
    )


def _all_fates(model: Model, settings: Settings, action: Any, fates: Any, source: Any) -> Any:
    """Bit j: the j-th member of the step's subset, counted from the lowest bit, is lost; `fates` is what block 0 says
    of messages."""
    if model.max_sends == 0:
        return jnp.int64(0)
    if any(losses(model)):
        loss = _select(action, settings.losses[0], [settings.losses[place] for place in losses(model)])
        source = (*source[:-1], loss)
        fates = first_draws(source)[2]
    fates = settled_fates(fates, source)
    return fates | later_fates(source, model.max_sends) if model.max_sends > FIRST_MESSAGES else fates


def _deposit(bits: Any, mask: Any, width: int) -> Any:
    """`ops.deposit` for masks of up to `width` bits."""
    result, num_below = 0, 0
    for i in range(width):
        is_set = mask >> i & 1
        result |= (is_set & (bits >> num_below)) << i
        num_below += is_set
    return result
