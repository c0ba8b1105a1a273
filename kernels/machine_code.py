"""The operations of `kernels.ops` in code that Numba compiles, and the functions that such code may call.

Importing this module lets `numba.njit` compile what `ops.jitable` marks; `kernels.compiled` imports it.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import _dynfunc, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering
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


class _Optimized(JITCodeLibrary):
    """LLVM's code of a function that Python calls, optimized once, with all that it calls: Numba would do so twice more
    before, for the sake of references, which are not counted here."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _Linked(_Optimized):
    """LLVM's code of a function that only compiled code calls, to be linked into its callers and optimized there."""

    def _optimize_final_module(self) -> None: ...

    def _finalize_final_module(self) -> None:
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    """Makes machine code that is optimized once."""

    _name = "lowering_to_call"

    def run_pass(self, state: Any) -> bool:
        state.library = _Optimized(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().run_pass(state)


@register_pass(mutates_CFG=True, analysis_only=False)
class _LoweringToLink(NativeLowering):
    """Makes no machine code of a function by itself, which would never run."""

    _name = "lowering_to_link"

    def run_pass(self, state: Any) -> bool:
        name, context = state.func_id.func_qualname, state.targetctx
        state.library = library = _Linked(context.codegen(), name)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        stub = _dynfunc.make_function(lowered.fndesc.lookup_module(), name, "", 0, lowered.env, (library,))
        context.insert_user_function(stub, lowered.fndesc, [library])
        state.reload_init.extend(library._reload_init)
        state["cr"] = lowered._replace(cfunc=stub)
        return True


class ToCall(Compiler):
    """Numba's compiler with that first pass in place of its own."""

    lowering: type[NativeLowering] = _Lowering

    def define_pipelines(self) -> list[Any]:
        (pipeline,) = super().define_pipelines()
        pipeline.passes = [(self.lowering if step is NativeLowering else step, why) for step, why in pipeline.passes]
        pipeline.finalize()
        return [pipeline]


class _ToLink(ToCall):
    lowering = _LoweringToLink


INLINED = {
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
    "pipeline_class": _ToLink,
}
"""Compiler options of functions that only compiled code calls. Unused wrappers took half of the compile time, and
machine code of each function by itself a third of the rest; counting references to arrays, which such functions borrow
and never keep, took a fifth of the engine's time."""


def emits(signature):
    """Makes a function that emits LLVM code callable from compiled code. `signature` returns its Numba signature from
    the types of the arguments.

        @emits(lambda mask: types.int64(types.int64))
        def ctpop(context, builder, call, args): ...
    """

    def made(emit):
        @wraps(emit)
        def typed(typing_context, *kinds):
            return signature(*kinds), emit

        names = "typing_context", *inspect.signature(signature).parameters
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        typed.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # Numba asks for it
        return intrinsic(typed)

    return made


class _Marked(list[tuple[Callable[..., Any], bool]]):
    """`ops.jitables` from now on: each function that is marked is registered with Numba at once."""

    def append(self, marked):
        super().append(marked)
        function, inlined = marked
        register_jitable(**INLINED | {"forceinline": inlined})(function)


_before, ops.jitables = ops.jitables, _Marked()
for _function in _before:
    ops.jitables.append(_function)


@overload(where, jit_options=INLINED)
def _where_numba(condition, yes, no):
    return lambda condition, yes, no: yes if condition else no


@overload(popcount, jit_options=INLINED)
def _popcount_numba(mask):
    return lambda mask: _ctpop(mask)


@emits(lambda mask: types.int64(types.int64))
def _ctpop(context, builder, call, args):
    return builder.ctpop(args[0])


@overload(leading_zeros, jit_options=INLINED)
def _leading_zeros_numba(mask):
    return lambda mask: _ctlz(mask)


@emits(lambda mask: types.int64(types.uint64))
def _ctlz(context, builder, call, args):
    return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))


@overload(as_int64, jit_options=INLINED)
def _as_int64_numba(value):
    return lambda value: np.int64(value)


@overload(as_uint64, jit_options=INLINED)
def _as_uint64_numba(value):
    return lambda value: np.uint64(value)


HAS_PDEP = llvm.get_host_cpu_features().get("bmi2", False)


@overload(nth_bit, jit_options=INLINED)
def _nth_bit_numba(mask, n):
    if HAS_PDEP:
        return lambda mask, n: lowest_bit(_pdep(1 << n, mask))
    return lambda mask, n: nth_bit_branch_free(mask, n)


@emits(lambda bits, mask: types.int64(types.int64, types.int64))
def _pdep(context, builder, call, args):
    word = ir.IntType(64)
    pdep = builder.module.declare_intrinsic("llvm.x86.bmi.pdep.64", (), ir.FunctionType(word, [word, word]))
    return builder.call(pdep, args)
