"""Bit layout of the BookKeeper model's state, and the masks that its rules are made of.

Bookies are the bits of 6-bit rows; entries 1 to 4 are rows of a word: bit 6(e - 1) + b. An ensemble is such a row. If
it is larger than a write quorum, it is a list as well (`stripes`): who is at its positions 0 and 1, in 3 bits each,
is another row, and so is who is at 2 and 3. An add request is identified by its entry and the sender's LAC, which is
always smaller: row e(e - 1)/2 + lac of a 60-bit word. One client creates the ledger (the writer) and never recovers it;
the others, in order of their ids, are the recovery slots 0 and 1, and a (slot, bookie) pair is bit 6 slot + b of a
12-bit row.
"""

from typing import Annotated, NamedTuple

from quorisk.kernels.protocols.fields import bits_by_node, blank, widths

MAX_BOOKIES, MAX_ENTRIES, MAX_CLIENTS, MAX_FRAGMENTS = 6, 4, 3, 10
MAX_LIST = 5
"""Bookies of an ensemble that is larger than a write quorum."""
MAX_AMNESIAS, MAX_OUTAGES = 15, 7

ROW = 0b111111
"""All bookies."""
ROWS = 0xFFFFFF
"""All bookies of all entries."""
EVERY_ROW = 0x41041
"""The factor that copies a row to every entry; also the entries' own bits."""
EVERY_REQUEST_ROW = EVERY_ROW | EVERY_ROW << 24 | 0x41 << 48
EVERY_FRAGMENT_ROW = EVERY_REQUEST_ROW
"""Ten rows fill a word: of add requests, or of fragments."""
EVERY_SLOT_ROW = 1 | 1 << 12 | 1 << 24 | 1 << 36 | 1 << 48
"""The factor that copies a (slot, bookie) row to each of the entries 1 to 5 that a recovery may read."""

NO_LAC = 7
"""The value in `fence_lacs` of a bookie in limbo, whose answer says no more than that."""

STATUS_NIL, STATUS_OPEN, STATUS_IN_RECOVERY, STATUS_CLOSED, CLIENT_WITHDRAWN = range(5)


# What there is in a state: how many bits, and how many of them for each bookie (see `fields`)
Bookies = Annotated[int, MAX_BOOKIES, 1]
Lacs = Annotated[int, 3 * MAX_BOOKIES, 3]
Entries = Annotated[int, MAX_ENTRIES * MAX_BOOKIES, 1]
EntryBits = Annotated[int, MAX_ENTRIES * MAX_BOOKIES]
EntryId = Annotated[int, 3]
Version = Annotated[int, 9]
Order = Annotated[int, 18]
Stack = Annotated[int, MAX_BOOKIES * MAX_FRAGMENTS, 1]
Orders = Annotated[int, MAX_BOOKIES * MAX_FRAGMENTS]
Slots = Annotated[int, MAX_CLIENTS - 1]
BySlot = Annotated[int, 2 * MAX_BOOKIES, 1]
LacsBySlot = Annotated[int, 6 * MAX_BOOKIES, 3]
OrdersBySlot = Annotated[int, 24]
Reads = Annotated[int, (MAX_ENTRIES + 1) * 2 * MAX_BOOKIES, 1]


class Messages(NamedTuple):
    """The messages of one kind: the spec's `messages`, a bit for each message instead of a delivery count."""

    sent: int  # in the map at all
    on_way: int  # delivery count 1; a message sent, not on its way and not lost was processed (0)
    lost: int  # delivery count -1: a time-out that nobody acted on yet


AddRequests = Annotated[Messages, MAX_ENTRIES * (MAX_ENTRIES + 1) // 2 * MAX_BOOKIES, 1]
AddResponses = Annotated[Messages, 2 * MAX_ENTRIES * MAX_BOOKIES, 1]
FenceMessages = Annotated[Messages, 2 * MAX_BOOKIES, 1]
ReadMessages = Annotated[Messages, (MAX_ENTRIES + 1) * 2 * MAX_BOOKIES, 1]


class Fragments(NamedTuple):
    """A list of fragments as stacks, the current fragment lowest; a fragment's id is its place counted from 1."""

    ensembles: Stack  # who is in them, 6 bits a fragment
    order_01: Orders  # who is at their positions 0 and 1, 6 bits a fragment; 0 where an ensemble is a write quorum
    order_23: Orders  # who is at their positions 2 and 3, likewise
    first_ids: Annotated[int, 3 * MAX_FRAGMENTS]  # first_entry_id, 3 bits a fragment
    num: Annotated[int, 4]  # how many


class Client(NamedTuple):
    """The state that writer and recovery clients share: the fields of the spec's ClientState for adding entries."""

    meta_version: Version  # metadata version that the client has; 0 = Nil
    fragments: Fragments  # the fragments as the client knows them; the lowest is curr_fragment
    lap: EntryId  # last add pushed
    lac: EntryId  # last add confirmed
    confirmed: Entries  # bit 6(e - 1) + b: bookie b confirmed entry e
    pending: EntryBits  # pending_add_ops: bit 6(e - 1)
    op_fragments: EntryBits  # fragment_id of each pending op, 6 bits an entry
    op_ensembles: Entries  # write set of each pending op in its ensemble, 6 bits an entry
    left: Order  # the ensemble of the pending ops that are to be sent again, `stripes.packed`; 0 if none or E = WQ
    requests: AddRequests  # AddEntryRequestMessage: bit 6(e(e - 1)/2 + lac) + b
    responses: AddResponses  # AddEntryResponseMessage: bit 6(e - 1) + b; 24 higher if fenced (success = FALSE)


class State(NamedTuple):
    """Every variable of the spec."""

    meta_status: Annotated[int, 2]  # STATUS_*
    meta_fragments: Fragments  # the ledger's fragments
    meta_write_sets: Entries  # derived: write set of each entry in its fragment's ensemble, 6 bits an entry
    meta_last_entry: EntryId  # endpoint of the ledger once closed
    meta_version: Version  # counted up with each update
    b_entries: Entries  # bit 6(e - 1) + b: bookie b stores entry e (its data is its id: see NoOutOfOrderEntries)
    b_fenced: Bookies  # bit b
    b_lac: Lacs  # 3 bits a bookie
    b_limbo: Bookies  # bit b: it restarted without its data and answers Unknown instead of NoSuchEntry
    b_unflushed: Entries  # bit 6(e - 1) + b: bookie b stores entry e, but not on disk
    b_unflushed_fences: Bookies  # bit b: the same of its fence
    b_unflushed_lacs: Lacs  # 3 bits a bookie: b_lac XOR what is on disk
    b_damaged: Entries  # bit 6(e - 1) + b: bookie b knows of entry e, and cannot read what it has of it on disk
    b_down: Bookies  # bit b: lost for good, and not replaced yet
    amnesias: Annotated[int, 4]  # restarts with data loss so far
    outages: Annotated[int, 3]  # power outages of the whole cluster so far
    rack_outages: Annotated[int, 3]  # power outages of racks so far
    unclean_restarts: Annotated[int, 4]  # of single bookies so far
    partial_amnesias: Annotated[int, 4]  # times that a bookie lost some of its entries so far
    creator: Annotated[int, 2]  # id of the client that created the ledger, counted from 1; 0 = none yet
    writer_status: Annotated[int, 3]  # status of that client: STATUS_NIL, OPEN, CLOSED or CLIENT_WITHDRAWN
    # 1 while that client calls nobody back, its new ensemble being on its way to the metadata (`unsetting`)
    changing: Annotated[int, 1]
    writer: Client  # that client
    recoverer_0: Client  # the other clients, by slot
    recoverer_1: Client
    started: Slots  # bit slot: recovery_phase is not NotStarted
    reading: Slots  # bit slot: recovery_phase is ReadWritePhase
    closed: Slots  # bit slot: status is STATUS_CLOSED
    aborted: Slots  # bit slot: status is RECOVERY_ABORTED; started, not closed, not aborted = STATUS_IN_RECOVERY
    fenced: BySlot  # bit 6 slot + b: bookie b confirmed to that client that it is fenced
    recovery_ensembles: BySlot  # bit 6 slot + b: recovery_ensemble
    negative_reads: BySlot  # bit 6 slot + b: read_responses of the entry being read that are NoSuchEntry
    unknown_reads: BySlot  # bit 6 slot + b: those that are Unknown; one that is OK decides the read and is not kept
    curr_read_entries: Annotated[int, 6]  # 3 bits a slot: entry being read; 0 = Nil
    last_recoverable: Annotated[int, 6]  # 3 bits a slot: last_recoverable_entry + 1; 0 = Nil
    fence_requests: FenceMessages  # FenceRequestMessage: bit 6 slot + b
    fence_responses: FenceMessages  # FenceResponseMessage: bit 6 slot + b
    fence_lacs: LacsBySlot  # lac of each FenceResponseMessage sent: 3 bits each; NO_LAC if it is Unknown
    recovery_orders: OrdersBySlot  # places in recovery_ensemble, 12 bits a slot; 0 where that is a write quorum
    read_requests: ReadMessages  # ReadRequestMessage: bit 12(e - 1) + 6 slot + b
    read_responses: ReadMessages  # ReadResponseMessage: bit 12(e - 1) + 6 slot + b
    read_found: Reads  # those of them with code OK
    read_unknown: Reads  # those of them with code Unknown


WIDTHS, BITS_BY_BOOKIE = widths(State), bits_by_node(State)
INITIAL, NO_MESSAGES, NO_FRAGMENTS = blank(State), blank(Messages), blank(Fragments)
"""Nothing created, stored or sent."""


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
    """The union of the rows of smaller entries, for each entry."""
    return ((rows << 6) | (rows << 12) | (rows << 18)) & ROWS


def entries_up_to(entry):
    """The rows of the entries 1 to `entry`, all bookies."""
    return (1 << (6 * entry)) - 1


def current_ensemble(fragments):
    """The bookies in the ensemble of the current fragment."""
    return fragments.ensembles & ROW


def rows_from(entry):
    """Bits of all bookies in the rows of this entry, from 1 to 7, and of later ones."""
    return (ROWS << (6 * entry) >> 6) & ROWS
