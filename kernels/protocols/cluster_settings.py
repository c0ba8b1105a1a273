"""Settings of a real cluster and their keys in experiment files: the form of a protocol's `settings.toml`."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

LOG_FLUSH_INTERVAL_MESSAGES = ("log.flush.interval.messages", "flush.messages")
FLUSHED_AFTER = ((1, True), ((1 << 63) - 1, False))
"""Kafka's names of the switch `flush_every_message`, and the two of its values that this can be."""
LOG_FLUSH_INTERVAL_MS = ("log.flush.interval.ms", "flush.ms")


class Setting(NamedTuple):
    """A setting of a cluster, in Markdown."""

    names: str
    """Names in the cluster's documentation: "`acks=all`"."""
    key: str
    """Quorisk's key for it, or "not modelled": then none of Quorisk's numbers depends on it."""
    note: str = ""
    """The difference between the two, if there is one."""

    def said(self) -> str:
        """Returns Quorisk's key for it in words, for errors about files that use its name as a key."""
        key = self.key.replace("`", "")
        words = "not modelled" if key == self.key else f"no key by itself; see {key}"
        return f"{words}: {self.note.replace('`', '')}" if self.note else words


class Unflushed(NamedTuple):
    """The time for which an outage of all nodes loses an acknowledged entry: until the next leader has flushed it."""

    unless: str
    """Dotted key of a switch with which no entry is acknowledged before it is flushed."""
    rate: str
    """Dotted key of the rate at which a node flushes."""

    def __call__(self, values: Mapping[str, Any]) -> float:
        """Returns the mean time, in the unit of the rates; `values` are those of all keys, by dotted name."""
        if values[self.unless]:
            return 0.0
        return float(1.0 / values[self.rate]) if values[self.rate] > 0.0 else math.inf
