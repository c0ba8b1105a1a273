"""Representatives: the one state that a head keeps in place of all that differ in nothing that matters.

Two differences do not matter. One is in what no step and no invariant reads any more (`Model.forget`). The other is
which is which among things that are alike (`kernels.model.Alike`): a state is these things, each with its bits of all
fields, and the rest. So the state with the things in the order of their bits stands for all others.

The chain of representatives is the chain of all states with such states lumped, so that every probability of a loss is
the same. Things are ordered by a hash of their bits. If two of them had the same by chance, both orders would be kept:
more states, and no other answers.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from quorisk.kernels.compiled import LATE, bind, element, leaf_paths, load_words, store_words
from quorisk.kernels.machine_code import emits
from quorisk.kernels.model import Model, leaves, smallest_params
from quorisk.kernels.stepper import stepper
from quorisk.kernels.tracing.machine import I64, constant, lanes_of, splat

_FACTOR, _TURN = 0x9E3779B97F4A7C1, 29
"""Constants of the hash: an odd factor with high and low bits, and the shift that moves high bits down."""


@cache
def representative_function(model: Model) -> Any:
    """Compiles `representative(state, params, number, room)`: the representative of this state.

    The first `number` of its things are alike; `room` is an int64 array of size `room_for(model)`.
    """
    forget = stepper(model).forget
    if model.alike is None or model.alike.most < 2:
        return bind(_without_things, model.name, forget=forget)
    widths, bits, most = leaves(model.widths), leaves(model.alike.bits), model.alike.most
    first = [
        sum((1 << b) - 1 << at for at in range(0, width, b * most)) if b else 0
        for b, width in zip(bits, widths, strict=True)
    ]
    about = [i for i, each in enumerate(bits) if each]
    return bind(
        _representative,
        model.name,
        forget=forget,
        hash_things=_hashing(most, list(zip(bits, first, strict=True))),
        like=model.initial(smallest_params(model), 0),
        num_leaves=len(bits),
        most=most,
        about=np.array(about, np.int64),
        bits=np.array([bits[i] for i in about], np.int64),
        first=np.array([first[i] for i in about], np.int64),
    )


def _hashing(most: int, fields: Sequence[tuple[int, int]]) -> Any:
    """Makes compiled code's `hash_things(state, hashes)`: writes the hash of each thing, all computed in one register.

    `fields` are, by integer of a state, the number of bits that it has for each thing, and the mask of the first one's.
    """
    kind = lanes_of(I64, most)

    @emits(lambda state, hashes: types.void(state, hashes))
    def hash_things(context, builder, call, args):
        found = constant(kind, 0)
        for (each, first), path in zip(fields, leaf_paths(call.args[0]), strict=True):
            if each:
                whole = splat(builder, builder.extract_value(args[0], path), most)
                mine = builder.lshr(whole, kind([each * thing for thing in range(most)]))
                found = builder.xor(found, builder.and_(mine, constant(kind, first)))
                found = builder.mul(found, constant(kind, _FACTOR))
                found = builder.xor(found, builder.ashr(found, constant(kind, _TURN)))
        place = element(context, builder, call.args[1], args[1], constant(I64, 0))
        builder.store(found, builder.bitcast(place, ir.PointerType(kind)), align=8)
        return context.get_dummy_value()

    return hash_things


@cache
def stand_in_function(model: Model) -> Any:
    """Compiles `representative` for Python to call."""
    return bind(_stand_in, model.name, kept_for=model.name, representative=representative_function(model))


def room_for(model: Model) -> int:
    """The size of `representative`'s room: the state's integers, and by thing its hash and its place."""
    return len(leaves(model.widths)) + 2 * model.alike.most if model.alike else 0


# Templates, with the names that are bound above

about = bits = first = forget = hash_things = like = most = num_leaves = representative = LATE


def _stand_in(state, params, number, room):
    return representative(state, params, number, room)


def _without_things(state, params, number, room):
    return forget(state, params)


def _representative(state, params, number, room):
    state = forget(state, params)
    if number < 2:
        return state
    hashes, order = room[num_leaves : num_leaves + most], room[num_leaves + most :]
    hash_things(state, hashes)
    for thing in range(most):
        order[thing] = thing
    stays = True
    for thing in range(1, number):
        found, place = hashes[thing], thing
        while place > 0 and hashes[place - 1] > found:
            hashes[place], order[place] = hashes[place - 1], order[place - 1]
            place -= 1
            stays = False
        hashes[place], order[place] = found, thing
    if stays:
        return state
    store_words(state, room)
    for i in range(len(about)):
        before, after = room[about[i]], 0
        if before != 0:  # most are 0, and moving bits takes long
            for place in range(most):
                after |= (before >> bits[i] * order[place] & first[i]) << bits[i] * place
            room[about[i]] = after
    return load_words(like, room)
