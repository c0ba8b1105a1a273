"""Records in memory of runs that are not in registers: every value has the bits that it may need."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from llvmlite import ir

from quorisk.kernels.engines.lanes.plan import GAP, pieces
from quorisk.kernels.tracing.machine import I32, constant, lanes_of, resized

DWORD = 32
_ONES = (1 << DWORD) - 1
LINE = 16
"""Dwords of a line of the processor's cache."""
RUNS = 16
"""Records that are transposed at a time: as many as a line has dwords."""


class Piece(NamedTuple):
    """The place of some bits of a value."""

    dword: int
    offset: int
    lowest: int
    """Bit of the value that lies at `offset`."""
    mask: int
    """Bits that the value may have, from that one on. Bits of others lie between them."""

    @property
    def bits(self) -> int:
        """The bits of the dword that it takes."""
        return self.mask << self.offset


class Layout:
    """The values of a record by name, and their places."""

    def __init__(self, values: Mapping[Any, int]) -> None:
        """`values` says which bits each may have."""
        self.pieces: dict[Any, list[Piece]] = {name: [] for name in values}
        used: list[int] = []
        todo = [
            (name, lowest, may >> lowest & (1 << size) - 1)
            for name, may in values.items()
            for lowest, size in pieces(may, DWORD, GAP)
        ]
        for name, lowest, mask in sorted(todo, key=lambda piece: (-piece[-1].bit_length(), -piece[-1].bit_count())):
            dword, offset = next(_places(used, mask))
            used[dword:] = used[dword:] or [0]
            used[dword] |= mask << offset
            self.pieces[name].append(Piece(dword, offset, lowest, mask))
        self.num_dwords = len(used)
        self.num_lines = -(-len(used) // LINE)

    def taken(self, names: Sequence[Any]) -> dict[int, int]:
        """Returns, by dword, the bits that these values take."""
        found: dict[int, int] = {}
        for piece in (piece for name in names for piece in self.pieces[name]):
            found[piece.dword] = found.get(piece.dword, 0) | piece.bits
        return found

    def get(self, builder: ir.IRBuilder, name: Any, dword: Callable[[int], Any]) -> Any:
        """A value in each lane, of 32 bits or of 64; `dword` loads the dwords of that number."""
        parts = self.pieces[name]
        width = DWORD if all(part.mask << part.lowest < 1 << DWORD for part in parts) else 2 * DWORD
        value: Any = None
        for part in parts:
            bits = dword(part.dword)
            if part.offset:
                bits = builder.lshr(bits, constant(bits.type, part.offset))
            if part.mask != _ONES >> part.offset:
                bits = builder.and_(bits, constant(bits.type, part.mask))
            bits = resized(builder, bits, width)
            if part.lowest:
                bits = builder.shl(bits, constant(bits.type, part.lowest))
            value = bits if value is None else builder.or_(value, bits)
        return value

    def packed(self, builder: ir.IRBuilder, values: Mapping[Any, Any]) -> dict[int, Any]:
        """The dwords of these values, 0 where others lie."""
        found: dict[int, Any] = {}
        for name, value in values.items():
            for part in self.pieces[name]:
                bits = builder.lshr(value, constant(value.type, part.lowest)) if part.lowest else value
                bits = resized(builder, bits, DWORD)
                if part.mask != _ONES:
                    bits = builder.and_(bits, constant(bits.type, part.mask))
                if part.offset:
                    bits = builder.shl(bits, constant(bits.type, part.offset))
                found[part.dword] = builder.or_(found[part.dword], bits) if part.dword in found else bits
        return found


def _places(used: Sequence[int], mask: int) -> Iterator[tuple[int, int]]:
    """(dword, offset) of all places where these bits are free, if those are used."""
    for dword, bits in enumerate([*used, 0]):
        for offset in range(DWORD - mask.bit_length() + 1):
            if not bits & mask << offset:
                yield dword, offset


def turned(builder: ir.IRBuilder, rows: Sequence[Any]) -> list[Any]:
    """The columns of 16 rows of 16 dwords: those of 4 by 4 dwords in each quarter of a register, then the quarters."""

    def mixed(a: Any, b: Any, places: Sequence[int]) -> Any:
        return builder.shuffle_vector(a, b, ir.Constant(lanes_of(I32, RUNS), list(places)))

    def in_quarters(*places: int) -> list[int]:
        return [place + 4 * quarter for quarter in range(4) for place in places]

    def quarters(*which: int) -> list[int]:
        return [4 * quarter + i for quarter in which for i in range(4)]

    low, high = in_quarters(0, 16, 1, 17), in_quarters(2, 18, 3, 19)
    low_pair, high_pair = in_quarters(0, 1, 16, 17), in_quarters(2, 3, 18, 19)
    fours: list[list[Any]] = []
    for a, b, c, d in (rows[i : i + 4] for i in range(0, RUNS, 4)):
        lows, highs = (mixed(a, b, low), mixed(c, d, low)), (mixed(a, b, high), mixed(c, d, high))
        fours.append([mixed(*pair, places) for pair in (lows, highs) for places in (low_pair, high_pair)])
    columns: list[Any] = [None] * RUNS
    for i, (a, b, c, d) in enumerate(zip(*fours, strict=True)):
        for first, half in ((0, quarters(0, 1, 4, 5)), (8, quarters(2, 3, 6, 7))):
            ab, cd = mixed(a, b, half), mixed(c, d, half)
            columns[first + i] = mixed(ab, cd, quarters(0, 2, 4, 6))
            columns[first + 4 + i] = mixed(ab, cd, quarters(1, 3, 5, 7))
    return columns
