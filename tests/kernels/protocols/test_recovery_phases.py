"""BookKeeper's recovery, which reads and writes at the same time, against one in two phases.

In two phases all entries are read before the first is written back. The published specification says that this does not
affect correctness: shown here state for state, and what it would hide.
"""

from typing import Any

from quorisk.kernels.protocols.bookkeeper.describe import CLOSED
from quorisk.kernels.protocols.bookkeeper.describe import SpecState as State
from tests.references import bookkeeper
from tests.references.searching import search

WRITTEN = [
    *("client_creates_ledger", "client_sends_add_entry_requests", "client_sends_add_entry_requests"),
    *("bookie_sends_add_confirmed_response", "bookie_sends_add_confirmed_response"),
    *("client_receives_add_confirmed_response", "client_receives_add_confirmed_response"),
]
"""Two entries are written and acknowledged."""
FENCED = [
    *("client_starts_recovery", "bookie_sends_fencing_read_lac_response"),
    *("client_receives_fencing_read_lac_response", "client_closes_ledger_fail"),
]
READ = [
    "client_sends_recovery_read_requests",
    "bookie_sends_read_response",
    "client_receives_recovery_read_response",
]
"""An entry is read for recovery."""
FAILED = ["client_writes_back_entry", "recovery_client_changes_ensemble"]
"""It is written back in vain, and its bookie replaced."""
RESENT = [
    *("recovery_client_sends_pending_add_op", "bookie_sends_add_confirmed_response"),
    *("recovery_client_receives_add_confirmed_response", "recovery_client_closes_ledger"),
]


def steps(state: State, k: bookkeeper.Constants, *, two_phases: bool) -> Any:
    """The successors of a state; in two phases, none that writes back an entry before the last one is read."""
    for one in bookkeeper.instances(state, k):
        if two_phases and one.action == "client_writes_back_entry":
            (writer,) = (c for c in state.clients if c.id == one.label)
            if writer.last_recoverable_entry is None:
                continue
        yield from (after for *_, after in one.outcomes)


def after(k: bookkeeper.Constants, actions: list[str]) -> State:
    """The state after these actions: of each the first instance, of which only what is written back is lost."""
    state = bookkeeper.initial(k)
    for name in actions:
        one = next(one for one in bookkeeper.instances(state, k) if one.action == name)
        state = one.outcomes[-1 if name in FAILED else 0][-1]
    return state


def found(first: State, k: bookkeeper.Constants, *, two_phases: bool) -> set[State]:
    return set(search(first, lambda state: steps(state, k, two_phases=two_phases)).states)


def broken(states: set[State], k: bookkeeper.Constants) -> set[str]:
    return {name for state in states for name, holds in bookkeeper.invariants(state, k).items() if not holds}


def endings(states: set[State]) -> set[Any]:
    """The closed ledgers: the metadata about them, the entries on bookies, and what the writer acknowledged."""
    return {
        (s.meta_last_entry, s.meta_fragments, s.b_entries, s.clients[0].status, s.clients[0].lac)
        for s in states
        if s.meta_status == CLOSED
    }


def equal_but_for_steps_between(first: State, k: bookkeeper.Constants) -> None:
    """In two phases a part of the states is met, with the same endings and the same invariants broken."""
    concurrent, in_two_phases = (found(first, k, two_phases=two_phases) for two_phases in (False, True))
    assert in_two_phases < concurrent
    assert endings(in_two_phases) == endings(concurrent) != set()
    assert broken(in_two_phases, k) == broken(concurrent, k) == set()


def test_recovery_of_two_entries_ends_alike_in_two_phases():
    k = bookkeeper.Constants(1, 2, 1, 1, 2, 2)
    equal_but_for_steps_between(after(k, WRITTEN), k)


def test_two_phases_hide_what_it_is_worth_to_read_from_the_first_ensemble():
    """A write that fails replaces the bookie that is asked for the next entry: this takes both at the same time."""
    k = bookkeeper.Constants(2, 2, 1, 1, 2, 2, recovery_reads_initial_ensemble=False)
    truncated = after(k, WRITTEN + FENCED + READ + FAILED + READ + RESENT)
    assert (truncated.meta_last_entry, truncated.clients[0].lac) == (1, 2)
    assert "NoDivergenceBetweenClientAndMetaData" in broken({truncated}, k)
    assert not broken(found(after(k, WRITTEN + FENCED + READ), k, two_phases=True), k)
