"""Expressions as JAX's arrays: integers of 32 bits wherever these hold all that matters, else of 64.

On a GPU an operation on 64 bits takes several on 32. The known bits of an expression, and those of them that anything
uses, decide its width (`demand.widths`).
"""

from collections.abc import Callable, Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from quorisk.kernels.ops import bits
from quorisk.kernels.tracing import demand
from quorisk.kernels.tracing.expressions import WORD, Node, known_bits, range_of

_NARROWEST = 32
_TYPES = {1: jnp.bool_, 32: jnp.int32, 64: jnp.int64}
_INTEGERS = {
    "and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor,
    "add": lax.add, "sub": lax.sub, "mul": lax.mul,
}  # fmt: skip
_BOOLEANS = {"both": lax.bitwise_and, "either": lax.bitwise_or, "differ": lax.bitwise_xor}
_RELATIONS = {"equal": lax.eq, "unequal": lax.ne, "less": lax.lt}


class Arrays:
    """Computes expressions, each once. `leaf(name)` gives the value of a leaf, in any integer type that holds it."""

    def __init__(self, outputs: Iterable[Any], leaf: Callable[[Any], Any]) -> None:
        self._leaf = leaf
        self._widths = demand.widths(outputs, _NARROWEST)
        self._values: dict[int, Any] = {}
        self._converted: dict[tuple[int, int], Any] = {}

    def get(self, value: Any, width: int | None = None) -> Any:
        """An expression or constant in `width` bits, or in as many as it takes; booleans have 1."""
        if not isinstance(value, Node):
            kind = np.dtype(_TYPES[width or demand.width(value, _NARROWEST)])
            return np.array(value & WORD, np.uint64).astype(kind)  # the low bits of what does not fit
        have = self._widths[value.id]
        if value.id not in self._values:
            self._values[value.id] = self._computed(value, have)
        if width in (None, have):
            return self._values[value.id]
        if (value.id, width) not in self._converted:
            self._converted[value.id, width] = _resized(self._values[value.id], width, value.lo < 0)
        return self._converted[value.id, width]

    def _computed(self, node: Node, width: int) -> Any:
        args = node.args
        if node.op == "leaf":
            return jnp.asarray(self._leaf(args[0])).astype(_TYPES[width])
        if node.op in _INTEGERS:
            return _INTEGERS[node.op](self.get(args[0], width), self.get(args[1], width))
        if node.op in _BOOLEANS:
            return _BOOLEANS[node.op](self.get(args[0], 1), self.get(args[1], 1))
        if node.op in _RELATIONS:
            wide = self._wide(*args)
            return _RELATIONS[node.op](self.get(args[0], wide), self.get(args[1], wide))
        return getattr(self, f"_{node.op}")(node, width)

    def _wide(self, *args: Any) -> int:
        """The width that holds all of these as they are."""
        return max(
            max(self._widths[a.id], _NARROWEST) if isinstance(a, Node) else demand.width(a, _NARROWEST) for a in args
        )

    def _not(self, node: Node, _: int) -> Any:
        return lax.bitwise_not(self.get(node.args[0], 1))

    def _int(self, node: Node, width: int) -> Any:
        return self.get(node.args[0], 1).astype(_TYPES[width])

    def _select(self, node: Node, width: int) -> Any:
        condition, yes, no = node.args
        return lax.select(self.get(condition, 1), self.get(yes, width), self.get(no, width))

    def _taken(self, node: Node, width: int) -> Any:
        return self.get(node.args[0], width)

    def _when(self, node: Node, width: int) -> Any:
        condition, guarded = node.args
        return lax.select(self.get(condition, 1), self.get(guarded, width), self.get(0, width))

    def _shl(self, node: Node, width: int) -> Any:
        value, amount = node.args
        return self._shifted(lax.shift_left, self.get(value, width), amount, width)

    def _shr(self, node: Node, width: int) -> Any:
        value, amount = node.args
        wide, signed = self._wide(value), range_of(value)[0] < 0
        wide = 64 if signed and range_of(amount)[1] >= wide else wide
        shift = lax.shift_right_arithmetic if signed else lax.shift_right_logical
        return _resized(self._shifted(shift, self.get(value, wide), amount, wide), width, signed)

    def _shifted(self, shift: Callable[[Any, Any], Any], value: Any, amount: Any, width: int) -> Any:
        """A value of that width shifted: to 0 by amounts that only wider ones have room for."""
        by = self.get(amount, width)
        if range_of(amount)[1] < width or width == 64:
            return shift(value, by)
        return lax.select(lax.lt(by, self.get(width, width)), shift(value, by), self.get(0, width))

    def _popcount(self, node: Node, width: int) -> Any:
        (value,) = node.args
        wide = self._wide(value) if value.lo >= 0 else 64
        return lax.population_count(self.get(value, wide)).astype(_TYPES[width])

    def _div(self, node: Node, width: int) -> Any:
        value, divisor = node.args
        wide = self._wide(*node.args)
        # in an arm that is not chosen the divisor may be anything
        by = (
            lax.max(self.get(divisor, wide), self.get(1, wide))
            if isinstance(divisor, Node)
            else self.get(divisor, wide)
        )
        divide = lax.div if range_of(value)[0] >= 0 else jnp.floor_divide
        return divide(self.get(value, wide), by).astype(_TYPES[width])

    def _deposit(self, node: Node, width: int) -> Any:
        spread, mask = node.args
        losses, sent, one = self.get(spread, width), self.get(mask, width), self.get(1, width)
        result = below = self.get(0, width)
        for place in bits(known_bits(mask)[1]):
            at = self.get(place, width)
            is_set = lax.bitwise_and(lax.shift_right_logical(sent, at), one)
            bit = lax.bitwise_and(is_set, lax.shift_right_logical(losses, below))
            result = lax.bitwise_or(result, lax.shift_left(bit, at))
            below = lax.add(below, is_set)
        return result


def _resized(value: Any, width: int, signed: bool) -> Any:
    """A value in `width` bits. The highest bit of its lane is a sign only if it is `signed`."""
    if value.dtype == jnp.int32 and width == 64 and not signed:
        value = value.astype(jnp.uint32)
    return value.astype(_TYPES[width])
