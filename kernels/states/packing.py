"""States as rows of 64-bit words, each integer in the bits that its model declares for it."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

from quorisk.kernels.compiled import leaf_paths
from quorisk.kernels.model import leaves


class _Field(NamedTuple):
    word: int
    shift: int
    width: int


def _layout(widths: Any) -> list[_Field]:
    """Fields in order, none across two words."""
    fields = []
    word, used = 0, 0
    for width in leaves(widths):
        if used + width > 64:
            word, used = word + 1, 0
        fields.append(_Field(word, used, width))
        used += width
    return fields


def num_packed_words(widths: Any) -> int:
    """Words that a packed state takes."""
    return _layout(widths)[-1].word + 1


def unpacked(row: Sequence[int], widths: Any) -> Any:
    """The state that was packed into a row, for plain Python."""
    fields = iter(_layout(widths))

    def build(part: Any) -> Any:
        if isinstance(part, tuple):
            return type(part)(*map(build, part))
        field = next(fields)
        return int(row[field.word]) >> field.shift & (1 << field.width) - 1

    return build(widths)


@cache
def packing(widths: Any) -> tuple[Any, Any]:
    """Compiled code's `pack(state, row)` and `unpack(like, row)` for states of these widths; rows are uint64."""
    fields = _layout(widths)
    word_type = ir.IntType(64)

    def pointer(context, builder, kind, row, word):
        data = cgutils.create_struct_proxy(kind)(context, builder, value=row).data
        return builder.gep(data, [ir.Constant(word_type, word)])

    @intrinsic
    def pack(typing_context, state, row):
        def generate(context, builder, call, args):
            words = [ir.Constant(word_type, 0)] * num_packed_words(widths)
            for field, path in zip(fields, leaf_paths(state), strict=True):
                value = builder.shl(builder.extract_value(args[0], path), ir.Constant(word_type, field.shift))
                words[field.word] = builder.or_(words[field.word], value)
            for i, word in enumerate(words):
                builder.store(word, pointer(context, builder, row, args[1], i))
            return context.get_dummy_value()

        return types.void(state, row), generate

    @intrinsic
    def unpack(typing_context, like, row):
        def generate(context, builder, call, args):
            state = args[0]
            for field, path in zip(fields, leaf_paths(like), strict=True):
                word = builder.load(pointer(context, builder, row, args[1], field.word))
                value = builder.lshr(word, ir.Constant(word_type, field.shift))
                value = builder.and_(value, ir.Constant(word_type, (1 << field.width) - 1))
                state = builder.insert_value(state, value, path)
            return state

        return like(like, row), generate

    return pack, unpack


@register_jitable(forceinline=True)
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
