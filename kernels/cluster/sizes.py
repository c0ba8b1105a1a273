"""How much an incident loses: drawn given its chances, and counted in bins that are a two-hundredth of e wide.

A bin keeps the largest size in it: of sizes that are few, as multiples of a write set's entries are, it is the size
itself. Else it is at most half a per cent above.
"""

from typing import NamedTuple

import numpy as np

from quorisk.kernels.cluster.draws import hit, log_none, uniform, whole_number
from quorisk.kernels.ops import jitable, jitable_apart

BINS, PER_E, LEAST = 8192, 200.0, -7.0
"""From e**LEAST on; the first and the last bin are open."""
IN_ENTRIES, IN_LEDGERS = range(2)


class Sizes(NamedTuple):
    """Sizes of incidents in entries and in ledgers."""

    weight: np.ndarray  # float64 [in what, bin]
    largest: np.ndarray  # float64 [in what, bin]

    def add(self, other: "Sizes", times: float = 1.0) -> None:
        """Adds others, so many times."""
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
    """Returns the size from which on a bin's are; those of the first begin with 0."""
    return float(np.exp(place / PER_E + LEAST)) if place else 0.0


@jitable_apart
def draw_size(stream, law, kinds, found):
    """Entries and ledgers that an incident loses, of which `fate` has written the chances: given that it is one. Each
    thin entry is taken for one of a ledger of its own."""
    some_before, none_after = False, 0.0
    for i in range(len(kinds.number)):
        none_after += log_none(kinds.number[i], found.hit[i])
    entries, ledgers = 0.0, 0.0
    for i in range(len(kinds.number)):
        p = found.hit[i]
        if p <= 0.0:
            continue
        must = not some_before
        if must:  # is this the first kind of which there is one?
            here = log_none(kinds.number[i], p)
            is_first = uniform(stream) * -np.expm1(none_after) < -np.expm1(here)
            none_after -= here
            if not is_first and none_after < 0.0:
                continue
        there = whole_number(stream, kinds.number[i])
        num = hit(stream, max(there, 1.0) if must else there, p, must)
        some_before = True
        ledgers += num
        if i == 0:
            entries += kinds.entries[0] * _write_sets(stream, law, num, found)
        else:
            entries += kinds.entries[i] * num
    return entries, min(ledgers, np.ceil(kinds.number[0]))


@jitable_apart
def _write_sets(stream, law, num, found):
    """The write sets that so many ledgers lose together."""
    left, chance, sets = num, found.hit[0], 0.0
    for j in range(1, law.ensemble + 1):
        if left <= 0.0 or found.sets[j] <= 0.0:
            continue
        of = hit(stream, left, found.sets[j] / chance, False) if found.sets[j] < chance * (1.0 - 1e-12) else left
        sets += j * of
        left -= of
        chance -= found.sets[j]
    return sets
