"""One state for all that go on alike: what a head keeps of states that differ in nothing that matters.

Two things do not matter. What no step and no invariant asks for any more, a model says (`Model.forget`). And where
things are alike (`kernels.model.Alike`), it does not matter which is which: a state is these things, each with its
bits of all fields, and what is not about them, so that one state, with the things in the order of their bits, stands
for all others.

A chain of such states alone is the chain of all states with those put together that go on alike, so that every
probability of a loss is the same. Things are ordered by a hash of their bits. If two of them had the same by chance,
both orders would be kept: more states, and no other answers.
"""

from functools import cache
from typing import Any

import numpy as np

from quorisk.kernels.compiled import LATE, bind, load_words, store_words
from quorisk.kernels.model import Model, leaves, smallest_params
from quorisk.kernels.stepper import stepper

_FACTOR, _TURN = 0x9E3779B97F4A7C1, 29
"""Of the hash: an odd number of high and low bits, and how far its high bits go down."""


@cache
def representative_function(model: Model) -> Any:
    """Compiled `representative(state, params, number, room)`: the state that stands for this one.

    Of its things `number` are alike; `room` is an int64 array of `room_for(model)`.
    """
    forget = stepper(model).forget
    if model.alike is None:
        return bind(_without_things, model.name, forget=forget)
    widths, bits = leaves(model.widths), leaves(model.alike.bits)
    about = [i for i, each in enumerate(bits) if each]
    rows = [range(0, widths[i], bits[i] * model.alike.most) for i in about]
    first = [sum((1 << bits[i]) - 1 << at for at in row) for i, row in zip(about, rows, strict=True)]
    return bind(
        _representative,
        model.name,
        forget=forget,
        like=model.initial(smallest_params(model), 0),
        num_leaves=len(bits),
        most=model.alike.most,
        about=np.array(about, np.int64),
        bits=np.array([bits[i] for i in about], np.int64),
        first=np.array(first, np.int64),
    )


@cache
def stand_in_function(model: Model) -> Any:
    """Compiled `representative`, as Python may call it."""
    return bind(_stand_in, model.name, cached=True, representative=representative_function(model))


def room_for(model: Model) -> int:
    """The size of `representative`'s room: the state's integers, and by thing its hash and its place."""
    return len(leaves(model.widths)) + 2 * model.alike.most if model.alike else 0


# Templates, with the names that are bound above

about = bits = first = forget = like = most = num_leaves = representative = LATE


def _stand_in(state, params, number, room):
    return representative(state, params, number, room)


def _without_things(state, params, number, room):
    return forget(state, params)


def _representative(state, params, number, room):
    state = forget(state, params)
    if number < 2:
        return state
    store_words(state, room, 0)
    hashes, order = num_leaves, num_leaves + most
    for thing in range(number):
        found = 0
        for i in range(len(about)):
            found = (found ^ (room[about[i]] >> bits[i] * thing & first[i])) * _FACTOR
            found ^= found >> _TURN
        place = thing
        while place > 0 and room[hashes + place - 1] > found:
            room[hashes + place] = room[hashes + place - 1]
            room[order + place] = room[order + place - 1]
            place -= 1
        room[hashes + place] = found
        room[order + place] = thing
    for i in range(len(about)):
        before, after = room[about[i]], 0
        for place in range(number):
            after |= (before >> bits[i] * room[order + place] & first[i]) << bits[i] * place
        room[about[i]] = after
    return load_words(like, room, 0)
