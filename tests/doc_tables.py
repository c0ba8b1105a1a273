"""The tables of the documentation that follow from what protocols and readers of data declare, in Markdown."""

from collections.abc import Mapping, Sequence

from quorisk.analysis.rates.metrics import METRICS
from quorisk.kernels.model import MESSAGE_LOSS, Model, Parameter, needed_parameters
from quorisk.kernels.protocols.cluster_settings import Setting
from quorisk.kernels.protocols.evidence import KINDS, Evidence


def of_parameters(settings: Sequence[Setting], model: Model, cluster: str) -> str:
    """The table of settings the other way: of each parameter what it may be and what clusters call it. `cluster` is the
    title of its last column."""
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


def of_settings(settings: Sequence[Setting], cluster: str) -> str:
    """Which key each setting is; `cluster` is the title of its first column."""
    lines = [Setting(cluster, "here"), Setting("---", "---", "---"), *settings]
    return "\n".join(f"| {line.names} | {line.key} | {line.note}".rstrip() + " |" for line in lines)


def of_rates(model: Model) -> str:
    """What each rate of a model counts."""
    lines = ["| `[rates]` | at this rate | |", "|---|---|---|"]
    for action in model.actions:
        names = [f"`{p.name}`{' off' if p.default_value is True else ''}" for p in needed_parameters(model, action)]
        wanted = [*(f"`{name}`" for name in action.bounds), *([" or ".join(names)] if names else [])]
        notes = [f"needs {' and '.join(wanted)}"] if wanted else []
        if action.lost_with != MESSAGE_LOSS:
            notes.append(f"loses with `{action.lost_with}`")
        lines.append(f"| `{action.name}` | {action.counts} | {', '.join(notes)} |".replace("|  |", "| |"))
    return "\n".join(lines)


def of_evidence(by_protocol: Mapping[str, Evidence]) -> str:
    """Which key each kind of data tells, by protocol."""
    columns = ["what is counted", "one is", *by_protocol]
    lines = [f"| {' | '.join(columns)} |", f"| {' | '.join('---' for _ in columns)} |"]
    for kind in KINDS.values():
        told = (f"`{keys[kind]}`" if kind in keys else "" for keys in by_protocol.values())
        lines.append(f"| {kind.name} | {kind.about} | {' | '.join(told)} |")
    return "\n".join(lines)


def of_metrics() -> str:
    """Which metrics are read, and what they tell."""
    lines = ["| metric | from | tells | how it is counted |", "| --- | --- | --- | --- |"]
    for metric in METRICS:
        names = f"`{metric.name}`" + (f", with `{metric.beside}`" if metric.beside else "")
        kinds = ", ".join(kind.name for kind in metric.kinds)
        lines.append(f"| {names} | {metric.of} | {kinds} | {metric.how} |")
    return "\n".join(lines)
