"""Made-up result tables for figures and reports."""

import itertools
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from quorisk.analysis.decision import frames
from quorisk.analysis.experiment.identity import canonical_parameters, id_of
from quorisk.analysis.results import schema
from quorisk.kernels.engines.points import Point
from quorisk.kernels.engines.tally import (
    LOSS_TIME_LOW,
    MESSAGES,
    STEP_HISTOGRAM,
    STEPS,
    TIME_HISTOGRAM,
    first_met,
    named_tally,
    num_columns,
)
from quorisk.kernels.protocols.compaction import MODEL
from tests.support import values_of

RUNS = 1000
QUORUMS = {"model__keys": [1, 2], "model__values": [1, 2, 3], "faults__message_loss": [0.1, 0.2]}
"""A grid of six designs under two kinds of faults."""
HOSTILE = "</script><img src=x onerror=alert(1)>$\\frac{1}{2}$\"'\x00\n--><![CDATA["
"""A word that means something to HTML, to XML and to TeX, and that no picture can show."""


def table(losses: Sequence[int], unfinished: int = 0, horizon: int = 0, **varied: Sequence[object]) -> pa.Table:
    """A table of the grid of `varied` (double underscores are dots), with so many losses at its points.

    Point number i takes 8 + i steps and 2 i messages a run; half of its losses are in the time bin of 2**30 ticks, the
    others in the next one.
    """
    grid = [dict(zip(varied, values, strict=True)) for values in itertools.product(*varied.values())]
    rows = []
    for number, (values, num_lost) in enumerate(zip(grid, losses, strict=True)):
        point = Point(values_of(MODEL), {}, 0.0, 1000, float("inf"))
        parameters = json.loads(canonical_parameters(MODEL, point))
        parameters |= {key.replace("__", "."): value for key, value in values.items()}
        identity = schema.Identity(f"id{number}", "compaction", 1, json.dumps(parameters), 1)
        sums = [RUNS - num_lost - unfinished - horizon, 0, num_lost, horizon, unfinished]
        sums += [0] * (num_columns(MODEL) - len(sums))
        sums[STEPS], sums[MESSAGES], sums[LOSS_TIME_LOW] = (8 + number) * RUNS, 2 * number * RUNS, num_lost << 30
        sums[STEP_HISTOGRAM + (8 + number).bit_length()] = RUNS
        sums[TIME_HISTOGRAM + 31], sums[TIME_HISTOGRAM + 32] = num_lost // 2, num_lost - num_lost // 2
        sums[first_met(MODEL)] = num_lost
        rows.append(schema.row(identity, MODEL, 0, named_tally(MODEL, sums), "numba", 1.0))
    return pa.Table.from_pylist(rows, schema=schema.SCHEMA)


def write(made_up: pa.Table, path: Path) -> None:
    """Writes such a table under the ids that its parameters have, without which it is refused."""
    rows = made_up.to_pylist()
    for row in rows:
        with suppress(RecursionError, ValueError):  # of parameters that no sweep writes
            row["parameters"] = json.dumps(json.loads(row["parameters"]), sort_keys=True, separators=(",", ":"))
        row["point_id"] = id_of(row["protocol"], row["model_version"], row["parameters"])
    schema.write_reproducible(pa.Table.from_pylist(rows, schema=schema.SCHEMA), path)


def frame(losses: Sequence[int], **given: Any) -> pd.DataFrame:
    """The frame of `table`."""
    return sweep(losses, **given).frame


class Frames(NamedTuple):
    """What figures are drawn from."""

    frame: pd.DataFrame
    histograms: pd.DataFrame


def sweep(losses: Sequence[int], target: Any = math.inf, **given: Any) -> Frames:
    """The frames of `table`, held to a target."""
    found = frames.tidy(table(losses, **given), None)
    return Frames(found.frame.assign(target=target), found.histograms)
