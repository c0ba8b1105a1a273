"""From a packed BookKeeper state to the literal one of the reference interpreter."""

from kernels.bookkeeper import layout
from tests import reference_bookkeeper as reference
from tests.reference_bookkeeper import Entry, Fragment, Message, PendingAddOp
from tests.support import bits

META_STATUS = (None, reference.OPEN, reference.IN_RECOVERY, reference.CLOSED)
WRITER_STATUS = (None, reference.OPEN, None, reference.CLOSED, reference.WITHDRAWN)
REQUEST_ROWS = [(entry, lac) for entry in range(1, 5) for lac in range(entry)]


def decode(state: layout.State, constants: reference.Constants) -> reference.State:
    blank = reference.initial(constants).clients
    clients = list(blank)
    counts: dict[Message, int] = {}
    if state.creator:
        cid = state.creator - 1
        status = WRITER_STATUS[state.writer_status]
        clients[cid] = client(state.writer, blank[cid])._replace(status=status)
        counts |= add_messages(state.writer, cid, recovery=False)
        others = [c for c in range(constants.clients) if c != cid]
        for slot, cid in enumerate(others):
            packed = (state.recoverer_0, state.recoverer_1)[slot]
            clients[cid] = recoverer(state, slot, client(packed, blank[cid]), constants)
            counts |= add_messages(packed, cid, recovery=True) | recovery_messages(state, slot, cid, constants)
    in_use = range(constants.bookies)
    return reference.State(
        META_STATUS[state.meta_status],
        fragments(state.meta_fragments),
        state.meta_last_entry,
        state.meta_version,
        tuple(frozenset(Entry(e, e) for e in range(1, 5) if row(state.b_entries, e) >> b & 1) for b in in_use),
        tuple(bool(state.b_fenced >> b & 1) for b in in_use),
        tuple(state.b_lac >> 3 * b & 7 for b in in_use),
        tuple(clients),
        frozenset(counts.items()),
    )  # fmt: skip


def row(rows, entry):
    return rows >> 6 * (entry - 1) & 63


def bookies(mask):
    return frozenset(bits(mask))


def fragments(packed):
    """The current fragment is lowest in the stack and last in the list."""
    places = range(packed.num - 1, -1, -1)
    return tuple(
        Fragment(packed.num - i, bookies(packed.ensembles >> 6 * i & 63), packed.first_ids >> 3 * i & 7) for i in places
    )


def client(packed, blank):
    known = fragments(packed.fragments)
    pending = [e for e in range(1, 5) if row(packed.pending, e) & 1]
    return blank._replace(
        confirmed=tuple(bookies(row(packed.confirmed, e + 1)) for e in range(len(blank.confirmed))),
        meta_version=packed.meta_version or None,
        curr_fragment=known[-1] if known else None,
        fragments=known,
        pending_add_ops=frozenset(
            PendingAddOp(Entry(e, e), row(packed.op_fragments, e), bookies(row(packed.op_ensembles, e)))
            for e in pending
        ),
        lap=packed.lap,
        lac=packed.lac,
    )


def recoverer(state, slot, blank, constants):
    def flag(mask):
        return mask >> slot & 1

    def lanes(mask):
        return bookies(mask >> 6 * slot & 63)

    status = reference.IN_RECOVERY if flag(state.started) else None
    status = reference.CLOSED if flag(state.closed) else reference.ABORTED if flag(state.aborted) else status
    reading, last = state.curr_read_entries >> 3 * slot & 7, state.last_recoverable >> 3 * slot & 7
    cid, negative = blank.id, lanes(state.negative_reads)
    responses = [read_response(b, cid, reading, found=False, constants=constants) for b in negative]
    return blank._replace(
        status=status,
        fenced=lanes(state.fenced),
        recovery_ensemble=lanes(state.recovery_ensembles),
        curr_read_entry=reading or None,
        read_responses=frozenset(responses),
        recovery_phase=flag(state.started) + flag(state.reading),
        last_recoverable_entry=last - 1 if last else None,
    )


def counted(messages, bit):
    """Delivery count of a message that was sent."""
    if messages.on_way >> bit & 1:
        return reference.ON_ITS_WAY
    return reference.LOST if messages.lost >> bit & 1 else reference.HANDLED


def add_messages(packed, cid, recovery):
    found = {}
    for bit in bits(packed.requests.sent):
        entry, lac = REQUEST_ROWS[bit // 6]
        message = Message(reference.ADD_REQUEST, bit % 6, cid, Entry(entry, entry), lac, recovery)
        found[message] = counted(packed.requests, bit)
    for bit in bits(packed.responses.sent):
        entry = bit % 24 // 6 + 1
        message = Message(reference.ADD_RESPONSE, bit % 6, cid, Entry(entry, entry), 0, recovery, success=bit < 24)
        found[message] = counted(packed.responses, bit)
    return found


def recovery_messages(state, slot, cid, constants):
    found = {}
    for bookie in range(6):
        lane = 6 * slot + bookie
        for kind, messages in (
            (reference.FENCE_REQUEST, state.fence_requests),
            (reference.FENCE_RESPONSE, state.fence_responses),
        ):
            if messages.sent >> lane & 1:
                lac = state.fence_lacs >> 3 * lane & 7 if kind == reference.FENCE_RESPONSE else 0
                found[Message(kind, bookie, cid, lac=lac)] = counted(messages, lane)
        for entry in range(1, 6):
            bit = 12 * (entry - 1) + lane
            if state.read_requests.sent >> bit & 1:
                message = Message(
                    reference.READ_REQUEST, bookie, cid, Entry(entry, None), fence=constants.fence_recovery_reads
                )
                found[message] = counted(state.read_requests, bit)
            if state.read_responses.sent >> bit & 1:
                message = read_response(bookie, cid, entry, bool(state.read_found >> bit & 1), constants)
                found[message] = counted(state.read_responses, bit)
    return found  # fmt: skip


def read_response(bookie, cid, entry, found, constants):
    return Message(
        reference.READ_RESPONSE,
        bookie,
        cid,
        Entry(entry, entry if found else None),
        fence=constants.fence_recovery_reads,
        code=reference.OK if found else reference.NO_SUCH_ENTRY,
    )
