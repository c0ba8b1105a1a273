"""One step of one run of a configuration, of which `jax.vmap` makes one of many runs at once: `lanes.vector` for GPUs.

It is made of what the Triton backend of Pallas compiles: numbers of 32 bits where these will do, shifts by less than a
number's width, and bits counted in 32 at a time. The lanes know of each other only through `any_lane`.
"""

from collections.abc import Sequence
from functools import partial, reduce
from operator import and_
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from quorisk.kernels.engines.gpu.numbers import INTEGERS, Numbers, constant, count, nth_bit, quotient
from quorisk.kernels.engines.lanes.parts.draws import asks_beside
from quorisk.kernels.engines.philox import (
    FIRST_MESSAGES,
    draw_pair,
    fates_of,
    first_draws,
    is_accepted,
    later_fates,
    leaves_open,
    multiply_high,
    pick,
    settled_fates,
)
from quorisk.kernels.engines.points import ALWAYS
from quorisk.kernels.engines.specialized.plan import REDO, Limits, Plan, doom, packed, places, plan
from quorisk.kernels.model import HORIZON, LOST, UNFINISHED, Model
from quorisk.kernels.ops import as_int64, as_uint64
from quorisk.kernels.tracing import demand
from quorisk.kernels.tracing.arrays import Arrays
from quorisk.kernels.tracing.expressions import bits, is_constant
from quorisk.kernels.tracing.general import PICKED
from quorisk.kernels.tracing.trace import TracedModel, bit_leaf, losses_leaf, mask_leaf, together, word_leaf


class Run(NamedTuple):
    """A run under way."""

    number: Any  # int32: its place among those of the call
    state: tuple[Any, ...]  # the leaves that `Plan.leaves` says, in 32 or 64 bits
    masks: tuple[Any, ...]  # enabled instances, by group
    steps: Any  # int32
    messages: Any  # int32
    met: Any  # int32: the kinds of faults that it met
    time: Any  # float64, in the engines' unit
    broken: Any  # int32: the watched invariants that were broken
    first: tuple[Any, ...]  # int32: the steps at which they broke first
    exposing: Any  # int32: the exposures that last
    exposed: tuple[Any, ...]  # float64: how long each lasted, less the time at which it began if it lasts
    doomed: Any  # bool: it is left to the generic engine; None if no run is from its start


class Row(NamedTuple):
    """What is told of a run that ended. Fields are as those of `Run`."""

    outcome: Any  # int32: REDO if it left the bounds; then nothing else means anything
    broken: Any  # int32, with the invariants whose breach is a loss
    met: Any
    steps: Any
    messages: Any
    time: Any
    first: tuple[Any, ...]
    exposing: Any
    exposed: tuple[Any, ...]


class _Draws(NamedTuple):
    """What a step draws."""

    source: Any
    fates: Any
    wait: Any
    total: Any
    hot: Any
    """The bit of the instance drawn, alone in the mask of its group."""
    bit: Any
    """Its place."""
    in_group: tuple[tuple[Any, ...], ...]
    """By group: what holds if the instance is one of its."""
    expired: Any
    """Whether the end of a lifetime is drawn."""
    is_open: Any
    """Whether the bits drawn leave it open which instance they lead to."""


@jax.custom_batching.custom_vmap
def any_lane(flag: Any) -> Any:
    """Whether a condition holds in one of the lanes: what is made conditional on that is skipped where it does not."""
    return flag


@any_lane.def_vmap
def _any_lane(num_lanes: int, mapped: list[bool], flag: Any) -> tuple[Any, bool]:
    return jnp.max(flag.astype(jnp.int32)) > 0, False


class Stepper:
    """Runs of a model in one configuration. Booleans and integers are arrays of JAX's without an axis."""

    def __init__(self, model: Model, traced: TracedModel, limits: Limits) -> None:
        assert limits.timed
        self.model, self.traced, self.limits = model, traced, limits
        self.plan: Plan = plan(model, traced, limits, 32)
        self.together = together(traced, range(len(traced.words)))

    def fresh(self, seed: Any, first_run: Any, number: Any) -> Run:
        """Run `first_run` + `number` before its first step."""
        first = self.traced.at_first
        choice = None
        if self.traced.num_choices > 1:
            drawn, _ = draw_pair(seed, as_uint64(first_run + number), np.uint64(0), np.uint64(0))
            choice = as_int64(multiply_high(drawn, np.uint64(self.traced.num_choices)))
        masks, doomed = self._masks(first.masks), doom(first)
        values = Numbers([*self.traced.initial, *masks, doomed], lambda name: choice)
        zero, no_time = jnp.int32(0), jnp.float64(0.0)
        return Run(
            number=number,
            state=tuple(jnp.asarray(values.get(self.traced.initial[i], self._width(i))) for i in self.plan.leaves),
            masks=tuple(jnp.asarray(values.get(mask, self.plan.mask_bits)) for mask in masks),
            steps=zero,
            messages=zero,
            met=zero,
            time=no_time,
            broken=zero,
            first=(zero,) * len(self.plan.watched),
            exposing=zero,
            exposed=(no_time,) * len(self.plan.exposed),
            doomed=None if is_constant(doomed, 0) else jnp.asarray(values.get(doomed, 1)),
        )

    def step(self, seed: Any, first_run: Any, live: Any, run: Run) -> tuple[Run, Row, Any]:
        """The run after a step, the row to write if it ends by it, and whether it does."""
        drawn = self._draw(seed, first_run + run.number, run)
        rejected = self._rejected(drawn, live)
        after, redo = self._effects(run, drawn)
        redo |= drawn.is_open
        for flag in (rejected, run.doomed):
            redo = redo if flag is None else redo | flag
        after = after._replace(time=run.time + drawn.wait / drawn.total)
        return self._ends(run, after, redo, drawn.expired if rejected is None else drawn.expired & ~rejected)

    def _width(self, leaf: int) -> int:
        return demand.width(self.traced.state[leaf], 32)

    def _masks(self, masks: Sequence[Any]) -> list[Any]:
        everywhere = range(len(self.traced.words))
        return [packed(masks, self.plan.fields, group, everywhere) for group in range(len(self.plan.groups))]

    def _draw(self, seed: Any, index: Any, run: Run) -> _Draws:
        """The random numbers of the step, and the instance that they choose."""
        source = seed, as_uint64(index), as_uint64(run.steps + 1), np.uint64(0), self._loss(0)
        choose, wait, fates = first_draws(source)
        groups, kind = self.plan.groups, INTEGERS[self.plan.share_bits]
        sums: list[Any] = []
        for mask, rate in zip(run.masks, groups, strict=True):
            part = count(mask).astype(kind) * kind(rate)
            sums.append(sums[-1] + part if sums else part)
        total = sums[-1] + kind(self.limits.lifetime_weight)
        lowest, unsure = (value.astype(kind) for value in places(choose, as_uint64(total), self.plan.share_bits))
        mask, weight = run.masks[0], kind(groups[0])
        nth, further = quotient(lowest, groups[0]), []
        rest = lowest - nth * weight
        for before, here, rate in zip(sums, run.masks[1:], groups[1:], strict=False):
            further.append(lowest >= before)
            own = quotient(lowest - before, rate)
            left = lowest - before - own * kind(rate)
            mask, nth = jnp.where(further[-1], here, mask), jnp.where(further[-1], own, nth)
            weight, rest = jnp.where(further[-1], kind(rate), weight), jnp.where(further[-1], left, rest)
        expired = lowest >= sums[-1]
        if self.limits.lifetime_weight:
            nth, rest = jnp.where(expired, 0, nth), jnp.where(expired, 0, rest)
        bit = nth_bit(mask, nth.astype(jnp.int32))
        return _Draws(
            source=source,
            fates=fates,
            wait=wait,
            total=total,
            hot=jnp.left_shift(mask.dtype.type(1), bit.astype(mask.dtype)),
            bit=bit,
            in_group=tuple(
                (*further[max(0, i - 1) : i], *(~beyond for beyond in further[i : i + 1])) for i in range(len(groups))
            ),
            expired=expired,
            is_open=rest + unsure >= weight,
        )

    def _is_drawn(self, drawn: _Draws, place: int) -> Any:
        """Whether an instance of the word at that place is drawn."""
        field = self.plan.fields[place]
        inside = drawn.hot & constant(((1 << field.size) - 1) << field.offset, drawn.hot.dtype)
        return reduce(and_, drawn.in_group[field.group], inside != 0)

    def _rejected(self, drawn: _Draws, live: Any) -> Any:
        """Whether what is drawn is not accepted; None if everything is. Nothing is drawn where no lane is in doubt."""
        *accepts, of_lifetime = self.limits.accepts
        doubts = [
            (self._is_drawn(drawn, place) & ~drawn.expired, accepts[word.number])
            for place, word in enumerate(self.traced.words)
            if accepts[word.number] != ALWAYS
        ]
        if self.limits.lifetime_weight and of_lifetime != ALWAYS:
            doubts.append((drawn.expired, of_lifetime))
        if not doubts:
            return None
        doubtful, accept = jnp.bool_(False), jnp.uint64(0)
        for flag, each in doubts:
            doubtful, accept = doubtful | flag, jnp.where(flag, np.uint64(each), accept)
        return doubtful & lax.cond(
            any_lane(doubtful & live), lambda: ~is_accepted(accept, drawn.source), lambda: doubtful
        )

    def _loss(self, place: int) -> Any:
        """The probability at that place in `rule.loss_names`: a number of 64 bits whose highest is set is no constant
        that the backend takes."""
        loss = self.limits.losses[place]
        return jnp.left_shift(jnp.uint64(loss >> 1), np.uint64(1)) | np.uint64(loss & 1)

    def _all_beside(self, drawn: _Draws) -> dict[Any, Any]:
        """What only steps of some words draw, by name: numbers are drawn only where a lane draws such a word."""
        asking: dict[Any, Any] = {}
        for place, word in enumerate(self.traced.words):
            for name in asks_beside(self.model, word) if word.after is not None else ():
                asking[name] = asking.get(name, False) | self._is_drawn(drawn, place)
        return {
            name: lax.cond(any_lane(flag), partial(self._beside, name, drawn.source), lambda: jnp.int64(0))
            for name, flag in asking.items()
        }

    def _beside(self, name: Any, source: Any) -> Any:
        """What `asks_beside` names, as an int64."""
        if name == PICKED:
            return pick(source)
        fates = fates_of((*source[:-1], self._loss(name[1])), self.model.max_sends)
        return fates & ((1 << self.model.max_sends) - 1)

    def _losses(self, drawn: _Draws) -> Any:
        """The fates of messages, as an int64."""
        source, fates, loss = drawn.source, drawn.fates, self.limits.losses[0]
        if not loss:
            return jnp.int64(0)
        first = fates & ((1 << FIRST_MESSAGES) - 1)
        if leaves_open(loss):
            first = lax.cond(any_lane(fates > first), lambda: settled_fates(fates, source), lambda: first)
        first &= (1 << self.model.max_sends) - 1
        return first | later_fates(source, self.plan.most_sent) if self.plan.most_sent > FIRST_MESSAGES else first

    def _effects(self, run: Run, drawn: _Draws) -> tuple[Run, Any]:
        """The run after the step, but for what `_ends` adds; whether it is to be made again."""
        losses, step = self._losses(drawn), self.together
        beside = {losses_leaf(0): losses} | self._all_beside(drawn)
        state = dict(zip(self.plan.leaves, run.state, strict=True))

        def before(name: Any) -> Any:
            if name in beside:
                return beside[name]
            what, place = name
            if what == "state":
                return state[place]
            if name == word_leaf(place):
                return self._is_drawn(drawn, place)
            field = self.plan.fields[place]
            if name == bit_leaf(place):
                return drawn.bit + np.int32(field.lowest - field.offset)
            assert name == mask_leaf(place)
            return self._lone(drawn.hot, place)

        values = Numbers([*step.after, step.num_sent, step.met, step.redo], before)
        sent = values.get(step.num_sent, 32)
        met = run.met | values.get(step.met, 32)
        if self.limits.losses[0]:
            among = losses.astype(jnp.int32) & (jnp.left_shift(np.int32(1), sent) - 1)
            met |= (among != 0).astype(jnp.int32)
        after = run._replace(
            state=tuple(jnp.asarray(values.get(step.after[i], self._width(i))) for i in self.plan.leaves),
            steps=run.steps + 1,
            messages=run.messages + sent,
            met=met,
        )
        return after, values.get(step.redo, 1)

    def _lone(self, hot: Any, place: int) -> Any:
        """The bit drawn at its place in the word's own mask."""
        field, (_, may) = self.plan.fields[place], bits(self.traced.words[place].mask)
        if may.bit_length() >= 32:  # hot is no negative number, though its highest bit may be set
            hot = hot.astype(jnp.uint32).astype(jnp.int64) if hot.dtype == jnp.int32 else hot
        shift = field.lowest - field.offset
        move = lax.shift_left if shift >= 0 else lax.shift_right_logical
        return move(hot, constant(abs(shift), hot.dtype))

    def _ends(self, run: Run, after: Run, redo: Any, expired: Any) -> tuple[Run, Row, Any]:
        """What `step` returns, of the run after the step but for its masks and breaches."""
        seen, state = self.traced.now, dict(zip(self.plan.leaves, after.state, strict=True))
        masks = self._masks(seen.masks)
        values = Numbers([*masks, *seen.broken, seen.unbounded, seen.outcome], lambda name: state[name[1]])
        after = after._replace(masks=tuple(jnp.asarray(values.get(mask, self.plan.mask_bits)) for mask in masks))
        dead = jnp.bool_(True)
        for mask in after.masks:
            dead &= mask == 0
        late = after.steps >= self.limits.max_steps
        after, broken, unwatched, lost = self._breaches(after, values)
        redo |= values.get(seen.unbounded, 1) | unwatched
        outcome = jnp.where(dead, values.get(seen.outcome, 32), UNFINISHED)
        outcome = jnp.where(redo, REDO, jnp.where(lost, LOST, outcome))
        row = _row(after, outcome, broken)
        ended = dead | late | redo | lost
        early = []
        if self.limits.lifetime_weight:
            early.append((expired, run._replace(time=after.time)))
        if np.isfinite(self.limits.horizon):
            horizon = jnp.float64(self.limits.horizon)
            early.append((after.time > horizon, run._replace(time=horizon)))
        for flag, instead in early:
            is_over = flag if run.doomed is None else flag & ~run.doomed
            row = jax.tree.map(lambda new, old: jnp.where(is_over, new, old), _row(instead, HORIZON, run.broken), row)  # noqa: B023
            ended |= is_over
        return after, row._replace(outcome=row.outcome.astype(jnp.int32)), ended

    def _breaches(self, after: Run, values: Arrays) -> tuple[Run, Any, Any, Any]:
        """The run with the invariants that its state breaks; those that a row tells; if one breaks that was not
        expected to; and if data is lost."""
        unwatched = lost = jnp.bool_(False)
        first, exposed, exposing = list(after.first), list(after.exposed), after.exposing
        broken = kept = after.broken
        for i, (flag, invariant) in enumerate(zip(self.traced.now.broken, self.model.invariants, strict=True)):
            if is_constant(flag, 0):
                continue
            here, bit = values.get(flag, 1), np.int32(1 << i)
            if invariant.data_loss:
                lost, broken = lost | here, jnp.where(here, broken | bit, broken)
            elif i not in self.plan.watched:
                unwatched |= here
            else:
                place = self.plan.watched.index(i)
                first[place] = jnp.where(here & (kept & bit == 0), after.steps, first[place])
                kept, broken = (jnp.where(here, mask | bit, mask) for mask in (kept, broken))
            if i in self.plan.exposed:
                place, was = self.plan.exposed.index(i), exposing & bit != 0
                changed = jnp.where(was, exposed[place] + after.time, exposed[place] - after.time)
                exposed[place] = jnp.where(was ^ here, changed, exposed[place])
                exposing = jnp.where(was ^ here, exposing ^ bit, exposing)
        after = after._replace(broken=kept, first=tuple(first), exposing=exposing, exposed=tuple(exposed))
        return after, broken, unwatched, lost


def _row(run: Run, outcome: Any, broken: Any) -> Row:
    fields = {name: getattr(run, name) for name in Row._fields if name not in ("outcome", "broken")}
    return Row(outcome=jnp.asarray(outcome, jnp.int32), broken=broken, **fields)
