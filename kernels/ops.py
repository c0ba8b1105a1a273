"""The few operations in which protocols are written: on Python's integers and on traced expressions alike.

A protocol's functions are plain Python over 64-bit signed integers and NamedTuples of them. Called with Python integers
they compute (traces of runs); called with expressions they become machine code, or arrays of XLA's (`kernels.tracing`).
Fields use at most 63 bits, so that `>>` never meets a sign bit. In code that Numba itself compiles, the operations are
those of `kernels.machine_code`. Random numbers and tallies are computed with them too, also on arrays.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

jitables: list[tuple[Callable[..., Any], bool]] = []
"""Functions that `jitable` has marked, and whether each is inlined. `kernels.machine_code`, loaded where something is
compiled, registers all of them with Numba."""


def jitable(function: Function) -> Function:
    """Decorator of a function that code compiled by Numba calls: leaves it plain Python."""
    jitables.append((function, True))
    return function


def jitable_apart(function: Function) -> Function:
    """`jitable` for a function that is rarely called: as separate code it takes no registers from the calling loop."""
    jitables.append((function, False))
    return function


def _made_by(op: str, swapped: bool = False) -> Any:
    """Makes the method of `Traced` for an operation."""

    def operator(self, other):
        return self.make(op, other, self) if swapped else self.make(op, self, other)

    return operator


class Traced:
    """A value that `kernels.tracing` follows through a protocol's functions: each operation on it calls `make`."""

    __slots__ = ()

    def make(self, op: str, *args: Any) -> Any:
        """Returns the result of an operation on values, this one among them."""
        raise NotImplementedError

    __and__ = __rand__ = _made_by("and")
    __or__ = __ror__ = _made_by("or")
    __xor__ = __rxor__ = _made_by("xor")
    __add__ = __radd__ = _made_by("add")
    __mul__ = __rmul__ = _made_by("mul")
    __sub__, __rsub__ = _made_by("sub"), _made_by("sub", swapped=True)
    __lshift__, __rlshift__ = _made_by("shl"), _made_by("shl", swapped=True)
    __rshift__, __rrshift__ = _made_by("shr"), _made_by("shr", swapped=True)
    __floordiv__ = _made_by("div")
    __eq__, __ne__ = _made_by("equal"), _made_by("unequal")
    __lt__, __gt__ = _made_by("less"), _made_by("less", swapped=True)

    def __mod__(self, other):
        return self - self // other * other

    def __invert__(self):
        return self.make("xor", self, -1)

    def __neg__(self):
        return self.make("sub", 0, self)

    def __le__(self, other):
        return self.make("not", self > other)

    def __ge__(self, other):
        return self.make("not", self < other)

    __hash__ = None  # type: ignore[assignment]


_TRUTHS = (int, np.bool_)  # as a tuple, since a union would be made again at every call


def where(condition: Any, yes: T, no: T) -> T:
    """`yes` where `condition` holds, else `no`; integers, or NamedTuples of them taken field by field.

    Fields that both have in common are left as they are.
    """
    if isinstance(condition, _TRUTHS):
        return yes if condition else no
    if isinstance(condition, Traced):
        return condition.make("select", condition, yes, no)
    if isinstance(condition, np.ndarray):
        return np.where(condition, yes, no)  # type: ignore[call-overload]
    import jax

    return jax.numpy.where(condition, yes, no)  # type: ignore[call-overload]


def when(condition: Any, guard: Any, *args: Any) -> Any:
    """`guard(*args)` where `condition` holds, else 0; compiled for CPUs the guard is skipped, not computed."""
    if isinstance(condition, Traced):
        return condition.make("when", condition, guard(*args))
    return guard(*args) if condition else 0


def once(values: Any) -> Any:
    """The values, nested in any way: compiled for CPUs they are computed before all that `when` may skip."""
    if isinstance(values, list | tuple):
        for each in values:
            once(each)
    elif isinstance(values, Traced):
        values.make("once", values)
    return values


def popcount(mask: Any) -> Any:
    """The number of bits set in `mask`."""
    if isinstance(mask, int):
        return mask.bit_count()
    if isinstance(mask, Traced):
        return mask.make("popcount", mask)
    import jax

    return jax.lax.population_count(mask)


_POWERS = np.array([1 << bit for bit in range(64)], np.uint64)


def leading_zeros(mask: Any) -> Any:
    """The number of zeros above the highest bit set of a non-zero uint64, as an int64."""
    if isinstance(mask, int | np.integer):
        return 64 - int(mask).bit_length()
    if isinstance(mask, Traced):
        return mask.make("leading_zeros", mask)
    if isinstance(mask, np.ndarray):
        return 64 - np.searchsorted(_POWERS, mask, "right")
    import jax

    # in halves, as some backends have no such instruction for 64 bits
    high, low = (half.astype(np.int32) for half in (mask >> np.uint64(32), mask))
    return as_int64(where(high != 0, jax.lax.clz(high), 32 + jax.lax.clz(low)))


def as_int64(value: Any) -> Any:
    """The same bits as a signed integer; a floating-point number is truncated."""
    if isinstance(value, int | float | np.integer):
        return int(value)
    if isinstance(value, Traced):
        return value.make("signed", value)
    return value.astype(np.int64)


def as_uint64(value: Any) -> Any:
    """The same bits as an unsigned integer."""
    if isinstance(value, int | np.integer):
        return np.uint64(value)
    if isinstance(value, Traced):
        return value.make("unsigned", value)
    return value.astype(np.uint64)


def nth_bit(mask: Any, n: Any) -> Any:
    """Position of the bit set in `mask` that has `n` bits set below it."""
    if isinstance(mask, int):
        return bits(mask)[n]
    return nth_bit_branch_free(mask, n)


def deposit(word: int, mask: int) -> int:
    """`word` spread over the bits set in `mask`, in order: its bit n lands on `nth_bit(mask, n)`."""
    return sum(1 << b for n, b in enumerate(bits(mask)) if word >> n & 1)


def bits(mask: int) -> list[int]:
    """The places of the bits set in a mask, lowest first. Plain Python only: never compiled or traced."""
    found = []
    while mask > 0:
        found.append((mask & -mask).bit_length() - 1)
        mask &= mask - 1
    return found


@jitable
def lowest_bit(mask):
    """Position of the lowest bit set in a non-zero `mask`."""
    return popcount((mask & -mask) - 1)


@jitable
def nth_bit_branch_free(mask, n, size=64):
    """`nth_bit` of a traced or compiled value below 2**size, without a branch."""
    position = 0
    for width in (32, 16, 8, 4, 2, 1):
        if width < size:
            below = popcount((mask >> position) & ((1 << width) - 1))
            upper = n >= below
            position = where(upper, position + width, position)
            n = where(upper, n - below, n)
    return position
