"""Guards and effects written for one instance of an action: `each` turns them into those that `Action` takes.

    SERVERS = Things(6, "servers")  # room for 6; Params.servers says how many there are

    @each(SERVERS, SERVERS)
    def request_vote_enabled(state, params, i, j): ...  # a condition

    @action(request_vote_enabled)
    def request_vote(state, params, i, j, lost): ...  # the next state

The guard is called for each instance, with plain numbers; the effect gets those of the instance that happens.
"""

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

from quorisk.kernels.model import INSTANCE_BITS
from quorisk.kernels.ops import Traced, once, where

LAST_BIT = (1 << INSTANCE_BITS) - 1
"""Number of the last bit of a mask."""


class Things(NamedTuple):
    """Things that there are several of, such as servers."""

    most: int
    """The most that a state has room for."""
    name: str = ""
    """The parameter that says how many there are; if empty, there are always as many as there is room for."""

    def has(self, params: Any, i: int) -> Any:
        """Whether there are more than i."""
        return i < getattr(params, self.name) if self.name else True

    def mask(self, params: Any) -> Any:
        """Mask of those that there are."""
        return (1 << (getattr(params, self.name) if self.name else self.most)) - 1


def each(*things: Things, given: Callable[[Any, Any], Any] | None = None) -> Callable[[Any], Any]:
    """Decorator of a guard `guard(state, params, i)` or, of two kinds of things, `guard(state, params, i, j)`.

    `given(state, params)` is computed once for the guards of all instances: it is their last argument.

    Instance `i` is bit i of the mask; instance (i, j) is bit i times a power of two above the number of j's, plus j.
    """
    *first, last = things
    turn = last.most.bit_length()  # so bit 63, the sign, is nobody's
    rows = first[0].most if first else 1
    assert turn <= INSTANCE_BITS, "at most 63 things"

    def decorator(guard: Any) -> Any:
        def enabled(state, params):
            known = (once(given(state, params)),) if given else ()
            masks = [0] * (1 + ((rows - 1 << turn) + last.most - 1 >> INSTANCE_BITS))
            existing = masks.copy()
            for i in range(rows):
                others = last.mask(params) << ((i << turn) & LAST_BIT)
                existing[i << turn >> INSTANCE_BITS] |= where(first[0].has(params, i), others, 0) if first else others
            for index in product(*(range(thing.most) for thing in things)):
                number = index[0] if len(index) == 1 else (index[0] << turn) + index[1]
                word, bit = number >> INSTANCE_BITS, 1 << (number & LAST_BIT)
                if isinstance(existing[word], Traced) or existing[word] & bit:
                    masks[word] |= where(guard(state, params, *index, *known), bit, 0)
            return tuple(mask & there for mask, there in zip(masks, existing, strict=True))

        def unpacked(instance):
            return (instance,) if len(things) == 1 else (instance >> turn, instance & (1 << turn) - 1)

        enabled.__name__, enabled.__doc__ = guard.__name__, guard.__doc__
        enabled.unpacked, enabled.guard = unpacked, guard  # type: ignore[attr-defined]
        return enabled

    return decorator
