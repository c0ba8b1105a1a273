"""States as rows of as few 64-bit words as tell them apart: the bits in which they differ, and no others.

A wide row has the bits that `Model.widths` declares for the largest sizes; a configuration uses few of them. Which ones
vary is observed, not declared: a layout records what the states so far have in common. A state that differs from them
elsewhere makes the layout wider (`widened`), and all rows are written anew. The varying bits of a word of the wide row
are rotated to free places in a word of the narrow row: an `and`, a rotation and an `or` for each word.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.model import leaves
from quorisk.kernels.ops import bits, jitable

_WORD = (1 << 64) - 1


class RowField(NamedTuple):
    word: int
    shift: int
    width: int


def fields_of(widths: Any) -> list[RowField]:
    """Fields of a wide row in order, none across two words."""
    fields = []
    word, used = 0, 0
    for width in leaves(widths):
        if used + width > 64:
            word, used = word + 1, 0
        fields.append(RowField(word, used, width))
        used += width
    return fields


def wide_row(state: Any, widths: Any) -> np.ndarray:
    """A state's wide row (uint64), for plain Python. Raises OverflowError if the state does not fit."""
    fields = fields_of(widths)
    row = np.zeros(fields[-1].word + 1, np.uint64)
    for field, value in zip(fields, leaves(state), strict=True):
        if value >> field.width:
            raise OverflowError(f"{value} does not fit {field.width} bits")
        row[field.word] |= np.uint64(value << field.shift)
    return row


def unpacked(wide: np.ndarray, widths: Any) -> Any:
    """The state of a wide row, for plain Python."""
    fields = iter(fields_of(widths))

    def build(part: Any) -> Any:
        if isinstance(part, tuple):
            return type(part)(*map(build, part))
        field = next(fields)
        return int(wide[field.word]) >> field.shift & (1 << field.width) - 1

    return build(widths)


def state_of(row: np.ndarray, layout: "RowLayout", widths: Any) -> Any:
    """The state of a row, for plain Python."""
    wide = np.empty_like(layout.base)
    spread(row, layout, wide)
    return unpacked(wide, widths)


def columns(rows: np.ndarray, layout: "RowLayout", widths: Any) -> list[np.ndarray]:
    """The integers of the states of many rows: for each of a state's leaves an array (uint64) of one number a row."""
    wide = np.empty((len(layout.base), len(rows)), np.uint64)
    spread(rows.T, layout, wide)
    return [
        wide[field.word] >> np.uint64(field.shift) & np.uint64((1 << field.width) - 1) for field in fields_of(widths)
    ]


class RowLayout(NamedTuple):
    """Places of a wide row's bits in a row; a piece is the varying bits of one word of the wide row.

    All unsigned: for a signed index compiled code first checks whether it counts from the end.
    """

    base: np.ndarray  # uint64 by wide word: the bits that all states have in common
    fixed: np.ndarray  # uint64 by wide word: mask of those bits
    source: np.ndarray  # uint64 by piece: the wide word whose bits they are; pieces are in the order of their words
    vary: np.ndarray  # uint64 by piece: mask of those bits
    turn: np.ndarray  # uint64 by piece: the rotation to the left that takes them to their place, below 64
    last: np.ndarray  # uint64 by word of a row: the number of pieces of it and the words before it

    @property
    def num_words(self) -> int:
        """Words of a row, one at least."""
        return len(self.last)


def wide_layout(num_words: int) -> RowLayout:
    """The layout of rows that are wide rows: every bit may vary."""
    nothing, numbers = np.zeros(num_words, np.uint64), np.arange(num_words, dtype=np.uint64)
    return RowLayout(nothing, nothing, numbers, ~nothing, nothing, numbers + np.uint64(1))


def narrowest(wide: np.ndarray) -> RowLayout:
    """The layout of a single state: nothing varies."""
    return _layout(wide, np.full(len(wide), _WORD, np.uint64), 1)


def widened(layout: RowLayout, wide: np.ndarray) -> RowLayout:
    """The layout with room for one more state; its rows have no fewer words."""
    return _layout(layout.base, layout.fixed & ~(layout.base ^ wide), layout.num_words)


def _layout(base: np.ndarray, fixed: np.ndarray, num_words: int) -> RowLayout:
    """Places words by first fit, those with the most varying bits first."""
    pieces, num_words = _pieces(tuple(~int(mask) & _WORD for mask in fixed), num_words)
    words, sources, turns = np.array(pieces, np.uint64).reshape(-1, 3).T
    last = np.searchsorted(words, np.arange(num_words, dtype=np.uint64), "right").astype(np.uint64)
    return RowLayout(base & fixed, fixed, sources.copy(), ~fixed[sources], turns.copy(), last)


@lru_cache(maxsize=1 << 12)  # searches of one model at other rates ask for the same ones again
def _pieces(vary: tuple[int, ...], num_words: int) -> tuple[list[tuple[int, int, int]], int]:
    """Returns (word of a row, word of the wide row, rotation) of each piece, in order, and the number of words of a
    row, which is `num_words` or more."""
    used, pieces = [0] * num_words, []
    for source in sorted((i for i, mask in enumerate(vary) if mask), key=lambda i: -vary[i].bit_count()):
        word, turn = _place(vary[source], used)
        pieces.append((word, source, turn))
        if word == len(used):
            used.append(0)
        used[word] |= rotated(vary[source], turn)
    return sorted(pieces), len(used)


def _place(mask: int, used: Sequence[int]) -> tuple[int, int]:
    """Returns the first word, and the rotation, at which a mask hits no used bit; a new word if there is none."""
    for word, taken in enumerate(used):
        hits = 0  # bit i: rotated by i, it hits something
        for bit in bits(mask):
            hits |= rotated(taken, 64 - bit)
        if hits != _WORD:
            return word, (~hits & (hits + 1)).bit_length() - 1
    return len(used), 0


def rotated(mask: int, turn: int) -> int:
    """A mask of 64 bits, rotated to the left by 0 to 63."""
    return (mask << turn | mask >> (64 - turn)) & _WORD


@jitable
def narrow(wide, layout, row):
    """Writes the row of a state that fits."""
    piece = np.uint64(0)
    for word in range(len(row)):
        bits = np.uint64(0)
        while piece < layout.last[word]:
            part = wide[layout.source[piece]] & layout.vary[piece]
            bits |= _turned(part, layout.turn[piece])
            piece += np.uint64(1)
        row[word] = bits


@jitable
def spread(row, layout, wide):
    """Writes the wide row that a row was narrowed from."""
    for i in range(len(wide)):
        wide[i] = layout.base[i]
    piece = np.uint64(0)
    for word in range(len(row)):
        while piece < layout.last[word]:
            part = _turned(row[word], np.uint64(64) - layout.turn[piece])
            wide[layout.source[piece]] = layout.base[layout.source[piece]] | part & layout.vary[piece]
            piece += np.uint64(1)


@jitable
def _turned(word, turn):
    """Rotates a word to the left by 0 to 64 bits."""
    return word << (turn & np.uint64(63)) | word >> (np.uint64(64) - turn & np.uint64(63))


@jitable
def hash_words(row):
    """A 64-bit hash: multilinear over the words, then a final mix (the finaliser of MurmurHash3)."""
    odd = np.uint64(0x9E3779B97F4A7C15)
    factor = np.uint64(0xD6E8FEB86659FD93)
    mixed = np.uint64(0)
    for i in range(len(row)):
        mixed += (row[i] ^ (row[i] >> np.uint64(32))) * factor
        factor += odd << np.uint64(1)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    return mixed ^ (mixed >> np.uint64(33))
