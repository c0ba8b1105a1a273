"""Bookies that restart with all that they have, are read-only for a while, are slow and not dead, or decommissioned.

The model has none of these: to a client, such a bookie looks like one that messages are lost to. Here they are added to
the literal interpreter, and all states of small ledgers are searched: what comes new, and that nothing is lost by it.
Whether the model is that interpreter is for other files to say, so that larger ledgers come with all tests alone.
"""

from collections.abc import Callable, Iterator
from itertools import chain, combinations

import pytest

from quorisk.kernels.protocols.bookkeeper.describe import (
    ADD_REQUEST,
    ADD_RESPONSE,
    LOST,
    ON_ITS_WAY,
    READ_RESPONSE,
    Message,
)
from quorisk.kernels.protocols.bookkeeper.describe import SpecState as State
from tests.references import bookkeeper
from tests.references.bookkeeper.clients import client_changes_ensemble, recovery_client_changes_ensemble
from tests.references.bookkeeper.state import REQUESTS, View, current
from tests.references.searching import search

WRITES = (ADD_REQUEST, ADD_RESPONSE)
EXPOSED = "AllCommittedEntriesReachWriteQuorum"
"""Broken by lost messages alone: no error."""
Fault = Callable[[State, bookkeeper.Constants], Iterator[State]]


def with_counts(state: State, messages: set[Message], count: int) -> State:
    """The state in which these messages have another delivery count."""
    others = frozenset((m, n) for m, n in state.messages if m not in messages)
    return state._replace(messages=others | {(m, count) for m in messages})


def on_their_way(state: State, types: tuple[str, ...]) -> set[Message]:
    return {m for m, count in state.messages if count == ON_ITS_WAY and m.type in types}


def restarts(state: State, k: bookkeeper.Constants) -> Iterator[State]:
    """A bookie's connections break, and what is on its way to it or from it is lost. It keeps its data."""
    for bookie in range(k.bookies):
        broken = {m for m in on_their_way(state, (*REQUESTS, ADD_RESPONSE, READ_RESPONSE)) if m.bookie == bookie}
        if broken:
            yield with_counts(state, broken, LOST)


def refuses(state: State, k: bookkeeper.Constants) -> Iterator[State]:
    """A bookie that is read-only refuses one add, and answers reads."""
    yield from (with_counts(state, {message}, LOST) for message in on_their_way(state, (ADD_REQUEST,)))


def gives_up_early(state: State, k: bookkeeper.Constants) -> Iterator[State]:
    """A client replaces bookies that are slow. What is on its way to them or from them arrives later all the same."""
    for client, change in ((c, change) for c in state.clients if c.curr_fragment for change in CHANGES):
        writes = {m for m in on_their_way(state, WRITES) if m.cid == client.id}
        slow = sorted({m.bookie for m in writes if m.bookie in current(client).ensemble})
        for bookies in chain.from_iterable(combinations(slow, n) for n in range(1, len(slow) + 1)):
            late = {m for m in writes if m.bookie in bookies}
            given_up = with_counts(state, late, LOST)
            for _, after, _ in change(View(given_up, k, dict(given_up.messages)), client):
                yield with_counts(after, late, ON_ITS_WAY)


def refuses_at_once(state: State, k: bookkeeper.Constants) -> Iterator[State]:
    """The same with `delayEnsembleChange`: a refusal has the client replace all bookies that its add failed at so far,
    even if it can still reach its ack quorum (PendingAddOp.writeComplete)."""
    for message in on_their_way(state, (ADD_REQUEST,)):
        [client] = [c for c in state.clients if c.id == message.cid]
        refused = with_counts(state, {message}, LOST)
        yield refused
        if not client.curr_fragment or message.entry not in (op.entry for op in client.pending_add_ops):
            continue
        failed = {m for m, count in refused.messages if count == LOST and m.type in WRITES and m.cid == client.id}
        bookies = {m.bookie for m in failed if m.entry == message.entry} - client.confirmed[message.entry.id - 1]
        others = frozenset((m, LOST) for m in failed if m.bookie not in bookies)
        seen = refused._replace(messages=refused.messages - others)
        for change in CHANGES:
            for _, after, _ in change(View(seen, k._replace(delay_ensemble_change=False), dict(seen.messages)), client):
                yield after._replace(messages=after.messages | others)


CHANGES = (client_changes_ensemble, recovery_client_changes_ensemble)
FAULTS: dict[str, Fault] = {"restarts": restarts, "read-only": refuses, "slow": gives_up_early}


def found(k: bookkeeper.Constants, *faults: Fault) -> set[State]:
    def steps(state: State) -> Iterator[State]:
        for one in bookkeeper.instances(state, k):
            yield from (after for *_, after in one.outcomes)
        for fault in faults:
            yield from fault(state, k)

    return set(search(bookkeeper.initial(k), steps).states)


def broken(states: set[State], k: bookkeeper.Constants) -> set[str]:
    return {name for state in states for name, holds in bookkeeper.invariants(state, k).items() if not holds}


SIZES = [
    (3, 1, 2, 1, 1, 1),
    *(
        pytest.param(sizes, marks=pytest.mark.exhaustive)
        for sizes in ((3, 1, 2, 2, 1, 1), (2, 1, 1, 1, 2, 2), (1, 2, 1, 1, 2, 1), (2, 2, 1, 1, 1, 1))
    ),
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_lost_by_bookies_that_come_back(fault, sizes):
    k = bookkeeper.Constants(*sizes)
    assert broken(found(k, FAULTS[fault]), k) <= ({EXPOSED} if k.ack_quorum < k.write_quorum else set())


@pytest.mark.parametrize("sizes", [*SIZES, pytest.param((3, 1, 2, 1, 2, 1), marks=pytest.mark.exhaustive)], ids=str)
def test_nothing_is_lost_by_read_only_bookies_that_are_replaced_at_once_where_changes_are_delayed(sizes):
    k = bookkeeper.Constants(*sizes)._replace(delay_ensemble_change=True)
    delayed, found_now = found(k), found(k, refuses_at_once)
    assert broken(found_now, k) <= ({EXPOSED} if k.ack_quorum < k.write_quorum else set())
    if k.ack_quorum < k.write_quorum:  # else each refusal keeps its entry from the ack quorum, and nothing is delayed
        assert found_now - delayed - found(k, refuses)
    if sizes == (3, 1, 2, 1, 1, 1):
        assert (len(delayed), len(found_now)) == (53, 213)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_guaranteed_write_quorum_holds_whatever_bookies_come_back(fault):
    k = bookkeeper.Constants(3, 1, 2, 1, 1, 1, guaranteed_write_quorum=True)
    states = found(k, FAULTS[fault])
    assert not broken(states, k)
    assert all(bookkeeper.earlier_fragments_reach_write_quorum(state, k) for state in states)


def decommissioned(k: bookkeeper.Constants, keeps: bool) -> set[State]:
    """All states if bookies are decommissioned one after another: each is stopped once no ledger names one that is
    down. It `keeps` its data; or it is lost with them, as in the model. Entries that nobody else has are not repaired.
    """

    def steps(state: State) -> Iterator[State]:
        named = {bookie for fragment in state.meta_fragments for bookie in fragment.ensemble}
        for one in bookkeeper.instances(state, k):
            if one.action == "auditor_replicates_fragment" and keeps and not readable(state, k):
                continue
            for *_, after in one.outcomes:
                if one.action != "bookie_is_lost":
                    yield after
                elif not named & state.b_down:
                    yield after._replace(b_entries=state.b_entries) if keeps else after

    return set(search(bookkeeper.initial(k), steps).states)


def readable(state: State, k: bookkeeper.Constants) -> bool:
    """Whether every entry of a closed ledger of one fragment can be read while some of its bookies are stopped."""
    up = [state.b_entries[b] for b in state.meta_fragments[0].ensemble if b not in state.b_down]
    stored = {entry.id for entries in up for entry in entries}
    return len(state.meta_fragments) == 1 and stored >= set(range(1, state.meta_last_entry + 1))


@pytest.mark.exhaustive
@pytest.mark.parametrize("ack_quorum", [1, 2])
def test_decommissioning_one_bookie_after_another_loses_nothing(ack_quorum):
    """Lost with their data, they would take an entry that one bookie alone acknowledged: the model errs to more."""
    k = bookkeeper.Constants(3, 1, 2, ack_quorum, 1, 1, max_lost=2, auto_recovery=True)
    kept, lost = decommissioned(k, True), decommissioned(k, False)
    assert any(len(state.b_down) > 1 for state in kept)
    assert "AckedEntriesSurvive" not in broken(kept, k)
    assert ("AckedEntriesSurvive" in broken(lost, k)) == (ack_quorum == 1)


@pytest.mark.exhaustive
def test_new_of_restarts_are_messages_to_bookies_that_are_replaced_already_and_of_slow_ones_what_they_store_late():
    """Else the search would show nothing: each adds states, slow bookies most."""
    k = bookkeeper.Constants(2, 1, 1, 1, 2, 2)
    before = found(k)
    new = {fault: found(k, FAULTS[fault]) - before for fault in FAULTS}
    assert {fault: len(states) for fault, states in new.items()} == {"restarts": 932, "read-only": 718, "slow": 11858}
    unknown = {(state.b_entries, state.meta_fragments) for state in before}
    assert {(state.b_entries, state.meta_fragments) for state in new["restarts"]} <= unknown
    assert not {(state.b_entries, state.meta_fragments) for state in new["slow"]} <= unknown
