"""The table [latency] of an experiment file: how long a replica's round trip takes.

    [latency]
    replica = "LNKD-SSD"                                        # built in, or
    replica = { csv = "journal.csv", column = "latency_ms" }    # a line a measured round trip, or
    request = { median_ms = 2.0, p99_ms = 12.0 }                # lognormal
    answer = { pareto_share = 0.98, pareto_min_ms = 1.5, pareto_shape = 3.8, exponential_per_ms = 0.0217 }

`cut_ms` is Kafka's replica.lag.time.max.ms, after which a replica that has not answered leaves the in-sync set.
"""

import csv
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from quorisk.analysis.decision.latency import BUILT_IN, Delay, Measured, RoundTrip, lognormal, pareto_exponential
from quorisk.analysis.experiment.keys import as_toml, check_keys, real
from quorisk.analysis.experiment.tables import CALLED
from quorisk.kernels.errors import ConfigError
from quorisk.say import numbers

MOST_BYTES = 1 << 26
"""Most bytes of a file of measurements."""
_DELAYS: Mapping[tuple[str, ...], Callable[..., Delay]] = {
    ("median_ms", "p99_ms"): lognormal,
    ("pareto_share", "pareto_min_ms", "pareto_shape", "exponential_per_ms"): pareto_exponential,
}
_RANGES = {
    "median_ms": (1e-6, 1e10),
    "p99_ms": (1e-6, 1e10),
    "cut_ms": (1e-6, 1e10),
    "pareto_share": (1e-6, 1.0),
    "pareto_min_ms": (1e-6, 1e10),
    "pareto_shape": (0.1, 1e6),
    "exponential_per_ms": (1e-10, 1e6),
}
"""Range of each number: a nanosecond to four months. Quantiles far outside can no longer be computed."""
_MOST_SPREAD = 1e6
"""Largest ratio of p99 to the median."""
_KEYS = ("replica", "request", "answer", "cut_ms")


class LatencySettings(NamedTuple):
    """The table [latency] of an experiment file."""

    replica: RoundTrip | Measured
    cut_ms: float
    """The longest a write waits for one replica, in milliseconds; infinite if there is no such limit."""
    source: str
    """Source of the delays, in words."""


def read_table(table: Mapping[str, Any], folder: Path) -> LatencySettings:
    """Returns the settings of a table [latency] of a file in `folder`. Raises ConfigError."""
    for theirs, ours in CALLED["latency"].items():
        if {theirs, ours} <= table.keys():
            raise ConfigError(f"latency.{theirs} = {as_toml(table[theirs])}: the same as {ours}, which is there, too")
    table = {CALLED["latency"].get(key, key): value for key, value in table.items()}
    check_keys("latency", table, _KEYS)
    cut_ms = _number("latency.cut_ms", table["cut_ms"]) if "cut_ms" in table else math.inf
    if ("replica" in table) == ("request" in table or "answer" in table):
        raise ConfigError("latency: give either replica, or request and answer")
    if "replica" not in table:
        legs = {}
        for key in ("request", "answer"):
            if key not in table:
                raise ConfigError(f"latency.{key}: missing; request and answer go together")
            legs[key] = _delay(f"latency.{key}", table[key])
        return LatencySettings(RoundTrip(**legs), cut_ms, "the file's own distributions")
    given = table["replica"]
    if isinstance(given, str):
        if given not in BUILT_IN:
            raise ConfigError(f"latency.replica = {as_toml(given)}: one of {', '.join(BUILT_IN)}, or a table with csv")
        return LatencySettings(BUILT_IN[given], cut_ms, f"{given} (Bailis et al., PBS, 2012)")
    if not isinstance(given, Mapping) or not {"csv"} <= given.keys() <= {"csv", "column"}:
        raise ConfigError("latency.replica: a name, or { csv = FILE, column = NAME }")
    measured = measurements(folder / str(given["csv"]), given.get("column"))
    return LatencySettings(measured, cut_ms, f"{len(measured.sorted_ms):,} measurements in {given['csv']}")


def table_files(table: Mapping[str, Any]) -> list[str]:
    """Returns the files that a table [latency] names."""
    replica = table.get("replica")
    return [str(replica["csv"])] if isinstance(replica, Mapping) else []


def measurements(path: Path, column: str | None = None) -> Measured:
    """Returns the round trips in a CSV file with headings, in its only column if none is named. Raises ConfigError,
    which quotes nothing of the file: an experiment from elsewhere may name any."""
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(f"latency.replica: {path}: not a regular file")
        with path.open(encoding="utf-8-sig", newline="") as file:
            if os.fstat(file.fileno()).st_size > MOST_BYTES:
                raise ConfigError(f"latency.replica: {path}: more than {MOST_BYTES >> 20} MiB")
            lines = list(csv.DictReader(file))
    except ConfigError:
        raise
    except (OSError, ValueError, csv.Error) as error:  # ValueError: a name with a zero byte, a file that is not UTF-8
        name = str(path) if str(path).isprintable() else as_toml(path.name)
        raise ConfigError(f"latency.replica: {name} cannot be read: {getattr(error, 'strerror', error)}") from None
    names = [name for name in (lines[0] if lines else {}) if name]
    if column is None and len(names) == 1:
        column = names[0]
    if column not in names:
        there = (
            f"has {numbers.counted(len(names), 'column')}, named in its first line" if names else "has no measurements"
        )
        raise ConfigError(f"latency.replica.column = {as_toml(column)}: not a column of {path}, which {there}")
    return Measured(np.sort([_measured(line[column], f"{path}, line {num}") for num, line in enumerate(lines, 2)]))


def _measured(given: str | None, where: str) -> float:
    try:
        value = float(given or "")
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise ConfigError(f"{where}: not a number of milliseconds above 0")
    return value


def _delay(name: str, given: object) -> Delay:
    keys = set(given) if isinstance(given, Mapping) else set()
    for wanted, make in _DELAYS.items():
        if keys == set(wanted) and isinstance(given, Mapping):
            values = [_number(f"{name}.{key}", given[key]) for key in wanted]
            if wanted[0] == "median_ms" and not values[0] < values[1] <= _MOST_SPREAD * values[0]:
                allowed = f"more than median_ms ({values[0]:g}), and {_MOST_SPREAD:g} times that at most"
                raise ConfigError(f"{name}.p99_ms = {values[1]:g}: {allowed}")
            if wanted[0] == "pareto_share" and values[0] >= 1.0:
                raise ConfigError(f"{name}.pareto_share = {values[0]:g}: less than 1")
            return make(*values)
    forms = " or ".join("{ " + ", ".join(keys) + " }" for keys in _DELAYS)
    raise ConfigError(f"{name}: a table with only {forms}")


def _number(name: str, value: object) -> float:
    low, high = _RANGES[name.rpartition(".")[2]]
    return float(real(f"a number from {low:g} to {high:g}", lambda v: low <= v <= high).read(name, value))
