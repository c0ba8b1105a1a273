"""What a step on a GPU computes with: numbers of 32 bits where these will do, shifts by less than a number's width, and
bits counted in 32 at a time, as the Triton backend of Pallas compiles them."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from quorisk.kernels.ops import popcount
from quorisk.kernels.tracing.arrays import Arrays
from quorisk.kernels.tracing.expressions import Node, span

INTEGERS: dict[int, Any] = {32: jnp.int32, 64: jnp.int64}


def constant(value: int, kind: Any) -> Any:
    """An integer of these bits."""
    return np.array(value & ((1 << 64) - 1), np.uint64).astype(kind)


def quotient(share: Any, weight: int) -> Any:
    return share if weight == 1 else lax.div(share, share.dtype.type(weight))


def count(mask: Any) -> Any:
    """The number of bits set, an int32. The backend counts 32 at a time."""
    if mask.dtype == jnp.int32:
        return popcount(mask)
    high = lax.shift_right_logical(mask, mask.dtype.type(32))
    return popcount(mask.astype(jnp.int32)) + popcount(high.astype(jnp.int32))


def nth_bit(mask: Any, nth: Any) -> Any:
    """The place of a mask's nth set bit, an int32."""
    position = jnp.int32(0)
    if mask.dtype == jnp.int64:
        low = popcount(mask.astype(jnp.int32))
        upper = nth >= low
        high = lax.shift_right_logical(mask, mask.dtype.type(32)).astype(jnp.int32)
        mask, nth = jnp.where(upper, high, mask.astype(jnp.int32)), jnp.where(upper, nth - low, nth)
        position = jnp.where(upper, 32, 0)
    place = jnp.int32(0)
    for width in (16, 8, 4, 2, 1):
        below = popcount(lax.shift_right_logical(mask, place) & ((1 << width) - 1))
        upper = nth >= below
        place, nth = jnp.where(upper, place + width, place), jnp.where(upper, nth - below, nth)
    return position + place


class Numbers(Arrays):
    """Expressions, made of what the backend compiles."""

    def _counted(self, value: Any) -> Any:
        return count(value)

    def _shifted(self, shift: Callable[[Any, Any], Any], value: Any, amount: Any, width: int) -> Any:
        """A value shifted, never by so much that machine code knows no meaning of it."""
        (_, hi), by, most = span(amount), self.get(amount, width), width - 1
        if not isinstance(amount, Node):  # else it may be anything where another word is drawn
            return shift(value, by)
        unsigned = np.dtype(f"uint{width}").type
        shifted = shift(value, lax.min(by.astype(unsigned), unsigned(most)).astype(INTEGERS[width]))
        return (
            shifted
            if hi <= most or width == 64
            else lax.select(lax.le(by, self.get(most, width)), shifted, self.get(0, width))
        )
