"""The time for which an outage of all bookies loses an acknowledged entry: until the first of its copies is flushed.

A request and its confirmation are each lost with `message_loss`. So an entry has as many copies as requests arrive, and
is acknowledged if an ack quorum of these are confirmed.
"""

import math
from collections.abc import Mapping
from typing import Any


def unflushed_for(values: Mapping[str, Any]) -> float:
    """Returns the mean time, in the unit of the rates; `values` are those of all keys, by dotted name.

    All copies are taken to be there when the entry is acknowledged: those beyond the ack quorum are a moment later.
    """
    if values["variant.journal_write"] and values["variant.journal_sync"]:
        return 0.0
    write_quorum, ack_quorum = values["model.write_quorum"], values["model.ack_quorum"]
    arrives, flushes = 1.0 - values["faults.message_loss"], values["rates.bookie_flushes"]
    if flushes == 0.0:
        return math.inf
    chances = {}
    for copies in range(ack_quorum, write_quorum + 1):
        confirmed = sum(_chance(copies, number, arrives) for number in range(ack_quorum, copies + 1))
        chances[copies] = _chance(write_quorum, copies, arrives) * confirmed
    acknowledged = sum(chances.values())
    return sum(chance / acknowledged / (copies * flushes) for copies, chance in chances.items() if chance)


def _chance(messages: int, number: int, arrives: float) -> float:
    """Returns the probability that `number` of these messages arrive."""
    return float(math.comb(messages, number) * arrives**number * (1.0 - arrives) ** (messages - number))
