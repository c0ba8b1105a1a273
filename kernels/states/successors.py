"""The steps from a state, and the states that they lead to, as one function of machine code for each protocol.

What follows paths by their cost (a head, its exits, its moves) calls it by its address, and so is compiled once for all
protocols; as a part of each, LLVM would optimize a protocol's guards and effects three times.
"""

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from quorisk.kernels.compiled import LATE, load_words, packing
from quorisk.kernels.model import LOST, UNFINISHED, Model, instance_words, leaves, smallest_params
from quorisk.kernels.states.functions import compiled_for
from quorisk.kernels.states.odds import Odds, Steps, room_for_steps
from quorisk.kernels.states.representatives import room_for
from quorisk.kernels.states.store import MOST_SUCCESSORS, Kept
from quorisk.kernels.tracing.machine import I64

ANY_COST = 1 << 20
"""No step's cost is more."""
_RESULT = types.Tuple((types.int64, types.float64, types.int64, types.int64))
_ASKED = types.int64, types.int64, types.boolean, types.int64, types.int64


class Successors(NamedTuple):
    """A protocol's function, what it is given and where it leaves what it finds; of one type for all protocols."""

    address: int
    odds: Odds
    """With the leaves of `params` as an int64 array."""
    steps: Steps
    """All steps from the state that was asked about last."""
    rows: np.ndarray
    """uint64, [number, word]: the wide rows of the representatives of the states that were asked for, in the order of
    their steps."""
    masks: np.ndarray
    room: np.ndarray
    """Both int64, for the function alone."""


def successors_of(model: Model, odds: Odds, kept: Kept) -> Successors:
    """What `successors` takes, for states that are kept like these. Raises TypeError as `tracing.general` does."""
    given = Successors(
        address=0,
        odds=odds._replace(params=np.array(leaves(odds.params), np.int64)),
        steps=room_for_steps(),
        rows=np.empty((MOST_SUCCESSORS, len(kept.wide)), np.uint64),  # only what is written takes memory
        masks=np.empty(len(instance_words(model)), np.int64),
        room=np.empty(max(1, room_for(model)), np.int64),
    )
    pack, _ = packing(model.widths, model.name)
    loaded = _loader(numba.typeof((given, kept)))
    others = {"like": smallest_params(model), "pack": pack, "loaded": loaded}
    compiled = compiled_for(model, _successors, allocates=False, **others)
    if _ASKED not in compiled.overloads:
        compiled.compile(_ASKED)
    code = compiled.overloads[_ASKED]
    assert code.signature.return_type == _RESULT
    return given._replace(address=code.library.get_pointer_to_function(code.fndesc.llvm_func_name))


@intrinsic
def in_memory(typing_context, value):
    """Where compiled code has a value in memory until it returns."""

    def generate(context, builder, call, args):
        return builder.ptrtoint(cgutils.alloca_once_value(builder, args[0]), I64)

    return types.int64(value), generate


@cache
def _loader(kind: Any) -> Any:
    """Compiled code's `loaded(place)`: the value of that type that is `in_memory` there."""

    @intrinsic
    def loaded(typing_context, place):
        def generate(context, builder, call, args):
            in_it = context.get_value_type(kind)
            return _load(builder, builder.inttoptr(args[0], in_it.as_pointer()), in_it)

        return kind(types.int64), generate

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


@intrinsic
def successors(typing_context, address, place_in_memory, place, is_new, low, high):
    """Compiled code's call of `_successors`, which raises what that raises."""

    def generate(context, builder, call, args):
        function = builder.inttoptr(args[0], context.call_conv.get_function_type(_RESULT, _ASKED).as_pointer())
        status, result = context.call_conv.call_function(builder, function, _RESULT, _ASKED, args[1:])
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return result

    return _RESULT(types.int64, *_ASKED), generate


# A template, with names that are bound by `compiled_for`

broken = cost = data_loss = effect_of = enabled = guards = like = listed = loaded = outcome = pack = LATE
representative = state = weigh = words = LATE


def _successors(given_and_kept, place, is_new, low, high):
    """Lists the steps from a state, with their odds and costs, and the state after each that has odds and costs `low`
    to `high`. Returns how many steps there are, W, and, if it `is_new`, what it breaks and how a run ends there.
    """
    given, kept = loaded(given_and_kept)
    odds, steps, masks = given.odds, given.steps, given.masks
    params = load_words(like, odds.params)
    before = state(kept, place)
    guards(before, params, masks)
    total, top = enabled(masks, odds)
    breaks, ends = 0, UNFINISHED
    if is_new:
        breaks = broken(before, params)
        if breaks & data_loss:
            ends = LOST
        elif total <= 0.0:
            ends = outcome(before, params)
    if ends != UNFINISHED:
        return 0, total, breaks, ends
    num, at = listed(kept.here, params, masks, steps), 0
    weigh(masks, odds, total, steps, num)
    for i in range(num):
        action = words.action[steps.word[i]]
        steps.action[i], steps.cost[i] = action, cost(odds, top, action, steps.lost[i])
        if steps.p[i] > 0.0 and low <= steps.cost[i] <= high:
            after = effect_of(kept.here, params, action, steps.instance[i], steps.lost[i])
            pack(
                representative(after, params, odds.alike, given.room),
                given.rows[at],
                kept.layout.base,
                kept.layout.fixed,
            )
            at += 1
    return num, total, breaks, ends
