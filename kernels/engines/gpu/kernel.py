"""Runs of one configuration on a GPU, with their state in registers from their first step to their last.

A program is one warp. Each of its lanes steps a run; one whose run has ended writes its row and takes the next of the
program's runs. Rows are added up on the device by the rule of the XLA batch.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas
from jax.experimental.pallas import triton

from quorisk.kernels.engines.gpu.lane import Row, Run, Stepper
from quorisk.kernels.engines.jax_batch import summed
from quorisk.kernels.engines.jax_step import IDLE, Lane
from quorisk.kernels.engines.specialized.plan import REDO
from quorisk.kernels.model import Model, exposures

WARP = 32
"""Lanes of a program: as they are one warp, they never wait for each other but where they agree on something."""


class Size(NamedTuple):
    """How many runs a call makes at most."""

    programs: int
    runs: int
    """Of each program."""

    @property
    def total(self) -> int:
        return self.programs * self.runs


class How(NamedTuple):
    """How a kernel is called."""

    recording: bool = False
    interpret: bool = False
    """By XLA, on a machine without a GPU: to see whether the kernel's runs are the others'."""


class Found(NamedTuple):
    """What a call gives of its runs."""

    tally: Any  # int64, as of `tally.read`, without those to be made again
    redo: Any  # bool by run: it is to be made again
    records: Any  # int64, one row of RECORD a run; None unless asked for


def rows(stepper: Stepper, size: Size, seed: Any, first_run: Any, num_runs: Any, interpret: bool = False) -> Row:
    """The rows of runs `first_run` to `first_run` + `num_runs` - 1, int32 by run; those after them mean nothing.

    `seed` is a uint64, the others are int64; see `How.interpret`.
    """
    given = jnp.stack([jax.lax.bitcast_convert_type(seed, jnp.int64), first_run, num_runs, num_runs])
    like = _row_types(stepper)
    flat, tree = jax.tree.flatten(like)
    call: Any = pallas.pallas_call(
        partial(_program, stepper, size, tree),
        out_shape=[jax.ShapeDtypeStruct((size.total,), each.dtype) for each in flat],
        grid=(size.programs,),
        compiler_params=triton.CompilerParams(num_warps=1, num_stages=1),
        interpret=interpret,
        name=f"{stepper.model.name}_runs",
    )
    return jax.tree.unflatten(tree, call(given))


def _row_types(stepper: Stepper) -> Row:
    zero = np.int64(0)
    fresh = jax.eval_shape(stepper.fresh, np.uint64(0), zero, np.int32(0))
    step = jax.vmap(partial(stepper.step, np.uint64(0), zero))
    lanes = jax.tree.map(lambda each: jax.ShapeDtypeStruct((WARP, *each.shape), each.dtype), fresh)
    return jax.eval_shape(step, jax.ShapeDtypeStruct((WARP,), np.bool_), lanes)[1]


def _program(stepper: Stepper, size: Size, tree: Any, given: Any, *columns: Any) -> None:
    """The runs of one program; `columns` are where rows are written."""
    seed, first_run = given[0].astype(jnp.uint64), given[1]
    begin = pallas.program_id(0) * np.int32(size.runs)
    end = jnp.minimum(begin + np.int32(size.runs), given[2].astype(jnp.int32))
    fresh = jax.vmap(partial(stepper.fresh, seed, first_run))
    step = jax.vmap(partial(stepper.step, seed, first_run))

    def goes_on(carry: tuple[Run, Any, Any, Any]) -> Any:
        return carry[3] > 0

    def turn(carry: tuple[Run, Any, Any, Any]) -> tuple[Run, Any, Any, Any]:
        now, live, following, running = carry
        after, row, ended = step(live, now)
        ended &= live

        def refill() -> tuple[Run, Any, Any, Any]:
            for column, values in zip(columns, tree.flatten_up_to(row), strict=True):
                triton.store(column.at[now.number], values, mask=ended)
            ones = ended.astype(jnp.int32)
            number = jnp.where(ended, following + jnp.cumsum(ones, dtype=jnp.int32) - 1, now.number)
            runs = jax.tree.map(partial(jnp.where, ended), fresh(number), after)
            going = live & (number < end)
            return runs, going, following + jnp.sum(ones, dtype=jnp.int32), jnp.max(going.astype(jnp.int32))

        return jax.lax.cond(jnp.max(ended.astype(jnp.int32)) > 0, refill, lambda: (after, live, following, running))

    number = begin + jax.lax.iota(jnp.int32, WARP)
    live = number < end
    jax.lax.while_loop(goes_on, turn, (fresh(number), live, begin + np.int32(WARP), jnp.max(live.astype(jnp.int32))))


def found(stepper: Stepper, size: Size, how: How, seed: Any, time_unit: Any, first_run: Any, num_runs: Any) -> Found:
    """What runs `first_run` to `first_run` + `num_runs` - 1 come to; `time_unit` is the model time of the engines'."""
    given = rows(stepper, size, seed, first_run, num_runs, how.interpret)
    inside = jnp.arange(size.total) < num_runs
    redo = inside & (given.outcome == REDO)
    lanes = _lanes(stepper, given, jnp.where(inside & ~redo, given.outcome, IDLE))
    tally, records = summed(stepper.model, lanes, time_unit)
    return Found(tally, redo, records if how.recording else None)


def _lanes(stepper: Stepper, row: Row, outcome: Any) -> Lane:
    """The runs as lanes of a batch of the XLA engine's."""
    model: Model = stepper.model
    no_steps, no_time = jnp.zeros_like(row.steps), jnp.zeros_like(row.time)
    watched = dict(zip(stepper.plan.watched, row.first, strict=True))
    exposed = dict(zip(stepper.plan.exposed, row.exposed, strict=True))
    return Lane(
        job=no_steps,
        run=no_steps,
        state=(),
        outcome=outcome,
        broken_mask=row.broken,
        met_mask=row.met,
        exposing=row.exposing,
        first_steps=tuple(
            row.steps if invariant.data_loss else watched.get(i, no_steps)
            for i, invariant in enumerate(model.invariants)
        ),
        steps=row.steps,
        attempt=no_steps,
        messages=row.messages.astype(jnp.int64),
        time=row.time,
        exposed=tuple(exposed.get(i, no_time) for i in exposures(model)),
    )
