"""A slow, literal interpreter of the BookKeeper ledger specification: an oracle for faster models.

Records are NamedTuples, sets are frozensets, and the spec's own names are kept in snake_case. Only the shape of the
states is taken from `kernels.protocols.bookkeeper.describe`. The faults of bookies and writers, which the spec lacks,
are in `tests.references.bookkeeper_faults`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import combinations, pairwise
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import splu

from quorisk.kernels.protocols.bookkeeper.describe import (
    ABORTED,
    ADD_REQUEST,
    ADD_RESPONSE,
    CLOSED,
    FENCE_REQUEST,
    FENCE_RESPONSE,
    FENCING_PHASE,
    HANDLED,
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
from quorisk.kernels.protocols.bookkeeper.describe import SpecState as State
from tests.references.bookkeeper_faults import FAULT_ACTIONS, REQUESTS, put, spans_two_racks

WRITES, READS = (ADD_REQUEST, ADD_RESPONSE), (READ_REQUEST, READ_RESPONSE)
NEED_MORE_RESPONSES = "need_more_responses"


class Constants(NamedTuple):
    """Sizes, the reading of the spec, one switch a safety mechanism, and which faults there are."""

    bookies: int
    clients: int
    write_quorum: int
    ack_quorum: int
    entries: int
    inflight: int
    semantics: str = "intended"
    fence_recovery_reads: bool = True
    recovery_lac_floor: bool = True
    recovery_reads_initial_ensemble: bool = True
    defer_recovery_ensemble_change: bool = True
    fence_unknown_ledger: bool = True
    strict_negative_reads: bool = True
    close_checks_version: bool = True
    fence_on_unclean_shutdown: bool = True
    limbo_on_unclean_shutdown: bool = True
    rack_aware_placement: bool = True
    racks: int = 0
    max_lost: int = 0
    max_amnesias: int = 0
    writer_crash: bool = False
    auto_recovery: bool = False
    replacement: bool = False
    lost_together: bool = False

    @property
    def literal(self) -> bool:
        if self.semantics not in ("literal", "intended"):
            raise ValueError(f"semantics is {self.semantics!r}, not 'literal' or 'intended'")
        return self.semantics == "literal"


NOBODY: Bookies = frozenset()


def current(client: ClientState) -> Fragment:
    """The current fragment of a client that has one."""
    assert client.curr_fragment is not None
    return client.curr_fragment


class Instance(NamedTuple):
    """One enabled way to take an action; an outcome is (messages sent, messages lost, next state)."""

    action: str
    label: Hashable
    outcomes: list[tuple[int, int, State]]


class View(NamedTuple):
    """What an action looks at: the state, the constants, and the messages as a dictionary."""

    state: State
    constants: Constants
    counts: dict[Message, int]

    def find(self, count: int, types: tuple[str, ...], **fields: object) -> list[Message]:
        """The messages of these types that have this delivery count and these values."""
        return [
            m
            for m, n in self.counts.items()
            if n == count and m.type in types and all(getattr(m, f) == value for f, value in fields.items())
        ]

    def arrived(self, kind: str, **fields: object) -> list[Message]:
        """The messages of a type that can be received now."""
        return self.find(ON_ITS_WAY, (kind,), **fields)


Effect = tuple[Hashable, State, Iterable[Message]]  # label, next state before the sends, messages to send


def initial(constants: Constants) -> State:
    """Nothing created, nothing stored, nothing sent."""
    unconfirmed = (NOBODY,) * constants.entries
    return State(
        meta_status=None,
        meta_fragments=(),
        meta_last_entry=0,
        meta_version=0,
        b_entries=(frozenset(),) * constants.bookies,
        b_fenced=(False,) * constants.bookies,
        b_lac=(0,) * constants.bookies,
        b_limbo=(False,) * constants.bookies,
        b_down=NOBODY,
        amnesias=0,
        clients=tuple(ClientState(cid, unconfirmed) for cid in range(constants.clients)),
        messages=frozenset(),
    )


# ---- Helpers ----


def with_client(state: State, client: ClientState) -> State:
    return state._replace(clients=put(state.clients, client.id, client))


def handled(state: State, messages: Iterable[Message], count: int = ON_ITS_WAY) -> State:
    """The state in which these messages, which have this count, are done with."""
    old = frozenset((m, count) for m in messages)
    new = frozenset((m, HANDLED) for m, _ in old)
    return state._replace(messages=(state.messages - old) | new)


def is_earliest(v: View, msg: Message) -> bool:
    """No receivable message of the same type, flag, client and bookie is about an earlier entry."""
    alike = v.arrived(msg.type, recovery=msg.recovery, cid=msg.cid, bookie=msg.bookie)
    return all(msg.entry.id <= m.entry.id for m in alike)


def quorum_coverage(count: int, cohort_size: int, constants: Constants) -> bool:
    return count >= cohort_size - constants.ack_quorum + 1


def select_ensemble(v: View, include: Bookies, exclude: Bookies) -> Bookies | None:
    """Of the valid ensembles the one with the smallest bit mask, or None; if any span two racks, of those."""
    used = {fragment.ensemble for fragment in v.state.meta_fragments}
    sized = (frozenset(e) for e in combinations(range(v.constants.bookies), v.constants.write_quorum))
    valid = [e for e in sized if not e & (exclude | v.state.b_down) and include <= e and e not in used]
    valid = [e for e in valid if spans_two_racks(e, v.constants)] or valid
    return min(valid, key=lambda e: sum(1 << bookie for bookie in e), default=None)


def fragment_of_entry_id(entry_id: int, fragments: tuple[Fragment, ...]) -> Fragment:
    if len(fragments) == 1 or fragments[-1].first_entry_id <= entry_id:
        return fragments[-1]
    return next(f1 for f1, f2 in pairwise(fragments) if f1.first_entry_id <= entry_id < f2.first_entry_id)


def add_requests(c: ClientState, entry: Entry, ensemble: Bookies, recovery: bool) -> list[Message]:
    return [Message(ADD_REQUEST, bookie, c.id, entry, c.lac, recovery) for bookie in ensemble]


# ---- Bookies ----


def add_response(v: View, request: Message, after: State, success: bool) -> Effect:
    """Process an add request; as intended, even one whose answer was sent before, then without an answer."""
    answer = request._replace(type=ADD_RESPONSE, lac=0, success=success)
    silent = answer in v.counts and not v.constants.literal
    return request, handled(after, [request]), [] if silent else [answer]


def fenced_flags(v: View, bookie: int) -> tuple[bool, ...]:
    """The fenced flags after a bookie was told to fence."""
    obeys = v.constants.fence_unknown_ledger or len(v.state.b_entries[bookie]) > 0
    return put(v.state.b_fenced, bookie, True) if obeys else v.state.b_fenced


def bookie_sends_add_confirmed_response(v: View) -> Iterator[Effect]:
    s = v.state
    for msg in v.arrived(ADD_REQUEST):
        if is_earliest(v, msg) and (not s.b_fenced[msg.bookie] or msg.recovery):
            after = s._replace(
                b_entries=put(s.b_entries, msg.bookie, s.b_entries[msg.bookie] | {msg.entry}),
                b_lac=put(s.b_lac, msg.bookie, msg.lac),
            )
            yield add_response(v, msg, after, True)


def bookie_sends_add_fenced_response(v: View) -> Iterator[Effect]:
    for msg in v.arrived(ADD_REQUEST):
        if not msg.recovery and v.state.b_fenced[msg.bookie] and is_earliest(v, msg):
            yield add_response(v, msg, v.state, False)


def bookie_sends_fencing_read_lac_response(v: View) -> Iterator[Effect]:
    for msg in v.arrived(FENCE_REQUEST):
        after = handled(v.state._replace(b_fenced=fenced_flags(v, msg.bookie)), [msg])
        yield msg, after, [Message(FENCE_RESPONSE, msg.bookie, msg.cid, lac=v.state.b_lac[msg.bookie])]


def bookie_sends_read_response(v: View) -> Iterator[Effect]:
    for msg in v.arrived(READ_REQUEST):
        after = handled(v.state, [msg])
        if msg.fence:
            after = after._replace(b_fenced=fenced_flags(v, msg.bookie))
        stored = sorted(entry for entry in v.state.b_entries[msg.bookie] if entry.id == msg.entry.id)
        missing = UNKNOWN if v.state.b_limbo[msg.bookie] else NO_SUCH_ENTRY
        entry, code = (stored[0], OK) if stored else (msg.entry, missing)
        yield msg, after, [msg._replace(type=READ_RESPONSE, entry=entry, code=code)]


# ---- Shared by the original and the recovery client ----


def receive_add_confirmed_response(v: View, c: ClientState, recovery: bool) -> Iterator[Effect]:
    quorum = v.constants.ack_quorum
    for msg in v.arrived(ADD_RESPONSE, cid=c.id, recovery=recovery, success=True):
        if not is_earliest(v, msg) or msg.bookie not in current(c).ensemble:
            continue
        index = msg.entry.id - 1
        confirmed = put(c.confirmed, index, c.confirmed[index] | {msg.bookie})
        lac = 0 if v.constants.literal else c.lac
        while lac < len(confirmed) and len(confirmed[lac]) >= quorum:  # entry lac + 1
            lac += 1
        done = {op for op in c.pending_add_ops if len(confirmed[op.entry.id - 1]) >= quorum and op.entry.id <= lac}
        client = c._replace(confirmed=confirmed, lac=max(lac, c.lac), pending_add_ops=c.pending_add_ops - done)
        yield msg, handled(with_client(v.state, client), [msg]), []


def needs_resend(op: PendingAddOp, fragment: Fragment) -> bool:
    return op.fragment_id != fragment.id or op.ensemble != fragment.ensemble


def change_ensemble(v: View, c: ClientState, recovery: bool) -> Iterator[Effect]:
    s = v.state
    commit = not recovery or not v.constants.defer_recovery_ensemble_change
    if any(needs_resend(op, current(c)) for op in c.pending_add_ops):
        return
    if commit and c.meta_version != s.meta_version:
        return
    timed_out = v.find(LOST, WRITES, cid=c.id, recovery=recovery)
    failed = current(c).ensemble & {m.bookie for m in timed_out}
    new_ensemble = select_ensemble(v, current(c).ensemble - failed, failed)
    if not failed or new_ensemble is None:
        return
    first_entry_id = c.lac + 1
    if first_entry_id == current(c).first_entry_id:
        fragments = (*c.fragments[:-1], current(c)._replace(ensemble=new_ensemble))
    else:
        fragments = (*c.fragments, Fragment(len(c.fragments) + 1, new_ensemble, first_entry_id))
    confirmed = c.confirmed[: first_entry_id - 1] + tuple(acks - failed for acks in c.confirmed[first_entry_id - 1 :])
    client = c._replace(confirmed=confirmed, fragments=fragments, curr_fragment=fragments[-1])
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
        if needs_resend(op, current(c)) and not earlier_alike:
            moved = op._replace(fragment_id=current(c).id, ensemble=current(c).ensemble)
            client = c._replace(pending_add_ops=(c.pending_add_ops - {op}) | {moved})
            new_bookies = current(c).ensemble - op.ensemble
            yield op, with_client(v.state, client), add_requests(c, op.entry, new_bookies, recovery)


# ---- The original client ----


def client_creates_ledger(v: View, c: ClientState) -> Iterator[Effect]:
    ensemble = select_ensemble(v, NOBODY, NOBODY)
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
        yield c.id, with_client(v.state, client), add_requests(c, entry, current(c).ensemble, False)


def client_receives_add_confirmed_response(v: View, c: ClientState) -> Iterator[Effect]:
    if c.status == OPEN:
        yield from receive_add_confirmed_response(v, c, False)


def client_receives_add_fenced_response(v: View, c: ClientState) -> Iterator[Effect]:
    if c.status == OPEN:
        for msg in v.arrived(ADD_RESPONSE, cid=c.id, recovery=False, success=False):
            if is_earliest(v, msg) and msg.bookie in current(c).ensemble:
                yield msg, handled(with_client(v.state, c._replace(status=WITHDRAWN)), [msg]), []


def client_changes_ensemble(v: View, c: ClientState) -> Iterator[Effect]:
    if c.status == OPEN and v.state.meta_status == OPEN:
        yield from change_ensemble(v, c, False)


def client_resends_pending_add_op(v: View, c: ClientState) -> Iterator[Effect]:
    if c.status == OPEN:
        yield from resend_pending_add_op(v, c, False)


def version_allows_close(v: View, c: ClientState) -> bool:
    return c.meta_version == v.state.meta_version or not v.constants.close_checks_version


def client_closes_ledger_success(v: View, c: ClientState) -> Iterator[Effect]:
    s = v.state
    if c.status == OPEN and s.meta_status == OPEN and version_allows_close(v, c):
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


def client_receives_fencing_read_lac_response(v: View, c: ClientState) -> Iterator[Effect]:
    if c.recovery_phase == FENCING_PHASE:
        for msg in v.arrived(FENCE_RESPONSE, cid=c.id):
            floor = current(c).first_entry_id - 1 if v.constants.recovery_lac_floor else 0
            lac = max(msg.lac, floor)
            client = c._replace(fenced=c.fenced | {msg.bookie}, lac=max(lac, c.lac), lap=max(lac, c.lap))
            yield msg, handled(with_client(v.state, client), [msg]), []


def client_sends_recovery_read_requests(v: View, c: ClientState) -> Iterator[Effect]:
    k = v.constants
    starts = c.recovery_phase == FENCING_PHASE and quorum_coverage(len(c.fenced), len(c.recovery_ensemble), k)
    idle = c.last_recoverable_entry is None and c.curr_read_entry is None
    continues = c.recovery_phase == READ_WRITE_PHASE and idle
    if c.status == IN_RECOVERY and (starts or continues):
        ensemble = c.recovery_ensemble if k.recovery_reads_initial_ensemble else current(c).ensemble
        entry_id = c.lap + 1
        client = c._replace(recovery_phase=READ_WRITE_PHASE, curr_read_entry=entry_id)
        client = client._replace(fenced=NOBODY, recovery_ensemble=ensemble)
        read = Message(READ_REQUEST, -1, c.id, Entry(entry_id, None), fence=k.fence_recovery_reads)
        reads = [read._replace(bookie=bookie) for bookie in ensemble]
        yield c.id, with_client(v.state, client), reads


def read_status(v: View, c: ClientState, responses: frozenset[Message]) -> str:
    k = v.constants
    timed_out = c.recovery_ensemble & {m.bookie for m in v.find(LOST, READS, cid=c.id)}
    if any(msg.code == OK for msg in responses):
        return OK
    negative = sum(msg.code == NO_SUCH_ENTRY for msg in responses)
    if quorum_coverage(negative, k.write_quorum, k) or (negative > 0 and not k.strict_negative_reads):
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
            client = client._replace(recovery_ensemble=NOBODY, last_recoverable_entry=msg.entry.id - 1)
        else:
            client = client._replace(recovery_ensemble=NOBODY, status=ABORTED)
        yield msg, handled(with_client(v.state, client), [msg, *others]), []


def client_writes_back_entry(v: View, c: ClientState) -> Iterator[Effect]:
    if c.status != IN_RECOVERY or c.recovery_phase != READ_WRITE_PHASE:
        return
    sent = {m.entry for m in v.counts if m.type == ADD_REQUEST and m.cid == c.id and m.recovery}
    unsent = [op for op in c.pending_add_ops if op.entry not in sent]
    for op in unsent:
        if all(op.entry.id <= other.entry.id for other in unsent):
            yield c.id, v.state, add_requests(c, op.entry, current(c).ensemble, True)


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


# ---- All actions, in the order of Next ----

BOOKIE_ACTIONS: tuple[Callable[[View], Iterator[Effect]], ...] = (
    bookie_sends_add_confirmed_response,
    bookie_sends_add_fenced_response,
    bookie_sends_fencing_read_lac_response,
    bookie_sends_read_response,
)
CLIENT_ACTIONS: tuple[Callable[[View, ClientState], Iterator[Effect]], ...] = (
    client_creates_ledger,
    client_sends_add_entry_requests,
    client_receives_add_confirmed_response,
    client_receives_add_fenced_response,
    client_changes_ensemble,
    client_resends_pending_add_op,
    client_closes_ledger_success,
    client_closes_ledger_fail,
    client_starts_recovery,
    client_receives_fencing_read_lac_response,
    client_sends_recovery_read_requests,
    client_receives_recovery_read_response,
    client_writes_back_entry,
    recovery_client_receives_add_confirmed_response,
    recovery_client_changes_ensemble,
    recovery_client_sends_pending_add_op,
    recovery_client_closes_ledger,
)
SPEC_ACTIONS = tuple(action.__name__ for action in (*BOOKIE_ACTIONS, *CLIENT_ACTIONS))
ACTIONS = (*SPEC_ACTIONS, *(action.__name__ for action in FAULT_ACTIONS))


def effects(view: View) -> Iterator[tuple[str, Effect]]:
    for bookie_action in BOOKIE_ACTIONS:
        for effect in bookie_action(view):
            yield bookie_action.__name__, effect
    for client_action in CLIENT_ACTIONS:
        for client in view.state.clients:
            for effect in client_action(view, client):
                yield client_action.__name__, effect
    for fault in FAULT_ACTIONS:
        for label, after in fault(view.state, view.constants):
            yield fault.__name__, (label, after, [])


def instances(state: State, constants: Constants) -> list[Instance]:
    """The enabled instances: by action in the order of Next, then by client where the action has one."""
    view = View(state, constants, dict(state.messages))
    found = []
    for action, (label, after, to_send) in effects(view):
        sends = sorted(to_send, key=lambda m: m.bookie)
        if any(m in view.counts for m in sends):
            continue  # the spec never sends a message twice
        outcomes = []
        to_down = {m for m in sends if m.type in REQUESTS and m.bookie in state.b_down}  # lost without a coin thrown
        coins = [m for m in sends if m not in to_down]
        for lost in (set(c) for n in range(len(coins) + 1) for c in combinations(coins, n)):
            fates = {(m, LOST if m in lost | to_down else ON_ITS_WAY) for m in sends}
            outcomes.append((len(coins), len(lost), after._replace(messages=after.messages | fates)))
        found.append(Instance(action, label, outcomes))
    return found


# ---- Invariants ----


def stores(state: State, bookie: int, entry_id: int) -> bool:
    return any(entry.id == entry_id for entry in state.b_entries[bookie])


def copies(state: State, entry_id: int) -> int:
    """How many bookies of the entry's ensemble, by the metadata, store it."""
    ensemble = fragment_of_entry_id(entry_id, state.meta_fragments).ensemble
    return sum(stores(state, bookie, entry_id) for bookie in ensemble)


def no_divergence_between_client_and_meta_data(s: State, _: Constants) -> bool:
    if s.meta_status != CLOSED:
        return True
    closers = sum(c.status == CLOSED and c.lac == s.meta_last_entry for c in s.clients)
    bystander = (None, IN_RECOVERY, ABORTED)
    return closers == 1 and all(c.status in bystander or c.lac <= s.meta_last_entry for c in s.clients)


def all_acked_entries_are_readable(s: State, _: Constants) -> bool:
    return all(
        copies(s, entry_id) >= 1 for c in s.clients if c.status in (OPEN, CLOSED) for entry_id in range(1, c.lac + 1)
    )


def acked_entries_survive(s: State, _: Constants) -> bool:
    acknowledged = {e for c in s.clients if c.status in (OPEN, CLOSED, WITHDRAWN) for e in range(1, c.lac + 1)}
    return all(copies(s, entry_id) > 0 for entry_id in acknowledged)


def all_committed_entries_reach_ack_quorum(s: State, constants: Constants) -> bool:
    committed = range(1, s.meta_last_entry + 1) if s.meta_status == CLOSED else ()
    return all(copies(s, entry_id) >= constants.ack_quorum for entry_id in committed)


def all_committed_entries_reach_write_quorum(s: State, constants: Constants) -> bool:
    committed = range(1, s.meta_last_entry + 1) if s.meta_status == CLOSED else ()
    return all(copies(s, entry_id) >= constants.write_quorum for entry_id in committed)


def ledger_can_be_closed(s: State, constants: Constants) -> bool:
    """By its writer; by a recovery that reads already; or by one that can still have enough bookies fenced."""
    if not s.b_down or s.meta_status == CLOSED:
        return True
    if s.meta_status == OPEN and any(c.status == OPEN for c in s.clients):
        return True
    recovering = [c for c in s.clients if c.status == IN_RECOVERY]
    answers = {(m.cid, m.bookie) for m, count in s.messages if m.type == FENCE_RESPONSE and count == ON_ITS_WAY}
    within_reach = [s.meta_fragments[-1].ensemble - s.b_down]
    for c in recovering:
        if c.recovery_phase == READ_WRITE_PHASE:
            return True
        reachable = {b for b in c.recovery_ensemble if b not in s.b_down or (c.id, b) in answers}
        within_reach.append(c.fenced | reachable)
    return any(quorum_coverage(len(bookies), constants.write_quorum, constants) for bookies in within_reach)


def no_out_of_order_entries(s: State, _: Constants) -> bool:
    return all(entry.id == entry.data for entries in s.b_entries for entry in entries)


def only_valid_fragments(s: State, _: Constants) -> bool:
    firsts = [fragment.first_entry_id for fragment in s.meta_fragments]
    return all(a < b for a, b in pairwise(firsts))


INVARIANTS: dict[str, Callable[[State, Constants], bool]] = {
    "NoDivergenceBetweenClientAndMetaData": no_divergence_between_client_and_meta_data,
    "AllAckedEntriesAreReadable": all_acked_entries_are_readable,
    "AllCommittedEntriesReachAckQuorum": all_committed_entries_reach_ack_quorum,
    "NoOutOfOrderEntries": no_out_of_order_entries,
    "OnlyValidFragments": only_valid_fragments,
    "AckedEntriesSurvive": acked_entries_survive,
    "AllCommittedEntriesReachWriteQuorum": all_committed_entries_reach_write_quorum,
    "LedgerCanBeClosed": ledger_can_be_closed,
}
DATA_LOSS = ("NoDivergenceBetweenClientAndMetaData", "AllAckedEntriesAreReadable", "AckedEntriesSurvive")


def invariants(state: State, constants: Constants) -> dict[str, bool]:
    """Whether each invariant holds."""
    return {name: holds(state, constants) for name, holds in INVARIANTS.items()}


# ---- Exhaustive search and exact chain ----


def explore(constants: Constants, limit: int | None = None) -> dict[str, Any]:
    """Breadth-first search of all states; with a limit, until more distinct states than that are met."""
    seen = {initial(constants)}
    level = list(seen)
    generated, depth = 1, 0
    first_broken = dict.fromkeys(INVARIANTS, 0)
    breaking_states = dict.fromkeys(INVARIANTS, 0)
    first_depth: dict[str, int] = {}
    action_counts = dict.fromkeys(ACTIONS, 0)
    while level and (limit is None or len(seen) <= limit):
        depth += 1
        next_level = []
        for state in level:
            breaks = [name for name, holds in invariants(state, constants).items() if not holds]
            for name in breaks[:1]:
                first_broken[name] += 1
            for name in breaks:
                breaking_states[name] += 1
                first_depth.setdefault(name, depth)
            for instance in instances(state, constants):
                action_counts[instance.action] += len(instance.outcomes)
                generated += len(instance.outcomes)
                for _, _, successor in instance.outcomes:
                    if successor not in seen:
                        seen.add(successor)
                        next_level.append(successor)
        level = next_level
    return {
        "distinct_states": len(seen),
        "generated_states": generated,
        "depth": depth,
        "complete": not level,
        "states_by_first_broken_invariant": first_broken,
        "invariants": {
            name: {"breaking_states": breaking_states[name], "first_depth": first_depth.get(name)}
            for name in INVARIANTS
        },
        "action_counts": action_counts,
    }


Graph = list[dict[int, float]]  # by state, the probabilities of its successors; state 0 is the initial one


def expected_visits(graph: Graph, stop: set[int]) -> list[float]:
    """How often each state is visited on average by a run that ends at the states in stop."""
    out = [{} if i in stop else row for i, row in enumerate(graph)]
    waiting = Counter(j for row in out for j in row)
    visits = [1.0] + [0.0] * (len(graph) - 1)
    ready = deque(i for i in range(len(graph)) if waiting[i] == 0)
    done = 0
    while ready:
        i = ready.popleft()
        done += 1
        for j, p in out[i].items():
            visits[j] += visits[i] * p
            waiting[j] -= 1
            if waiting[j] == 0:
                ready.append(j)
    if done == len(graph):  # no cycles: only sums of positive terms
        return visits
    rows, cols, values = zip(*((j, i, p) for i, row in enumerate(out) for j, p in row.items()), strict=True)
    inflow = csc_array((values, (rows, cols)), shape=(len(graph), len(graph)))
    start = np.zeros(len(graph))
    start[0] = 1.0
    system = csc_array(eye_array(len(graph)) - inflow)
    return [float(x) for x in splu(system, diag_pivot_thresh=0.0).solve(start)]


@lru_cache(maxsize=1)  # one that is asked for at several rates in a row is explored once
def _steps(constants: Constants) -> tuple[list[list[tuple[str, list[tuple[int, int, int]]]]], list[dict[str, bool]]]:
    """Of every state that runs reach, whatever their rates: each action instance and what it may come to (messages
    sent, lost, the next state's number); and which invariants hold. State 0 is the initial one."""
    start = initial(constants)
    number = {start: 0}
    queue = deque([start])
    moves: list[list[tuple[str, list[tuple[int, int, int]]]]] = []
    holding: list[dict[str, bool]] = []
    while queue:
        state = queue.popleft()
        holding.append(invariants(state, constants))
        found = instances(state, constants) if all(holding[-1][name] for name in DATA_LOSS) else []
        moves.append([])
        for one in found:
            for _, _, successor in one.outcomes:
                if successor not in number:
                    number[successor] = len(number)
                    queue.append(successor)
            moves[-1].append((one.action, [(sent, lost, number[after]) for sent, lost, after in one.outcomes]))
    return moves, holding


def loss_chain(constants: Constants, message_loss: float, rates: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Exact probabilities that a random run breaks each invariant by its end, and its expected length.

    A run ends at the first state that breaks a data-loss invariant or enables no action with a rate.
    """
    rate = dict.fromkeys(ACTIONS, 1.0) | dict(rates or {})
    moves, holding = _steps(constants)
    number = {0: 0}
    queue = deque([0])
    graph: Graph = []
    breaking: dict[str, set[int]] = {name: set() for name in INVARIANTS}
    while queue:  # states are numbered anew, in the order in which they leave the queue
        state = queue.popleft()
        row: dict[int, float] = {}
        for name in INVARIANTS:
            if not holding[state][name]:
                breaking[name].add(len(graph))
        total = sum(rate[action] for action, _ in moves[state])
        for action, outcomes in moves[state]:
            for sent, lost, successor in outcomes if rate[action] > 0 else ():
                p = rate[action] / total * message_loss**lost * (1.0 - message_loss) ** (sent - lost)
                if p > 0:
                    if successor not in number:
                        number[successor] = len(number)
                        queue.append(successor)
                    index = number[successor]
                    row[index] = row.get(index, 0.0) + p
        graph.append(row)
    visits = expected_visits(graph, set())
    probability = {}
    for name, states in breaking.items():
        seen = visits if name in DATA_LOSS else expected_visits(graph, states)
        probability[name] = fsum(seen[i] for i in states)
    return {
        "p": probability,
        "expected_steps": fsum(visits[i] for i, row in enumerate(graph) if row),
        "states": len(graph),
    }
