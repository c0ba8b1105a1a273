"""Rows of what years of clusters add up to: as points have, they merge by addition where their years lie end to end.

A row sums up years first_year to first_year + num_years - 1 of one cluster under one seed, in integers; of the largest
size in each bin merging keeps the larger. So a row says the same whichever tasks computed it.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from quorisk.kernels.cluster.setting import VERSION, Cluster, Event, Thin
from quorisk.kernels.cluster.years import YearTally, no_years
from quorisk.kernels.errors import ResultError

_BIN = pa.struct({"what": pa.int64(), "bin": pa.int64(), "weight": pa.int64(), "largest": pa.float64()})
SCHEMA = pa.schema(
    {
        "cluster_id": pa.string(),
        "version": pa.int64(),
        "parameters": pa.string(),
        "seed": pa.int64(),
        "first_year": pa.int64(),
        "num_years": pa.int64(),
        "sums": pa.list_(pa.decimal128(38, 0)),
        "sizes": pa.list_(_BIN),
    }
)
"""`cluster_id` is the SHA-256, in hex, of version and parameters; `sums` are in the order and the unit of
`kernels.cluster.years`; empty bins of `sizes` are left out."""


def canonical_cluster(cluster: Cluster) -> str:
    """Returns all that a cluster's years depend on as JSON: keys sorted, no white space, floats as they are. Disks are
    left out where nodes have one that is not lost alone: rows from before there were any are of the same cluster."""
    fields = cluster._asdict()
    if (cluster.disks_per_node, cluster.disk_loss) == (1, 0.0):
        del fields["disks_per_node"], fields["disk_loss"]
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)


def cluster_id(parameters: str, version: int = VERSION) -> str:
    """Returns the SHA-256, in hex, of {"parameters": ..., "version": ...}."""
    return hashlib.sha256(f'{{"parameters":{parameters},"version":{version}}}'.encode()).hexdigest()


def row_of_years(cluster: Cluster, seed: int, first_year: int, tally: YearTally) -> dict[str, Any]:
    """Returns the row of a tally of the years from first_year on."""
    parameters = canonical_cluster(cluster)
    sizes = [
        {"what": what, "bin": place, "weight": int(tally.weight[what, place]), "largest": tally.largest[what, place]}
        for what, place in zip(*np.nonzero(tally.largest), strict=True)
    ]
    return {
        "cluster_id": cluster_id(parameters),
        "version": VERSION,
        "parameters": parameters,
        "seed": seed,
        "first_year": first_year,
        "num_years": tally.years,
        "sums": [Decimal(each) for each in tally.sums],
        "sizes": sizes,
    }


def tally_of_row(one: Mapping[str, Any]) -> YearTally:
    """Returns the tally that a row holds. Raises ResultError if it contradicts itself."""
    if cluster_id(one["parameters"], one["version"]) != one["cluster_id"]:
        raise ResultError("cluster_id is not that of the parameters")
    tally = no_years(cluster_of_row(one))
    if one["num_years"] < 1 or len(one["sums"]) != len(tally.sums) or min(one["sums"]) < 0:
        raise ResultError(f"years and sums of cluster {one['cluster_id'][:12]} cannot be right")
    for each in one["sizes"]:
        tally.weight[each["what"], each["bin"]] = each["weight"]
        tally.largest[each["what"], each["bin"]] = each["largest"]
    return tally._replace(years=one["num_years"], sums=tuple(map(int, one["sums"])))


def merge_years(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns a row for each cluster and seed. Raises ResultError if years of one overlap, or are missing between."""

    def identity(one: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(one[name] for name in ("cluster_id", "version", "parameters", "seed"))

    merged = []
    for _, same in groupby(sorted(rows, key=lambda one: (*identity(one), one["first_year"])), identity):
        parts = list(same)
        for before, after in pairwise(parts):
            if before["first_year"] + before["num_years"] != after["first_year"]:
                end = before["first_year"] + before["num_years"]
                raise ResultError(f"years of a cluster do not lie end to end: until {end}, from {after['first_year']}")
        total = no_years(cluster_of_row(parts[0]))
        for part in parts:
            total = total.plus(tally_of_row(part))
        first = parts[0]
        merged.append(row_of_years(cluster_of_row(first), first["seed"], first["first_year"], total))
    return merged


def cluster_of_row(one: Mapping[str, Any]) -> Cluster:
    """Returns the cluster that a row is of."""
    fields = json.loads(one["parameters"])
    thin, events = tuple(Thin(*each) for each in fields["thin"]), tuple(Event(*each) for each in fields["events"])
    return Cluster(**(fields | {"thin": thin, "events": events, "sets": tuple(map(tuple, fields["sets"]))}))
