"""How long an outage of all bookies takes an acknowledged entry: until the first of its copies is flushed."""

import math
from collections.abc import Mapping
from typing import Any


def unflushed_for(values: Mapping[str, Any]) -> float:
    """Returns the mean time, in the unit of the rates; `values` are those of all keys, by dotted name.

    All copies are taken to be there when the entry is acknowledged: those beyond the ack quorum are a moment later.
    """
    if values["variant.journal_write"] and values["variant.journal_sync"]:
        return 0.0
    rate = values["rates.bookie_flushes"] * values["model.write_quorum"]
    return float(1.0 / rate) if rate > 0.0 else math.inf
