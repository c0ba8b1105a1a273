"""A state in the spec's own variables: for traces, and to compare it with other programs' states."""

from functools import cache, lru_cache
from typing import Any, NamedTuple

from quorisk.kernels.ops import bits
from quorisk.kernels.protocols.bookkeeper import layout
from quorisk.kernels.protocols.bookkeeper.adding import needing_resend
from quorisk.kernels.protocols.bookkeeper.layout import MAX_ENTRIES, entry_of, entry_row
from quorisk.kernels.protocols.bookkeeper.messages import (
    FENCED_RESPONSE,
    add_request_entry,
    add_request_lac,
    read_entry,
    reads_of_slot,
)
from quorisk.kernels.protocols.bookkeeper.reading import recovery_ensemble
from quorisk.kernels.protocols.bookkeeper.slots import bookie_of, of_slot, slot_field, slot_row
from quorisk.kernels.protocols.bookkeeper.stripes import NOBODY, ensemble_at, positions, unpacked

NIL = "Nil"
OPEN, IN_RECOVERY, CLOSED = "STATUS_OPEN", "STATUS_IN_RECOVERY", "STATUS_CLOSED"
WITHDRAWN, ABORTED = "CLIENT_WITHDRAWN", "RECOVERY_ABORTED"
ADD_REQUEST, ADD_RESPONSE = "AddEntryRequestMessage", "AddEntryResponseMessage"
FENCE_REQUEST, FENCE_RESPONSE = "FenceRequestMessage", "FenceResponseMessage"
READ_REQUEST, READ_RESPONSE = "ReadRequestMessage", "ReadResponseMessage"
OK, NO_SUCH_ENTRY, UNKNOWN = "OK", "NoSuchEntry", "Unknown"
NOT_STARTED, FENCING_PHASE, READ_WRITE_PHASE = range(3)
LOST, HANDLED, ON_ITS_WAY = -1, 0, 1
"""Delivery counts; handled: processed, ignored, or a loss that was acted on."""

_KEPT = 1 << 14
"""Parts of states that are remembered: a step leaves most of them as they are."""

Bookies = frozenset[int]
Ensemble = Bookies | tuple[int, ...]
"""A set, as the spec has it, or if it is larger than a write quorum a list."""
_META_STATUS = (None, OPEN, IN_RECOVERY, CLOSED)
_WRITER_STATUS = (None, OPEN, None, CLOSED, WITHDRAWN)


class Entry(NamedTuple):
    """Entry."""

    id: int
    data: int | None


class Fragment(NamedTuple):
    """Fragment."""

    id: int
    ensemble: Ensemble
    first_entry_id: int


class PendingAddOp(NamedTuple):
    """PendingAddOp."""

    entry: Entry
    fragment_id: int
    ensemble: Ensemble


class Message(NamedTuple):
    """A message of any type; a field that its type does not have keeps its default."""

    type: str
    bookie: int
    cid: int
    entry: Entry = Entry(0, None)  # of a read request only the id is set
    lac: int = 0
    recovery: bool = False
    success: bool = False
    fence: bool = False
    code: str = ""


class ClientState(NamedTuple):
    """ClientState; None is Nil."""

    id: int
    confirmed: tuple[Bookies, ...]  # of entry 1, of entry 2, ...
    meta_version: int | None = None
    status: str | None = None
    curr_fragment: Fragment | None = None
    fragments: tuple[Fragment, ...] = ()
    pending_add_ops: frozenset[PendingAddOp] = frozenset()
    lap: int = 0
    lac: int = 0
    fenced: Bookies = frozenset()
    recovery_ensemble: Ensemble = frozenset()
    curr_read_entry: int | None = None
    read_responses: frozenset[Message] = frozenset()
    recovery_phase: int = NOT_STARTED
    last_recoverable_entry: int | None = None
    changing: bool = False  # not the spec's; see `callbacks`


class Disk(NamedTuple):
    """The disk of a bookie; damaged: the ids of entries that it knows of and cannot read."""

    entries: frozenset[Entry] = frozenset()
    lac: int = 0
    fenced: bool = False
    damaged: frozenset[int] = frozenset()


class SpecState(NamedTuple):
    """The spec's variables; bookies and clients are counted from 0."""

    meta_status: str | None
    meta_fragments: tuple[Fragment, ...]
    meta_last_entry: int
    meta_version: int
    b_entries: tuple[frozenset[Entry], ...]
    b_fenced: tuple[bool, ...]
    b_lac: tuple[int, ...]
    b_limbo: tuple[bool, ...]
    disks: tuple[Disk, ...]
    b_down: Bookies
    amnesias: int
    outages: int
    rack_outages: int
    unclean_restarts: int
    partial_amnesias: int
    clients: tuple[ClientState, ...]
    messages: frozenset[tuple[Message, int]]  # each message ever sent, with its delivery count


def num_bookies(params: Any) -> int:
    """Bookies in use."""
    return int(params.bookies).bit_count()


def spec_state(state: layout.State, params: Any) -> SpecState:
    """The state that the spec would have."""
    blank = ClientState(0, (frozenset(),) * params.entries, recovery_ensemble=_ensemble(NOBODY, params))
    clients = [blank._replace(id=cid) for cid in range(params.clients)]
    counts: dict[Message, int] = {}
    if state.creator:
        cid = state.creator - 1
        clients[cid] = _client(state.writer, clients[cid], params)._replace(
            status=_WRITER_STATUS[state.writer_status], changing=bool(state.changing)
        )
        counts |= _add_messages(state.writer, cid, recovery=False)
        for slot, cid in enumerate(c for c in range(params.clients) if c != state.creator - 1):
            packed = (state.recoverer_0, state.recoverer_1)[slot]
            clients[cid] = _recoverer(state, slot, _client(packed, clients[cid], params), params)
            counts |= _add_messages(packed, cid, recovery=True) | _recovery_messages(state, slot, cid, params)
    in_use = range(num_bookies(params))
    return SpecState(
        meta_status=_META_STATUS[state.meta_status],
        meta_fragments=_fragments(state.meta_fragments, params),
        meta_last_entry=state.meta_last_entry,
        meta_version=state.meta_version,
        b_entries=tuple(_entries(state.b_entries, b) for b in in_use),
        b_fenced=tuple(bool(state.b_fenced >> b & 1) for b in in_use),
        b_lac=tuple(slot_field(state.b_lac, b) for b in in_use),
        b_limbo=tuple(bool(state.b_limbo >> b & 1) for b in in_use),
        disks=tuple(_disk(state, b) for b in in_use),
        b_down=_bookies(state.b_down),
        amnesias=state.amnesias,
        outages=state.outages,
        rack_outages=state.rack_outages,
        unclean_restarts=state.unclean_restarts,
        partial_amnesias=state.partial_amnesias,
        clients=tuple(clients),
        messages=frozenset(counts.items()),
    )


@lru_cache(_KEPT)
def _entries(rows: int, b: int) -> frozenset[Entry]:
    return frozenset(Entry(e, e) for e in range(1, MAX_ENTRIES + 1) if entry_row(rows, e) >> b & 1)


def _disk(state: layout.State, b: int) -> Disk:
    return Disk(
        _entries(state.b_entries & ~state.b_unflushed, b),
        slot_field(state.b_lac ^ state.b_unflushed_lacs, b),
        bool((state.b_fenced & ~state.b_unflushed_fences) >> b & 1),
        frozenset(entry.id for entry in _entries(state.b_damaged, b)),
    )


@cache
def _bookies(mask: int) -> Bookies:
    return frozenset(bits(mask))


def write_set(entry: int, ensemble: Ensemble, params: Any) -> Bookies:
    """WriteSet."""
    if isinstance(ensemble, frozenset):
        return ensemble
    return frozenset(ensemble[(entry - 1 + i) % len(ensemble)] for i in range(params.write_quorum))


def _ensemble(ensemble: Any, params: Any) -> Ensemble:
    if not params.striped:
        return _bookies(ensemble.members)
    return tuple(map(bookie_of, bits(positions(params, ensemble)))) if ensemble.members else ()


@lru_cache(_KEPT)
def _fragments(packed: layout.Fragments, params: Any) -> tuple[Fragment, ...]:
    """The current fragment is lowest in the stack and last in the list."""
    return tuple(
        Fragment(packed.num - i, _ensemble(ensemble_at(packed, i), params), packed.first_ids >> 3 * i & 7)
        for i in range(packed.num - 1, -1, -1)
    )


def _op_ensemble(packed: layout.Client, entry: int, params: Any) -> Ensemble:
    """The ensemble of a pending op: a set with E = WQ; else the current one or, if it is to be sent again, `left`."""
    if not params.striped:
        return _bookies(entry_row(packed.op_ensembles, entry))
    resend = entry_row(needing_resend(params, packed), entry) & 1
    return _ensemble(unpacked(packed.left) if resend else ensemble_at(packed.fragments, 0), params)


@lru_cache(_KEPT)
def _client(packed: layout.Client, blank: ClientState, params: Any) -> ClientState:
    known = _fragments(packed.fragments, params)
    pending = [e for e in range(1, MAX_ENTRIES + 1) if entry_row(packed.pending, e) & 1]
    return blank._replace(
        confirmed=tuple(_bookies(entry_row(packed.confirmed, e + 1)) for e in range(len(blank.confirmed))),
        meta_version=packed.meta_version or None,
        curr_fragment=known[-1] if known else None,
        fragments=known,
        pending_add_ops=frozenset(
            PendingAddOp(Entry(e, e), entry_row(packed.op_fragments, e), _op_ensemble(packed, e, params))
            for e in pending
        ),
        lap=packed.lap,
        lac=packed.lac,
    )


def _recoverer(state: layout.State, slot: int, blank: ClientState, params: Any) -> ClientState:
    def flag(mask: int) -> int:
        return mask >> slot & 1

    def own(mask: int) -> Bookies:
        return _bookies(of_slot(mask, slot))

    status = IN_RECOVERY if flag(state.started) else None
    status = CLOSED if flag(state.closed) else ABORTED if flag(state.aborted) else status
    reading, last = slot_field(state.curr_read_entries, slot), slot_field(state.last_recoverable, slot)
    responses = [
        _read_response(b, blank.id, reading, code, params)
        for code, answered in ((NO_SUCH_ENTRY, state.negative_reads), (UNKNOWN, state.unknown_reads))
        for b in own(answered)
    ]
    return blank._replace(
        status=status,
        fenced=own(state.fenced),
        recovery_ensemble=_ensemble(recovery_ensemble(state, slot), params),
        curr_read_entry=reading or None,
        read_responses=frozenset(responses),
        recovery_phase=flag(state.started) + flag(state.reading),
        last_recoverable_entry=last - 1 if last else None,
    )


def _counted(messages: layout.Messages, bit: int) -> int:
    """Delivery count of a message that was sent."""
    if messages.on_way >> bit & 1:
        return ON_ITS_WAY
    return LOST if messages.lost >> bit & 1 else HANDLED


@lru_cache(_KEPT)
def _add_messages(packed: layout.Client, cid: int, recovery: bool) -> dict[Message, int]:
    """A table cached between calls, to be read only."""
    found = {}
    for bit in bits(packed.requests.sent):
        entry = add_request_entry(bit)
        message = Message(ADD_REQUEST, bookie_of(bit), cid, Entry(entry, entry), add_request_lac(bit), recovery)
        found[message] = _counted(packed.requests, bit)
    for bit in bits(packed.responses.sent):
        entry, success = entry_of(bit % FENCED_RESPONSE), bit < FENCED_RESPONSE
        message = Message(ADD_RESPONSE, bookie_of(bit), cid, Entry(entry, entry), 0, recovery, success)
        found[message] = _counted(packed.responses, bit)
    return found


def _recovery_messages(state: layout.State, slot: int, cid: int, params: Any) -> dict[Message, int]:
    found = {}
    own = slot_row(slot, layout.ROW)
    for bit in bits(state.fence_requests.sent & own):
        found[Message(FENCE_REQUEST, bookie_of(bit), cid)] = _counted(state.fence_requests, bit)
    for bit in bits(state.fence_responses.sent & own):
        lac = slot_field(state.fence_lacs, bit)
        known: dict[str, Any] = {"code": UNKNOWN} if lac == layout.NO_LAC else {"lac": lac}
        message = Message(FENCE_RESPONSE, bookie_of(bit), cid, **known)
        found[message] = _counted(state.fence_responses, bit)
    for bit in bits(reads_of_slot(state.read_requests.sent, slot, layout.ROW)):
        entry, fence = Entry(read_entry(bit), None), bool(params.fence_recovery_reads)
        found[Message(READ_REQUEST, bookie_of(bit), cid, entry, fence=fence)] = _counted(state.read_requests, bit)
    for bit in bits(reads_of_slot(state.read_responses.sent, slot, layout.ROW)):
        code = OK if state.read_found >> bit & 1 else UNKNOWN if state.read_unknown >> bit & 1 else NO_SUCH_ENTRY
        message = _read_response(bookie_of(bit), cid, read_entry(bit), code, params)
        found[message] = _counted(state.read_responses, bit)
    return found


def _read_response(bookie: int, cid: int, entry: int, code: str, params: Any) -> Message:
    return Message(
        READ_RESPONSE,
        bookie,
        cid,
        Entry(entry, entry if code == OK else None),
        fence=bool(params.fence_recovery_reads),
        code=code,
    )
