"""Which setting of a cluster is which key of an experiment file: the form of SETTINGS in a protocol's `settings`."""

from typing import NamedTuple

LOG_FLUSH_INTERVAL_MESSAGES = ("log.flush.interval.messages", "flush.messages")
FLUSHED_AFTER = ((1, True), ((1 << 63) - 1, False))
"""Kafka's names of the switch `flush_every_message`, and the two of its values that this can be."""
LOG_FLUSH_INTERVAL_MS = ("log.flush.interval.ms", "flush.ms")


class Setting(NamedTuple):
    """A setting of a cluster, in Markdown."""

    names: str
    """What the cluster's documentation calls it: "`acks=all`"."""
    key: str
    """The key that stands for it, or "not modelled": no number that Quorisk gives depends on it then."""
    note: str = ""
    """How it differs, if it does."""

    def said(self) -> str:
        """Which key stands for it, for whoever took it for one."""
        key = self.key.replace("`", "")
        words = "not modelled" if key == self.key else f"no key by itself; see {key}"
        return f"{words}: {self.note.replace('`', '')}" if self.note else words
