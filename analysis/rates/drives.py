"""Drive statistics as Backblaze publishes them, a row for each drive and day, read into runs of days in service.

Columns are found by the header: date, serial_number, model, capacity_bytes and failure; no other column is decoded.
Whatever file a drive's days lie in, the runs of all files join (`fleet`). A drive is a serial number of a model. Rows
that cannot be used are counted and reported, and so are rows that look wrong but are used.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from quorisk.analysis.experiment.characters import one_line
from quorisk.analysis.files import reason
from quorisk.analysis.rates.observed import EPOCH, as_date
from quorisk.analysis.rates.oddities import Oddities, Oddity, note

NEEDED = ("date", "serial_number", "model", "capacity_bytes", "failure")
RUNS = pa.schema(
    {
        "serial": pa.binary(),
        "model": pa.string(),
        "capacity": pa.int64(),  # bytes, the most that a row says; 0 if none says any
        "least": pa.int64(),  # the least that a row says
        "first": pa.int32(),  # days since 1970, both in service
        "last": pa.int32(),
        "failed": pa.bool_(),  # on the last day
    }
)
"""Schema of runs: days in a row on which a drive was reported; a run ends with a failure."""
UNREADABLE = Oddity("rows that cannot be read", "left out")
FUTURE = Oddity("rows dated before 2000 or in the future, as of a clock that is wrong", "left out")
REPEATED = Oddity("rows that repeat a drive's day", "counted once")
ELSEWHERE = Oddity("rows with another day than their file's name", "counted on their own day")
NO_CAPACITY = Oddity("rows without a capacity", "that of the drive's other rows is taken")
CUT = Oddity("files that end in the middle of a line", "their other rows count")
NOT_STATISTICS = Oddity("files that are no drive statistics", "left out")
_BLOCK_BYTES = 1 << 24
_MOST_ROWS = 4_000_000
"""Rows from which runs are made at a time: bounds the memory, whatever the files' size."""
_MOST_BYTES = 10**18
"""Largest capacity of a drive that is believed."""
_FIRST_DAY = (date(2000, 1, 1) - EPOCH).days
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_UNKNOWN = -1


def today() -> int:
    """Returns the day that it is, as days since 1970."""
    return (datetime.now(UTC).date() - EPOCH).days


def tables_of_runs(paths: Iterable[Path], last_day: int, oddities: Oddities) -> Iterator[pa.Table]:
    """Yields tables of RUNS with all drives and days of some files, and adds oddities in them to `oddities`.

    Rows dated after `last_day` (days since 1970) are not believed. A file that cannot be used is reported and left out.
    """
    tables: list[pa.Table] = []
    for path in paths:
        try:
            for rows in _rows(path, last_day, oddities):
                tables.append(rows)
                if sum(table.num_rows for table in tables) >= _MOST_ROWS:
                    yield _runs(pa.concat_tables(tables), oddities)
                    tables = []
        except (pa.ArrowException, OSError, ValueError) as error:
            why = reason(error) if isinstance(error, OSError) and error.errno else " ".join(str(error).split())
            note(oddities, NOT_STATISTICS, 1, f"{path}: {why}")
    if tables:
        yield _runs(pa.concat_tables(tables), oddities)


def _rows(path: Path, last_day: int, oddities: Oddities) -> Iterator[pa.Table]:
    """A file's usable rows, batch by batch: serial, model, capacity, day, failed. Raises if the file is no such."""
    named = _DAY.fullmatch(path.name.partition(".")[0])
    of_name = _day(named[0]) if named else _UNKNOWN
    for batch in (_parquet if path.suffix == ".parquet" else _csv)(path, oddities):
        day = _parsed(batch["date"], _day)
        failed = _parsed(batch["failure"], _failed)
        capacity = _parsed(batch["capacity_bytes"], _capacity)
        model, serial = batch["model"], pc.cast(batch["serial_number"], pa.binary())
        there = pc.fill_null(pc.and_(pc.greater(pc.binary_length(serial), 0), pc.is_valid(model)), False)
        readable = (day != _UNKNOWN) & (failed != _UNKNOWN) & there.to_numpy(zero_copy_only=False)
        believed = readable & (day >= _FIRST_DAY) & (day <= last_day)
        note(oddities, UNREADABLE, int((~readable).sum()), str(path))
        note(oddities, FUTURE, int((readable & ~believed).sum()), str(path))
        note(oddities, NO_CAPACITY, int((believed & (capacity <= 0)).sum()), str(path))
        if named:
            note(oddities, ELSEWHERE, int((believed & (day != of_name)).sum()), str(path))
        numbers = {"capacity": pa.array(capacity), "day": pa.array(day), "failed": pa.array(failed == 1)}
        rows = pa.table({"serial": serial, "model": _words(model), **numbers})
        yield rows if believed.all() else rows.filter(pa.array(believed))


def _csv(path: Path, oddities: Oddities) -> Iterator[pa.RecordBatch]:
    unreadable: list[str] = []

    def leave_out(row: pacsv.InvalidRow) -> str:
        unreadable.append("" if unreadable else f"{path}: {row.text[:60]}")
        return "skip"

    with path.open("rb") as file:
        header = file.readline(1 << 20).decode("utf-8-sig", "replace").lower()
        names = [name.strip().strip('"') for name in header.split(",")]
        _check_columns(names)
        if path.suffix == ".csv" and file.seek(0, 2):
            file.seek(-1, 2)
            note(oddities, CUT, int(file.read(1) not in b"\r\n"), str(path))
    types = dict.fromkeys(NEEDED, pa.dictionary(pa.int32(), pa.binary())) | {"serial_number": pa.binary()}
    with (
        _no_tracebacks(),
        pacsv.open_csv(
            path,
            pacsv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES, column_names=names, skip_rows=1),
            pacsv.ParseOptions(invalid_row_handler=leave_out),
            pacsv.ConvertOptions(include_columns=NEEDED, column_types=types, check_utf8=False),
        ) as reader,
    ):
        yield from reader
    if unreadable:
        note(oddities, UNREADABLE, len(unreadable), unreadable[0])


@contextmanager
def _no_tracebacks() -> Iterator[None]:
    """Has Python print nothing of rows that are no UTF-8 text: Arrow fails to hand them on, and refuses the file."""
    before = sys.unraisablehook
    sys.unraisablehook = lambda failed: None if failed.exc_type is UnicodeDecodeError else before(failed)
    try:
        yield
    finally:
        sys.unraisablehook = before


def _parquet(path: Path, oddities: Oddities) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path) as file:
        names = {name.lower(): name for name in file.schema_arrow.names}
        _check_columns(list(names))
        for batch in file.iter_batches(columns=[names[name] for name in NEEDED]):
            yield batch.rename_columns({names[name]: name for name in NEEDED})


def _check_columns(names: list[str]) -> None:
    if missing := [name for name in NEEDED if name not in names]:
        raise ValueError(f"has no column {', '.join(missing)}")


def _parsed(column: pa.Array, parse: Callable[[Any], int]) -> np.ndarray:
    """The integers that a column's values stand for: each different value is parsed once."""
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    values = [parse(_text(each)) for each in encoded.dictionary.to_pylist()]
    indices = pc.fill_null(encoded.indices, len(values)).to_numpy(zero_copy_only=False)
    return np.array([*values, _UNKNOWN], np.int64)[indices]


def _day(value: Any) -> int:
    """Days since 1970, or _UNKNOWN."""
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value.strip()[:10])
        except ValueError:
            return _UNKNOWN
    if isinstance(value, datetime):
        value = value.date()
    return (value - EPOCH).days if isinstance(value, date) else _UNKNOWN


def _failed(value: Any) -> int:
    said = str(value).strip().lower()
    return {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}.get(said, _UNKNOWN)


def _capacity(value: Any) -> int:
    """Bytes; 0 if they are missing or impossible: Backblaze has some of -1."""
    try:
        capacity = int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return capacity if 0 < capacity <= _MOST_BYTES else 0


def _words(column: pa.Array) -> pa.Array:
    """A dictionary column of texts, whatever bytes they were."""
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    words = [one_line(str(_text(each))) for each in encoded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(words, pa.string()))


def _text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _runs(rows: pa.Table, oddities: Oddities) -> pa.Table:
    """Rows as RUNS, sorted by drive and day."""
    if not rows.num_rows:
        return RUNS.empty_table()
    serial, serials = _coded(rows["serial"])
    model, models = _coded(rows["model"])
    drive_day = ((serial * len(models) + model) << 20) + rows["day"].to_numpy()
    order = np.argsort(drive_day, kind="stable")
    drive_day = drive_day[order]
    is_new = np.append(True, drive_day[1:] != drive_day[:-1])
    note(oddities, REPEATED, int((~is_new).sum()), _first_repeated(is_new, drive_day, serials, len(models)))
    at = np.flatnonzero(is_new)
    drive_day, capacity = drive_day[at], rows["capacity"].to_numpy()[order]
    failed = np.logical_or.reduceat(rows["failed"].to_numpy()[order], at)
    most = np.maximum.reduceat(capacity, at)
    least = np.minimum.reduceat(np.where(capacity > 0, capacity, np.iinfo(np.int64).max), at)
    # a run goes on with the next day of the same drive, unless it has failed; the day is in the lowest bits
    starts = np.flatnonzero(np.append(True, (drive_day[1:] != drive_day[:-1] + 1) | failed[:-1]))
    ends = np.append(starts[1:], len(drive_day)) - 1
    drive, day = drive_day >> 20, (drive_day & ((1 << 20) - 1)).astype(np.int32)
    return pa.table(
        [
            serials.take(pa.array(drive[starts] // len(models))),
            models.take(pa.array(drive[starts] % len(models))),
            np.maximum.reduceat(most, starts),
            np.minimum.reduceat(least, starts),
            day[starts],
            day[ends],
            failed[ends],
        ],
        schema=RUNS,
    )


def _coded(column: pa.ChunkedArray) -> tuple[np.ndarray, pa.Array]:
    """A column as numbers, and the values that they stand for."""
    encoded = column.combine_chunks()
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary


def _first_repeated(is_new: np.ndarray, drive_day: np.ndarray, serials: pa.Array, num_models: int) -> str:
    if is_new.all():
        return ""
    drive, day = divmod(int(drive_day[np.argmin(is_new)]), 1 << 20)
    serial = serials[drive // num_models].as_py().decode("utf-8", "replace")
    return f"{serial} on {as_date(day)}"
