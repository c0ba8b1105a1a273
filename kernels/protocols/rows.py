"""Sets of replicas as matrices: words of 6-bit rows, bit 6 row + column.

A row is a set of replicas, of records or of epochs, or a small number. A set of replicas also comes spread: replica r
as bit 6r, the lowest bit of its row.
"""

from quorisk.kernels.ops import lowest_bit

WIDTH = 6
"""Bits of a row."""
ROW = 0b111111
"""A whole row."""
EVERY_ROW = 0x41041041
"""The factor that copies a row to every row; also every row's lowest bit."""
LOW_BITS = EVERY_ROW * 0b011111
"""Every bit of a row but the highest."""
_SPREAD = 1 | 1 << 5 | 1 << 10 | 1 << 15 | 1 << 20
_GATHER = 1 << 30 | 1 << 25 | 1 << 20 | 1 << 15 | 1 << 10 | 1 << 5


def row(matrix, i):
    """Row i of a matrix."""
    return (matrix >> (WIDTH * i)) & ROW


def with_row(matrix, i, value):
    """The matrix with row i replaced."""
    return (matrix & ~(ROW << (WIDTH * i))) | (value << (WIDTH * i))


def row_of(bit):
    """The row of a matrix's only bit."""
    return lowest_bit(bit) // WIDTH


def union(matrix):
    """All rows in one."""
    halves = matrix | (matrix >> (3 * WIDTH))
    return (halves | (halves >> WIDTH) | (halves >> (2 * WIDTH))) & ROW


def nonempty(matrix):
    """The lowest bit of every row that has a bit set."""
    return ((((matrix & LOW_BITS) + LOW_BITS) | matrix) >> (WIDTH - 1)) & EVERY_ROW


def spread(replicas):
    """A set of replicas, replica r moved to bit 6r."""
    # the sixth would carry into others, if it were multiplied
    return (((replicas & 0b11111) * _SPREAD) | ((replicas & 0b100000) << 25)) & EVERY_ROW


def gathered(replicas):
    """The inverse of `spread`."""
    return ((replicas * _GATHER) >> 30) & ROW


def rows(replicas):
    """The whole rows of a set of replicas."""
    return spread(replicas) * ROW


def rows_of_zones(replicas, zones):
    """Row z: the replicas of zone z, of `zones` zones; replica r is in zone r mod zones. Nothing without zones."""
    return sum(1 << (WIDTH * (r % zones) + r) for r in range(replicas)) if zones else 0
