"""Functions of machine code that other compiled code calls by their address: one for each protocol, all of one type.

What calls them is compiled once for all protocols, and they are optimized once; as a part of each caller they would be
optimized with each. They take integers alone: what else they need is in the caller's memory.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils

from quorisk.kernels.machine_code import emits
from quorisk.kernels.model import Model
from quorisk.kernels.states.functions import compiled_for
from quorisk.kernels.tracing.machine import I64


def address_of(model: Model, template: Any, asked: Sequence[Any], result: Any, given: Any, **others: Any) -> int:
    """Where a template's code for a model is, which has `loaded(place)` for what is `in_memory` like `given`.

    `asked` and `result` are Numba's types. Raises ModelError as `tracing.general` does.
    """
    loaded = _loader(numba.typeof(given))
    compiled = compiled_for(model, template, allocates=False, loaded=loaded, **others)
    if asked not in compiled.overloads:
        compiled.compile(asked)
    code = compiled.overloads[asked]
    assert code.signature.return_type == result
    return int(code.library.get_pointer_to_function(code.fndesc.llvm_func_name))


@emits(lambda value: types.int64(value))
def in_memory(context, builder, call, args):
    """Where compiled code has a value in memory until it returns."""
    return builder.ptrtoint(cgutils.alloca_once_value(builder, args[0]), I64)


def calling(result: Any, asked: Sequence[Any]) -> tuple[Any, Callable[..., Any]]:
    """What an intrinsic `call(address, ...)` of such a function returns; it raises what the function raises."""

    def generate(context, builder, call, args):
        function = builder.inttoptr(args[0], context.call_conv.get_function_type(result, asked).as_pointer())
        status, returned = context.call_conv.call_function(builder, function, result, asked, args[1:])
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return returned

    return result(types.int64, *asked), generate


@cache
def _loader(kind: Any) -> Any:
    """Compiled code's `loaded(place)`: the value of that type that is `in_memory` there."""

    @emits(lambda place: kind(types.int64))
    def loaded(context, builder, call, args):
        in_it = context.get_value_type(kind)
        return _load(builder, builder.inttoptr(args[0], in_it.as_pointer()), in_it)

    return loaded


def _load(builder: Any, place: Any, kind: Any) -> Any:
    """Loads a value part by part: LLVM drops those that nobody needs."""
    if not isinstance(kind, ir.Aggregate):
        return builder.load(place)
    value = ir.Constant(kind, ir.Undefined)
    for i, part in enumerate(kind.elements if hasattr(kind, "elements") else [kind.element] * kind.count):
        there = builder.gep(place, [ir.Constant(ir.IntType(32), at) for at in (0, i)])
        value = builder.insert_value(value, _load(builder, there, part), i)
    return value
