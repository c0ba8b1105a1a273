"""Drive statistics of any size: files are read where tasks are, and each drive's days joined from all of them."""

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
import pyarrow as pa
from pyspark import SparkContext
from pyspark.accumulators import Accumulator

from quorisk.analysis.rates import drives, fleet
from quorisk.analysis.rates.fleet import Fleet
from quorisk.analysis.rates.oddities import Oddities, merge_oddities
from quorisk.kernels.progress import Progress
from quorisk.sparkjobs.merge import as_bytes
from quorisk.sparkjobs.run import attended
from quorisk.sparkjobs.session import spark

TASK_BYTES, TASK_FILES = 96 << 20, 12
"""Least bytes and files of a task, if there are enough: a drive's days that one task reads travel together."""
_TOLD = -1
"""The key of oddities in the data, among the numbers of parts."""


def here(paths: Sequence[Path], last_day: int, progress: Progress | None = None) -> Fleet:
    """Returns the fleet of files of drive statistics, read by this process.

    Rows dated after `last_day` (days since 1970) are not believed.
    """
    oddities: Oddities = {}
    runs = list(drives.tables_of_runs(_counted(paths, progress or (lambda size: None)), last_day, oddities))
    found = fleet.fleet_of(pa.concat_tables([drives.RUNS.empty_table(), *runs]))
    return fleet.merge_fleets([found._replace(oddities=merge_oddities([oddities, found.oddities]))])


def on_spark(
    paths: Sequence[Path],
    last_day: int,
    master: str | None,
    settings: Mapping[str, str],
    progress: Progress | None = None,
) -> Fleet:
    """Returns the fleet as `here` does, read on Spark with `session.spark`'s `master` and `settings`.

    Raises ConfigError if Spark does not start, and RunError if it fails; then its log is left in a file.
    """
    with NamedTemporaryFile(prefix="quorisk-rates-", suffix=".log", delete=False) as file:
        log = Path(file.name)
    with spark(master, settings, log, name="quorisk rates") as context:
        found = fleet.merge_fleets(_parts(context, paths, last_day, progress))
    log.unlink()
    return found


def bytes_of_files(paths: Iterable[Path]) -> int:
    """Returns the bytes of files, as far as they can be seen."""
    return sum(map(_size, paths))


def _counted(paths: Iterable[Path], done: Progress) -> Iterator[Path]:
    """Yields the paths; `done` gets each one's size once the next is asked for."""
    for path in paths:
        yield path
        done(_size(path))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # which reading will tell
        return 0


def _parts(context: SparkContext, paths: Sequence[Path], last_day: int, progress: Progress | None) -> list[Fleet]:
    tasks = _tasks(paths, context.defaultParallelism)
    done: Accumulator[int] = context.accumulator(0)
    num_parts = max(context.defaultParallelism, len(tasks) // 4)
    read = partial(_runs, last_day=last_day, num_parts=num_parts, done=done)

    told = 0

    def compute() -> list[Fleet]:
        runs = context.parallelize(tasks, len(tasks)).flatMap(read)
        return runs.groupByKey(num_parts).map(_part).collect()

    def look() -> None:
        nonlocal told
        if progress and (size := done.value) > told:
            progress(size - told)
            told = size

    return attended(context, compute, look, math.inf, f"{len(paths):,} files of drive statistics") or []


def _tasks(paths: Sequence[Path], cores: int) -> list[list[Path]]:
    """Returns the files of each task, in the order of their names, so that those of days in a row come together."""
    suit = min(bytes_of_files(paths) // TASK_BYTES, len(paths) // TASK_FILES)
    number = min(max(suit, 4 * cores), len(paths))
    ends = [len(paths) * i // number for i in range(number + 1)]
    in_order = sorted(paths)
    return [in_order[start:end] for start, end in pairwise(ends)]


def _runs(
    paths: list[Path], last_day: int, num_parts: int, done: "Accumulator[int]"
) -> Iterator[tuple[int, bytes | Oddities]]:
    """Yields the runs of some files by the part that their drive belongs to, and the oddities in the files."""
    oddities: Oddities = {}
    for runs in drives.tables_of_runs(_counted(paths, done.add), last_day, oddities):
        serials = runs["serial"].to_pylist()
        part = np.fromiter((zlib.crc32(serial) for serial in serials), np.int64, len(serials)) % num_parts
        order = np.argsort(part, kind="stable")
        ends = np.searchsorted(part[order], np.arange(num_parts + 1))
        by_part = runs.take(pa.array(order))
        for number in np.flatnonzero(np.diff(ends)):
            yield int(number), as_bytes(by_part.slice(ends[number], ends[number + 1] - ends[number]))
    yield _TOLD, oddities


def _part(of: tuple[int, Iterable[bytes | Oddities]]) -> Fleet:
    """Returns the fleet of one part's drives, from all tasks, or their oddities as a fleet without drives."""
    number, found = of
    if number == _TOLD:
        return Fleet((), 0, merge_oddities(oddities for oddities in found if isinstance(oddities, dict)))
    return fleet.fleet_of(pa.concat_tables(pa.ipc.open_stream(each).read_all() for each in found))
