"""A store of a model's states, each kept once, numbered in the order in which they came.

Rows (`kernels.packing`) lie end to end in one array; an open-addressing table of (fingerprint, number) finds
duplicates. Compiled code stops when it needs more room than there is, and Python makes room.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels import declared
from quorisk.kernels.compiled import prefetch
from quorisk.kernels.errors import ModelError
from quorisk.kernels.keeping import njit_kept
from quorisk.kernels.model import Model
from quorisk.kernels.ops import jitable
from quorisk.kernels.packing import RowLayout, hash_words, narrowest, state_of, wide_row, widened
from quorisk.kernels.states.programs import Programs
from quorisk.kernels.states.rows import differing, in_layout, lay_out

MOST_SUCCESSORS = 1 << 14
"""Room kept for the successors of one state; more would need 2**6 lost subsets of 256 instances."""
SLICE = 1 << 15
"""States that compiled code expands at a time."""
_TOGETHER = 64
"""Number of slots of a table that are prefetched together."""
TABLE_BYTES = 8 * 6
"""Bytes of the table by state: at most 4 slots, and while it doubles the 2 of the old table."""
_PLACE_BITS = 40
_PLACE = np.int64((1 << _PLACE_BITS) - 1)
ENDED, TABLE_FULL, FULL = range(3)
"""Reasons why compiled code stopped: the end of what it was given, a full hash table, or other full arrays."""


class Kept(NamedTuple):
    """Arrays of a store, as compiled code sees it."""

    rows: np.ndarray  # uint64, [number, word]; as many as memory holds
    table: np.ndarray  # int64, a power of two
    layout: RowLayout


Add = Callable[[Kept, np.ndarray, int, int], tuple[int, int, int]]
"""`add(kept, rows, i, count)` goes on with state i; it returns why it stopped, the next state, and the number kept."""


class Store:
    """The states of one configuration; callers keep their number."""

    def __init__(self, model: Model, params: Any, memory_bytes: int, other_bytes: int = 0) -> None:
        """`other_bytes` a state are for the caller's arrays; rows first have the layout of the first initial state."""
        self._model, self._params = model, params
        self._other_bytes = other_bytes + TABLE_BYTES
        self._flat = np.empty(memory_bytes // 8, np.uint64)  # only what is written takes memory
        table = np.zeros(max(1 << 16, 1 << (4 * model.initial_choices(params)).bit_length()), np.int64)
        wide = _first_row(model, params)
        layout = narrowest(wide)
        self.kept = Kept(self._rows(layout), table, layout)

    def _rows(self, layout: RowLayout) -> np.ndarray:
        capacity = 8 * len(self._flat) // (8 * layout.num_words + self._other_bytes)
        return self._flat[: capacity * layout.num_words].reshape(capacity, layout.num_words)

    @property
    def state_bytes(self) -> int:
        """Bytes of a state now, those of the caller's arrays included."""
        return 8 * self.kept.layout.num_words + self._other_bytes

    def lacks(self, num_initial: int) -> str:
        """Returns "" if the initial states and their successors fit into memory, else a message with what they need."""
        if len(self.kept.rows) >= num_initial + MOST_SUCCESSORS:
            return ""
        who = "the initial state and its" if num_initial == 1 else f"{num_initial:,} initial states and their"
        needed = (num_initial + MOST_SUCCESSORS) * self.state_bytes / 2**20
        return f"{who} successors need {needed:.1f} MiB"

    def state(self, place: int) -> Any:
        """Returns the state of number `place`, for plain Python."""
        return state_of(self.kept.rows[place], self.kept.layout, self._model.widths)

    def begin(self, programs: Programs) -> tuple[np.ndarray, int]:
        """Keeps as many initial states as memory allows. Returns the number of each, in order, and how many distinct
        states these are."""
        places = np.empty(self._model.initial_choices(self._params), np.int64)
        rows = programs.initial(len(places)).view(np.uint64)
        _, done, count = self.keep(rows, programs.layout, len(places), 0, partial(_keep_all, places=places))
        return places[:done], count

    def keep(self, rows: np.ndarray, layout: RowLayout, num: int, count: int, add: Add) -> tuple[int, int, int]:
        """Keeps the states to which `num` states lead, or themselves, with `count` states kept; their rows have some
        layout. Compiled code adds them, and says what room it lacks. Returns ENDED, the number of states that it is
        done with, and the number kept; FULL if memory has no more room."""
        status, rows = self.admit(rows, layout, count)
        done = 0
        while done < num and status != FULL:
            status, done, count = add(self.kept, rows, done, count)
            if status == TABLE_FULL:
                self._fill(np.zeros(2 * len(self.kept.table), np.int64), count)
        return FULL if status == FULL else ENDED, done, count

    def admit(self, rows: np.ndarray, layout: RowLayout, count: int) -> tuple[int, np.ndarray]:
        """Makes rows wide enough for more states, with `count` states kept; these have rows of some layout. Returns
        ENDED and their rows in the store's layout; FULL if memory does not hold wider rows."""
        before = self.kept
        if layout is before.layout:
            return ENDED, rows
        unfit = differing(rows, layout, before.layout.base) & before.layout.fixed
        if unfit.any():
            wider = widened(before.layout, before.layout.base ^ unfit)
            wider_rows = self._rows(wider)
            if len(wider_rows) < count + MOST_SUCCESSORS:
                return FULL, rows
            lay_out(before.rows[:count], before.layout, wider_rows, wider)
            self.kept = before._replace(rows=wider_rows, layout=wider)
            self._fill(np.zeros_like(before.table), count)
        return ENDED, in_layout(rows, layout, self.kept.layout)

    def _fill(self, table: np.ndarray, count: int) -> None:
        self.kept = self.kept._replace(table=table)
        _rehash(self.kept.rows, count, table)


def _first_row(model: Model, params: Any) -> np.ndarray:
    """The wide row of the first initial state. Raises ModelError if it does not fit."""
    try:
        return wide_row(model.initial(params, 0), model.widths)
    except OverflowError as error:
        raise ModelError(declared.unfit(model.name, "widths", f"the initial state: {error}")) from None


@jitable
def keep_row(row, kept, count):
    """Returns the number of a state, given its row: that of its equal, or `count` if it is new, after all others."""
    return settle(kept, count, seek(row, kept, count), count)


@jitable
def halted(kept, count):
    """Returns why compiled code halts before it keeps the successors of one more state; ENDED if it does not."""
    if count + MOST_SUCCESSORS > len(kept.rows):
        return FULL
    return TABLE_FULL if 2 * (count + MOST_SUCCESSORS) > len(kept.table) else ENDED


@jitable
def seek(row, kept, at):
    """Writes a state's row to place `at`. Returns the row's hash, for `settle`, and prefetches the slot that `approach`
    reads."""
    for i in range(len(row)):
        kept.rows[at, i] = row[i]
    mixed = hash_words(row)
    prefetch(kept.table, mixed & np.uint64(len(kept.table) - 1))
    return mixed


@jitable
def approach(kept, mixed):
    """Prefetches the row that `settle` reads."""
    entry = kept.table[np.int64(mixed) & (len(kept.table) - 1)]
    if entry & ~_PLACE == np.int64(mixed >> np.uint64(_PLACE_BITS + 1)) << _PLACE_BITS:
        prefetch(kept.rows, np.uint64((entry & _PLACE) - 1) * np.uint64(kept.rows.shape[1]))


@jitable
def settle(kept, at, mixed, count):
    """Returns the number of the state whose row is at `at` (`count` or later): that of its equal, or `count` if it is
    new, where its row is then moved to."""
    rows, table = kept.rows, kept.table
    row = rows[at]
    slots = len(table) - 1
    slot = np.int64(mixed) & slots
    fingerprint = np.int64(mixed >> np.uint64(_PLACE_BITS + 1)) << _PLACE_BITS
    while table[slot] != 0:
        entry = table[slot]
        if entry & ~_PLACE == fingerprint:
            other = rows[(entry & _PLACE) - 1]
            same = True
            for i in range(len(row)):
                if row[i] != other[i]:
                    same = False
                    break
            if same:
                return (entry & _PLACE) - 1
        slot = (slot + 1) & slots
    table[slot] = fingerprint | (count + 1)
    if at != count:
        for i in range(len(row)):
            rows[count, i] = row[i]
    return count


@njit_kept
def _keep_all(stored, rows, choice, count, places):
    """Keeps initial states, whose rows are given, from number `choice` on, as `Store.keep` has it."""
    while choice < len(places):
        why = halted(stored, count)
        if why != ENDED:
            return why, choice, count
        found = keep_row(rows[choice], stored, count)
        places[choice] = found
        count += found == count
        choice += 1
    return ENDED, choice, count


@njit_kept
def _rehash(rows, count, table):
    slots = np.uint64(len(table) - 1)
    mixed = np.empty(_TOGETHER, np.uint64)
    for first in range(0, count, _TOGETHER):
        num = min(_TOGETHER, count - first)
        for i in range(num):
            mixed[i] = hash_words(rows[first + i])
            prefetch(table, mixed[i] & slots)
        for i in range(num):
            slot = np.int64(mixed[i] & slots)
            while table[slot] != 0:
                slot = np.int64(np.uint64(slot + 1) & slots)
            table[slot] = np.int64(mixed[i] >> np.uint64(_PLACE_BITS + 1)) << _PLACE_BITS | (first + i + 1)
