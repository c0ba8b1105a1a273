"""Clusters for which an independent program found what they lose: tests/data/clusters.json."""

import json
from typing import Any

from quorisk.kernels.cluster.setting import Cluster, Thin
from tests.support import ROOT

HOUR = 1.0 / 8766.0
KNOWN: dict[str, dict[str, Any]] = json.loads((ROOT / "tests/data/clusters.json").read_text())["settings"]


def cluster_of(name: str) -> Cluster:
    """The cluster of one of KNOWN."""
    fields = dict(KNOWN[name]["cluster"])
    times = {key: fields.pop(f"{key}_h") * HOUR for key in ("detection_delay", "repair_time")}
    return Cluster(**(fields | times | {"thin": tuple(Thin(*each) for each in fields["thin"])}))
