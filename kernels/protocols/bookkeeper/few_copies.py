"""The time for which an acknowledged entry of BookKeeper has fewer copies than its write quorum, while nothing fails.

An exact sum over the chain of one entry's requests: each is on its way, stored with its confirmation on the way, or
confirmed. Requests and confirmations are lost with `message_loss`. The entry is acknowledged when the ack quorum has
confirmed it; from then on it waits for the bookies that have not stored it yet. One whose request was lost never will:
the auditor looks for lost bookies only. With `guaranteed_write_quorum` the writer gives these bookies up, and sends the
entry to others: once all others have it, as time-outs are far longer than requests. The moment without the copy of a
bookie that is given up because its confirmation was lost is left out.
"""

from collections import defaultdict
from collections.abc import Mapping
from math import comb
from typing import Any

from quorisk.kernels.protocols.promises import FewCopies

STORES = "rates.bookie_sends_add_confirmed_response"
HEARS = "rates.client_receives_add_confirmed_response"
GIVES_UP = "rates.client_changes_ensemble"
GUARANTEED = "variant.guaranteed_write_quorum"


def few_copies(values: Mapping[str, Any]) -> dict[int, FewCopies]:
    """Returns the time of acknowledged entries at each number of copies below the write quorum, in the unit of the
    rates. `values` are those of all keys, by dotted name; both rates are above 0."""
    write_quorum, ack_quorum = values["model.write_quorum"], values["model.ack_quorum"]
    stores, loss = values[STORES], values["faults.message_loss"]
    times, stays, acknowledged = defaultdict[int, float](float), defaultdict[int, float](float), 0.0
    gives_up = values[GIVES_UP] if values.get(GUARANTEED) else 0.0
    for lost in range(write_quorum - ack_quorum + 1):
        chance = comb(write_quorum, lost) * loss**lost * (1.0 - loss) ** (write_quorum - lost)
        for waiting, p in _waiting(write_quorum - lost, ack_quorum, stores, values[HEARS], loss).items():
            acknowledged += chance * p
            for still in range(waiting, 0, -1):
                times[write_quorum - lost - still] += chance * p / (still * stores)
            if lost:
                stays[write_quorum - lost] += chance * p
    if gives_up:
        for copies, time in _resent(stays, write_quorum, stores, gives_up, loss).items():
            times[copies] += time
        stays.clear()
    numbers = sorted({*times, *stays})
    return {copies: FewCopies(times[copies] / acknowledged, stays[copies] / acknowledged) for copies in numbers}


def _waiting(requests: int, ack_quorum: int, stores: float, hears: float, loss: float) -> dict[int, float]:
    """Returns the probability that the entry is acknowledged, by the number of requests still on their way then."""
    found = defaultdict[int, float](float)
    here = {(requests, 0, 0): 1.0}  # on their way, stored and not confirmed yet, confirmed
    while here:
        after = defaultdict[tuple[int, int, int], float](float)
        for (waiting, stored, confirmed), p in here.items():
            if confirmed == ack_quorum:
                found[waiting] += p
                continue
            out = waiting * stores + stored * hears
            if out == 0.0:
                continue  # too many were lost: never acknowledged in this ensemble
            after[waiting, stored - 1, confirmed + 1] += p * stored * hears / out
            after[waiting - 1, stored + 1, confirmed] += p * waiting * stores / out * (1.0 - loss)
            after[waiting - 1, stored, confirmed] += p * waiting * stores / out * loss
        here = {state: p for state, p in after.items() if p > 0.0}
    return found


def _resent(
    stays: Mapping[int, float], write_quorum: int, stores: float, gives_up: float, loss: float
) -> dict[int, float]:
    """Returns the time at each number of copies once all requests are lost or stored. `stays` has the probability of
    each such number; the missing copies are sent again together, and some of them are lost again."""
    times, rounds = defaultdict[int, float](float), defaultdict[int, float](float, stays)
    for copies in range(min(stays, default=write_quorum), write_quorum):
        missing = write_quorum - copies
        rounds[copies] /= 1.0 - loss**missing  # all of them may be lost again
        times[copies] += rounds[copies] / gives_up
        for lost in range(missing + 1):
            p = rounds[copies] * comb(missing, lost) * loss**lost * (1.0 - loss) ** (missing - lost)
            for still in range(missing - lost, 0, -1):
                times[write_quorum - lost - still] += p / (still * stores)
            if lost < missing:
                rounds[write_quorum - lost] += p
    return times
