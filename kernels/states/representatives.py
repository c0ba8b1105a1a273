"""Representatives: the one state that a head keeps in place of all that differ in nothing that matters.

Two differences do not matter. One is in what no step and no invariant reads any more (`Model.forget`). The other is
which is which among things that are alike (`kernels.model.Alike`): a state is these things, each with its bits of all
fields, and the rest. So the state with the things in the order of their bits stands for all others.

The chain of representatives is the chain of all states with such states lumped, so that every probability of a loss is
the same. Things are ordered by a hash of their bits. If two of them had the same by chance, both orders would be kept:
more states, and no other answers.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.keeping import njit_kept
from quorisk.kernels.model import Model, leaves
from quorisk.kernels.packing import fields_of, unpacked, wide_row
from quorisk.kernels.states.programs import Programs

_FACTOR, _TURN = np.int64(0x9E3779B97F4A7C1), 29
"""Constants of the hash: an odd factor with high and low bits, and the shift that moves high bits down."""


class _Fields(NamedTuple):
    """Fields of a wide row that are about things, int64 by field."""

    word: np.ndarray
    shift: np.ndarray
    whole: np.ndarray
    """Mask of the field's bits, shifted to the lowest."""
    bits: np.ndarray
    """Number of bits for each thing."""
    first: np.ndarray
    """Mask of those of the first thing."""


@cache
def _fields(model: Model) -> _Fields:
    found = []
    if model.alike:
        for (word, shift, width), bits in zip(fields_of(model.widths), leaves(model.alike.bits), strict=True):
            if bits:
                first = sum((1 << bits) - 1 << at for at in range(0, width, bits * model.alike.most))
                found.append((word, shift, (1 << width) - 1, bits, first))
    return _Fields(*np.array(found, np.int64).reshape(-1, 5).T.copy())


def stand_in(model: Model, rows: np.ndarray, number: int) -> None:
    """Puts the first `number` things of each state, which are alike, in order. `rows` are wide rows, int64 by
    state and word."""
    if model.alike and number >= 2:
        _put_in_order(rows, number, model.alike.most, _fields(model))


def representative(programs: Programs, state: Any, number: int) -> Any:
    """The representative of a state, for plain Python."""
    model = programs.model
    row = wide_row(state, model.widths)[None].view(np.int64)
    if model.forget:
        row = programs.forgotten(row)
    stand_in(model, row, number)
    return unpacked(row[0].view(np.uint64), model.widths)


@njit_kept
def _put_in_order(rows, number, most, fields):
    hashes, order = np.empty(number, np.int64), np.arange(most)
    for at in range(len(rows)):
        row, stays = rows[at], True
        hashes[:] = 0
        for i in range(len(fields.word)):
            field = row[fields.word[i]] >> fields.shift[i]
            for thing in range(number):  # a processor computes these hashes side by side
                found = (hashes[thing] ^ field >> fields.bits[i] * thing & fields.first[i]) * _FACTOR
                hashes[thing] = found ^ found >> _TURN
        for thing in range(number):
            found, place = hashes[thing], thing
            while place > 0 and hashes[place - 1] > found:
                hashes[place], order[place] = hashes[place - 1], order[place - 1]
                place -= 1
                stays = False
            hashes[place], order[place] = found, thing
        if stays:
            continue
        for i in range(len(fields.word)):
            before = row[fields.word[i]] >> fields.shift[i] & fields.whole[i]
            if before != 0:  # most are 0, and moving bits takes long
                after = np.int64(0)
                for place in range(most):
                    its_bits = before >> fields.bits[i] * order[place] & fields.first[i]
                    after |= its_bits << fields.bits[i] * place
                row[fields.word[i]] ^= (before ^ after) << fields.shift[i]
