"""Flushes, and faults that take a part of what a bookie has: see tests/data/tla/FLUSH.md.

Instances are bookies. What `bookie_loses_some` may lose is the entries that the bookie has on disk, entry e as bit
e - 1.
"""

from quorisk.kernels.model import action
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.bookkeeper.disks import back_from_disk, flushed, unflushed_bookies
from quorisk.kernels.protocols.bookkeeper.faults import break_requests, up
from quorisk.kernels.protocols.bookkeeper.layout import EVERY_ROW, MAX_ENTRIES


def bookie_flushes_enabled(state, params):
    volatile = (params.entries_are_durable & params.fences_are_durable) == 0
    return (when(volatile, unflushed_bookies, state),)


@action(bookie_flushes_enabled, needs=("journal_write", "journal_sync"))
def bookie_flushes(state, params, bookie, lost):
    """Each bookie with something that is not on disk flushes it."""
    written = state.b_unflushed & (EVERY_ROW << bookie)
    return flushed(state, 1 << bookie)._replace(b_damaged=state.b_damaged & ~written)


def bookie_restarts_unclean_enabled(state, params):
    return (where(state.unclean_restarts < params.max_unclean_restarts, up(state, params), 0),)


@action(bookie_restarts_unclean_enabled, "unclean restart", needs=("max_unclean_restarts",))
def bookie_restarts_unclean(state, params, bookie, lost):
    """Each bookie that is up restarts without what it had not flushed."""
    state = back_from_disk(break_requests(state, 1 << bookie), params, 1 << bookie)
    return state._replace(unclean_restarts=state.unclean_restarts + 1)


def bookie_loses_some_enabled(state, params):
    return (where(state.partial_amnesias < params.max_partial_losses, up(state, params), 0),)


def entries_on_disk(state, params, bookie):
    """Bit e - 1: the bookie has entry e on disk."""
    entries = ((state.b_entries & ~state.b_unflushed) >> bookie) & EVERY_ROW
    found = 0
    for i in range(MAX_ENTRIES):
        found |= ((entries >> (6 * i)) & 1) << i
    return found


@action(
    bookie_loses_some_enabled,
    "partial loss",
    sends=entries_on_disk,
    lost_with="p_lost_entry",
    needs=("max_partial_losses",),
)
def bookie_loses_some(state, params, bookie, lost):
    """Each bookie that is up loses a part of the entries that it has on disk."""
    gone = 0
    for i in range(MAX_ENTRIES):
        gone |= ((lost >> i) & 1) << (6 * i)
    gone <<= bookie
    return state._replace(
        b_entries=state.b_entries & ~gone,
        b_damaged=state.b_damaged | where(params.damaged_reads_unknown, gone, 0),
        partial_amnesias=state.partial_amnesias + 1,
    )
