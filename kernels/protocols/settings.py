"""Which setting of a cluster is which key of an experiment file: the form of SETTINGS in a protocol's `settings`."""

from collections.abc import Sequence
from typing import NamedTuple


class Setting(NamedTuple):
    """A setting of a cluster, in Markdown."""

    names: str
    """What the cluster's documentation calls it: "`acks=all`"."""
    key: str
    """The key that stands for it, or "not modelled": no number that Quorisk gives depends on it then."""
    note: str = ""
    """How it differs, if it does."""


def table(settings: Sequence[Setting], cluster: str) -> str:
    """The table of docs/settings.md; `cluster` is the title of its first column."""
    lines = [Setting(cluster, "here"), Setting("---", "---", "---"), *settings]
    return "\n".join(f"| {line.names} | {line.key} | {line.note}".rstrip() + " |" for line in lines)
