"""The recovery clients by slot: packing and unpacking of their fields."""

from quorisk.kernels.ops import jitable, where
from quorisk.kernels.protocols.bookkeeper.layout import ROW


@jitable
def recoverer(state, slot):
    """The recovery client of a slot."""
    return where(slot == 0, state.recoverer_0, state.recoverer_1)


@jitable
def with_recoverer(state, slot, client):
    """The state with the client of that slot replaced."""
    return state._replace(
        recoverer_0=where(slot == 0, client, state.recoverer_0),
        recoverer_1=where(slot == 0, state.recoverer_1, client),
    )


@jitable
def in_recovery(state):
    """Bit slot: status is STATUS_IN_RECOVERY."""
    return state.started & ~state.closed & ~state.aborted


@jitable
def slot_lanes(slots):
    """Bit slot -> all (slot, bookie) bits of that slot."""
    return ((slots & 1) | ((slots & 2) << 5)) * ROW


@jitable
def slot_field(fields, slot):
    """Three bits of a slot."""
    return (fields >> (3 * slot)) & 7


@jitable
def with_slot_field(fields, slot, value):
    """Three bits of a slot replaced."""
    return (fields & ~(7 << (3 * slot))) | (value << (3 * slot))
