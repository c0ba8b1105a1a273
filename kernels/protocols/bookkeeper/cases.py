"""Ledgers to try the model on."""

from typing import Any

from quorisk.kernels.protocols.cases import Cases

_SLOW_CLOSE = {"client_closes_ledger_success": 0.05, "client_closes_ledger_fail": 0.05, "client_creates_ledger": 3.0}
_PAIR: dict[str, Any] = {"bookies": 2, "write_quorum": 2, "ack_quorum": 2, "rates": _SLOW_CLOSE}
_SINGLE = _PAIR | {"write_quorum": 1, "ack_quorum": 1}
_LARGE = {"bookies": 5, "clients": 3, "write_quorum": 3, "ack_quorum": 2, "entries": 3, "inflight": 3}
_STRIPED = _PAIR | {"ensemble_size": 3, "bookies": 4, "entries": 3, "inflight": 3}
_FAULTS = {"max_lost": 2, "max_empty_restarts": 2, "writer_crash": True, "auto_recovery": True, "replacement": True}
_AUDITOR = {"repair_open_ledgers": True, "fence_open_ledgers": True, "limbo_answers_fencing": False}
_TOGETHER = {"lost_together": True, "max_lost": 4, "racks": 2, "max_empty_restarts": 6}
_OUTAGES = {"max_outages": 2, "max_rack_outages": 2, "racks": 2, "p_lost_in_outage": 0.3, "p_lost_in_rack_outage": 0.6}
_PARTIAL = {"max_unclean_restarts": 1, "max_partial_losses": 1, "p_lost_entry": 0.4}
_DELAYED = {"delay_ensemble_change": True, "ack_quorum": 1, "message_loss": 0.2}
_GUARANTEED = {"guaranteed_write_quorum": True, "ack_quorum": 1, "message_loss": 0.2}
_ENFORCED = {"enforce_min_racks_per_write_quorum": True, "enforce_min_fault_domains_for_write": True, "racks": 2}
_SOME_FAULTS = _SLOW_CLOSE | dict.fromkeys(
    (
        *("bookie_restarts_empty", "bookie_is_lost", "two_bookies_are_lost_together"),
        *("three_bookies_are_lost_together", "rack_restarts_empty", "writer_crashes"),
        *("cluster_loses_power", "rack_loses_power"),
    ),
    0.05,
)

CASES = Cases(
    small={"bookies": 2, "clients": 2, "write_quorum": 2, "ack_quorum": 2, "entries": 1, "inflight": 1},
    variants=(
        _PAIR | {"bookies": 4, "entries": 2, "inflight": 2},
        _PAIR | {"semantics": "literal"},
        _PAIR | {"fence_recovery_reads": False, "horizon": 4.0},
        _SINGLE | {"recovery_lac_floor": False, "entries": 2, "max_steps": 24},
        _SINGLE | {"recovery_reads_initial_ensemble": False, "entries": 2, "inflight": 2, "message_loss": 0.2},
        _SINGLE | {"defer_recovery_ensemble_change": False, "message_loss": 0.3},
        _SINGLE | {"fence_unknown_ledger": False, "bookies": 1, "rates": {}},
        _PAIR | {"strict_negative_reads": False, "ack_quorum": 1, "message_loss": 0.0},
        _PAIR | {"close_checks_version": False, "clients": 3, "message_loss": 1e-3, "rates": {}},
        _PAIR | _FAULTS | {"bookies": 4, "max_steps": 40, "rates": _SOME_FAULTS},
        _PAIR | _FAULTS | {"fence_on_unclean_shutdown": False, "max_steps": 40, "rates": {}},
        _PAIR | _FAULTS | {"limbo_on_unclean_shutdown": False, "max_steps": 40, "rates": {}},
        _PAIR | _FAULTS | _AUDITOR | {"bookies": 4, "entries": 2, "max_steps": 60, "rates": _SOME_FAULTS},
        _PAIR | _FAULTS | _TOGETHER | {"bookies": 5, "max_steps": 40, "rates": _SOME_FAULTS},
        _PAIR | _FAULTS | {"rack_aware_placement": False, "racks": 3, "bookies": 4, "max_steps": 40, "rates": {}},
        _PAIR | _FAULTS | _OUTAGES | {"bookies": 5, "write_quorum": 3, "max_steps": 60, "rates": _SOME_FAULTS},
        _PAIR | _FAULTS | _OUTAGES | {"ledger": "closed", "max_steps": 40, "rates": _SOME_FAULTS},
        _STRIPED | {"callbacks_after_unset": False, "message_loss": 0.2},
        _STRIPED
        | _FAULTS
        | {"bookies": 6, "ensemble_size": 5, "ack_quorum": 1, "max_steps": 40, "rates": _SOME_FAULTS},
        _PAIR | _FAULTS | _OUTAGES | _PARTIAL | {"journal_sync": False, "max_steps": 60, "rates": _SOME_FAULTS},
        _PAIR
        | _FAULTS
        | _DELAYED
        | {"bookies": 4, "entries": 2, "inflight": 2, "max_steps": 60, "rates": _SOME_FAULTS},
        _PAIR | _FAULTS | _DELAYED | _ENFORCED | {"bookies": 4, "write_quorum": 3, "max_steps": 60, "rates": {}},
        _PAIR | _GUARANTEED | {"bookies": 4, "entries": 2, "inflight": 2, "rates": _SLOW_CLOSE},
        _STRIPED | _FAULTS | _GUARANTEED | {"max_steps": 60, "rates": _SOME_FAULTS},
        _PAIR | _PARTIAL | {"journal_write": False, "damaged_reads_unknown": False, "max_steps": 60, "rates": {}},
    ),
    walks=(
        _LARGE,
        _LARGE | {"defer_recovery_ensemble_change": False, "recovery_lac_floor": False, "entries": 2, "inflight": 2},
        {"bookies": 4, "clients": 3, "write_quorum": 3, "ack_quorum": 2, "entries": 3, "inflight": 2},
        {"bookies": 3, "entries": 2, "inflight": 2, "semantics": "literal", "recovery_lac_floor": False},
        {
            **{"bookies": 6, "clients": 3, "entries": 4, "inflight": 4},
            **dict.fromkeys(("recovery_reads_initial_ensemble", "defer_recovery_ensemble_change"), False),
            **dict.fromkeys(("fence_unknown_ledger", "strict_negative_reads", "fence_recovery_reads"), False),
            "close_checks_version": False,
        },
        _LARGE | _FAULTS,
        _LARGE | _FAULTS | _TOGETHER | _AUDITOR | {"bookies": 6},
        _LARGE | _FAULTS | {"max_outages": 2, "max_rack_outages": 2, "racks": 3, "bookies": 6},
        _LARGE | _FAULTS | {"bookies": 6, "ensemble_size": 5, "write_quorum": 3, "entries": 4, "inflight": 4},
        _LARGE | {"bookies": 6, "ensemble_size": 4, "write_quorum": 2, "callbacks_after_unset": False},
        _LARGE | _FAULTS | _PARTIAL | {"max_outages": 1, "journal_sync": False},
        _LARGE | _FAULTS | _OUTAGES | {"bookies": 6, "guaranteed_write_quorum": True},
    ),
    rarely=(
        *("client_closes_ledger_success", "client_closes_ledger_fail", "client_receives_add_fenced_response"),
        *("bookie_restarts_empty", "bookie_is_lost", "bookie_is_replaced", "writer_crashes"),
        *("two_bookies_are_lost_together", "three_bookies_are_lost_together", "rack_restarts_empty"),
        *("cluster_loses_power", "rack_loses_power", "bookie_restarts_unclean", "bookie_loses_some"),
    ),
    silent=("client_closes_ledger_fail",),
    bench={
        "model": {"bookies": 3, "clients": 2, "write_quorum": 3, "ack_quorum": 2, "entries": 1, "inflight": 1},
        "faults": {"message_loss": 0.1},
    },
    bench_search={
        "model": {"bookies": 2, "clients": 2, "write_quorum": 2, "ack_quorum": 1, "entries": 1, "inflight": 1},
        "variant": {"semantics": "literal"},
    },
)
