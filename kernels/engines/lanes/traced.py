"""The model as one configuration's code steps it: traced with its parameters, within the bounds that its runs keep."""

from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from quorisk.kernels.engines.lanes.plan import Limits
from quorisk.kernels.engines.points import LOSS_UNIT
from quorisk.kernels.model import Model
from quorisk.kernels.tracing.assume import Habits, assumed, habits
from quorisk.kernels.tracing.observe import observe
from quorisk.kernels.tracing.trace import NARROWEST, Bounds, TracedModel, trace, widest

_MOST_STEPS = 1 << 30


class Shape(NamedTuple):
    """The shape of a kernel: `lanes` runs at a time, each in lanes of `narrowest` bits or more."""

    lanes: int
    narrowest: int
    queued: bool = False
    """Whether runs wait for others that draw the same."""
    listed: bool = False
    """Whether its runs are those of a list, in place of all from one on."""
    assumes: bool = True
    """Whether it assumes what runs were observed to do."""
    soon: bool = False
    """Whether its code has to be ready soon, rather than be as fast as possible."""

    @property
    def spelled(self) -> str:
        """The shape in words, for people to read."""
        return f"{self.lanes} lanes of {self.narrowest} bits{', queued' if self.queued else ''}"

    def twice(self) -> "Shape":
        """Returns the shape with twice as many lanes, in two registers."""
        return self._replace(lanes=2 * self.lanes)


class Unsupported(Exception):
    """A configuration that has no kernel; the text is one line that says why."""


def look(model: Model, params: Any, weights: tuple[int, ...], limits: Limits, shape: Shape) -> None:
    """Observes runs ahead of `traced_for`, which then need not, and which reports errors of the model. Raises
    Unsupported."""
    _check(weights, limits)
    with suppress(TypeError, ValueError, RecursionError):
        (_bounds if shape.soon else _traced)(model, params, weights, _losses(limits))


def traced_for(model: Model, params: Any, weights: tuple[int, ...], limits: Limits, shape: Shape) -> TracedModel:
    """Traces the model for a kernel of that shape, within the bounds that are observed if it assumes any. Raises
    Unsupported.
    """
    _check(weights, limits)
    try:
        if not shape.assumes:
            traced = trace(model, params, weights, widest(model))
        elif shape.soon:
            traced = trace(model, params, weights, _bounds(model, params, weights, _losses(limits)))
        else:
            traced = assumed(*_traced(model, params, weights, _losses(limits)), shape.narrowest)
    except (TypeError, ValueError, RecursionError) as error:
        raise Unsupported(f"{model.name} cannot be traced: {error}") from error
    if not traced.words:
        raise Unsupported("nothing is ever enabled")
    return traced


def _check(weights: tuple[int, ...], limits: Limits) -> None:
    if not 1 <= limits.max_steps <= _MOST_STEPS:
        raise Unsupported(f"max_steps of lanes: 1 to {_MOST_STEPS}")
    if not any(weights):
        raise Unsupported("all rates are 0")


def _losses(limits: Limits) -> tuple[float, ...]:
    return tuple(loss * LOSS_UNIT for loss in limits.losses)


@lru_cache(maxsize=16)
def _bounds(model: Model, params: Any, weights: tuple[int, ...], losses: tuple[float, ...]) -> Bounds:
    return observe(model, params, weights, losses)


@lru_cache(maxsize=16)
def _traced(
    model: Model, params: Any, weights: tuple[int, ...], losses: tuple[float, ...]
) -> tuple[TracedModel, Habits]:
    """Returns the model traced for lanes of any width, and the observed habits of its runs."""
    traced = trace(model, params, weights, _bounds(model, params, weights, losses))
    return traced, habits(model, traced, losses, NARROWEST)
