"""A failover of BookKeeper with any number of entries in flight, where recovery reads do not fence.

An independent program. A ledger on three bookies, AQ 2: the writer sends entries, another client recovers the ledger
meanwhile, and no message is lost. Each bookie takes the writer's requests one after another, so that what it has
stored, answered or refused is a count: a state is two dozen numbers, whatever is in flight. The last entry that
recovery finds is the ledger's end; what the writer acknowledges beyond it is lost.

`python -m tests.references.failover` prints the table of docs/concepts.md, in half an hour.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

BOOKIES, ENOUGH = 3, 2
"""ENOUGH: write quorum - ack quorum + 1, of answers to fencing requests and of reads that find nothing."""
SENT, LAC, OPEN, RECOVERING, READING, ASKED, LAP, ENDED = range(8)
"""The clients' numbers. ASKED: the first recovery read is sent, ENDED: the last one is answered."""
STORED, HANDLED, HEARD, FENCED, FENCE, SAID, READ = range(7)
"""A bookie's numbers: the writer's requests that it stored, those that it stored or refused, and its answers that the
writer heard; the LAC that it told; FENCE and READ: 0 nothing, 1 a request is on its way, 2 an answer, 3 an answer has
arrived (FENCE), or is on its way with the entry (READ)."""


class Rates(NamedTuple):
    """Rates a millisecond, under the model's names in short."""

    send: float  # client_sends_add_entry_requests
    store: float  # bookie_sends_add_confirmed_response
    refuse: float  # bookie_sends_add_fenced_response
    hear: float  # client_receives_...: a message crosses the data centre
    start: float  # client_starts_recovery
    fence: float  # bookie_sends_fencing_read_lac_response
    ask: float  # client_sends_recovery_read_requests
    read: float  # bookie_sends_read_response
    notice: float  # client_closes_ledger_fail


@njit
def weigh(weight, rates, clients, bookies, sends, starts):
    """Rates of all that may happen: the writer sends, it notices, recovery goes on; then four of each bookie."""
    is_open, recovering = clients[OPEN], clients[RECOVERING]
    covered = clients[ASKED] or (bookies[FENCE] == 3).sum() >= ENOUGH
    asks = recovering and covered and not clients[READING] and not clients[ENDED]
    weight[0] = rates.send if is_open and sends else 0.0
    weight[1] = rates.notice if is_open and recovering else 0.0
    weight[2] = rates.ask if asks else rates.start if starts and not recovering else 0.0
    for b in range(BOOKIES):
        it, at = bookies[:, b], 3 + 4 * b
        waits = it[HANDLED] < clients[SENT]
        weight[at] = 0.0 if not waits else rates.refuse if it[FENCED] else rates.store
        weight[at + 1] = rates.hear if is_open and it[HEARD] < it[HANDLED] else 0.0
        told = it[FENCE] == 2 and not clients[ASKED]
        weight[at + 2] = rates.fence if it[FENCE] == 1 else rates.hear if told else 0.0
        asked = it[READ] if clients[READING] else 0
        weight[at + 3] = rates.read if asked == 1 else rates.hear if asked > 1 else 0.0


@njit
def writes(clients, bookies, b, hears):
    """A bookie handles the writer's next request, or the writer hears its next answer."""
    it = bookies[:, b]
    if not hears:
        it[HANDLED] += 1
        it[STORED] += not it[FENCED]
        return
    it[HEARD] += 1
    if it[HEARD] > it[STORED]:
        clients[OPEN] = 0
    else:
        heard = bookies[HEARD]
        clients[LAC] = max(clients[LAC], heard.sum() - heard.max() - heard.min())  # what two of three have confirmed


@njit
def recovers(clients, bookies, b, reads, carried):
    """A bookie answers the client that recovers, or its answer arrives."""
    it = bookies[:, b]
    if not reads:
        if it[FENCE] == 1:
            it[FENCED], it[SAID] = 1, carried[it[STORED]]
        else:
            clients[LAP] = max(clients[LAP], it[SAID])
        it[FENCE] += 1
    elif it[READ] == 1:
        it[READ] = 3 if it[STORED] > clients[LAP] else 2
    elif it[READ] == 3:
        clients[READING] = 0
        clients[LAP] += 1
    else:
        it[READ] = 0
        if (bookies[READ] == 0).sum() >= ENOUGH:
            clients[READING], clients[ENDED] = 0, 1


@njit
def lost_entries(rates, entries, inflight, warm_up):
    """How many entries one random run loses. The writer sends at most `entries`, of which `inflight` are not
    acknowledged at a time; recovery starts at its rate once `warm_up` entries are sent."""
    clients, bookies = np.zeros(8, np.int64), np.zeros((7, BOOKIES), np.int64)
    carried = np.zeros(entries + 1, np.int64)  # the LAC that an entry was sent with
    weight = np.zeros(3 + 4 * BOOKIES)
    clients[OPEN] = 1
    while clients[OPEN] or not (clients[ENDED] or clients[LAC] <= clients[LAP]):  # recovery finds no less than it has
        sends = clients[SENT] < entries and clients[SENT] - clients[LAC] < inflight
        weigh(weight, rates, clients, bookies, sends, clients[SENT] >= warm_up)
        point, chosen = np.random.random() * weight.sum(), 0
        while chosen < len(weight) - 1 and point >= weight[chosen]:
            point -= weight[chosen]
            chosen += 1
        if chosen == 0:
            clients[SENT] += 1
            carried[clients[SENT]] = clients[LAC]
        elif chosen == 1:
            clients[OPEN] = 0
        elif chosen == 2 and not clients[RECOVERING]:
            clients[RECOVERING] = 1
            bookies[FENCE] = 1
        elif chosen == 2:
            clients[READING] = clients[ASKED] = 1
            bookies[READ] = 1
        else:
            b, kind = (chosen - 3) // 4, (chosen - 3) % 4
            if kind < 2:
                writes(clients, bookies, b, kind == 1)
            else:
                recovers(clients, bookies, b, kind == 3, carried)
    return max(clients[LAC] - clients[LAP], 0)


@njit
def losses(seed, runs, rates, entries, inflight, warm_up):
    """Number of runs, of so many, that lose something, and of entries lost."""
    np.random.seed(seed)
    lossy = total = 0
    for _ in range(runs):
        lost = lost_entries(rates, entries, inflight, warm_up)
        lossy += lost > 0
        total += lost
    return lossy, total


BURST = Rates(send=1e4, store=1 / 3, refuse=4, hear=4, start=50, fence=1 / 3, ask=1, read=4, notice=0.1)
"""The profile `pulsar_cloud`. All that is in flight is sent within microseconds, and recovery begins at once."""
STREAM = BURST._replace(start=1 / 100)
"""Recovery begins at a moment that knows nothing of the writer."""
TABLE = {
    "1 in flight": (BURST, 16_000_000, 1, 1, 0),
    "2 in flight": (BURST, 16_000_000, 2, 2, 0),
    "4 in flight": (BURST, 16_000_000, 4, 4, 0),
    "16 in flight": (BURST, 8_000_000, 16, 16, 0),
    "one every 10 ms": (STREAM._replace(send=1 / 10), 6_000_000, 4_000, 4_000, 20),
    "one every ms, 16 in flight at most": (STREAM._replace(send=1.0), 1_000_000, 4_000, 16, 40),
    "one every ms, 100 in flight at most": (STREAM._replace(send=1.0), 1_000_000, 4_000, 100, 200),
    "one every ms, 300 in flight at most": (STREAM._replace(send=1.0), 500_000, 4_000, 300, 600),
}
"""For each row of the table: rates, runs, and the last three arguments of `losses`."""


def main() -> None:
    """Prints how likely a failover is to lose something, and 95 % each way."""
    for name, (rates, runs, entries, inflight, warm_up) in TABLE.items():
        lossy, _ = losses(11, runs, rates, entries, inflight, warm_up)
        said = f"{lossy / runs:.3g} +- {1.96 * math.sqrt(lossy) / runs:.2g}" if lossy else f"< {3 / runs:.2g}"
        print(f"{name:40} {lossy:6,} of {runs:10,}: {said}", flush=True)


if __name__ == "__main__":
    main()
