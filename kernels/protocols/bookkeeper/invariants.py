"""Invariants of a ledger, and the outcome of a run."""

from quorisk.kernels.model import COMPLETED, STUCK, Invariant
from quorisk.kernels.ops import popcount, when, where
from quorisk.kernels.protocols.bookkeeper.layout import (
    EVERY_ROW,
    MAX_BOOKIES,
    MAX_ENTRIES,
    MAX_FRAGMENTS,
    NO_LAC,
    ROW,
    STATUS_CLOSED,
    STATUS_NIL,
    STATUS_OPEN,
    entries_up_to,
    entry_row,
    nonzero_rows,
)
from quorisk.kernels.protocols.bookkeeper.reading import recovery_ensemble
from quorisk.kernels.protocols.bookkeeper.slots import in_recovery, of_slot, slot_field
from quorisk.kernels.protocols.bookkeeper.stripes import current_list, has_quorum_coverage


def closed_recoverer_lacs(state):
    """Rows by slot of the LACs of recovery clients that are CLOSED, as a pair; -1 for one that is not."""
    first = where((state.closed & 1) != 0, state.recoverer_0.lac, -1)
    return first, where((state.closed & 2) != 0, state.recoverer_1.lac, -1)


def divergence(state):
    """Not exactly one client CLOSED with lac = meta_last_entry, or a lac of a client that is done or writing beyond."""
    last = state.meta_last_entry
    first, second = closed_recoverer_lacs(state)
    writer_lac = where(state.writer_status == STATUS_NIL, -1, state.writer.lac)
    closers = (
        where((state.writer_status == STATUS_CLOSED) & (writer_lac == last), 1, 0)
        + where(first == last, 1, 0)
        + where(second == last, 1, 0)
    )
    beyond = (writer_lac > last) | (first > last) | (second > last)
    return where((closers != 1) | beyond, 1, 0)


def no_divergence_between_client_and_metadata(state, params):
    """Once CLOSED: exactly one client CLOSED with lac = meta_last_entry, and no lac of a client that is done or
    writing beyond it. A breach is ledger truncation."""
    return when(state.meta_status == STATUS_CLOSED, divergence, state) == 0


def missing_entries(state, stored, writer_lac):
    """Bit 6(e - 1): entry e is within `writer_lac` or the lac of a recovery client that is CLOSED, and `stored` on no
    bookie of its write set in its fragment's ensemble."""
    first, second = closed_recoverer_lacs(state)
    lac = where(first > writer_lac, first, writer_lac)
    lac = where(second > lac, second, lac)
    return entries_up_to(lac) & EVERY_ROW & ~nonzero_rows(stored & state.meta_write_sets)


def all_acked_entries_are_readable(state, params):
    """Every entry up to the lac of a client that is OPEN or CLOSED is on a bookie of its write set."""
    active = (state.writer_status == STATUS_OPEN) | (state.writer_status == STATUS_CLOSED)
    lac = where(active, state.writer.lac, 0)
    return when((lac != 0) | (state.closed != 0), missing_entries, state, state.b_entries, lac) == 0


def no_entry_is_missing(state, stored):
    """Whether every acknowledged entry is `stored` on a bookie of its write set, whoever it was acknowledged to."""
    acknowledged = (state.writer.lac != 0) | (state.closed != 0)
    return when(acknowledged, missing_entries, state, stored, state.writer.lac) == 0


def acked_entries_survive(state, params):
    """Every entry up to the lac of a client that is OPEN, CLOSED or WITHDRAWN is on a bookie of its write set: entries
    stay acknowledged when their writer is gone."""
    return no_entry_is_missing(state, state.b_entries)


def acked_entries_are_on_disk(state, params):
    """The same of the disks of these bookies: if all lost power now, every such entry would be left."""
    return no_entry_is_missing(state, state.b_entries & ~state.b_unflushed)


def below_quorum(state, quorum):
    """Bit e - 1: entry e is within meta_last_entry and on fewer than `quorum` bookies of its write set."""
    stored = state.b_entries & state.meta_write_sets
    below = 0
    for entry in range(1, MAX_ENTRIES + 1):
        short = popcount(entry_row(stored, entry)) < quorum
        below |= where(short & (entry <= state.meta_last_entry), 1 << (entry - 1), 0)
    return below


def all_committed_entries_reach_ack_quorum(state, params):
    """Once CLOSED every entry up to meta_last_entry is on AckQuorum bookies of its write set."""
    return when(state.meta_status == STATUS_CLOSED, below_quorum, state, params.ack_quorum) == 0


def all_committed_entries_reach_write_quorum(state, params):
    """Once CLOSED every entry up to meta_last_entry is on all bookies of its write set. An ack quorum below the write
    quorum leaves entries that are not, and the auditor sees nothing amiss."""
    return when(state.meta_status == STATUS_CLOSED, below_quorum, state, params.write_quorum) == 0


def silent(state, params):
    """The bookies that confirm no fence: they are down, or in limbo."""
    return state.b_down | where(params.limbo_answers_fencing, 0, state.b_limbo)


def confirmations(state):
    """Bit 6 slot + b: bookie b's confirmation that it is fenced is on its way."""
    found = state.fence_responses.on_way
    for i in range(2 * MAX_BOOKIES):
        found &= where(slot_field(state.fence_lacs, i) == NO_LAC, ~(1 << i), -1)
    return found


def cannot_be_covered(state, params):
    """1 if too many bookies are silent for any recovery to reach quorum coverage of fenced bookies, and none has it."""
    up = ROW & ~silent(state, params)
    answered = state.fenced | confirmations(state)
    waiting = in_recovery(state) & ~state.reading
    first = has_quorum_coverage(params, recovery_ensemble(state, 0), up | of_slot(answered, 0)) & ((waiting & 1) != 0)
    second = has_quorum_coverage(params, recovery_ensemble(state, 1), up | of_slot(answered, 1)) & ((waiting & 2) != 0)
    new = has_quorum_coverage(params, current_list(state.meta_fragments), up)
    reads = (in_recovery(state) & state.reading) != 0
    return where(first | second | new | reads, 0, 1)


def ledger_can_be_closed(state, params):
    """A ledger that its writer can no longer close has enough bookies left for a recovery to fence."""
    by_writer = (state.writer_status == STATUS_OPEN) & (state.meta_status == STATUS_OPEN)
    asked = (silent(state, params) != 0) & (state.meta_status != STATUS_CLOSED) & (by_writer ^ True)
    return when(asked, cannot_be_covered, state, params) == 0


def no_out_of_order_entries(state, params):
    """Every stored entry's data equals its id.

    True by construction: clients only ever send entry e with data e. The writer's lap is both, and a recovery client
    writes back what it read, always for the entry that it asked for; so the state holds ids alone.
    """
    return state.b_entries >= 0


def disordered_fragments(fragments):
    """Bit i: the fragment at place i of the stack does not start before the one at place i - 1."""
    disordered = 0
    for i in range(1, MAX_FRAGMENTS):
        first, next_first = (fragments.first_ids >> (3 * i)) & 7, (fragments.first_ids >> (3 * (i - 1))) & 7
        disordered |= where((i < fragments.num) & (first >= next_first), 1 << i, 0)
    return disordered


def only_valid_fragments(state, params):
    """First entry ids of the metadata's fragments strictly increase."""
    return when(state.meta_fragments.num > 1, disordered_fragments, state.meta_fragments) == 0


def outcome(state, params):
    """Nothing is enabled: the run is completed if the ledger is closed (the spec's LedgerIsClosed), else stuck."""
    return where(state.meta_status == STATUS_CLOSED, COMPLETED, STUCK)


INVARIANTS = (
    Invariant("NoDivergenceBetweenClientAndMetaData", no_divergence_between_client_and_metadata, data_loss=True),
    Invariant("AllAckedEntriesAreReadable", all_acked_entries_are_readable, data_loss=True),
    Invariant(
        "AllCommittedEntriesReachAckQuorum", all_committed_entries_reach_ack_quorum, data_loss=False, about="exposure"
    ),
    Invariant("NoOutOfOrderEntries", no_out_of_order_entries, data_loss=False),
    Invariant("OnlyValidFragments", only_valid_fragments, data_loss=False),
    Invariant("AckedEntriesSurvive", acked_entries_survive, data_loss=True),
    Invariant(
        "AllCommittedEntriesReachWriteQuorum",
        all_committed_entries_reach_write_quorum,
        data_loss=False,
        about="exposure",
    ),
    Invariant("LedgerCanBeClosed", ledger_can_be_closed, data_loss=False, about="availability"),
    Invariant("AckedEntriesAreOnDisk", acked_entries_are_on_disk, data_loss=False, about="exposure"),
)
