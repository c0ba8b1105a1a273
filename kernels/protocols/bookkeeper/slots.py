"""The recovery clients by slot.

A set of bookies by slot is a word with a row for each slot; where something may happen with one of those bookies, an
instance is the bit's place: `slot_of` and `bookie_of` take it apart. A small number by slot is three bits of a word.
"""

from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.bookkeeper.layout import ROW

ORDER = 0o7777
"""All bits of an ensemble's order."""


def with_clients(state, change, *given):
    """The state with every client changed: `change(client, *given)`."""
    return state._replace(
        writer=change(state.writer, *given),
        recoverer_0=change(state.recoverer_0, *given),
        recoverer_1=change(state.recoverer_1, *given),
    )


def recoverer(state, slot):
    """The recovery client of a slot."""
    return where(slot == 0, state.recoverer_0, state.recoverer_1)


def with_recoverer(state, slot, client):
    """The state with the client of that slot replaced."""
    return state._replace(
        recoverer_0=where(slot == 0, client, state.recoverer_0), recoverer_1=where(slot == 0, state.recoverer_1, client)
    )


def each_slot(slots, stride, guard, state, params):
    """`guard(state, params, slot)` for each of these slots (bit slot), that of slot 1 `stride` bits higher."""
    first = when((slots & 1) != 0, guard, state, params, 0)
    return first | (when((slots & 2) != 0, guard, state, params, 1) << stride)


def in_recovery(state):
    """Bit slot: status is STATUS_IN_RECOVERY."""
    return state.started & ~state.closed & ~state.aborted


def in_read_write_phase(state):
    """Bit slot: status is STATUS_IN_RECOVERY, recovery_phase is ReadWritePhase."""
    return in_recovery(state) & state.reading


def slot_row(slot, bookies):
    """A set of bookies in the row of this slot."""
    return bookies << (6 * slot)


def of_slot(rows, slot):
    """The set of bookies in the row of this slot."""
    return (rows >> (6 * slot)) & ROW


def rows_of_slots(slots):
    """All bookies in the rows of these slots (bit slot)."""
    return ((slots & 1) | ((slots & 2) << 5)) * ROW


def slot_order(slot, order):
    """The order of an ensemble in the word that has one for each slot."""
    return order << (12 * slot)


def order_of_slot(orders, slot):
    """The order of this slot."""
    return (orders >> (12 * slot)) & ORDER


def orders_of_slots(slots):
    """All bits of the orders of these slots (bit slot)."""
    return ((slots & 1) | ((slots & 2) << 11)) * ORDER


def slot_of(instance):
    """The slot of a (slot, bookie) instance."""
    return instance // 6


def bookie_of(instance):
    """The bookie of an instance: of (slot, bookie), and of any message."""
    return instance % 6


def slot_field(fields, slot):
    """The number of this slot; also that of a bookie, or of a (slot, bookie), in words that have one for each."""
    return (fields >> (3 * slot)) & 7


def with_slot_field(fields, slot, value):
    """The number of this slot replaced."""
    return (fields & ~(7 << (3 * slot))) | (value << (3 * slot))
