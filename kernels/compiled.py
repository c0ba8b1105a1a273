"""A model's guards and effects chained into the few compiled functions that engine and search step it with.

Each is a chain: a link calls its actions and hands on to the rest of the chain; LLVM inlines it into straight code and
one switch. A link is a copy of a template with its names bound as globals: Numba caches a function on disk across
processes only if it reaches its callees that way. Numba does not notice when a callee's file changes, so the cache
lives in a folder named after a hash of every file in `kernels/`, and in other distributions' packages that have
protocols.
"""

import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numba
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from quorisk.kernels.machine_code import INLINED
from quorisk.kernels.model import Model, num_words
from quorisk.kernels.ops import as_int64
from quorisk.kernels.protocols.registry import foreign_roots


def _source_hash() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for folder in (Path(__file__).parent, *foreign_roots()):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where all machine code is kept, whatever its source."""
    root = os.environ.get("QUORISK_CACHE_DIR") or Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(root) / "quorisk"


numba.config.CACHE_DIR = str(cache_folder() / _source_hash())


def _sources() -> str:
    """A file in the place of all source files. Numba finds what it compiled by the path and age of a function's file,
    which here the folder's name stands for: so any copy of `kernels/` on a machine finds what another one compiled.
    """
    path = Path(numba.config.CACHE_DIR) / "sources"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")
        new.touch()
        os.utime(new, (0, 0))
        new.replace(path)
    return str(path)


def bind(template: Any, name: str, cached: bool = False, inlined: bool = False, **names: Any) -> Any:
    """`template` compiled under `name`, with `names` as globals.

    If `cached`, the machine code is kept on disk, and Python may call it unless it is `inlined` into what calls it.
    Several programs are compiled from the few functions that step a model: each is on disk, for all of them.
    """
    code = template.__code__.replace(co_filename=_sources()) if cached else template.__code__
    function = FunctionType(code, template.__globals__ | names, name, template.__defaults__)
    function.__qualname__ = f"{template.__qualname__}.{name}"
    function.__module__ = template.__module__
    options: dict[str, Any] = INLINED if inlined or not cached else {}
    return njit(function, cache=cached, nogil=True, error_model="numpy", **options)


def leaf_paths(kind: Any) -> list[tuple[int, ...]]:
    """Index paths of the integers of a (nested) tuple type."""
    if not isinstance(kind, types.BaseTuple):
        return [()]
    return [(i, *path) for i, field in enumerate(kind.types) for path in leaf_paths(field)]


def _element(context, builder, array_type, array, offset):
    data = cgutils.create_struct_proxy(array_type)(context, builder, value=array).data
    return builder.gep(data, [offset])


@intrinsic
def store_words(typing_context, value, words, first):
    """Writes the integers of a nested tuple to words[first], words[first + 1], ..."""

    def generate(context, builder, call, args):
        for i, path in enumerate(leaf_paths(value)):
            place = builder.add(args[2], ir.Constant(args[2].type, i))
            builder.store(builder.extract_value(args[0], path), _element(context, builder, words, args[1], place))
        return context.get_dummy_value()

    return types.void(value, words, types.intp), generate


@intrinsic
def load_words(typing_context, like, words, first):
    """A nested tuple of the type of `like`, of the integers that `store_words` wrote."""

    def generate(context, builder, call, args):
        result = args[0]
        for i, path in enumerate(leaf_paths(like)):
            place = builder.add(args[2], ir.Constant(args[2].type, i))
            word = builder.load(_element(context, builder, words, args[1], place))
            result = builder.insert_value(result, word, path)
        return result

    return like(like, words, types.intp), generate


class Stepper(NamedTuple):
    """A model's compiled functions."""

    guards: Any
    """`guards(state, params, masks)`: writes every action's words of enabled instances to masks[0], ..."""
    effect: Any
    """`effect(state, params, action, instance, lost)`: the next state."""
    sends: Any
    """`sends(state, params, action, instance)`: mask of the messages that would be sent."""
    broken: Any
    """`broken(state, params)`: bit i is set if invariant i does not hold."""


@cache
def stepper(model: Model) -> Stepper:
    """The compiled functions of a model; compiled when first called."""
    guards: list[Any] = []
    offsets = [sum(num_words(model)[:i]) for i in range(len(model.actions))]
    for action, offset in zip(model.actions, offsets, strict=True):
        guards.append(bind(_guards, f"{model.name}.{action.name}", enabled=action.enabled, offset=offset))
    apply = switch(f"{model.name}.apply", [action.apply for action in model.actions], bind(_unchanged, model.name))
    send = switch(f"{model.name}.sends", [action.sends for action in model.actions], bind(_nothing_sent, model.name))
    broken = bind(_none_broken, model.name)
    for i, invariant in reversed(list(enumerate(model.invariants))):
        name = f"{model.name}.{invariant.name}"
        broken = bind(_broken, name, cached=i == 0, inlined=True, index=i, holds=invariant.holds, rest=broken)
    return Stepper(
        guards=_all_of(guards, model.name, cached=True),
        effect=bind(_effect, model.name, cached=True, inlined=True, chosen=apply),
        sends=bind(_sends, model.name, cached=True, inlined=True, chosen=send),
        broken=broken,
    )


def switch(name: str, functions: Sequence[Any], otherwise: Any) -> Any:
    """Compiled `chosen(i, arguments)`: `functions[i](*arguments)`, or `otherwise(*arguments)` if there is none such.

    Four to a link, since every link of a chain optimizes all that is behind it once more.
    """
    chosen = bind(_otherwise, name, otherwise=otherwise)
    for i in reversed(range(0, len(functions), 4)):
        four = [*functions[i : i + 4], *[otherwise] * 4][:4]
        names = dict(zip(("first", "second", "third", "fourth"), four, strict=True))
        chosen = bind(_four, f"{name}.{i}", index=i, rest=chosen, **names)
    return chosen


def _all_of(guards: list[Any], name: str, cached: bool = False) -> Any:
    """One function that calls all of these, in halves: each level of calls optimizes all that it inlines once more."""
    if len(guards) == 1:
        return guards[0]
    middle = len(guards) // 2
    halves = {"one": _all_of(guards[:middle], name), "other": _all_of(guards[middle:], name)}
    return bind(_both, name, cached, inlined=True, **halves)


# Templates, with the names that `stepper` and `switch` bind in copies of them

LATE: Any = None
"""What a template's name is until `bind` gives it its value."""
enabled = offset = one = other = index = first = second = third = fourth = rest = otherwise = chosen = holds = LATE


def _guards(state, params, masks):
    store_words(enabled(state, params), masks, offset)


def _both(state, params, masks):
    one(state, params, masks)
    other(state, params, masks)


def _four(i, arguments):
    if i == index:
        return first(*arguments)
    if i == index + 1:
        return second(*arguments)
    if i == index + 2:
        return third(*arguments)
    if i == index + 3:
        return fourth(*arguments)
    return rest(i, arguments)


def _otherwise(i, arguments):
    return otherwise(*arguments)


def _effect(state, params, action, instance, lost):
    return chosen(action, (state, params, instance, lost))


def _unchanged(state, params, instance, lost):
    return state


def _sends(state, params, action, instance):
    return chosen(action, (state, params, instance))


def _nothing_sent(state, params, instance):
    return as_int64(0)  # a bare 0 has a type of its own, for which all effects would be compiled once more


def _none_broken(state, params):
    return 0


def _broken(state, params):
    here = 0 if holds(state, params) else 1 << index
    return here | rest(state, params)
