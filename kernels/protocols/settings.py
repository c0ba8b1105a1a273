"""Which setting of a cluster is which key of an experiment file: the form of SETTINGS in a protocol's `settings`."""

from collections.abc import Sequence
from typing import NamedTuple

from quorisk.kernels.model import Model, Parameter


class Setting(NamedTuple):
    """A setting of a cluster, in Markdown."""

    names: str
    """What the cluster's documentation calls it: "`acks=all`"."""
    key: str
    """The key that stands for it, or "not modelled": no number that Quorisk gives depends on it then."""
    note: str = ""
    """How it differs, if it does."""


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
