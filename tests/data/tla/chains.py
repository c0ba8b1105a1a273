"""Makes numbers_flush.json: exact loss probabilities with flushes, from the literal interpreter.

    python -m tests.data.tla.chains > tests/data/numbers_flush.json

The chain of all states is solved as it is written down, in 60 decimal digits (tests/references/absorbing.py); nothing
of the kernels takes part but the shape of a state.
"""

import json
from decimal import Decimal
from typing import Any

from tests.references import absorbing
from tests.references import bookkeeper as reference
from tests.references.bookkeeper.actions import LOST_WITH

ABOUT = (
    "Exact loss probabilities of BookKeeperFlush (tla/FLUSH.md), made by tla/chains.py: a run is lost if it ever "
    "enters a state that breaks one of the data-loss invariants. It also ends where nothing is enabled, and at rate "
    "1 / lifetime in every state. A rate not given is 1. `states`: those that runs reach without passing a lost one."
)
SETTINGS: tuple[dict[str, Any], ...] = (
    {
        "name": "outage_nosync",
        "model": {"bookies": 2, "clients": 1, "write_quorum": 2, "ack_quorum": 2, "entries": 1, "inflight": 1},
        "faults": {"max_outages": 1},
        "variant": {"journal_sync": False},
        "message_loss": 0.1,
        "p_lost_in_outage": 0.3,
        "rates": {"bookie_flushes": 5, "cluster_loses_power": 0.2, "client_closes_ledger_success": 0.5},
        "lifetime": 100,
    },
    {
        "name": "restart_nosync",
        "model": {"bookies": 1, "clients": 2, "write_quorum": 1, "ack_quorum": 1, "entries": 1, "inflight": 1},
        "faults": {"max_unclean_restarts": 1},
        "variant": {"journal_sync": False},
        "message_loss": 0.1,
        "rates": {"bookie_flushes": 2, "bookie_restarts_unclean": 0.1},
        "lifetime": 1000,
    },
    {
        "name": "restart_nowrite_damage_believed",
        "model": {"bookies": 2, "clients": 1, "write_quorum": 1, "ack_quorum": 1, "entries": 2, "inflight": 1},
        "faults": {"max_unclean_restarts": 1, "max_partial_losses": 1},
        "variant": {"journal_write": False, "limbo_on_unclean_shutdown": False, "damaged_reads_unknown": False},
        "message_loss": 0.1,
        "p_lost_entry": 0.25,
        "rates": {"bookie_flushes": 3, "bookie_restarts_unclean": 0.1, "bookie_loses_some": 0.1},
        "lifetime": 200,
    },
)


def constants_of(case: dict[str, Any]) -> reference.Constants:
    """The interpreter's constants of a case, or of a row."""
    return reference.Constants(**{**case["model"], **case["faults"], **case["variant"]})


def p_lost(case: dict[str, Any]) -> tuple[int, Decimal]:
    """The states that a run may be in, and the probability that it is lost."""
    k = constants_of(case)
    graph = absorbing.explore(
        reference.initial(k),
        lambda state: reference.instances(state, k),
        lambda state: not all(reference.invariants(state, k)[name] for name in reference.DATA_LOSS),
    )
    rates = dict.fromkeys(reference.ACTIONS, Decimal(1)) | {
        name: Decimal(str(rate)) for name, rate in case["rates"].items()
    }
    others = {action: Decimal(str(case.get(key, 0))) for action, key in LOST_WITH.items()}
    end_rate = 1 / Decimal(case["lifetime"])
    p = absorbing.p_lost(graph, rates, Decimal(str(case["message_loss"])), end_rate, others)
    return graph.is_lost.count(False), p


def main() -> None:
    """Prints the file."""
    solved = []
    for case in SETTINGS:
        states, p = p_lost(case)
        solved.append(case | {"states": states, "p_lost": float(p)})
    print(json.dumps({"about": ABOUT, "settings": solved}, indent=1))


if __name__ == "__main__":
    main()
