"""The disks of bookies, and the parts of them that come back: tests/data/tla/FLUSH.md.

A bookie answers from its memory: `b_entries`, `b_lac` and `b_fenced`. Beside these stand the parts not on disk. Memory
and disk are the same with the journal's default settings.
"""

from quorisk.kernels.ops import where
from quorisk.kernels.protocols.bookkeeper.layout import EVERY_ROW, MAX_BOOKIES
from quorisk.kernels.protocols.bookkeeper.slots import slot_field, with_slot_field


def lacs_of(bookies):
    """Bits of these bookies' LACs, 3 bits each."""
    lacs = 0
    for b in range(MAX_BOOKIES):
        lacs |= where((bookies >> b) & 1, 7 << (3 * b), 0)
    return lacs


def store(state, params, entries):
    """Bookies store entries, which are on disk at once if the journal is written and synced."""
    unflushed = where(params.entries_are_durable, 0, entries & ~state.b_entries)
    return state._replace(
        b_entries=state.b_entries | entries,
        b_unflushed=state.b_unflushed | unflushed,
        b_damaged=where(params.entries_are_durable, state.b_damaged & ~entries, state.b_damaged),
    )


def note_lac(state, params, bookie, lac):
    """A bookie hears of a LAC or, with `guaranteed_write_quorum`, of the last add fully replicated: the latest."""
    known = slot_field(state.b_lac, bookie)
    lac = where((params.guaranteed_write_quorum != 0) & (known > lac), known, lac)
    lacs = with_slot_field(state.b_lac, bookie, lac)
    changed = where(params.entries_are_durable, 0, lacs ^ state.b_lac)
    return state._replace(b_lac=lacs, b_unflushed_lacs=state.b_unflushed_lacs ^ changed)


def fence(state, params, bookies):
    """Bookies fence the ledger, on disk at once if the journal is synced."""
    unflushed = where(params.fences_are_durable, 0, bookies & ~state.b_fenced)
    return state._replace(b_fenced=state.b_fenced | bookies, b_unflushed_fences=state.b_unflushed_fences | unflushed)


def unflushed_bookies(state):
    """The bookies whose disk differs from their memory."""
    found = state.b_unflushed_fences
    for b in range(MAX_BOOKIES):
        differs = (state.b_unflushed >> b) & EVERY_ROW | (state.b_unflushed_lacs >> (3 * b)) & 7
        found |= where(differs != 0, 1 << b, 0)
    return found


def flushed(state, bookies):
    """These bookies have nothing that is not on disk."""
    return state._replace(
        b_unflushed=state.b_unflushed & ~(bookies * EVERY_ROW),
        b_unflushed_fences=state.b_unflushed_fences & ~bookies,
        b_unflushed_lacs=state.b_unflushed_lacs & ~lacs_of(bookies),
    )


def without_disks(state, bookies):
    """The state once these bookies have lost their entries and their LACs, on disk as well."""
    return flushed(state, bookies)._replace(
        b_entries=state.b_entries & ~(bookies * EVERY_ROW),
        b_lac=state.b_lac & ~lacs_of(bookies),
        b_damaged=state.b_damaged & ~(bookies * EVERY_ROW),
    )


def back_from_disk(state, params, bookies):
    """The state once these bookies have read their memory back from disk: with `fences_when_unclean` they fence the
    ledger, with `limbo_when_unclean` they go into limbo."""
    noticed = where(params.fences_when_unclean, bookies, 0)
    return flushed(state, bookies)._replace(
        b_entries=state.b_entries & ~(state.b_unflushed & (bookies * EVERY_ROW)),
        b_lac=state.b_lac ^ (state.b_unflushed_lacs & lacs_of(bookies)),
        b_fenced=state.b_fenced & ~(state.b_unflushed_fences & bookies) | noticed,
        b_limbo=state.b_limbo | where(params.limbo_when_unclean, bookies, 0),
    )
