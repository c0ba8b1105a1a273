"""A model's guards and effects chained into the few compiled functions that engine and search step it with.

A chain calls one action and hands on to the rest of the chain; LLVM inlines it into straight code and one switch.
Each link is a copy of a template with its names bound as globals: Numba caches a function on disk across processes
only if it reaches its callees that way. Numba does not notice when a callee's file changes, so the cache lives in a
folder named after a hash of every file in `kernels/`, and in other distributions' packages that have protocols.
"""

import hashlib
import os
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


def bind(template: Any, name: str, cached: bool = False, **names: Any) -> Any:
    """`template` compiled under `name`, with `names` as globals.

    If `cached`, the machine code is kept on disk and Python may call it; otherwise only compiled code may.
    """
    code = template.__code__.replace(co_filename=_sources()) if cached else template.__code__
    function = FunctionType(code, template.__globals__ | names, name, template.__defaults__)
    function.__qualname__ = f"{template.__qualname__}.{name}"
    function.__module__ = template.__module__
    return njit(function, cache=cached, nogil=True, error_model="numpy", **({} if cached else INLINED))


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
    ends = _no_effect, _no_sends, _none_broken
    effect, sends, broken = (bind(end, model.name) for end in ends)
    guards: list[Any] = []
    offsets = [sum(num_words(model)[:i]) for i in range(len(model.actions))]
    for i, action in reversed(list(enumerate(model.actions))):
        name = f"{model.name}.{action.name}"
        guards.insert(0, bind(_guards, name, enabled=action.enabled, offset=offsets[i]))
        effect = bind(_effect, name, index=i, apply=action.apply, rest=effect)
        sends = bind(_sends, name, index=i, action_sends=action.sends, rest=sends)
    for i, invariant in reversed(list(enumerate(model.invariants))):
        broken = bind(_broken, f"{model.name}.{invariant.name}", index=i, holds=invariant.holds, rest=broken)
    return Stepper(_all_of(guards, model.name), effect, sends, broken)


def _all_of(guards: list[Any], name: str) -> Any:
    """One function that calls all of these, in halves: each level of calls optimizes all that it inlines once more."""
    if len(guards) == 1:
        return guards[0]
    middle = len(guards) // 2
    return bind(_both, name, first=_all_of(guards[:middle], name), second=_all_of(guards[middle:], name))


# Templates. The names that they use and this module lacks are bound by `stepper`.


def _guards(state, params, masks):
    store_words(enabled(state, params), masks, offset)  # noqa: F821


def _both(state, params, masks):
    first(state, params, masks)  # noqa: F821
    second(state, params, masks)  # noqa: F821


def _no_effect(state, params, action, instance, lost):
    return state


def _effect(state, params, action, instance, lost):
    if action == index:  # noqa: F821
        return apply(state, params, instance, lost)  # noqa: F821
    return rest(state, params, action, instance, lost)  # noqa: F821


def _no_sends(state, params, action, instance):
    return 0


def _sends(state, params, action, instance):
    if action == index:  # noqa: F821
        return action_sends(state, params, instance)  # noqa: F821
    return rest(state, params, action, instance)  # noqa: F821


def _none_broken(state, params):
    return 0


def _broken(state, params):
    here = 0 if holds(state, params) else 1 << index  # noqa: F821
    return here | rest(state, params)  # noqa: F821
