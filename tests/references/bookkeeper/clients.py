"""What clients do: the original one writes the ledger, a recovery client reads, writes back and closes it."""

from collections.abc import Callable, Iterator

from quorisk.kernels.protocols.bookkeeper.describe import (
    ABORTED,
    ADD_REQUEST,
    ADD_RESPONSE,
    CLOSED,
    FENCE_REQUEST,
    FENCE_RESPONSE,
    FENCING_PHASE,
    IN_RECOVERY,
    LOST,
    NO_SUCH_ENTRY,
    OK,
    ON_ITS_WAY,
    OPEN,
    READ_REQUEST,
    READ_RESPONSE,
    READ_WRITE_PHASE,
    UNKNOWN,
    WITHDRAWN,
    Bookies,
    ClientState,
    Entry,
    Fragment,
    Message,
    PendingAddOp,
)
from tests.references.bookkeeper.state import (
    NOBODY,
    Effect,
    View,
    acknowledged,
    add_requests,
    covered,
    current,
    enough_negative,
    handled,
    is_earliest,
    last_done,
    nobody,
    put,
    select_ensemble,
    with_client,
    write_set,
)

WRITES, READS = (ADD_REQUEST, ADD_RESPONSE), (READ_REQUEST, READ_RESPONSE)
NEED_MORE_RESPONSES = "need_more_responses"


# ---- Shared by the original and the recovery client ----


def listened_to(c: ClientState) -> set[int]:
    """The bookies whose answers are received: while a change is under way, also those of the ensemble before."""
    before = {bookie for op in c.pending_add_ops if c.changing for bookie in op.ensemble}
    return before | set(current(c).ensemble)


def addressed(v: View, c: ClientState, entry: Entry) -> frozenset[int]:
    """The bookies whose answers about an entry count: while a change is under way, those that it was sent to."""
    ensemble = current(c).ensemble
    if c.changing:
        ensemble = next((op.ensemble for op in c.pending_add_ops if op.entry == entry), ())
        return write_set(entry.id, ensemble, v.constants.write_quorum) if ensemble else NOBODY
    return write_set(entry.id, ensemble, v.constants.write_quorum)


def receive_add_confirmed_response(v: View, c: ClientState, recovery: bool) -> Iterator[Effect]:
    k = v.constants
    for msg in v.arrived(ADD_RESPONSE, cid=c.id, recovery=recovery, success=True):
        if not is_earliest(v, msg) or msg.bookie not in listened_to(c):
            continue
        index = msg.entry.id - 1
        heard = {msg.bookie} & addressed(v, c, msg.entry)
        confirmed = put(c.confirmed, index, c.confirmed[index] | heard)
        if c.changing:
            yield msg, handled(with_client(v.state, c._replace(confirmed=confirmed)), [msg]), []
            continue
        lac = last_contiguous(confirmed, 0 if k.literal else c.lac, lambda by: acknowledged(by, k))
        done = {op for op in c.pending_add_ops if acknowledged(confirmed[op.entry.id - 1], k) and op.entry.id <= lac}
        if k.guaranteed_write_quorum:
            start = 0 if k.literal else last_done(c, k)
            lafr = last_contiguous(confirmed, start, lambda by: len(by) == k.write_quorum)
            done = {op for op in c.pending_add_ops if op.entry.id <= lafr}
        client = c._replace(confirmed=confirmed, lac=max(lac, c.lac), pending_add_ops=c.pending_add_ops - done)
        yield msg, handled(with_client(v.state, client), [msg]), []


def last_contiguous(confirmed: tuple[Bookies, ...], start: int, enough: Callable[[Bookies], bool]) -> int:
    """The last entry after `start` that, like all between, enough bookies have confirmed."""
    last = start
    while last < len(confirmed) and enough(confirmed[last]):  # entry last + 1
        last += 1
    return last


def needs_resend(op: PendingAddOp, fragment: Fragment) -> bool:
    return op.fragment_id != fragment.id or op.ensemble != fragment.ensemble


def failed_bookies(v: View, c: ClientState, timed_out: list[Message]) -> frozenset[int]:
    """The bookies that a change replaces: all that timed out, or those that keep an entry from its ack quorum."""
    old, k = current(c).ensemble, v.constants
    if not k.delay_ensemble_change:
        pinned = NOBODY.union(*c.confirmed[last_done(c, k) : c.lac])
        return frozenset(m.bookie for m in timed_out if m.bookie in old) - pinned
    failed = set[int]()
    for entry in (op.entry for op in c.pending_add_ops):
        unconfirmed = write_set(entry.id, old, k.write_quorum) - c.confirmed[entry.id - 1]
        missing = {m.bookie for m in timed_out if m.entry.id == entry.id} & unconfirmed
        if k.write_quorum - len(missing) < k.ack_quorum:
            failed |= missing
    return frozenset(failed)


def change_ensemble(v: View, c: ClientState, recovery: bool) -> Iterator[Effect]:
    s = v.state
    commit = not recovery or not v.constants.defer_recovery_ensemble_change
    if c.changing or any(needs_resend(op, current(c)) for op in c.pending_add_ops):
        return
    if commit and c.meta_version != s.meta_version:
        return
    timed_out = v.find(LOST, WRITES, cid=c.id, recovery=recovery)
    old, quorum = current(c).ensemble, v.constants.write_quorum
    failed = failed_bookies(v, c, timed_out)
    new_ensemble = select_ensemble(v, old, failed)
    if not failed or new_ensemble is None:
        return
    first_entry_id = last_done(c, v.constants) + 1
    if first_entry_id == current(c).first_entry_id:
        fragments = (*c.fragments[:-1], current(c)._replace(ensemble=new_ensemble))
    else:
        fragments = (*c.fragments, Fragment(len(c.fragments) + 1, new_ensemble, first_entry_id))
    client = c._replace(fragments=fragments, curr_fragment=fragments[-1])
    pending = c.pending_add_ops
    stay = {op for op in pending if write_set(op.entry.id, old, quorum) == write_set(op.entry.id, new_ensemble, quorum)}
    moved = {op._replace(fragment_id=fragments[-1].id, ensemble=new_ensemble) for op in stay}
    client = client._replace(pending_add_ops=(pending - stay) | moved)
    if not recovery and v.constants.striped and not v.constants.callbacks_after_unset and pending:
        client = client._replace(changing=True)
    else:
        confirmed = tuple(acks - failed if e > c.lac else acks for e, acks in enumerate(c.confirmed, 1))
        client = client._replace(confirmed=confirmed)
    if commit:
        client = client._replace(meta_version=s.meta_version + 1)
        s = s._replace(meta_fragments=fragments, meta_version=s.meta_version + 1)
    cleared = [m for m in timed_out if m.bookie in failed]
    yield c.id, handled(with_client(s, client), cleared, LOST), []


def resend_pending_add_op(v: View, c: ClientState, recovery: bool) -> Iterator[Effect]:
    for op in c.pending_add_ops:
        earlier_alike = any(
            (other.fragment_id, other.ensemble) == (op.fragment_id, op.ensemble) and other.entry.id < op.entry.id
            for other in c.pending_add_ops
        )
        if needs_resend(op, current(c)) and not earlier_alike and not c.changing:
            moved = op._replace(fragment_id=current(c).id, ensemble=current(c).ensemble)
            client = c._replace(pending_add_ops=(c.pending_add_ops - {op}) | {moved})
            now, before = (write_set(op.entry.id, e.ensemble, v.constants.write_quorum) for e in (current(c), op))
            new_bookies = now - before
            yield op, with_client(v.state, client), add_requests(v, c, op.entry, new_bookies, recovery)


def version_allows_close(v: View, c: ClientState) -> bool:
    return c.meta_version == v.state.meta_version or not v.constants.close_checks_version


# ---- The original client ----


def client_creates_ledger(v: View, c: ClientState) -> Iterator[Effect]:
    ensemble = select_ensemble(v, nobody(v.constants), NOBODY)
    if v.state.meta_status is None and c.meta_version is None and ensemble is not None:
        fragments = (Fragment(1, ensemble, 1),)
        client = c._replace(status=OPEN, meta_version=1, fragments=fragments, curr_fragment=fragments[0])
        s = v.state._replace(meta_status=OPEN, meta_version=1, meta_fragments=fragments)
        yield c.id, with_client(s, client), []


def client_sends_add_entry_requests(v: View, c: ClientState) -> Iterator[Effect]:
    if c.status == OPEN and c.lap - c.lac < v.constants.inflight and c.lap < v.constants.entries:
        entry = Entry(c.lap + 1, c.lap + 1)
        op = PendingAddOp(entry, current(c).id, current(c).ensemble)
        client = c._replace(lap=entry.id, pending_add_ops=c.pending_add_ops | {op})
        bookies = write_set(entry.id, current(c).ensemble, v.constants.write_quorum)
        yield c.id, with_client(v.state, client), add_requests(v, c, entry, bookies, False)


def client_receives_add_confirmed_response(v: View, c: ClientState) -> Iterator[Effect]:
    if c.status == OPEN:
        yield from receive_add_confirmed_response(v, c, False)


def client_receives_add_fenced_response(v: View, c: ClientState) -> Iterator[Effect]:
    if c.status == OPEN:
        for msg in v.arrived(ADD_RESPONSE, cid=c.id, recovery=False, success=False):
            if is_earliest(v, msg) and msg.bookie in listened_to(c):
                counts = msg.bookie in addressed(v, c, msg.entry)
                client = c._replace(status=WITHDRAWN) if counts else c
                yield msg, handled(with_client(v.state, client), [msg]), []


def client_changes_ensemble(v: View, c: ClientState) -> Iterator[Effect]:
    if c.status == OPEN and v.state.meta_status == OPEN:
        yield from change_ensemble(v, c, False)


def client_completes_ensemble_change(v: View, c: ClientState) -> Iterator[Effect]:
    """LedgerHandle.unsetSuccessAndSendWriteRequest: every pending entry and replaced position, in order."""
    if c.status != OPEN or not c.changing:
        return
    size, quorum = len(current(c).ensemble), v.constants.write_quorum
    old = next((op.ensemble for op in c.pending_add_ops if needs_resend(op, current(c))), None)
    replaced = [p for p in range(size) if old is None or tuple(old)[p] != tuple(current(c).ensemble)[p]]
    confirmed, lac = list(c.confirmed), c.lac
    pending = {op.entry.id for op in c.pending_add_ops}
    for e in sorted(pending):
        for p in replaced:
            if old is None or (p - (e - 1)) % size >= quorum:  # call back
                while lac + 1 in pending and acknowledged(confirmed[lac], v.constants):
                    lac += 1
            elif e > lac:
                confirmed[e - 1] -= {tuple(old)[p]}
    ops = frozenset(op for op in c.pending_add_ops if op.entry.id > lac)
    client = c._replace(confirmed=tuple(confirmed), lac=lac, pending_add_ops=ops, changing=False)
    yield c.id, with_client(v.state, client), []


def client_resends_pending_add_op(v: View, c: ClientState) -> Iterator[Effect]:
    if c.status == OPEN:
        yield from resend_pending_add_op(v, c, False)


def client_closes_ledger_success(v: View, c: ClientState) -> Iterator[Effect]:
    s = v.state
    waits = v.constants.guaranteed_write_quorum and c.pending_add_ops
    if c.status == OPEN and s.meta_status == OPEN and version_allows_close(v, c) and not waits:
        assert c.meta_version is not None
        s = s._replace(meta_status=CLOSED, meta_last_entry=c.lac, meta_version=s.meta_version + 1)
        yield c.id, with_client(s, c._replace(status=CLOSED, meta_version=c.meta_version + 1)), []


def client_closes_ledger_fail(v: View, c: ClientState) -> Iterator[Effect]:
    if c.status == OPEN and v.state.meta_status != OPEN:
        yield c.id, with_client(v.state, c._replace(status=WITHDRAWN, meta_version=None)), []


# ---- The recovery client ----


def client_starts_recovery(v: View, c: ClientState) -> Iterator[Effect]:
    s = v.state
    if c.status is None and s.meta_status in (OPEN, IN_RECOVERY):
        last = s.meta_fragments[-1]
        client = c._replace(
            status=IN_RECOVERY,
            meta_version=s.meta_version + 1,
            recovery_phase=FENCING_PHASE,
            fragments=s.meta_fragments,
            curr_fragment=last,
            recovery_ensemble=last.ensemble,
        )
        s = s._replace(meta_status=IN_RECOVERY, meta_version=s.meta_version + 1)
        yield c.id, with_client(s, client), [Message(FENCE_REQUEST, bookie, c.id) for bookie in last.ensemble]


def auditor_recovers_ledger(v: View, c: ClientState) -> Iterator[Effect]:
    """A replication worker is the first client that has not recovered the ledger yet."""
    s = v.state
    if not v.constants.fence_open_ledgers or s.meta_status is None:
        return
    idle = [other.id for other in s.clients if other.status is None]
    if c.id in idle[:1] and s.b_down.intersection(s.meta_fragments[-1].ensemble):
        yield from client_starts_recovery(v, c)


def client_receives_fencing_read_lac_response(v: View, c: ClientState) -> Iterator[Effect]:
    if c.recovery_phase == FENCING_PHASE:
        for msg in v.arrived(FENCE_RESPONSE, cid=c.id):
            if msg.code == UNKNOWN:
                yield msg, handled(v.state, [msg]), []
                continue
            floor = current(c).first_entry_id - 1 if v.constants.recovery_lac_floor else 0
            lac = max(msg.lac, floor)
            client = c._replace(fenced=c.fenced | {msg.bookie}, lac=max(lac, c.lac), lap=max(lac, c.lap))
            yield msg, handled(with_client(v.state, client), [msg]), []


def client_sends_recovery_read_requests(v: View, c: ClientState) -> Iterator[Effect]:
    k = v.constants
    starts = c.recovery_phase == FENCING_PHASE and covered(c.fenced, c.recovery_ensemble, k)
    idle = c.last_recoverable_entry is None and c.curr_read_entry is None
    continues = c.recovery_phase == READ_WRITE_PHASE and idle
    if c.status == IN_RECOVERY and (starts or continues):
        ensemble = c.recovery_ensemble if k.recovery_reads_initial_ensemble else current(c).ensemble
        entry_id = c.lap + 1
        client = c._replace(recovery_phase=READ_WRITE_PHASE, curr_read_entry=entry_id)
        client = client._replace(fenced=NOBODY, recovery_ensemble=ensemble)
        read = Message(READ_REQUEST, -1, c.id, Entry(entry_id, None), fence=k.fence_recovery_reads)
        reads = [read._replace(bookie=bookie) for bookie in write_set(entry_id, ensemble, k.write_quorum)]
        yield c.id, with_client(v.state, client), reads


def read_status(v: View, c: ClientState, responses: frozenset[Message]) -> str:
    k = v.constants
    assert c.curr_read_entry is not None
    asked = write_set(c.curr_read_entry, c.recovery_ensemble, k.write_quorum)
    timed_out = asked & {m.bookie for m in v.find(LOST, READS, cid=c.id)}
    if any(msg.code == OK for msg in responses):
        return OK
    negative = sum(msg.code == NO_SUCH_ENTRY for msg in responses)
    if enough_negative(negative, k) or (negative > 0 and not k.strict_negative_reads):
        return NO_SUCH_ENTRY
    if len(responses) + len(timed_out) == k.write_quorum:
        return UNKNOWN
    return NEED_MORE_RESPONSES


def client_receives_recovery_read_response(v: View, c: ClientState) -> Iterator[Effect]:
    if c.status != IN_RECOVERY or c.recovery_phase != READ_WRITE_PHASE:
        return
    for msg in v.arrived(READ_RESPONSE, cid=c.id):
        if msg.entry.id != c.curr_read_entry:
            continue
        responses = c.read_responses | {msg}
        status = read_status(v, c, responses)
        if status == NEED_MORE_RESPONSES:
            yield msg, handled(with_client(v.state, c._replace(read_responses=responses)), [msg]), []
            continue
        unread = v.find(ON_ITS_WAY, READS, cid=c.id)
        others = [m for m in unread if m != msg and m.bookie in c.recovery_ensemble]
        if others and v.constants.literal:
            continue
        client = c._replace(curr_read_entry=None, read_responses=frozenset())
        if status == OK:
            op = PendingAddOp(Entry(c.lap + 1, msg.entry.data), current(c).id, current(c).ensemble)
            client = client._replace(lap=c.lap + 1, pending_add_ops=c.pending_add_ops | {op})
        elif status == NO_SUCH_ENTRY:
            client = client._replace(recovery_ensemble=nobody(v.constants), last_recoverable_entry=msg.entry.id - 1)
        else:
            client = client._replace(recovery_ensemble=nobody(v.constants), status=ABORTED)
        yield msg, handled(with_client(v.state, client), [msg, *others]), []


def client_writes_back_entry(v: View, c: ClientState) -> Iterator[Effect]:
    if c.status != IN_RECOVERY or c.recovery_phase != READ_WRITE_PHASE:
        return
    sent = {m.entry for m in v.counts if m.type == ADD_REQUEST and m.cid == c.id and m.recovery}
    unsent = [op for op in c.pending_add_ops if op.entry not in sent]
    for op in unsent:
        if all(op.entry.id <= other.entry.id for other in unsent):
            bookies = write_set(op.entry.id, current(c).ensemble, v.constants.write_quorum)
            yield c.id, v.state, add_requests(v, c, op.entry, bookies, True)


def recovery_client_receives_add_confirmed_response(v: View, c: ClientState) -> Iterator[Effect]:
    if c.status == IN_RECOVERY:
        yield from receive_add_confirmed_response(v, c, True)


def recovery_client_changes_ensemble(v: View, c: ClientState) -> Iterator[Effect]:
    if c.status == IN_RECOVERY and v.state.meta_status == IN_RECOVERY:
        yield from change_ensemble(v, c, True)


def recovery_client_sends_pending_add_op(v: View, c: ClientState) -> Iterator[Effect]:
    if c.status == IN_RECOVERY:
        yield from resend_pending_add_op(v, c, True)


def recovery_client_closes_ledger(v: View, c: ClientState) -> Iterator[Effect]:
    s = v.state
    if not (c.status == IN_RECOVERY == s.meta_status and c.recovery_phase == READ_WRITE_PHASE):
        return
    if version_allows_close(v, c) and c.last_recoverable_entry is not None and not c.pending_add_ops:
        assert c.meta_version is not None
        client = c._replace(status=CLOSED, meta_version=c.meta_version + 1)
        s = s._replace(meta_status=CLOSED, meta_fragments=c.fragments)
        s = s._replace(meta_last_entry=c.last_recoverable_entry, meta_version=s.meta_version + 1)
        yield c.id, with_client(s, client), []
