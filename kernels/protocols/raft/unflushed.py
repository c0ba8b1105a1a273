"""The time for which an outage of all servers loses an acknowledged value: until the next leader has synced it."""

import math
from collections.abc import Mapping
from typing import Any


def unflushed_for(values: Mapping[str, Any]) -> float:
    """Returns the mean time, in the unit of the rates; `values` are those of all keys, by dotted name."""
    if values["variant.follower_fsync_before_reply"]:
        return 0.0
    rate = values["rates.advance_fsync_index"]
    return float(1.0 / rate) if rate > 0.0 else math.inf
