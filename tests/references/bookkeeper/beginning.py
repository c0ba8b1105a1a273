"""What a run begins with: nothing or, of a ledger that is closed, what a run that meets no fault leaves of it."""

from quorisk.kernels.protocols.bookkeeper.describe import SpecState as State
from tests.references.bookkeeper.actions import instances
from tests.references.bookkeeper.state import Constants, nothing

ADDS = (
    "client_sends_add_entry_requests",
    "bookie_sends_add_confirmed_response",
    "client_receives_add_confirmed_response",
)


def taken(state: State, constants: Constants, actions: tuple[str, ...]) -> State:
    """The state once none of these actions is enabled, the last enabled one taken first and no message lost."""
    while found := [each for each in instances(state, constants) if each.action in actions]:
        chosen = max(found, key=lambda each: actions.index(each.action))
        state = next(after for _, lost, after in chosen.outcomes if lost == 0)
    return state


def initial(constants: Constants) -> State:
    if constants.ledger == "new":
        return nothing(constants)
    state = taken(nothing(constants), constants, ("client_creates_ledger",))
    state = taken(state, constants, ADDS)
    return taken(state, constants, ("client_closes_ledger_success", "bookie_flushes"))
