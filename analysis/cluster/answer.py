"""What is asked of a cluster: how likely a loss is in a year, how often, how much at once, because of what."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from quorisk.analysis.cluster.availability import Availability, Restarts, availability
from quorisk.analysis.cluster.certified import Draws, certified
from quorisk.analysis.cluster.figures import Figure, Losses, Size
from quorisk.analysis.cluster.sampled import sampled
from quorisk.kernels.cluster.setting import Cluster
from quorisk.kernels.cluster.years import Tally, simulate

PETABYTE = 1e15
WIDE = 0.05
"""Of a figure: if strata leave it more open than that, years are drawn as well, and the narrower interval counts."""
SELDOM = 1e-6
"""Incidents a year below which drawing years says nothing."""


class Effort(NamedTuple):
    """How much is computed, and how sure it is to be."""

    years: int = 1_000_000
    """To draw, where they are drawn."""
    first_year: int = 0
    seed: int = 0
    confidence: float = 0.95
    method: str = "auto"
    """`count`: by years alone; else by strata where they can tell."""
    threads: int = 1


class Answer(NamedTuple):
    """What a cluster loses, and when it cannot be used."""

    losses: Losses
    availability: Availability
    stored_bytes: float | None
    """Of entries, each counted once; None if not known."""
    entry_bytes: float | None
    years: int
    """That were drawn."""
    assumptions: tuple[str, ...]


def answer(
    cluster: Cluster,
    effort: Effort,
    restarts: Restarts = Restarts(),  # noqa: B008  # a tuple
    ack_quorum: int | None = None,
    entry_bytes: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> Answer:
    """Returns what there is to say of a cluster.

    Strata tell of rare losses, within bounds. Years are drawn where the chain of strata does not hold (nodes that age),
    where strata leave much open because losses are frequent, and where `effort.method` is "count". `progress` is called
    with the years that have ended since its last call.
    """
    stored = cluster.entries * entry_bytes if entry_bytes else None
    drawn: Tally | None = None
    if by_years_alone(cluster) or effort.method == "count":
        drawn = _draw(cluster, effort, progress)
        found = sampled(cluster, drawn, effort.confidence)
    else:
        found = certified(cluster, effort.confidence, Draws(effort.seed, effort.threads))
        if effort.method == "auto" and _is_open(found):
            drawn = _draw(cluster, effort, progress)
            found = _narrower(found, sampled(cluster, drawn, effort.confidence))
    return Answer(
        found,
        availability(cluster, restarts, ack_quorum),
        stored,
        entry_bytes,
        drawn.years if drawn else 0,
        assumptions(cluster),
    )


def by_years_alone(cluster: Cluster) -> bool:
    """Whether strata cannot tell: nodes age."""
    return cluster.is_ageing


def _is_open(found: Losses) -> bool:
    figures = found.p_any, found.incidents, found.entries
    return found.incidents.value > SELDOM and any(_width(figure) > WIDE * figure.value for figure in figures)


def _width(figure: Figure) -> float:
    return figure.high - figure.low


def _draw(cluster: Cluster, effort: Effort, progress: Callable[[int], None] | None) -> Tally:
    return simulate(cluster, effort.first_year, effort.years, effort.seed, effort.threads, progress)


def _narrower(found: Losses, drawn: Losses) -> Losses:
    """Strata's figures, but for those that they leave open and years do not."""

    def narrower(one: Figure, other: Figure) -> Figure:
        return other if _width(one) > WIDE * one.value and _width(other) < _width(one) else one

    return found._replace(
        p_any=narrower(found.p_any, drawn.p_any),
        p_any_in_ten_years=narrower(found.p_any_in_ten_years, drawn.p_any_in_ten_years),
        incidents=narrower(found.incidents, drawn.incidents),
        entries=narrower(found.entries, drawn.entries),
    )


def assumptions(cluster: Cluster) -> tuple[str, ...]:
    """Returns what is taken for granted, a sentence each."""
    lines = ["Copies on a node that is lost are made anew in its place, each ledger's at a time of its own"]
    if not cluster.repair_queue:
        lines.append("Repairs of one loss do not slow those of another")
    if not cluster.is_ageing:
        lines.append("Nodes are lost at a constant rate, whatever their age")
    lines.append("Nodes that do not come back from an outage do so independently of each other")
    if cluster.thin:
        lines.append("As many entries have few copies at any time, on new nodes each")
    return tuple(lines)


def as_json(found: Answer) -> dict[str, Any]:
    """Returns an object for `json.dumps`; see docs/cluster.md."""
    losses = found.losses
    between = {end: 1.0 / rate if rate > 0.0 else None for end, rate in _turned(losses.incidents).items()}
    return {
        "p_any_loss_per_year": _probability(losses.p_any),
        "p_any_loss_in_ten_years": _probability(losses.p_any_in_ten_years),
        "incidents_per_year": losses.incidents._asdict(),
        "years_between_incidents": between | {"method": losses.incidents.method},
        "expected_entries_per_year": losses.entries._asdict(),
        "incident_entries": _sizes(losses.in_entries),
        "incident_ledgers": _sizes(losses.in_ledgers),
        **_in_bytes(found),
        "causes": {cause: each.incidents._asdict() | {"share": each.share} for cause, each in losses.by_cause.items()},
        "at_least": [{"entries": size, "incidents_per_year": rate} for size, rate in losses.at_least.items()],
        "availability": found.availability._asdict(),
        "years": found.years,
        "assumptions": list(found.assumptions),
    }


def _probability(figure: Figure) -> dict[str, Any]:
    return {"p": figure.value, "low": figure.low, "high": figure.high, "method": figure.method}


def _turned(figure: Figure) -> dict[str, float]:
    """Ends of an interval for what is one by it."""
    return {"value": figure.value, "low": figure.high, "high": figure.low}


def _sizes(sizes: Mapping[str, Size]) -> dict[str, Any]:
    intervals = {name: [size.low, size.high] for name, size in sizes.items()}
    return {name: size.value for name, size in sizes.items()} | {"intervals": intervals}


def _in_bytes(found: Answer) -> dict[str, Any]:
    """What is lost in bytes, and of a petabyte; empty if the size of entries is not known."""
    if not found.entry_bytes or not found.stored_bytes:
        return {}
    losses, entry = found.losses, found.entry_bytes
    a_petabyte = entry * PETABYTE / found.stored_bytes

    def scaled(times: float) -> dict[str, Any]:
        figure = losses.entries
        ends = {"value": figure.value * times, "low": figure.low * times, "high": figure.high * times}
        return ends | {"method": figure.method}

    sizes = {name: Size(*(entry * end for end in size)) for name, size in losses.in_entries.items()}
    return {
        "stored_bytes": found.stored_bytes,
        "expected_bytes_per_year": scaled(entry),
        "expected_bytes_per_petabyte_year": scaled(a_petabyte),
        "incident_bytes": _sizes(sizes),
    }
