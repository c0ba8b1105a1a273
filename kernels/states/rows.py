"""Rows of states (`kernels.packing`), many at a time."""

import numpy as np

from quorisk.kernels.keeping import njit_kept
from quorisk.kernels.packing import RowLayout, narrow, spread


def in_layout(rows: np.ndarray, layout: RowLayout, other: RowLayout) -> np.ndarray:
    """The rows of another layout, which their states fit; uint64 by state and word."""
    if layout is other:
        return rows
    found = np.empty((len(rows), other.num_words), np.uint64)
    lay_out(rows, layout, found, other)
    return found


@njit_kept
def lay_out(rows, layout, other_rows, other):
    """Writes the rows of another layout, from the last to the first: wider rows may begin in the same memory."""
    wide, are_wide = np.empty_like(layout.base), not np.any(layout.fixed)
    for place in range(len(rows) - 1, -1, -1):
        if are_wide:
            narrow(rows[place], other, other_rows[place])
        else:
            spread(rows[place], layout, wide)
            narrow(wide, other, other_rows[place])


@njit_kept
def differing(rows, layout, base):
    """Returns the bits, by word of a wide row, in which one of these states or more differ from `base`."""
    found, wide, are_wide = np.zeros_like(base), np.empty_like(base), not np.any(layout.fixed)
    for i in range(len(rows)):
        if not are_wide:
            spread(rows[i], layout, wide)
        for word in range(len(base)):
            found[word] |= (rows[i, word] if are_wide else wide[word]) ^ base[word]
    return found
