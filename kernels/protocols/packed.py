"""Fields of a state that hold many small numbers: `Rows`, `Pairs` and `Set`, packed into as few integers as they need.

    class State(NamedTuple):
        term: Rows(SERVERS, 3)  # 3 bits for each server
        match: Pairs(SERVERS, SERVERS, 3)  # 3 bits for each leader and follower
        learners: Set(SERVERS)  # a bit for each server

A field is read by index, `state.match[leader, follower]`, whether the index is a plain number or a traced value, and
`state.match.put((leader, follower), 2)` is the field with another number there. Numbers must fit their bits.
"""

from collections import namedtuple
from functools import cache
from itertools import product
from math import prod
from typing import Annotated, Any

from quorisk.kernels.ops import Traced, where

WORD_BITS = 63
"""Bits of an integer of a state that may be used: `>>` must not meet a sign."""


class Packed:
    """The methods of Rows, Pairs and Sets. Each of them is a tuple, too, whose items are the words."""

    __slots__ = ()
    _fields: tuple[str, ...]
    shape: tuple[int, ...]
    bits: int

    def __getitem__(self, index):
        """The number at an index: one of Rows and of a Set, two of Pairs."""
        word, shift = self._locate(index)
        return (self._word(word) >> shift) & ((1 << self.bits) - 1)

    def put(self, index, value):
        """The field with `value` at an index."""
        number, shift = self._locate(index)
        changed = (self[index] ^ value) << shift
        return type(self)(*(word ^ where(number == i, changed, 0) for i, word in enumerate(self.words)))

    @property
    def words(self):
        """The integers."""
        return tuple(iter(self))

    @property
    def numbers(self):
        """All numbers, in order of their indices."""
        return [self[index if len(index) > 1 else index[0]] for index in product(*map(range, self.shape))]

    def of(self, numbers):
        """A field like this one with these numbers, in order of their indices."""
        in_a_word, words = WORD_BITS // self.bits, [0] * len(self._fields)
        for place, number in enumerate(numbers):
            words[place // in_a_word] |= number << (place % in_a_word * self.bits)
        return type(self)(*words)

    def _word(self, number):
        if not isinstance(number, Traced):
            return tuple.__getitem__(self, number)
        found = self.words[0]
        for i, word in enumerate(self.words[1:], 1):
            found = where(number == i, word, found)
        return found

    def _locate(self, index):
        """The word in which an index lies, and the shift of its number there."""
        place = index if len(self.shape) == 1 else index[0] * self.shape[1] + index[1]
        in_a_word, word, first = WORD_BITS // self.bits, 0, 0
        if not isinstance(place, Traced) or (len(self._fields) > 1 and in_a_word.bit_count() == 1):
            word = place // in_a_word  # of a traced place a shift
            return word, (place - in_a_word * word) * self.bits
        for i in range(1, len(self._fields)):
            beyond = place >= i * in_a_word
            word, first = where(beyond, i, word), where(beyond, i * in_a_word, first)
        return word, (place - first) * self.bits


@cache
def _packed(kind: str, shape: tuple[int, ...], bits: int) -> Any:
    size, in_a_word = prod(shape), WORD_BITS // bits
    names = [f"w{i}" for i in range(-(-size // in_a_word))]
    name = "_".join([kind, *map(str, shape), str(bits)])
    plain = namedtuple(name, names)  # type: ignore[misc]
    numbers = [min(in_a_word, size - first) for first in range(0, size, in_a_word)]
    hints = {word: Annotated[int, bits * number] for word, number in zip(names, numbers, strict=True)}
    contents = {"__slots__": (), "__annotations__": hints, "shape": shape, "bits": bits, "__reduce__": _reduce}
    return type(name, (Packed, plain), contents | {"kind": kind})


def _reduce(field):
    return _unreduced, (field.kind, field.shape, field.bits, field.words)


def _unreduced(kind, shape, bits, words):
    return _packed(kind, shape, bits)(*words)


def Rows(number: int, bits: int) -> Any:
    """A number of `bits` bits for each of `number` things."""
    return _packed("Rows", (number,), bits)


def Pairs(number: int, others: int, bits: int) -> Any:
    """A number of `bits` bits for each pair of one of `number` things and one of `others`."""
    return _packed("Pairs", (number, others), bits)


def Set(number: int) -> Any:
    """A set of some of `number` things, 63 at most: `members[i]` is 1 if i is one of them. Its one word is a mask."""
    return _packed("Set", (number,), 1)
