"""Sizes of incidents: drawn given their chances, and counted in bins, 200 to a factor of e.

A bin keeps the largest size in it. Where sizes are few, such as the multiples of a write set's entries, that is the
size itself; else it is at most half a per cent above.
"""

from typing import NamedTuple

import numpy as np

from quorisk.kernels.cluster.draws import hit, log_none, uniform, whole_number
from quorisk.kernels.ops import jitable, jitable_apart

BINS, PER_E, LEAST = 8192, 200.0, -7.0
"""Number of bins, bins per factor of e, and logarithm of the least size; the first and the last bin are open."""
IN_ENTRIES, IN_LEDGERS = range(2)


class Sizes(NamedTuple):
    """Sizes of incidents in entries and in ledgers."""

    weight: np.ndarray  # float64 [in what, bin]
    largest: np.ndarray  # float64 [in what, bin]

    def add(self, other: "Sizes", times: float = 1.0) -> None:
        """Adds others, weighted by `times`."""
        self.weight[:] += times * other.weight
        np.maximum(self.largest, other.largest, out=self.largest)


def no_sizes() -> Sizes:
    """Returns empty bins."""
    return Sizes(np.zeros((2, BINS)), np.zeros((2, BINS)))


@jitable
def bin_of(size):
    """The bin of a size above 0."""
    return min(BINS - 1, max(0, int(PER_E * (np.log(size) - LEAST))))


def least_of(place: int) -> float:
    """Returns the least size of a bin; that of the first is 0."""
    return float(np.exp(place / PER_E + LEAST)) if place else 0.0


@jitable_apart
def draw_size(stream, law, kinds, found):
    """Draws the entries and ledgers that an incident loses, by the chances that `fate` has written, given that it is an
    incident. Each thin entry counts as one of a ledger of its own."""
    some_before, none_after = False, 0.0
    for disk in range(law.disks):
        for i in range(len(kinds.number)):
            none_after += log_none(kinds.number[i] * law.part, found.hit[disk, i])
    entries, ledgers = 0.0, 0.0
    for disk in range(law.disks):
        for i in range(len(kinds.number)):
            p, number = found.hit[disk, i], kinds.number[i] * law.part
            if p <= 0.0:
                continue
            must = not some_before
            if must:  # is this the first kind of which there is one?
                here = log_none(number, p)
                is_first = uniform(stream) * -np.expm1(none_after) < -np.expm1(here)
                none_after -= here
                if not is_first and none_after < 0.0:
                    continue
            there = whole_number(stream, number)
            num = hit(stream, max(there, 1.0) if must else there, p, must)
            some_before = True
            ledgers += num
            if i == 0:
                entries += kinds.entries[0] * _write_sets(stream, law, num, disk, found)
            else:
                entries += kinds.entries[i] * num
    return entries, min(ledgers, np.ceil(kinds.number[0]))


@jitable_apart
def _write_sets(stream, law, num, disk, found):
    """Draws the number of write sets that `num` ledgers on a disk lose together."""
    left, chance, sets = num, found.hit[disk, 0], 0.0
    for j in range(1, law.ensemble + 1):
        of_j = found.sets[disk, j]
        if left <= 0.0 or of_j <= 0.0:
            continue
        of = hit(stream, left, of_j / chance, False) if of_j < chance * (1.0 - 1e-12) else left
        sets += j * of
        left -= of
        chance -= of_j
    return sets
