"""What the operations of `kernels.ops` are in code that Numba compiles, and which functions such code may call.

To import this module is what lets `numba.njit` compile what `ops.jitable` marks: `kernels.compiled` does.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload, register_jitable

from quorisk.kernels import ops
from quorisk.kernels.ops import (
    as_int64,
    as_uint64,
    leading_zeros,
    lowest_bit,
    nth_bit,
    nth_bit_branch_free,
    popcount,
    where,
)

INLINED = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
"""Compiler options of functions that only compiled code calls. Wrappers nobody uses took half of the compile time; and
counting references to arrays, which such functions are lent and never keep, took a fifth of the engine's time."""


class _Marked(list[tuple[Callable[..., Any], bool]]):
    """`ops.jitables` from now on: whatever is marked is made known to Numba at once."""

    def append(self, marked):
        super().append(marked)
        function, inlined = marked
        register_jitable(**INLINED | {"forceinline": inlined})(function)


_before, ops.jitables = ops.jitables, _Marked()
for _function in _before:
    ops.jitables.append(_function)


@overload(where)
def _where_numba(condition, yes, no):
    return lambda condition, yes, no: yes if condition else no


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


HAS_PDEP = llvm.get_host_cpu_features().get("bmi2", False)


@overload(nth_bit)
def _nth_bit_numba(mask, n):
    if HAS_PDEP:
        return lambda mask, n: lowest_bit(_pdep(1 << n, mask))
    return lambda mask, n: nth_bit_branch_free(mask, n)


@intrinsic
def _pdep(typing_context, bits, mask):
    def generate(context, builder, call, args):
        word = ir.IntType(64)
        pdep = builder.module.declare_intrinsic("llvm.x86.bmi.pdep.64", (), ir.FunctionType(word, [word, word]))
        return builder.call(pdep, args)

    return types.int64(types.int64, types.int64), generate
