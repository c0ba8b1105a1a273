"""Losses of a failover by what is in flight: the model against an independent program, which goes on from there."""

import pytest

from quorisk.kernels.protocols.bookkeeper import MODEL
from tests.references.failover import BURST, Rates, losses
from tests.support import point_of, run


def named(rates: Rates) -> dict[str, float]:
    heard = ("add_confirmed", "add_fenced", "fencing_read_lac", "recovery_read")
    return {
        **{f"client_receives_{message}_response": rates.hear for message in heard},
        "client_creates_ledger": 1e4,
        "client_sends_add_entry_requests": rates.send,
        "bookie_sends_add_confirmed_response": rates.store,
        "bookie_sends_add_fenced_response": rates.refuse,
        "client_starts_recovery": rates.start,
        "bookie_sends_fencing_read_lac_response": rates.fence,
        "client_sends_recovery_read_requests": rates.ask,
        "bookie_sends_read_response": rates.read,
        "client_closes_ledger_fail": rates.notice,
        "client_closes_ledger_success": 1e-9,
    }


@pytest.mark.exhaustive
@pytest.mark.parametrize(("entries", "runs"), [(1, 4_000_000), (2, 8_000_000), (4, 16_000_000)])
def test_as_many_failovers_lose_something_as_by_an_independent_program(entries, runs):
    sizes = {"bookies": 3, "clients": 2, "write_quorum": 3, "ack_quorum": 2, "entries": entries, "inflight": entries}
    point = point_of(MODEL, 0.0, named(BURST), fence_recovery_reads=False, **sizes)
    ours = run(MODEL, point, runs, seed=5, threads=1).outcomes["lost"]
    theirs, _ = losses(5, runs, BURST, entries, entries, 0)
    assert ours > 150
    assert abs(ours - theirs) < 4.5 * (ours + theirs) ** 0.5
