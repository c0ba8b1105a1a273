"""Promises of a design, whatever runs show: copies, their places, the losses that they survive, and write latency."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from quorisk.analysis.cluster.availability import Restarts, availability
from quorisk.analysis.decision.targets import Targets
from quorisk.analysis.experiment.config import Experiment
from quorisk.kernels.cluster.setting import Cluster
from quorisk.kernels.model import Model
from quorisk.kernels.protocols import registry
from quorisk.kernels.protocols.promises import Promise
from quorisk.say import text

if TYPE_CHECKING:
    import pandas as pd


def changed(model: Model, values: Mapping[str, Any]) -> dict[str, str]:
    """Returns the switches and versions that differ from their defaults, in words, by dotted key."""
    said = {}
    for parameter in model.parameters:
        key = f"{parameter.table}.{parameter.name}"
        if parameter.table == "variant" and values[key] != parameter.default_value:
            said[key] = text.settings(values, [key])
    return said


def with_promises(frame: "pd.DataFrame", experiment: Experiment) -> "pd.DataFrame":
    """Returns a result frame of an experiment with the promises and the targets of its designs.

    Columns: each field of `Promise` and `survives`, if the protocol promises anything; `changed`, the mechanisms that
    are off and the versions that are not today's, but for those `given`, which all points have; with [latency]
    `write_p50_ms`, `write_p99_ms` and `write_p999_ms`, each with the ends of its interval (`write_p50_low_ms`,
    `write_p50_high_ms`); with [cost] `stored_bytes`; `wants_` and each of `Targets`. `target` is that on losses a year
    or, with [cluster], on P(any loss in a year).
    """
    points = frame.drop_duplicates("point_id")
    found: dict[str, dict[str, Any]] = {}
    promise, clusters = registry.promises(experiment.model.name), _clusters(experiment)
    for values in points.to_dict("records"):
        promised = promise(values) if promise else None
        if promised and values["point_id"] in clusters:
            survives = all(_survives_a_rack(each, promised.copies) for each in clusters[values["point_id"]])
            promised = promised._replace(zones=int(survives), zone="rack")  # the cluster's, in place of the model's
        fields: dict[str, Any] = {"changed": changed(experiment.model, values)}
        if promised:
            fields |= promised._asdict() | {"survives": promised.survives, "stops_with_one": promised.stops_with_one}
            fields |= _latency(experiment, promised)
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
    wanted = {f"wants_{name}": value for name, value in targets._asdict().items()}
    target = targets.p_any_loss_per_year if experiment.clusters else targets.losses_per_year
    if math.isfinite(target) or experiment.clusters:
        columns["target"] = [target] * len(frame)
    return frame.assign(**columns, **wanted)


def _clusters(experiment: Experiment) -> dict[str, list[Cluster]]:
    """The clusters that the design of each point runs on, by point id; none without [cluster]."""
    found: dict[tuple[tuple[str, Any], ...], list[Cluster]] = {}
    for placed in experiment.clusters:
        found.setdefault(placed.design, []).append(placed.cluster)
    return {point.point_id: found[point.design] for point in experiment.points} if found else {}


@lru_cache(maxsize=4096)
def _survives_a_rack(cluster: Cluster, copies: int) -> bool:
    """Whether no rack ever has all of the `copies` with which an entry is acknowledged, so that all ledgers can be read
    and closed with any rack down."""
    down = availability(cluster, Restarts(), copies).rack_down
    return down is not None and down.closing == 0.0


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
