"""A store of a model's states, each kept once, numbered in the order in which they came.

Rows (`kernels.packing`) lie end to end in one array; an open-addressing table of (fingerprint, number) finds
duplicates. Compiled code stops when it needs more room than there is, and Python makes room.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels import declared
from quorisk.kernels.compiled import LATE, bind, packing, prefetch
from quorisk.kernels.errors import ModelError
from quorisk.kernels.model import Model, smallest_params
from quorisk.kernels.ops import jitable
from quorisk.kernels.packing import (
    RowLayout,
    hash_words,
    narrow,
    narrowest,
    respread,
    spread,
    unpacked,
    wide_row,
    widened,
)
from quorisk.kernels.stepper import stepper

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
ENDED, TABLE_FULL, FULL, WIDER = range(4)
"""Reasons why compiled code stopped: the end of its slice, a full hash table, other full arrays, or a state that
differs from all others where rows have no bits for it."""
NO_ROW = -1
"""Value in place of the number of a state that has no row, since it differs where rows have no bits."""


class Kept(NamedTuple):
    """Arrays of a store, as compiled code sees it."""

    rows: np.ndarray  # uint64, [number, word]; as many as memory holds
    table: np.ndarray  # int64, a power of two
    wide: np.ndarray  # uint64, the wide row of the state that was looked up last, or that has no row
    here: np.ndarray  # uint64, the wide row of the state that was read last
    layout: RowLayout
    pieces: np.ndarray  # uint64, `layout.by_source()`


@cache
def store_functions(model: Model) -> dict[str, Any]:
    """Returns the functions that keep the states of a model, by their names below."""
    like = model.initial(smallest_params(model), 0)
    pack, unpack = packing(model.widths, model.name)
    write = bind(_write, model.name, pack=pack)
    keep = bind(_keep, model.name, write=write)
    return {
        "keep": keep,
        "write": write,
        "state": bind(_state, model.name, unpack=unpack, like=like),
        "follow": bind(_follow, model.name, change=stepper(model).change),
        "begin": bind(_begin, model.name, kept_for=model.name, initial=stepper(model).initial, keep=keep),
    }


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
        self.kept = Kept(self._rows(layout), table, wide, wide.copy(), layout, layout.by_source())

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
        wide = np.empty_like(self.kept.wide)
        spread(self.kept.rows[place], self.kept.layout, wide)
        return unpacked(wide, self._model.widths)

    def begin(self) -> tuple[np.ndarray, int]:
        """Keeps as many initial states as memory allows. Returns the number of each, in order, and how many distinct
        states these are."""
        places = np.empty(self._model.initial_choices(self._params), np.int64)
        choice, count, status = 0, 0, ENDED
        begin = store_functions(self._model)["begin"]
        while choice < len(places) and status != FULL:
            status, choice, count = begin(self._params, self.kept, places, choice, count)
            status = self.make_room(status, count)
        return places[:choice], count

    def make_room(self, status: int, count: int) -> int:
        """Makes the room that compiled code lacked, with `count` states kept. Returns ENDED; FULL if it cannot."""
        if status == TABLE_FULL:
            self._fill(np.zeros(2 * len(self.kept.table), np.int64), count)
        elif status == WIDER:
            before = self.kept
            layout = widened(before.layout, before.wide)
            rows = self._rows(layout)
            if len(rows) < count + MOST_SUCCESSORS:
                return FULL
            _widen(before.rows, before.layout, rows, layout, count, np.empty_like(before.wide))
            self.kept = before._replace(rows=rows, layout=layout, pieces=layout.by_source())
            self._fill(np.zeros_like(before.table), count)
        return FULL if status == FULL else ENDED

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
def fetch_state(kept, place):
    """Sets `kept.here` to the wide row of the state of number `place`."""
    respread(kept.rows[place], kept.layout, kept.here)


@jitable
def write_row(wide, kept, at):
    """Does what `write` does, for the state of a wide row."""
    beyond = np.uint64(0)
    for i in range(len(wide)):
        beyond |= (wide[i] ^ kept.layout.base[i]) & kept.layout.fixed[i]
    if beyond != 0:
        for i in range(len(wide)):
            kept.wide[i] = wide[i]
        return False
    narrow(wide, kept.layout, kept.rows[at])
    return True


@jitable
def keep_row(wide, kept, count):
    """Does what `keep` does, for the state of a wide row."""
    if not write_row(wide, kept, count):
        return NO_ROW
    return settle(kept, count, hash_words(kept.rows[count]), count)


@jitable
def why_stop(kept, count):
    """Returns why compiled code has to stop before it keeps the successors of one more state; ENDED if it need not."""
    if count + MOST_SUCCESSORS > len(kept.rows):
        return FULL
    return TABLE_FULL if 2 * (count + MOST_SUCCESSORS) > len(kept.table) else ENDED


@jitable
def seek(kept, at):
    """Returns the hash of a row that was written, for `settle`, and prefetches the slot that `approach` reads."""
    mixed = hash_words(kept.rows[at])
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


# Templates, with the names that are bound by `store_functions`

change = initial = keep = like = pack = unpack = write = LATE


def _begin(params, kept, places, choice, count):
    """Keeps the initial states from number `choice` on. Returns why it stopped, the next one, the number of states."""
    while choice < len(places):
        why = why_stop(kept, count)
        if why != ENDED:
            return why, choice, count
        found = keep(initial(params, choice), kept, count)
        if found == NO_ROW:
            return WIDER, choice, count
        places[choice] = found
        count += found == count
        choice += 1
    return ENDED, choice, count


def _keep(state, kept, count):
    """Returns the number of a state: that of its equal, or `count` if it is new, after all others.

    Returns NO_ROW if the rows cannot hold it: `kept.wide` is its wide row then.
    """
    if not write(state, kept, count):
        return NO_ROW
    return settle(kept, count, hash_words(kept.rows[count]), count)


def _write(state, kept, at):
    """Writes a state's row to place `at`. Returns whether rows can hold it: if not, `kept.wide` is its wide row."""
    if pack(state, kept.wide, kept.layout.base, kept.layout.fixed) != 0:
        return False
    narrow(kept.wide, kept.layout, kept.rows[at])
    return True


def _state(kept, place):
    """Returns the state of number `place`."""
    respread(kept.rows[place], kept.layout, kept.here)
    return unpack(like, kept.here)


def _follow(place, params, action, instance, lost, kept, at):
    """Writes to place `at` the row of a successor of the state of number `place`, the last that was read.

    Returns whether rows can hold it: if not, `kept.wide` is its wide row.
    """
    row = kept.rows[at]
    for i in range(len(row)):
        row[i] = kept.rows[place, i]
    if change(kept.here, params, action, instance, lost, kept.pieces, row) == 0:
        return True
    for i in range(len(kept.wide)):
        kept.wide[i] = kept.here[i]
    spread(kept.rows[place], kept.layout, kept.here)  # `respread` leaves alone the words in which no state differs
    return False


def _rehash_template(rows, count, table):
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


def _widen_template(rows, layout, wider_rows, wider, count, wide):
    """Widens rows from the last to the first, since wider rows begin in the same memory, and each further on."""
    for place in range(count - 1, -1, -1):
        spread(rows[place], layout, wide)
        narrow(wide, wider, wider_rows[place])


_rehash = bind(_rehash_template, "store", kept_for="")
_widen = bind(_widen_template, "store", kept_for="")
