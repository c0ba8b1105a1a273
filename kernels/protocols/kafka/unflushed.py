"""The time for which an outage of all replicas loses a committed record: until the next leader has flushed it."""

from collections.abc import Mapping
from typing import Any

from quorisk.kernels.protocols.kraft import unflushed


def unflushed_for(values: Mapping[str, Any]) -> float:
    """Returns the mean time, in the unit of the rates; `values` are those of all keys, by dotted name."""
    return unflushed.unflushed_for(values, "rates.replica_flushes")
