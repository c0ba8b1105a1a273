"""Clusters for which an independent program found what they lose: tests/data/clusters.json."""

import json
from typing import Any

from quorisk.kernels.cluster.setting import Cluster, Event, Thin
from tests.support import ROOT

HOUR = 1.0 / 8766.0
KNOWN: dict[str, dict[str, Any]] = json.loads((ROOT / "tests/data/clusters.json").read_text())["settings"]


def outage(per_year: float, p_lost: float) -> Event:
    """The whole cluster loses power."""
    return Event("outages", "cluster", per_year, p_lost, takes_unflushed=True)


def rack_outage(per_year: float, p_lost: float) -> Event:
    """Each rack loses power so many times a year."""
    return Event("rack_outages", "rack", per_year, p_lost, takes_unflushed=True)


def cluster_of(name: str) -> Cluster:
    """The cluster of one of KNOWN, whose program knows outages of the cluster and of racks."""
    fields = dict(KNOWN[name]["cluster"])
    fields["events"] = (
        outage(fields.pop("outages"), fields.pop("p_lost_in_outage")),
        rack_outage(fields.pop("rack_outages"), fields.pop("p_lost_in_rack_outage")),
    )
    times = {key: fields.pop(f"{key}_h") * HOUR for key in ("detection_delay", "repair_time")}
    return Cluster(**(fields | times | {"thin": tuple(Thin(*each) for each in fields["thin"])}))
