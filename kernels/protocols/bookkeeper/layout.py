"""Bit layout of the BookKeeper model's state, and the masks that its rules are made of.

Bookies are the bits of 6-bit rows; entries 1 to 4 are rows of a word: bit 6(e - 1) + b. An ensemble is such a row. If
it is larger than a write quorum, it is a list as well (`stripes`): who is at its positions 0 and 1, in 3 bits each,
is another row, and so is who is at 2 and 3. An add request is identified by its entry and the sender's LAC, which is
always smaller: row e(e - 1)/2 + lac of a 60-bit word. One client creates the ledger (the writer) and never recovers it;
the others, in order of their ids, are the recovery slots 0 and 1, and a (slot, bookie) pair is bit 6 slot + b of a
12-bit row.
"""

from typing import Any, NamedTuple

MAX_BOOKIES, MAX_ENTRIES, MAX_CLIENTS, MAX_FRAGMENTS = 6, 4, 3, 10
MAX_LIST = 5
"""Bookies of an ensemble that is larger than a write quorum."""
MAX_AMNESIAS, MAX_OUTAGES = 15, 7

ROW = 0b111111
"""All bookies."""
ROWS = 0xFFFFFF
"""All bookies of all entries."""
EVERY_ROW = 0x41041
"""Times a row: that row for every entry; also the entries' own bits."""
EVERY_REQUEST_ROW = EVERY_ROW | EVERY_ROW << 24 | 0x41 << 48
EVERY_FRAGMENT_ROW = EVERY_REQUEST_ROW
"""Ten rows fill a word: of add requests, or of fragments."""
EVERY_SLOT_ROW = 1 | 1 << 12 | 1 << 24 | 1 << 36 | 1 << 48
"""Times a (slot, bookie) row: that row for each of the entries 1 to 5 that a recovery may read."""

NO_LAC = 7
"""In `fence_lacs`: the bookie is in limbo, and its answer says no more than that."""

STATUS_NIL, STATUS_OPEN, STATUS_IN_RECOVERY, STATUS_CLOSED, CLIENT_WITHDRAWN = range(5)


class Messages(NamedTuple):
    """The messages of one kind: the spec's `messages`, a bit for each message instead of a delivery count."""

    sent: int  # in the map at all
    on_way: int  # delivery count 1; a message sent, not on its way and not lost was processed (0)
    lost: int  # delivery count -1: a time-out that nobody acted on yet


class Fragments(NamedTuple):
    """A list of fragments as stacks, the current fragment lowest; a fragment's id is its place counted from 1."""

    ensembles: int  # who is in them, 6 bits a fragment
    order_01: int  # who is at their positions 0 and 1, 6 bits a fragment; 0 where an ensemble is a write quorum
    order_23: int  # who is at their positions 2 and 3, likewise
    first_ids: int  # first_entry_id, 3 bits a fragment
    num: int  # how many


class Client(NamedTuple):
    """What writer and recovery clients share: the fields of the spec's ClientState that adding entries needs."""

    meta_version: int  # metadata version that the client has; 0 = Nil
    fragments: Fragments  # the fragments as the client knows them; the lowest is curr_fragment
    lap: int  # last add pushed
    lac: int  # last add confirmed
    confirmed: int  # bit 6(e - 1) + b: bookie b confirmed entry e
    pending: int  # pending_add_ops: bit 6(e - 1)
    op_fragments: int  # fragment_id of each pending op, 6 bits an entry
    op_ensembles: int  # write set of each pending op in its ensemble, 6 bits an entry
    left: int  # the ensemble of the pending ops that are to be sent again, `stripes.packed`; 0 if none or E = WQ
    requests: Messages  # AddEntryRequestMessage: bit 6(e(e - 1)/2 + lac) + b
    responses: Messages  # AddEntryResponseMessage: bit 6(e - 1) + b; 24 higher if fenced (success = FALSE)


class State(NamedTuple):
    """Every variable of the spec."""

    meta_status: int  # STATUS_*
    meta_fragments: Fragments  # the ledger's fragments
    meta_write_sets: int  # derived: write set of each entry in its fragment's ensemble, 6 bits an entry
    meta_last_entry: int  # endpoint of the ledger once closed
    meta_version: int  # counted up with each update
    b_entries: int  # bit 6(e - 1) + b: bookie b stores entry e (its data is its id: see NoOutOfOrderEntries)
    b_fenced: int  # bit b
    b_lac: int  # 3 bits a bookie
    b_limbo: int  # bit b: it restarted without its data and answers Unknown instead of NoSuchEntry
    b_unflushed: int  # bit 6(e - 1) + b: bookie b stores entry e, but not on disk
    b_unflushed_fences: int  # bit b: the same of its fence
    b_unflushed_lacs: int  # 3 bits a bookie: b_lac XOR what is on disk
    b_damaged: int  # bit 6(e - 1) + b: bookie b knows of entry e, and cannot read what it has of it on disk
    b_down: int  # bit b: lost for good, and not replaced yet
    amnesias: int  # restarts with data loss so far
    outages: int  # power outages of the whole cluster so far
    rack_outages: int  # power outages of racks so far
    unclean_restarts: int  # of single bookies so far
    partial_amnesias: int  # times that a bookie lost some of its entries so far
    creator: int  # id of the client that created the ledger, counted from 1; 0 = none yet
    writer_status: int  # status of that client: STATUS_NIL, OPEN, CLOSED or CLIENT_WITHDRAWN
    changing: (
        int  # 1 while that client calls nobody back, its new ensemble being on its way to the metadata (`unsetting`)
    )
    writer: Client  # that client
    recoverer_0: Client  # the other clients, by slot
    recoverer_1: Client
    started: int  # bit slot: recovery_phase is not NotStarted
    reading: int  # bit slot: recovery_phase is ReadWritePhase
    closed: int  # bit slot: status is STATUS_CLOSED
    aborted: int  # bit slot: status is RECOVERY_ABORTED; started, not closed, not aborted = STATUS_IN_RECOVERY
    fenced: int  # bit 6 slot + b: bookie b confirmed to that client that it is fenced
    recovery_ensembles: int  # bit 6 slot + b: recovery_ensemble
    negative_reads: int  # bit 6 slot + b: read_responses of the entry being read that are NoSuchEntry
    unknown_reads: int  # bit 6 slot + b: those that are Unknown; one that is OK decides the read and is not kept
    curr_read_entries: int  # 3 bits a slot: entry being read; 0 = Nil
    last_recoverable: int  # 3 bits a slot: last_recoverable_entry + 1; 0 = Nil
    fence_requests: Messages  # FenceRequestMessage: bit 6 slot + b
    fence_responses: Messages  # FenceResponseMessage: bit 6 slot + b
    fence_lacs: int  # lac of each FenceResponseMessage sent: 3 bits each; NO_LAC if it is Unknown
    recovery_orders: int  # who is where in recovery_ensemble, 12 bits a slot; 0 where an ensemble is a write quorum
    read_requests: Messages  # ReadRequestMessage: bit 12(e - 1) + 6 slot + b
    read_responses: Messages  # ReadResponseMessage: bit 12(e - 1) + 6 slot + b
    read_found: int  # those of them with code OK
    read_unknown: int  # those of them with code Unknown


def _messages(width):
    return Messages(width, width, width)


_BOOKIES, _BY_SLOT = MAX_BOOKIES, 2 * MAX_BOOKIES
_BY_ENTRY = MAX_ENTRIES * MAX_BOOKIES
_ADD_REQUESTS = MAX_ENTRIES * (MAX_ENTRIES + 1) // 2 * MAX_BOOKIES
_READS = (MAX_ENTRIES + 1) * _BY_SLOT
_STACK = MAX_BOOKIES * MAX_FRAGMENTS
_FRAGMENTS = Fragments(ensembles=_STACK, order_01=_STACK, order_23=_STACK, first_ids=3 * MAX_FRAGMENTS, num=4)
_CLIENT = Client(
    meta_version=9,
    fragments=_FRAGMENTS,
    lap=3,
    lac=3,
    confirmed=_BY_ENTRY,
    pending=_BY_ENTRY,
    op_fragments=_BY_ENTRY,
    op_ensembles=_BY_ENTRY,
    left=18,
    requests=_messages(_ADD_REQUESTS),
    responses=_messages(2 * _BY_ENTRY),
)
WIDTHS = State(
    meta_status=2,
    meta_fragments=_FRAGMENTS,
    meta_write_sets=_BY_ENTRY,
    meta_last_entry=3,
    meta_version=9,
    b_entries=_BY_ENTRY,
    b_fenced=_BOOKIES,
    b_lac=3 * MAX_BOOKIES,
    b_limbo=_BOOKIES,
    b_unflushed=_BY_ENTRY,
    b_unflushed_fences=_BOOKIES,
    b_unflushed_lacs=3 * MAX_BOOKIES,
    b_damaged=_BY_ENTRY,
    b_down=_BOOKIES,
    amnesias=4,
    outages=3,
    rack_outages=3,
    unclean_restarts=4,
    partial_amnesias=4,
    creator=2,
    writer_status=3,
    changing=1,
    writer=_CLIENT,
    recoverer_0=_CLIENT,
    recoverer_1=_CLIENT,
    started=2,
    reading=2,
    closed=2,
    aborted=2,
    fenced=_BY_SLOT,
    recovery_ensembles=_BY_SLOT,
    negative_reads=_BY_SLOT,
    unknown_reads=_BY_SLOT,
    curr_read_entries=6,
    last_recoverable=6,
    fence_requests=_messages(_BY_SLOT),
    fence_responses=_messages(_BY_SLOT),
    fence_lacs=3 * _BY_SLOT,
    recovery_orders=24,
    read_requests=_messages(_READS),
    read_responses=_messages(_READS),
    read_found=_READS,
    read_unknown=_READS,
)
"""Bits of every field."""

NO_MESSAGES = Messages(**dict.fromkeys(Messages._fields, 0))
NO_FRAGMENTS = Fragments(**dict.fromkeys(Fragments._fields, 0))
_NOBODY = Client(0, NO_FRAGMENTS, 0, 0, 0, 0, 0, 0, 0, NO_MESSAGES, NO_MESSAGES)
_NOTHING: dict[str, Any] = dict.fromkeys(State._fields, 0)
INITIAL = State(**_NOTHING)._replace(
    meta_fragments=NO_FRAGMENTS,
    writer=_NOBODY,
    recoverer_0=_NOBODY,
    recoverer_1=_NOBODY,
    fence_requests=NO_MESSAGES,
    fence_responses=NO_MESSAGES,
    read_requests=NO_MESSAGES,
    read_responses=NO_MESSAGES,
)
"""Nothing created, stored or sent."""

_FRAGMENT_BITS = NO_FRAGMENTS._replace(ensembles=1)
_CLIENT_BITS = _NOBODY._replace(
    fragments=_FRAGMENT_BITS,
    confirmed=1,
    op_ensembles=1,
    requests=_messages(1),
    responses=_messages(1),
)
BITS_BY_BOOKIE = INITIAL._replace(
    meta_fragments=_FRAGMENT_BITS,
    meta_write_sets=1,
    b_entries=1,
    b_fenced=1,
    b_lac=3,
    b_limbo=1,
    b_unflushed=1,
    b_unflushed_fences=1,
    b_unflushed_lacs=3,
    b_damaged=1,
    b_down=1,
    writer=_CLIENT_BITS,
    recoverer_0=_CLIENT_BITS,
    recoverer_1=_CLIENT_BITS,
    fenced=1,
    recovery_ensembles=1,
    negative_reads=1,
    unknown_reads=1,
    fence_requests=_messages(1),
    fence_responses=_messages(1),
    fence_lacs=3,
    read_requests=_messages(1),
    read_responses=_messages(1),
    read_found=1,
    read_unknown=1,
)
"""Bits that every field has for each bookie: none if it is about no bookie."""


def entry_row(rows, entry):
    """The bookies' bits of one entry."""
    return (rows >> (6 * (entry - 1))) & ROW


def entry_of(bit):
    """The entry in whose row a bit is, given its place."""
    return bit // 6 + 1


def nonzero_rows(rows):
    """The first bit of each of up to ten rows that is not empty: of entries, bit 6(e - 1)."""
    pairs = rows | (rows >> 1)
    return (pairs | (pairs >> 2) | (rows >> 4) | (rows >> 5)) & EVERY_REQUEST_ROW


def any_row(rows):
    """The union of up to ten rows."""
    rows |= rows >> 30
    rows |= (rows >> 6) | (rows >> 12) | (rows >> 18) | (rows >> 24)
    return rows & ROW


def later_rows(rows):
    """For each entry the union of the rows of smaller entries."""
    return ((rows << 6) | (rows << 12) | (rows << 18)) & ROWS


def entries_up_to(entry):
    """The rows of the entries 1 to `entry`, all bookies."""
    return (1 << (6 * entry)) - 1


def current_ensemble(fragments):
    """Who is in the ensemble of the current fragment."""
    return fragments.ensembles & ROW


def rows_from(entry):
    """All bookies of this entry, from 1 to 7, and of all later ones."""
    return (ROWS << (6 * entry) >> 6) & ROWS
