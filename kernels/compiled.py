"""Building blocks of code compiled by Numba: templates with names that are bound later, and states in arrays of words.

A compiled function is a copy of a template with its names bound as globals: Numba keeps a function on disk across
processes only if it reaches its callees that way. It does not notice when a callee's file changes, so its code lies in
a folder named after a hash of every file in `kernels/`, and in other distributions' packages that have protocols.
"""

import gc
import os
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils

from quorisk.kernels.errors import ModelError
from quorisk.kernels.keeping import kept, locked, source_hash
from quorisk.kernels.machine_code import INLINED, ToCall, emits
from quorisk.kernels.packing import fields_of
from quorisk.kernels.protocols.registry import foreign, foreign_roots
from quorisk.kernels.tracing import machine


def code_folder(protocol: str) -> Path:
    """Returns the folder of a protocol's machine code, or for "" of code of no protocol. Other distributions' protocols
    have a folder of their own, named by a hash of their sources: after an edit Quorisk's own need not compile again.
    """
    home = Path(numba.config.CACHE_DIR)
    return home / source_hash(*foreign_roots()) if protocol in foreign() else home


def _sources(protocol: str) -> str:
    """Returns a file in place of all source files. Numba finds compiled code by the path and age of a function's file;
    here the folder's name stands for both, so any copy of `kernels/` on a machine finds what another one compiled.
    """
    path = code_folder(protocol) / "sources"
    with suppress(OSError):  # a disk that is full keeps nothing
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            new = path.with_suffix(f".{os.getpid()}")
            new.touch()
            os.utime(new, (0, 0))
            new.replace(path)
    return str(path)


def bind(template: Any, name: str, kept_for: str | None = None, **names: Any) -> Any:
    """Compiles `template` under `name`, with `names` as globals.

    With `kept_for`, a protocol or "" as in `code_folder`, the machine code is kept on disk, and Python may call it;
    else it is inlined into what calls it.
    """
    cached = kept_for is not None
    code = template.__code__ if kept_for is None else template.__code__.replace(co_filename=_sources(kept_for))
    function = FunctionType(code, template.__globals__ | names, name, template.__defaults__)
    function.__qualname__ = f"{template.__qualname__}.{name}"
    function.__module__ = template.__module__
    options: dict[str, Any] = {"pipeline_class": ToCall} if cached else INLINED
    compiled = njit(function, nogil=True, error_model="numpy", **options)
    return kept(compiled) if cached else compiled


_ONCE: set[tuple[str, str]] = set()
"""Pairs of mark and protocol that this process has compiled or loaded by `once`."""


def once(what: str, protocol: str, call: Callable[[], object]) -> None:
    """Compiles by a `call` in one process of a machine, while others that need the same code wait for it on disk."""
    if (what, protocol) in _ONCE:
        return
    ready = _ready(what, protocol)
    with nullcontext() if ready.exists() else locked(ready):
        call()
    with suppress(OSError):
        ready.touch()
    gc.freeze()  # Spark has a worker collect garbage after every task: it need not go through Numba's objects, in 80 ms
    _ONCE.add((what, protocol))


def is_ready(what: str, protocol: str) -> bool:
    """Whether a process of this machine has compiled this by `once`."""
    return _ready(what, protocol).exists()


def _ready(what: str, protocol: str) -> Path:
    return code_folder(protocol) / f"{what}-{protocol}.ready"


def leaf_paths(kind: Any) -> list[tuple[int, ...]]:
    """Index paths of the integers of a (nested) tuple type."""
    if not isinstance(kind, types.BaseTuple):
        return [()]
    return [(i, *path) for i, field in enumerate(kind.types) for path in leaf_paths(field)]


def element(context, builder, array_type, array, offset):
    data = cgutils.create_struct_proxy(array_type)(context, builder, value=array).data
    return builder.gep(data, [offset])


@emits(lambda like, words: like(like, words))
def load_words(context, builder, call, args):
    """Returns a nested tuple of the type of `like` from the integers words[0], words[1], ..."""
    result = args[0]
    for i, path in enumerate(leaf_paths(call.args[0])):
        place = element(context, builder, call.args[1], args[1], machine.constant(machine.I64, i))
        result = builder.insert_value(result, builder.load(place), path)
    return result


def refuse(context: Any, builder: Any, condition: Any, why: str) -> None:
    """Emits that the function raises ModelError where the condition holds, which is rare."""
    with builder.if_then(condition, likely=False):
        context.call_conv.return_user_exc(builder, ModelError, (why,))


@cache
def refusal(why: str) -> Any:
    """Compiled code's `refuse(condition)`: raises ModelError where the condition holds."""

    @emits(lambda condition: types.void(condition))
    def refuse_if(context, builder, call, args):
        refuse(context, builder, context.cast(builder, args[0], call.args[0], types.boolean), why)
        return context.get_dummy_value()

    return refuse_if


def too_wide(builder: Any, values: Iterable[tuple[Any, int]]) -> Any:
    """Emits whether any of these 64-bit values, each paired with its width in bits, exceeds that width."""
    together: dict[int, Any] = {}  # by width, so that a state takes about one operation for each of its values
    for value, width in values:
        together[width] = builder.or_(together[width], value) if width in together else value
    beyond = ir.Constant(ir.IntType(64), 0)
    for width, value in together.items():
        beyond = builder.or_(beyond, builder.lshr(value, ir.Constant(value.type, width)))
    return builder.icmp_unsigned("!=", beyond, ir.Constant(beyond.type, 0))


@cache
def unpacking(widths: Any) -> Any:
    """Compiled code's `unpack(like, wide)`: the state of a wide row, of the type of `like`."""
    fields, word_type = fields_of(widths), ir.IntType(64)

    @emits(lambda like, wide: like(like, wide))
    def unpack(context, builder, call, args):
        state = args[0]
        for field, path in zip(fields, leaf_paths(call.args[0]), strict=True):
            place = ir.Constant(word_type, field.word)
            word = builder.load(element(context, builder, call.args[1], args[1], place))
            value = builder.lshr(word, ir.Constant(word_type, field.shift))
            value = builder.and_(value, ir.Constant(word_type, (1 << field.width) - 1))
            state = builder.insert_value(state, value, path)
        return state

    return unpack


@emits(lambda words, place: types.void(words, types.uint64))
def prefetch(context, builder, call, args):
    """Prefetches a word of an array that is read soon."""
    word = builder.bitcast(element(context, builder, call.args[0], args[0], args[1]), machine.POINTER)
    for_reading, to_keep, of_data = (ir.Constant(machine.I32, number) for number in (0, 3, 1))
    machine.intrinsic(builder, "llvm.prefetch.p0", ir.VoidType(), [word, for_reading, to_keep, of_data])
    return context.get_dummy_value()


LATE: Any = None
"""Placeholder for a template's name until `bind` gives it its value."""
