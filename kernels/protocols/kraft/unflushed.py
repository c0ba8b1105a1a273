"""The time for which an outage of all brokers loses an acknowledged record: until the next leader has flushed it."""

import math
from collections.abc import Mapping
from typing import Any


def unflushed_for(values: Mapping[str, Any], rate: str = "rates.broker_flushes") -> float:
    """Returns the mean time, in the unit of the rates. `values` are those of all keys, by dotted name; `rate` is the
    key that says how often a broker flushes."""
    if values["variant.flush_every_message"]:
        return 0.0
    return float(1.0 / values[rate]) if values[rate] > 0.0 else math.inf
