"""What a design promises, whatever runs say: copies, where they are, what they survive, how long a write takes."""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from quorisk.analysis.decision.targets import Targets
from quorisk.analysis.experiment.config import Experiment
from quorisk.kernels.model import Model

if TYPE_CHECKING:
    import pandas as pd


class Promise(NamedTuple):
    """What a configuration promises."""

    copies: int
    """The fewest copies of an entry when it is acknowledged."""
    stored: int
    """The copies of an entry in the end, if nothing breaks: what storage is paid for."""
    on_disk: bool
    """Whether these copies survive a power cut when the entry is acknowledged; else they are in the page cache."""
    survives: str
    """What may be lost at once, whatever of it, as the entry is acknowledged: "1 bookie", "1 bookie or 1 zone"."""
    nodes: int
    zones: int
    """The same, as numbers."""
    asked: int
    """The copies whose answers a write may wait for: all of them, or its leader's alone."""
    waits_for: int
    """How many of these answers a write waits for."""


def promise(protocol: str, values: Mapping[str, Any]) -> Promise | None:
    """The promise of a configuration, from its parameters by dotted key; None of protocols that replicate nothing."""
    make = _BY_PROTOCOL.get(protocol)
    return make(values) if make else None


def changed(model: Model, values: Mapping[str, Any]) -> dict[str, str]:
    """The mechanisms that are off, and the versions that are not today's: for people, by dotted key."""
    said = {}
    for parameter in model.parameters:
        key = f"{parameter.table}.{parameter.name}"
        if parameter.table == "variant" and values[key] != parameter.default_value:
            said[key] = f"{parameter.name} {'off' if values[key] is False else values[key]}".replace("_", " ")
    return said


def with_promises(frame: "pd.DataFrame", experiment: Experiment) -> "pd.DataFrame":
    """A result frame of an experiment with what its designs promise, and what they are held to.

    Columns: each field of `Promise`, if the protocol has them; `changed`, the mechanisms that are off and the versions
    that are not today's, but for those `given`, which all points have; with [latency] `write_p50_ms`, `write_p99_ms`
    and `write_p999_ms`, each with the ends of its interval (`write_p50_low_ms`, `write_p50_high_ms`); with [cost]
    `stored_bytes`; `wants_` and each of `Targets` but the losses, which are in `target`.
    """
    points = frame.drop_duplicates("point_id")
    found: dict[str, dict[str, Any]] = {}
    for values in points.to_dict("records"):
        promised = promise(experiment.model.name, values)
        fields: dict[str, Any] = {"changed": changed(experiment.model, values)}
        if promised:
            fields |= promised._asdict() | _latency(experiment, promised)
            if cost := experiment.tables.get("cost"):
                fields["stored_bytes"] = cost.stored_bytes(promised.stored)
        found[values["point_id"]] = fields
    every = [set(fields["changed"].items()) for fields in found.values()]
    given = set.intersection(*every)
    for fields in found.values():
        fields["given"] = ", ".join(said for _, said in sorted(given))
        fields["changed"] = ", ".join(said for key, said in fields["changed"].items() if (key, said) not in given)
    names = next(iter(found.values()))
    columns: dict[str, list[Any]] = {name: [found[point_id][name] for point_id in frame["point_id"]] for name in names}
    targets: Targets = experiment.tables.get("targets", Targets())
    if math.isfinite(targets.losses_per_year):
        columns["target"] = [targets.losses_per_year] * len(frame)
    wanted = {f"wants_{name}": value for name, value in targets._asdict().items() if name != "losses_per_year"}
    return frame.assign(**columns, **wanted)


def _latency(experiment: Experiment, promised: Promise) -> dict[str, float]:
    settings = experiment.tables.get("latency")
    if settings is None:
        return {}
    from quorisk.analysis.decision.latency import write_latency  # here, since scipy.stats takes its time to load

    found: dict[str, float] = {}
    quantiles = write_latency(settings.replica, promised.asked, promised.waits_for, settings.cut_ms)
    for name, each in zip(("p50", "p99", "p999"), quantiles, strict=True):
        ends = {f"write_{name}_low_ms": each.low_ms, f"write_{name}_high_ms": each.high_ms}
        found |= {f"write_{name}_ms": each.ms, **ends}
    return found


def _bookkeeper(values: Mapping[str, Any]) -> Promise:
    write_quorum, ack_quorum = values["model.write_quorum"], values["model.ack_quorum"]
    # all bookies of an ensemble but one may be in one rack, as it spans two at least
    spread = values.get("model.racks", 0) > 1 and bool(values.get("variant.rack_aware_placement"))
    zones = int(spread and ack_quorum == write_quorum > 1)
    survives = _several(ack_quorum - 1, "bookie") + (" or 1 zone" if zones else "")
    on_disk = values.get("faults.max_amnesias", 0) == 0
    return Promise(ack_quorum, write_quorum, on_disk, survives, ack_quorum - 1, zones, write_quorum, ack_quorum)


def _kafka(values: Mapping[str, Any]) -> Promise:
    # the in-sync set may shrink to the leader; brokers flush nothing before they acknowledge it
    replicas = values["model.replicas"]
    return Promise(1, replicas, False, _several(0, "broker"), 0, 0, replicas, replicas)


def _kraft(values: Mapping[str, Any]) -> Promise:
    # brokers flush nothing before they acknowledge it; with acks=1 the leader alone does, whatever min_isr is
    replicas = values["model.replication_factor"]
    least, asked = (1, 1) if values.get("variant.acks") == "1" else (values["model.min_isr"], replicas)
    return Promise(least, replicas, False, _several(least - 1, "broker"), least - 1, 0, asked, asked)


_BY_PROTOCOL: Mapping[str, Callable[[Mapping[str, Any]], Promise]] = {
    "bookkeeper": _bookkeeper,
    "kafka": _kafka,
    "kraft": _kraft,
}


def _several(num: int, what: str) -> str:
    return f"{num or 'no'} {what}{'s' if num > 1 else ''}"
