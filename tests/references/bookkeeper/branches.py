"""TLC's count of generated states: a guard that holds in two ways gives its successor twice.

TLC takes every disjunct and every witness of a quantifier in an action's guard for a branch of its own. Three guards of
the specification may hold in several ways at once; the states that come of it are the same.
"""

from quorisk.kernels.protocols.bookkeeper.describe import ClientState, Message, PendingAddOp
from quorisk.kernels.protocols.bookkeeper.describe import SpecState as State
from tests.references.bookkeeper.actions import Instance
from tests.references.bookkeeper.state import Constants, current, eligible_sets

RESENDS = ("client_resends_pending_add_op", "recovery_client_sends_pending_add_op")
CHANGES = ("client_changes_ensemble", "recovery_client_changes_ensemble")


def branches(state: State, one: Instance, k: Constants) -> int:
    """How many times TLC generates each successor of an instance."""
    if one.action == "bookie_sends_add_confirmed_response" and isinstance(one.label, Message):
        # not fenced, or of a recovery
        return (not state.b_fenced[one.label.bookie]) + one.label.recovery
    if one.action in RESENDS and isinstance(one.label, PendingAddOp):
        # NeedsResend: another fragment, or another ensemble
        before, _ = _client(state, one)
        return (one.label.fragment_id != current(before).id) + (one.label.ensemble != current(before).ensemble)
    if one.action in CHANGES:
        # EnsembleAvailable: any set that may be chosen
        before, after = _client(state, one)
        old = current(before).ensemble
        used = frozenset(fragment.ensemble for fragment in state.meta_fragments)
        failed = frozenset(old) - frozenset(current(after).ensemble)
        return len(eligible_sets(old, failed, state.b_down, used, k))
    return 1


def _client(state: State, one: Instance) -> tuple[ClientState, ClientState]:
    """The client that an instance changes, before and after."""
    after = one.outcomes[0][-1].clients
    return next((c, d) for c, d in zip(state.clients, after, strict=True) if c != d)
