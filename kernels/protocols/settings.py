"""Which setting of a cluster is which key of an experiment file: the form of SETTINGS in a protocol's `settings`."""

from collections.abc import Sequence
from typing import NamedTuple

from quorisk.kernels.model import Model, Parameter

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


def back(settings: Sequence[Setting], model: Model, cluster: str) -> str:
    """The same table the other way: of each parameter what it may be and what clusters call it, and which parameter
    bounds how often an action happens. `cluster` is the title of its last column."""
    lines = [f"| here | may be | default | {cluster} |", "| --- | --- | --- | --- |"]
    for parameter in model.parameters:
        key, default = f"{parameter.table}.{parameter.name}", parameter.default_value
        names = "; ".join(each.names for each in settings if f"`{key}`" in each.key) or f"none: {parameter.doc}"
        said = "" if default is None else str(default) if parameter.allowed else ("off", "on")[default]
        lines.append(f"| `{key}` | {_allowed(parameter)} | {said} | {names} |")
    return "\n".join(lines)


def _allowed(parameter: Parameter) -> str:
    match parameter.allowed:
        case None:
            return "on, off"
        case (int(low), int(high)):
            return f"{low} to {high}"
        case names:
            return ", ".join(map(str, names))


def table(settings: Sequence[Setting], cluster: str) -> str:
    """The table of docs/settings.md; `cluster` is the title of its first column."""
    lines = [Setting(cluster, "here"), Setting("---", "---", "---"), *settings]
    return "\n".join(f"| {line.names} | {line.key} | {line.note}".rstrip() + " |" for line in lines)
