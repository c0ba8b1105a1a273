"""The model as one configuration's code steps it: traced with its parameters, within the bounds that its runs keep."""

from functools import lru_cache
from typing import Any, NamedTuple

from quorisk.kernels.engines.points import LOSS_UNIT
from quorisk.kernels.engines.specialized.plan import Limits
from quorisk.kernels.model import Model
from quorisk.kernels.tracing.assume import Habits, assumed, habits
from quorisk.kernels.tracing.observe import observe
from quorisk.kernels.tracing.trace import NARROWEST, TracedModel, trace, widest

_MOST_STEPS = 1 << 30


class Shape(NamedTuple):
    """How many runs at a time, each in lanes of that many bits or more."""

    lanes: int
    narrowest: int
    queued: bool = False
    """Whether runs wait for others that draw the same."""
    listed: bool = False
    """Whether its runs are those of a list, in place of all from one on."""
    assumes: bool = True
    """Whether it takes for granted what runs were seen to do."""

    @property
    def spelled(self) -> str:
        """For people to read."""
        return f"{self.lanes} lanes of {self.narrowest} bits{', queued' if self.queued else ''}"

    def twice(self) -> "Shape":
        """As many lanes in two registers as are here in one."""
        return self._replace(lanes=2 * self.lanes)


class Unsupported(Exception):
    """Why a configuration has no kernel, in a line."""


def traced_for(model: Model, params: Any, weights: tuple[int, ...], limits: Limits, shape: Shape) -> TracedModel:
    """The model as a kernel of that shape steps it, within the bounds that are observed if it takes any for granted.
    Raises Unsupported.
    """
    if not 1 <= limits.max_steps <= _MOST_STEPS:
        raise Unsupported(f"max_steps of lanes: 1 to {_MOST_STEPS}")
    if not any(weights):
        raise Unsupported("all rates are 0")
    losses = tuple(loss * LOSS_UNIT for loss in limits.losses)
    try:
        if shape.assumes:
            traced = assumed(*_traced(model, params, weights, losses), shape.narrowest)
        else:
            traced = trace(model, params, weights, widest(model))
    except (TypeError, ValueError, RecursionError) as error:
        raise Unsupported(f"{model.name} cannot be traced: {error}") from error
    if not traced.words:
        raise Unsupported("nothing is ever enabled")
    return traced


@lru_cache(maxsize=16)
def _traced(
    model: Model, params: Any, weights: tuple[int, ...], losses: tuple[float, ...]
) -> tuple[TracedModel, Habits]:
    """The model for lanes of any width, and what its runs were seen to do."""
    traced = trace(model, params, weights, observe(model, params, weights, losses))
    return traced, habits(model, traced, losses, NARROWEST)
