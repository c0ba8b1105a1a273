"""Prometheus' answers to range queries, saved as JSON: series of samples, whatever the files hold.

A metric is known by its `__name__` or, where a query's function took that away, by the name of its file. Files of one
metric may follow each other in time, since Prometheus answers at most 11,000 samples at a time. Samples and series that
cannot be used are left out and reported.
"""

import json
import math
import re
import reprlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from quorisk.analysis.rates.observed import DAY_S
from quorisk.analysis.rates.oddities import Oddities, Oddity, note

NOT_A_QUERY = Oddity("files without the result of a range query", "left out")
NOT_A_SERIES = Oddity("malformed series", "left out")
OTHER = Oddity("series of other metrics", "ignored")
NOT_A_NUMBER = Oddity("samples whose values are not numbers from 0 to 1e15", "left out")
WRONG_TIME = Oddity("samples dated before 2000 or in the future: a wrong clock", "left out")
JUMPS = Oddity("samples that go back in time: a clock was set", "put in order")
REPEATED = Oddity("repeated samples", "counted once")
ALONE = Oddity("series of a single sample", "ignored")
FIRST_S = datetime(2000, 1, 1, tzinfo=UTC).timestamp()
"""Unix time of the oldest sample that is accepted."""
_MOST = 1e15
"""Largest value that is accepted: float64 adds up a few such values exactly."""
_SPELLINGS: tuple[tuple[str, str], ...] = (
    (r"^(pulsar_managedledger_client_)?(bookkeeper_client_)?(?=per_channel_bookie_client)", ""),
    (r"^replication_(?=replication_worker|auditor)", ""),  # auto-recovery within a bookie, not alone
    (r"^(kafka_.+?)(persec)?(_value|_count|_total)*$", r"\1"),
)
"""Patterns and replacements that bring all exporters' names of a metric to one. Names are lower case."""
_BEAN = re.compile(r"(kafka_.+)_(value|count)(_total)?")
"""A metric as the JMX exporter names it without rules: the label `name` tells which one it is."""


class Samples(NamedTuple):
    """The series of a metric for one set of labels."""

    name: str
    labels: Mapping[str, str]
    times: np.ndarray
    """float64: Unix times, ascending."""
    values: np.ndarray
    """float64, each from 0 to 1e15."""

    def __str__(self) -> str:
        return _called(self.name, self.labels)


Found = Mapping[str, Sequence[Samples]]
"""All series, by their metric."""


def read_series(paths: Iterable[Path], is_known: Callable[[str], bool], oddities: Oddities) -> Found:
    """Returns the series of known metrics, each in order of time, and adds oddities in the files to `oddities`."""
    parts = (part for path in paths for part in _parts(path, is_known, oddities))
    found: dict[str, list[Samples]] = defaultdict(list)
    for samples in _joined(parts, oddities):
        if len(samples.times) > 1:
            found[samples.name].append(samples)
        else:
            note(oddities, ALONE, len(samples.times), str(samples))
    return found


def one_name(name: str, labels: Mapping[str, str]) -> str:
    """Returns the canonical name of a metric, independent of exporter and rules."""
    name = name.lower()
    if (bean := _BEAN.fullmatch(name)) and "name" in labels:
        name = f"{bean[1]}_{labels['name'].lower()}"
    for pattern, replacement in _SPELLINGS:
        name = re.sub(pattern, replacement, name)
    return name


def _parts(path: Path, is_known: Callable[[str], bool], oddities: Oddities) -> Iterator[Samples]:
    latest = time.time() + DAY_S
    for result in _results(path, oddities):
        match result:
            case {"metric": dict(labels), "values": list(values)} if all(
                isinstance(each, str) for each in labels.values()
            ):
                name = one_name(labels.get("__name__", path.name.partition(".")[0]), labels)
            case _:
                note(oddities, NOT_A_SERIES, 1, f"{path}: {reprlib.repr(result)}")
                continue
        labels = {label: value for label, value in labels.items() if label != "__name__"}
        if not is_known(name):
            note(oddities, OTHER, 1, name)
            continue
        pairs = np.array([_pair(sample) for sample in values]).reshape(-1, 2)
        times, numbers = pairs[:, 0], pairs[:, 1]
        is_number = (numbers >= 0.0) & (numbers <= _MOST) & ~np.isnan(times)
        is_dated = (times >= FIRST_S) & (times <= latest)
        for odd, wrong in ((NOT_A_NUMBER, ~is_number), (WRONG_TIME, is_number & ~is_dated)):
            if wrong.any():
                first = reprlib.repr(values[int(wrong.argmax())])
                note(oddities, odd, int(wrong.sum()), f"{path}: {_called(name, labels)}: {first}")
        good = is_number & is_dated
        yield Samples(name, labels, times[good], numbers[good])


def _results(path: Path, oddities: Oddities) -> list[Any]:
    """The series of a file, as they stand there."""
    try:
        answer = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        note(oddities, NOT_A_QUERY, 1, f"{path}: {error}")
        return []
    match answer:
        case {"data": {"resultType": "matrix", "result": [_, *_] as results}}:
            return results
        case {"data": {"resultType": "matrix", "result": []}}:
            why = "has no series"
        case {"data": {"resultType": kind}}:
            why = f"resultType {reprlib.repr(kind)}, not matrix: save /api/v1/query_range"
        case {"error": why}:
            why = reprlib.repr(why)
        case _:
            why = "has no data.result"
    note(oddities, NOT_A_QUERY, 1, f"{path}: {why}")
    return []


def _pair(sample: object) -> tuple[float, float]:
    """The time and the value of a sample; NaN if it has none."""
    match sample:
        case [int() | float() as at, int() | float() | str() as value]:
            try:
                return float(at), float(value)
            except (ValueError, OverflowError):
                pass
    return math.nan, math.nan


def _called(name: str, labels: Mapping[str, str]) -> str:
    said = ", ".join(f"{label}={value}" for label, value in sorted(labels.items()))
    return f"{name}{{{said}}}"


def _joined(parts: Iterable[Samples], oddities: Oddities) -> Iterator[Samples]:
    """One series for each metric and set of labels, in order of time, each time once."""
    whole: dict[tuple[str, frozenset[tuple[str, str]]], list[Samples]] = defaultdict(list)
    for part in parts:
        note(oddities, JUMPS, int((np.diff(part.times) < 0).sum()), str(part))
        whole[part.name, frozenset(part.labels.items())].append(part)
    for same in whole.values():
        times = np.concatenate([part.times for part in same])
        order = np.argsort(times, kind="stable")
        is_new = np.append(True, np.diff(times[order]) > 0)[: len(order)]
        note(oddities, REPEATED, int((~is_new).sum()), str(same[0]))
        values = np.concatenate([part.values for part in same])
        yield same[0]._replace(times=times[order][is_new], values=values[order][is_new])
