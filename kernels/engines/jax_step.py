"""A step of one run by XLA: the step that all engines share, with the model's functions as expressions of JAX's arrays.

Times are float64, all else integers, so `jax_enable_x64` must be on.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quorisk.kernels.engines import step as shared
from quorisk.kernels.engines.philox import draw_pair
from quorisk.kernels.engines.step import Run, Settings, fresh, initial_choice, select
from quorisk.kernels.model import Model, exposures, leaves
from quorisk.kernels.ops import as_int64, as_uint64
from quorisk.kernels.tracing.arrays import Arrays
from quorisk.kernels.tracing.expressions import same
from quorisk.kernels.tracing.general import CHOICE, GROUP, INSTANCE, LOST, PARAMS, PICKED, STATE, general


class Table(NamedTuple):
    """Columns of the states in which runs start; see `starts.Starts`."""

    cumulative: Any  # int64; places after the last state, which are never drawn, have FLOW_UNIT as well
    columns: tuple[Any, ...]  # the leaves of the states, in the types in which lanes hold them


def start(model: Model, settings: Settings, table: Table | None, seed: Any, job: Any, run: Any) -> Run:
    """A run before its first step, in a state of the table if there is one. `seed` is uint64."""
    if table:
        _, to_start = draw_pair(seed, as_uint64(run), np.uint64(0), np.uint64(0))
        row = jnp.searchsorted(table.cumulative, as_int64(to_start >> np.uint64(2)), side="right")
        state = tuple(column[row] for column in table.columns)
    else:
        answers = Answers(model, settings.params, ())
        choices = as_uint64(answers.get(answers.model.initial_choices, 64))
        answers.given[CHOICE] = initial_choice(choices, seed, run)
        state = tuple(map(answers.of_type, answers.model.initial, state_types(model)))
    return _held(model, fresh(model, job, run, state))


def step(model: Model, settings: Settings, seed: Any, lane: Run) -> Run:
    """A run one step on, or ended; unchanged if it had ended before."""
    return _held(model, shared.step(model, Answers(model, settings.params, lane.state), settings, seed, lane))


def _held(model: Model, run: Run) -> Run:
    """The run in the types in which lanes hold it."""
    return jax.tree.map(lambda value, kind: jnp.asarray(value, kind), run, types(model))


def types(model: Model) -> Run:
    """The dtypes in which lanes hold a run."""
    firsts, exposed = (np.int32,) * len(model.invariants), (np.float64,) * len(exposures(model))
    masks = np.int32, np.int32, np.int32, np.int32
    state = tuple(state_types(model))
    return Run(np.int32, np.int64, state, *masks, firsts, np.int32, np.int32, np.int64, np.float64, exposed)


def state_types(model: Model) -> list[Any]:
    """The dtype in which a lane holds each leaf of the state: the narrowest unsigned integer that has room for it."""
    kinds = np.uint8, np.uint16, np.uint32, np.uint64
    return [next(kind for kind in kinds if width <= np.iinfo(kind).bits) for width in leaves(model.widths)]


class Answers(Arrays):
    """Answers of a model's functions in one state; see `step.Answers`."""

    def __init__(self, model: Model, params: Sequence[Any], state: Sequence[Any]) -> None:
        self.model, self.state = general(model, within_widths=True), state
        self.given: dict[str, Any] = {}
        """The leaves of a step by name, set before anything that depends on them is computed."""
        values = {STATE: state, PARAMS: params}
        of = self.model
        outputs = [of.initial_choices, *of.initial, *of.groups, of.broken, of.outcome, *of.sends, *of.members]
        outputs += [leaf for after in of.after for leaf in after]
        super().__init__(outputs, lambda name: self.given[name] if isinstance(name, str) else values[name[0]][name[1]])

    def broken(self) -> Any:
        return self.get(self.model.broken, 32)

    def groups(self) -> list[Any]:
        return [self.get(mask, 64) for mask in self.model.groups]

    def outcome(self) -> Any:
        return self.get(self.model.outcome, 32)

    def member(self, action: int, group: Any, picked: Any) -> Any:
        self.given |= {GROUP: group, PICKED: picked}
        return self.get(self.model.members[action], 64)

    def subset(self, action: int, instance: Any) -> Any:
        self.given[INSTANCE] = instance
        return self.get(self.model.sends[action], 64)

    def after(self, action: Any, instance: Any, lost: Any) -> tuple[Any, ...]:
        """Leaves that an action leaves alone are not selected for it."""
        self.given |= {INSTANCE: instance, LOST: lost}
        return tuple(
            self._leaf_after(action, *leaf)
            for leaf in zip(self.model.state, self.state, zip(*self.model.after, strict=True), strict=True)
        )

    def _leaf_after(self, action: Any, leaf: Any, before: Any, news: Sequence[Any]) -> Any:
        changing = [i for i, new in enumerate(news) if not same(new, leaf)]
        return select(action, before, lambda i: self.of_type(news[i], before.dtype), changing)

    def once(self, values: Any) -> Any:
        """Keeps XLA from computing a value again in every kernel that needs it."""
        return jax.lax.optimization_barrier(values)

    def of_type(self, leaf: Any, kind: Any) -> Any:
        """A leaf of the state as a lane holds it; see `state_types`."""
        return self.get(leaf, max(32, np.dtype(kind).itemsize * 8)).astype(kind)
