"""The few array operations in which every protocol is written, understood by Python, Numba and JAX alike.

A protocol's functions are plain Python over 64-bit signed integers and NamedTuples of them. Called as they are, they
work on Python integers (traces); inside `numba.njit` the overloads below turn them into machine code; under
`jax.vmap` they trace into XLA. Fields use at most 63 bits, so that `>>` never meets a sign bit.
"""

import inspect
from typing import Any, TypeVar

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AttributeTemplate, bound_function, infer_getattr, signature
from numba.extending import intrinsic, overload, register_jitable

T = TypeVar("T")

INLINED = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Compiler options of functions that only compiled code calls; wrappers nobody uses took half of the compile time."""
jitable = register_jitable(**INLINED)
"""Decorator of every protocol function: leaves it plain Python and lets compiled code call it."""


class Traced:
    """A value that `kernels.tracing` follows through a protocol's functions, in which it answers for itself."""

    __slots__ = ()

    def where(self, yes: Any, no: Any) -> Any:
        """`where(self, yes, no)`."""
        raise NotImplementedError

    def when(self, guarded: Any) -> Any:
        """`guarded` where this holds, else 0."""
        raise NotImplementedError

    def popcount(self) -> Any:
        """`popcount(self)`."""
        raise NotImplementedError

    def leading_zeros(self) -> Any:
        """`leading_zeros(self)`."""
        raise NotImplementedError

    def with_sign(self, signed: bool) -> Any:
        """`as_int64(self)` or `as_uint64(self)`."""
        raise NotImplementedError


def where(condition: Any, yes: T, no: T) -> T:
    """`yes` where `condition` holds, else `no`; integers, or NamedTuples of them taken field by field.

    Fields that both have in common are left as they are.
    """
    if isinstance(condition, int):
        return yes if condition else no
    if isinstance(condition, Traced):
        return condition.where(yes, no)
    import jax  # only traced values get here

    return jax.tree.map(lambda a, b: a if a is b else jax.numpy.where(condition, a, b), yes, no)


def when(condition: Any, guard: Any, *args: Any) -> Any:
    """`guard(*args)` where `condition` holds, else 0; compiled for CPUs the guard is skipped, not computed."""
    if isinstance(condition, int):
        return guard(*args) if condition else 0
    if isinstance(condition, Traced):
        return condition.when(guard(*args))
    return where(condition, guard(*args), 0)


def popcount(mask: Any) -> Any:
    """The number of bits set in `mask`."""
    if isinstance(mask, int):
        return mask.bit_count()
    if isinstance(mask, Traced):
        return mask.popcount()
    import jax

    return jax.lax.population_count(mask)


def leading_zeros(mask: Any) -> Any:
    """The number of zeros above the highest bit set of a non-zero uint64, as an int64."""
    if isinstance(mask, int | np.integer):
        return 64 - int(mask).bit_length()
    if isinstance(mask, Traced):
        return mask.leading_zeros()
    import jax

    return as_int64(jax.lax.clz(mask))


def as_int64(value: Any) -> Any:
    """The same bits as a signed integer."""
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, Traced):
        return value.with_sign(True)
    return value.astype(np.int64)


def as_uint64(value: Any) -> Any:
    """The same bits as an unsigned integer."""
    if isinstance(value, int | np.integer):
        return np.uint64(value)
    if isinstance(value, Traced):
        return value.with_sign(False)
    return value.astype(np.uint64)


def nth_bit(mask: Any, n: Any) -> Any:
    """Position of the bit set in `mask` that has `n` bits set below it."""
    if isinstance(mask, int):
        return [b for b in range(mask.bit_length()) if mask >> b & 1][n]
    return _nth_bit_branch_free(mask, n)


def deposit(bits: int, mask: int) -> int:
    """`bits` spread over the bits set in `mask`, in order: bit n of them lands on `nth_bit(mask, n)`."""
    return sum(1 << b for n, b in enumerate(b for b in range(mask.bit_length()) if mask >> b & 1) if bits >> n & 1)


@jitable
def lowest_bit(mask):
    """Position of the lowest bit set in a non-zero `mask`."""
    return popcount((mask & -mask) - 1)


@jitable
def _nth_bit_branch_free(mask, n):
    position = 0
    for width in (32, 16, 8, 4, 2, 1):
        below = popcount((mask >> position) & ((1 << width) - 1))
        upper = n >= below
        position = where(upper, position + width, position)
        n = where(upper, n - below, n)
    return position


@overload(where)
def _where_numba(condition, yes, no):
    return lambda condition, yes, no: yes if condition else no


@jitable
def _deposit_one_by_one(bits, mask):
    result = 0
    while mask != 0:
        result |= (mask & -mask) * (bits & 1)
        bits >>= 1
        mask &= mask - 1
    return result


@overload(when)
def _when_numba(condition, guard, *args):
    def skip_or_call(condition, guard, *args):
        if condition:
            return guard(*args)
        return 0

    return skip_or_call


@overload(popcount)
def _popcount_numba(mask):
    return lambda mask: _ctpop(mask)


@intrinsic
def _ctpop(typing_context, mask):
    def generate(context, builder, call, args):
        return builder.ctpop(args[0])

    return types.int64(types.int64), generate


@overload(leading_zeros)
def _leading_zeros_numba(mask):
    return lambda mask: _ctlz(mask)


@intrinsic
def _ctlz(typing_context, mask):
    def generate(context, builder, call, args):
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@overload(as_int64)
def _as_int64_numba(value):
    return lambda value: np.int64(value)


@overload(as_uint64)
def _as_uint64_numba(value):
    return lambda value: np.uint64(value)


_HAS_PDEP = llvm.get_host_cpu_features().get("bmi2", False)


@overload(nth_bit)
def _nth_bit_numba(mask, n):
    if _HAS_PDEP:
        return lambda mask, n: lowest_bit(_pdep(1 << n, mask))
    return lambda mask, n: _nth_bit_branch_free(mask, n)


@overload(deposit)
def _deposit_numba(bits, mask):
    if _HAS_PDEP:
        return lambda bits, mask: _pdep(bits, mask)
    return lambda bits, mask: _deposit_one_by_one(bits, mask)


@intrinsic
def _pdep(typing_context, bits, mask):
    def generate(context, builder, call, args):
        word = ir.IntType(64)
        pdep = builder.module.declare_intrinsic("llvm.x86.bmi.pdep.64", (), ir.FunctionType(word, [word, word]))
        return builder.call(pdep, args)

    return types.int64(types.int64, types.int64), generate


@infer_getattr
class _NamedTupleReplace(AttributeTemplate):
    """`state._replace(field=value)` in compiled code."""

    key = types.BaseNamedTuple

    @bound_function("namedtuple._replace")
    def resolve__replace(self, kind, args, keywords):
        given = dict(keywords)
        parameters = [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None) for name in kind.fields
        ]
        fields = zip(kind.fields, kind.types, strict=True)
        chosen = [field if name in given else types.Omitted(None) for name, field in fields]
        return signature(kind, *chosen, recvr=kind).replace(pysig=inspect.Signature(parameters))


@lower_builtin("namedtuple._replace", types.BaseNamedTuple, types.VarArg(types.Any))
def _lower_replace(context, builder, call, args):
    result = args[0]
    for i, (kind, value) in enumerate(zip(call.args[1:], args[1:], strict=True)):
        if not isinstance(kind, types.Omitted):
            result = builder.insert_value(result, value, i)
    return result
