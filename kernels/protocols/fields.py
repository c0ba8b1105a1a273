"""Declarations of a state's fields, made once, beside their names.

A field that is `Annotated[int, 18, 3]` has 18 bits, 3 of them for each node; one that is `Annotated[int, 18]` is about
no node. A part that is a state of its own has fields of its own, or if it is annotated the same bits in each of them.
"""

from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from quorisk.kernels.model import leaves

State = TypeVar("State")
_WIDTH, _BITS = range(2)


def widths(state: type[State]) -> State:
    """The bits of every field, as `Model.widths` has them."""
    return _built(state, _WIDTH)


def bits_by_node(state: type[State]) -> State:
    """The bits that every field has for each node, as `Alike.bits` has them: 0 if it is about none."""
    return _built(state, _BITS)


def blank(state: type[State]) -> State:
    """The state with 0 in every field."""
    return _built(Annotated[state, 0], 0)


def total_bits(record: type) -> int:
    """The bits of all fields of a record together."""
    return sum(_sizes(record))


@cache
def _sizes(record: Any) -> tuple[int, ...]:
    return leaves(widths(record))


def joined(record):
    """A record, which is a NamedTuple with declared fields, as one integer; its first field is lowest."""
    word, shift = 0, 0
    for value, width in zip(record, _sizes(type(record)), strict=True):
        word, shift = word | (value << shift), shift + width
    return word


def parted(kind, word):
    """The record of this kind that was `joined` to an integer."""
    values, shift = [], 0
    for width in _sizes(kind):
        values.append((word >> shift) & ((1 << width) - 1))
        shift += width
    return kind(*values)


def _built(hint: Any, which: int, given: tuple[int, ...] = ()) -> Any:
    if get_origin(hint) is Annotated:
        hint, *own = get_args(hint)
        given = given or tuple(own)
    if hint is int:
        return given[which] if which < len(given) else 0
    parts = get_type_hints(hint, include_extras=True)
    return hint(*(_built(parts[name], which, given) for name in hint._fields))
