"""Runs of days, from all files, as a fleet: how many drives of each model were in service each day, and failed.

Drives are independent of each other: parts of a fleet are made apart, each of all runs of its drives, and added.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from quorisk.analysis.rates.drives import REPEATED
from quorisk.analysis.rates.observed import Series, as_date
from quorisk.analysis.rates.oddities import Oddities, Oddity, merge_oddities, note

GAPS = Oddity("days between a drive's first and last on which it was not reported", "not counted as drive-days")
CAME_BACK = Oddity("drives that were reported again after they had failed", "failures and later days both count")
AGAIN = Oddity("failures of a drive that had failed before", "each counts")
CAPACITIES = Oddity("drives that report several capacities", "the largest counts")
MODELS = Oddity("serial numbers of more than one model", "a drive for each model")
HALF = Oddity("days on which fewer than half as many drives reported as on the days around", "half a file?")
_HALF = 0.5
_AROUND_DAYS = 3


class Drives(NamedTuple):
    """All drives of a model and capacity."""

    model: str
    capacity: int
    """Bytes; 0 if no row has them."""
    series: Series
    """Failures, and drive-days."""


class Fleet(NamedTuple):
    """All drives of some files."""

    groups: tuple[Drives, ...]
    """Drives by model and capacity, sorted."""
    num_drives: int
    oddities: Oddities


def fleet_of(runs: pa.Table) -> Fleet:
    """Returns the fleet, or the part of one, with the drives of these runs: they have to have all runs of a drive."""
    oddities: Oddities = {}
    if not runs.num_rows:
        return Fleet((), 0, oddities)
    runs = runs.sort_by([(name, "ascending") for name in ("serial", "model", "first", "last")])
    drive, drives = _drives(runs)
    first, last = (runs[name].to_numpy().astype(np.int64) for name in ("first", "last"))
    failed = runs["failed"].to_numpy()
    before = _last_day_before(drive, last)
    note(oddities, REPEATED, int(np.clip(np.minimum(last, before) - first + 1, 0, None).sum()))
    missing = np.where(before >= 0, np.clip(first - before - 1, 0, None), 0)
    note(oddities, GAPS, int(missing.sum()), _name(runs, int(missing.argmax())))
    failures = np.unique(np.stack([drive[failed], last[failed]]), axis=1)
    _note_failed(oddities, failures, drive, last, runs)
    capacity = _capacities(oddities, drive, runs)
    group, names = _groups(drives, capacity, oddities)
    low, high = int(first.min()), int(last.max())
    service = np.zeros((len(names), high - low + 2), np.int64)
    new = last > before
    from_day = np.maximum(first, before + 1)[new] - low
    np.add.at(service, (group[drive[new]], from_day), 1)
    np.add.at(service, (group[drive[new]], last[new] + 1 - low), -1)
    events = np.zeros((len(names), high - low + 1))
    np.add.at(events, (group[failures[0]], failures[1] - low), 1)
    exposure = np.cumsum(service, axis=1)[:, :-1].astype(float)
    groups = (Drives(*name, Series(low, events[i], exposure[i])) for i, name in enumerate(names))
    return Fleet(tuple(groups), len(capacity), oddities)


def merge_fleets(parts: Iterable[Fleet]) -> Fleet:
    """Returns the fleet of parts without a common drive, and reports days that seem half empty."""
    parts = list(parts)
    groups: dict[tuple[str, int], Series] = {}
    for part in parts:
        for model, capacity, series in part.groups:
            there = groups.get((model, capacity))
            groups[model, capacity] = there.plus(series) if there else series
    oddities = merge_oddities(part.oddities for part in parts)
    whole = tuple(Drives(*name, series) for name, series in sorted(groups.items()))
    if whole:
        note_half_days(oddities, total(whole))
    return Fleet(whole, sum(part.num_drives for part in parts), oddities)


def total(groups: Sequence[Drives]) -> Series:
    """Returns all drives' failures and drive-days."""
    return reduce(Series.plus, (group.series for group in groups))


def note_half_days(oddities: Oddities, series: Series) -> None:
    """Reports days with far fewer drives than the days around them, but none because a fleet grows or shrinks."""
    drives, days = series.exposure, len(series.exposure)
    for day in range(days):
        around = [drives[max(0, day - _AROUND_DAYS) : day], drives[day + 1 : day + 1 + _AROUND_DAYS]]
        least = min((float(np.median(side)) for side in around if len(side)), default=0.0)
        if drives[day] < _HALF * least:
            note(oddities, HALF, 1, f"{as_date(series.first_day + day)}: {drives[day]:,.0f} of {least:,.0f}")


def _drives(runs: pa.Table) -> tuple[np.ndarray, pa.Table]:
    """A number for each run's drive, counted up, and the drives: serial and model. Runs are sorted by them."""
    serial, model = (runs[name].combine_chunks().dictionary_encode() for name in ("serial", "model"))
    codes = serial.indices.to_numpy().astype(np.int64) * (len(model.dictionary) + 1) + model.indices.to_numpy()
    starts = np.append(True, codes[1:] != codes[:-1])
    return np.cumsum(starts) - 1, runs.select(["serial", "model"]).take(pa.array(np.flatnonzero(starts)))


def _last_day_before(drive: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Last day of the earlier runs of a run's drive, by run; -1 for a drive's first run."""
    step = int(last.max()) + 2  # so far apart that no drive's days reach the next drive's
    reached = np.maximum.accumulate(drive * step + last)
    before = np.append(-1, reached[:-1] - drive[1:] * step)
    return np.maximum(before, -1)


def _note_failed(oddities: Oddities, failures: np.ndarray, drive: np.ndarray, last: np.ndarray, runs: pa.Table) -> None:
    failed, first_at, times = np.unique(failures[0], return_index=True, return_counts=True)
    final = np.zeros(int(drive[-1]) + 1, np.int64)
    np.maximum.at(final, drive, last)
    came_back = failed[final[failed] > failures[1][first_at]]
    if len(came_back):
        note(oddities, CAME_BACK, len(came_back), _name(runs, int(np.searchsorted(drive, came_back[0]))))
    note(oddities, AGAIN, int((times - 1).sum()))


def _capacities(oddities: Oddities, drive: np.ndarray, runs: pa.Table) -> np.ndarray:
    """Bytes of each drive."""
    starts = np.flatnonzero(np.append(True, drive[1:] != drive[:-1]))
    most = np.maximum.reduceat(runs["capacity"].to_numpy(), starts)
    least = np.minimum.reduceat(runs["least"].to_numpy(), starts)
    several = (most > 0) & (least < most)
    note(oddities, CAPACITIES, int(several.sum()), _name(runs, int(starts[np.argmax(several)])))
    return most


def _groups(drives: pa.Table, capacity: np.ndarray, oddities: Oddities) -> tuple[np.ndarray, list[tuple[str, int]]]:
    """Index of each drive's model and capacity, and the list of these pairs."""
    serials, models = drives["serial"].combine_chunks(), drives["model"].to_pylist()
    same = np.flatnonzero(serials[1:].to_numpy(zero_copy_only=False) == serials[:-1].to_numpy(zero_copy_only=False))
    note(oddities, MODELS, len(same), serials[int(same[0])].as_py().decode("utf-8", "replace") if len(same) else "")
    keys = list(zip(models, capacity.tolist(), strict=True))
    names = sorted(set(keys))
    number = {name: i for i, name in enumerate(names)}
    return np.array([number[key] for key in keys]), names


def _name(runs: pa.Table, row: int) -> str:
    return str(runs["serial"][row].as_py().decode("utf-8", "replace"))
