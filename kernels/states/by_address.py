"""Functions of machine code that other compiled code calls by their address: one for each protocol, all of one type.

Their callers are compiled once for all protocols, and each function is optimized once: as a part of its callers it
would be optimized with each. The functions only take integers; all else that they need is in the caller's memory.
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


def address_of(
    model: Model, template: Any, argument_types: Sequence[Any], result: Any, given: Any, **others: Any
) -> int:
    """Returns the address of a template's code for a model; its `loaded(place)` loads what is `in_memory` like `given`.

    `argument_types` and `result` are Numba types. Raises ModelError as `general` does.
    """
    loaded = _loader(numba.typeof(given))
    compiled = compiled_for(model, template, allocates=False, loaded=loaded, **others)
    if argument_types not in compiled.overloads:
        compiled.compile(argument_types)
    code = compiled.overloads[argument_types]
    assert code.signature.return_type == result
    return int(code.library.get_pointer_to_function(code.fndesc.llvm_func_name))


@emits(lambda value: types.int64(value))
def in_memory(context, builder, call, args):
    """Returns the address of a copy of a value in memory, which lasts until the compiled function returns."""
    return builder.ptrtoint(cgutils.alloca_once_value(builder, args[0]), I64)


def calling(result: Any, argument_types: Sequence[Any]) -> tuple[Any, Callable[..., Any]]:
    """Returns signature and code of an intrinsic `call(address, ...)` of a function, which raises what that raises."""

    def generate(context, builder, call, args):
        function = builder.inttoptr(args[0], context.call_conv.get_function_type(result, argument_types).as_pointer())
        status, returned = context.call_conv.call_function(builder, function, result, argument_types, args[1:])
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return returned

    return result(types.int64, *argument_types), generate


@cache
def _loader(kind: Any) -> Any:
    """Makes compiled code's `loaded(place)`: the value of type `kind` that is `in_memory` at that address."""

    @emits(lambda place: kind(types.int64))
    def loaded(context, builder, call, args):
        in_it = context.get_value_type(kind)
        return _load(builder, builder.inttoptr(args[0], in_it.as_pointer()), in_it)

    return loaded


def _load(builder: Any, place: Any, kind: Any) -> Any:
    """Loads a value part by part, so that LLVM can drop unused parts."""
    if not isinstance(kind, ir.Aggregate):
        return builder.load(place)
    value = ir.Constant(kind, ir.Undefined)
    for i, part in enumerate(kind.elements if hasattr(kind, "elements") else [kind.element] * kind.count):
        there = builder.gep(place, [ir.Constant(ir.IntType(32), at) for at in (0, i)])
        value = builder.insert_value(value, _load(builder, there, part), i)
    return value
