"""Exact numbers at physical rates, thirteen decades apart: published ones, and an oracle's in sixty digits."""

from decimal import Decimal

import pytest

from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment.config import build_experiment
from tests.references import absorbing, bookkeeper

MEMORY_BYTES = 2 << 30
RATES: dict[str, tuple[str, int | Decimal]] = {
    "client_creates_ledger": ("1 / (1 ms)", 1000),
    "client_sends_add_entry_requests": ("1 / (10 ms)", 100),
    "bookie_sends_add_confirmed_response": ("1 / (2.5 ms)", 400),
    "client_receives_add_confirmed_response": ("1 / (0.25 ms)", 4000),
    "client_changes_ensemble": ("1 / (5 s)", Decimal(1) / 5),
    "client_resends_pending_add_op": ("1 / (1 ms)", 1000),
    "client_closes_ledger_success": ("1 / (1 h)", Decimal(1) / 3600),
    "client_closes_ledger_fail": ("1 / (10 ms)", 100),
    "bookie_is_lost": ("1 % / year", Decimal(1) / (100 * 31_557_600)),
    "auditor_replicates_fragment": ("1 / (1 h)", Decimal(1) / 3600),
    "bookie_is_replaced": ("1 / (1 day)", Decimal(1) / 86_400),
}
"""As a file has them, and a second."""


def p_lost(bookies: int, write_quorum: int, ack_quorum: int, message_loss: float) -> float:
    """P(an entry is lost in a life of seven days on average), as `quorisk exact` has it."""
    sizes = {"bookies": bookies, "clients": 1, "entries": 1, "inflight": 1}
    document = {
        "protocol": "bookkeeper",
        "model": {**sizes, "write_quorum": write_quorum, "ack_quorum": ack_quorum},
        "faults": {"message_loss": message_loss, "max_lost": bookies, "auto_recovery": True, "replacement": True},
        "rates": {name: text for name, (text, _) in RATES.items()},
        "run": {"lifetime": "7 days"},
    }
    return exact(build_experiment(document, "x.toml"), MEMORY_BYTES).data_loss.p


def in_sixty_digits(bookies: int, write_quorum: int, ack_quorum: int) -> tuple[absorbing.Graph, dict[str, Decimal]]:
    """The states and steps of that entry's life by the literal interpreter, and the rates a second."""
    sizes = bookies, 1, write_quorum, ack_quorum, 1, 1
    constants = bookkeeper.Constants(*sizes, max_lost=bookies, auto_recovery=True, replacement=True)

    def is_lost(state):
        holds = bookkeeper.invariants(state, constants)
        return not all(holds[name] for name in bookkeeper.DATA_LOSS)

    start = bookkeeper.initial(constants)
    graph = absorbing.explore(start, lambda state: bookkeeper.instances(state, constants), is_lost)
    return graph, {action: Decimal(RATES[action][1] if action in RATES else 1) for action in bookkeeper.ACTIONS}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("bookies", "write_quorum", "ack_quorum"),
    [(2, 2, 1), (2, 2, 2), (3, 2, 1), (3, 3, 1), (3, 2, 2), (3, 3, 2), (3, 3, 3)],
)
def test_exact_numbers_are_an_oracles_at_rates_thirteen_decades_apart(bookies, write_quorum, ack_quorum):
    graph, rates = in_sixty_digits(bookies, write_quorum, ack_quorum)
    for message_loss in ("0", "1e-6", "1e-3"):
        truth = absorbing.p_lost(graph, rates, Decimal(message_loss), Decimal(1) / (7 * 86_400))
        assert p_lost(bookies, write_quorum, ack_quorum, float(message_loss)) == pytest.approx(float(truth), rel=1e-12)


@pytest.mark.parametrize(("ack_quorum", "published"), [(2, 1.308752296632e-12), (3, 8.212008432915e-16)])
def test_an_entrys_life_with_a_bookie_to_spare_is_an_independent_programs_to_the_digit(ack_quorum, published):
    assert p_lost(4, 3, ack_quorum, 1e-3) == pytest.approx(published, rel=1e-12)
