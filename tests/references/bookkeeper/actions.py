"""All actions in the order of Next, and the enabled instances of a state."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

from quorisk.kernels.protocols.bookkeeper.describe import LOST, ON_ITS_WAY, ClientState, Message
from quorisk.kernels.protocols.bookkeeper.describe import SpecState as State
from tests.references.bookkeeper.bookies import (
    bookie_sends_add_confirmed_response,
    bookie_sends_add_fenced_response,
    bookie_sends_fencing_read_lac_response,
    bookie_sends_read_response,
)
from tests.references.bookkeeper.clients import (
    auditor_recovers_ledger,
    client_changes_ensemble,
    client_closes_ledger_fail,
    client_closes_ledger_success,
    client_completes_ensemble_change,
    client_creates_ledger,
    client_receives_add_confirmed_response,
    client_receives_add_fenced_response,
    client_receives_fencing_read_lac_response,
    client_receives_recovery_read_response,
    client_resends_pending_add_op,
    client_sends_add_entry_requests,
    client_sends_recovery_read_requests,
    client_starts_recovery,
    client_writes_back_entry,
    recovery_client_changes_ensemble,
    recovery_client_closes_ledger,
    recovery_client_receives_add_confirmed_response,
    recovery_client_sends_pending_add_op,
)
from tests.references.bookkeeper.faults import FAULT_ACTIONS, OUTAGE_ACTIONS, subsets
from tests.references.bookkeeper.flushing import DISK_ACTIONS, after_power, answer, with_disks
from tests.references.bookkeeper.state import REQUESTS, Constants, Effect, View

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
COMPLETES = client_completes_ensemble_change.__name__
ACTIONS = (
    *(*SPEC_ACTIONS, *(action.__name__ for action in (*FAULT_ACTIONS, *OUTAGE_ACTIONS))),
    *(COMPLETES, *(action.__name__ for action in DISK_ACTIONS), auditor_recovers_ledger.__name__),
)
LOST_WITH = {
    "cluster_loses_power": "p_lost_in_outage",
    "rack_loses_power": "p_lost_in_rack_outage",
    "bookie_loses_some": "p_lost_entry",
}
"""The probability with which what an action may lose is lost, if that is no message."""


class Instance(NamedTuple):
    """One enabled way to take an action; an outcome is (messages sent, messages lost, next state), or of an outage
    (bookies that were up, bookies that do not come back, next state), and so on: see LOST_WITH."""

    action: str
    label: Hashable
    outcomes: list[tuple[int, int, State]]


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
    for client in view.state.clients:
        for own in (client_completes_ensemble_change, auditor_recovers_ledger):
            for effect in own(view, client):
                yield own.__name__, effect


def delivered(view: View, after: State, to_send: Iterable[Message]) -> list[tuple[int, int, State]]:
    """What sending these messages may come to; nothing if one of them was sent before."""
    sends = sorted(to_send, key=lambda m: m.bookie)
    if any(m in view.counts for m in sends):
        return []  # the spec never sends a message twice
    to_down = {m for m in sends if m.type in REQUESTS and m.bookie in view.state.b_down}  # lost without a coin thrown
    coins = [m for m in sends if m not in to_down]
    outcomes = []
    for lost in (set(c) for n in range(len(coins) + 1) for c in combinations(coins, n)):
        fates = {(m, LOST if m in lost | to_down else ON_ITS_WAY) for m in sends}
        outcomes.append((len(coins), len(lost), after._replace(messages=after.messages | fates)))
    return outcomes


def instances(state: State, constants: Constants) -> list[Instance]:
    """The enabled instances: by action in the order of Next, then by client where the action has one."""
    view = View(state, constants, dict(state.messages))
    found = []
    for action, (label, after, to_send) in effects(view):
        sends = [answer(message, state) for message in to_send]
        written = with_disks(state, action, label, after, constants)
        found.append(Instance(action, label, delivered(view, written, sends)))
    found = [instance for instance in found if instance.outcomes]
    for outage in OUTAGE_ACTIONS:
        for label, up, after_losing in outage(state, constants):
            outcomes = [
                (len(up), len(gone), after_power(after_losing(gone), up, gone, constants)) for gone in subsets(up)
            ]
            found.append(Instance(outage.__name__, label, outcomes))
    for own in DISK_ACTIONS:
        for label, states in own(state, constants):
            most = len(states).bit_length() - 1
            sizes = map(len, subsets(range(most)))
            found.append(Instance(own.__name__, label, [(most, *fate) for fate in zip(sizes, states, strict=True)]))
    return found
