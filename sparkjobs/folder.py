"""The folder that a sweep leaves behind: its contents, and the checks of what was in it before."""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.analysis.experiment.keys import as_toml
from quorisk.analysis.files import reason
from quorisk.analysis.results import provenance, schema, sealed, sweeps
from quorisk.kernels.errors import ConfigError, ResultError, RunError
from quorisk.say.numbers import counted
from quorisk.say.quantities import say_rate
from quorisk.sparkjobs import files
from quorisk.sparkjobs.files import sweep_up, writing
from quorisk.sparkjobs.remote import remote_refusal

PLAN, TASKS, RESULTS, EXPERIMENT = "plan.parquet", sweeps.TASKS, sweeps.RESULTS, sweeps.EXPERIMENT
BREAK_EVEN = "break_even.json"
YEARS = "years"
"""Years of clusters (`sparkjobs.clusters`), which share no folder with a sweep."""
ANSWERS = "clusters.json"
REPORT, FIGURES, LOG, SPARK_LOG = "report.html", "figures", "quorisk.log", "spark.log"
COMMIT_S, COMMIT_PART = 1.0, 1e-3
"""Seconds that rows wait for others to share a file with, or part of the time since the start, if that is longer."""
_SAME_RESULTS = ("run.engine", "run.target")
"""Keys that results do not depend on."""


@contextmanager
def taken(out: Path) -> Iterator[None]:
    """Makes the folder, and keeps others from writing to it. Raises ConfigError, and RunError where the body fails for
    the system's reasons.
    """
    create(out)
    descriptor = _locked(out)
    try:
        for part in (out, out / TASKS, out / YEARS, out / FIGURES):
            sweep_up(part)
        yield
    except OSError as error:
        raise RunError(f"`out` {out}: {reason(error)}") from None
    finally:
        os.close(descriptor)


@contextmanager
def gone_if_interrupted(out: Path) -> Iterator[None]:
    """Removes the folder if Ctrl-C stops the body, unless it was there before."""
    was_there = out.exists()
    try:
        yield
    except KeyboardInterrupt:
        if not was_there:
            shutil.rmtree(out, ignore_errors=True)
        raise


def _locked(out: Path) -> int:
    """The folder, open and locked. Raises ConfigError."""
    with ExitStack() as stack:
        try:
            descriptor = os.open(out, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f" {out}: another quorisk process is writing there", "out") from None
        except OSError as error:  # some network file systems have no locks
            raise ConfigError(f" {out}: cannot be locked: {error.strerror}; choose another folder", "out") from None
        stack.pop_all()
    return descriptor


def create(out: Path) -> None:
    """Makes the folder. Raises ConfigError."""
    _check_local(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f" {out}: cannot be made: {error.strerror}", "out") from None


def _check_local(out: Path) -> None:
    if why := remote_refusal(str(out)):
        raise ConfigError(f" {why}", "out")


def check_can_hold(out: Path, experiment: Experiment, resume: bool) -> None:
    """Raises ConfigError unless the folder can hold the results of this experiment; changes nothing."""
    check_writable(out)
    _check_no_years(out)
    for path in experiment.side_files():
        if not path.is_absolute() and (".." in path.parts or len(path.parts) > 2):
            raise ConfigError(
                f"{experiment.path}: {path}: a sweep keeps a copy of it; put it beside the experiment file, or in a "
                "folder there"
            )
    if not has_results(out):
        return
    if not (out / EXPERIMENT).exists():
        raise ConfigError(f" {out}: holds results of an unknown experiment; choose another folder", "out")
    if _is_merged(out):
        raise ConfigError(f" {out}: holds merged results; choose another folder", "out")
    before, runs = provenance.experiment_of_folder(out), experiment.run.runs
    if resume and runs > before.run.runs:  # those that are there are the first of them
        before = before._replace(run=before.run._replace(runs=runs))
    different = differences(before, experiment)
    if different:
        fewer = " (runs can be added, but not removed)" if different.startswith("run.runs ") else ""
        raise ConfigError(
            f" {out}: holds results of another experiment: {different}{fewer}; choose another folder", "out"
        )
    if not resume:
        raise ConfigError(
            f" {out}: holds results of this experiment; `resume` keeps them and runs what is missing", "out"
        )


def _is_merged(out: Path) -> bool:
    return provenance.is_merged(provenance.experiment_text(out))


def check_free(out: Path) -> None:
    """Raises ConfigError unless the folder can hold results, and holds none; changes nothing."""
    check_writable(out)
    _check_no_years(out)
    if has_results(out):
        raise ConfigError(f" {out}: holds results; choose another folder, or delete it if a merge did not end", "out")


def _check_no_years(out: Path) -> None:
    if (out / YEARS).exists():
        raise ConfigError(f" {out}: holds years of clusters; choose another folder", "out")


def has_results(out: Path) -> bool:
    """Returns whether a sweep has left results in the folder."""
    return (out / RESULTS).exists() or bool(sweeps.numbered(out / TASKS))


def check_writable(out: Path) -> None:
    """Raises ConfigError unless the folder, or that in which it would be made, can be written; changes nothing."""
    _check_local(out)
    try:
        there = next(path for path in (out, *out.absolute().parents) if path.exists() or path.is_symlink())
    except OSError as error:
        raise ConfigError(f" {out}: cannot be made: {error.strerror}", "out") from None
    if not there.is_dir():
        raise ConfigError(f" {out}: {there} is not a directory", "out")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f" {out}: {there} cannot be written", "out")
    mine = [out / name for name in (EXPERIMENT, REPORT) if (out / name).exists()]
    if mine and not any((out / name).exists() for name in (LOG, RESULTS, TASKS, YEARS, ANSWERS)):
        raise ConfigError(f" {out}: no sweep has written {mine[0]}; choose another folder", "out")


def as_run(experiment: Experiment) -> str:
    """Returns the experiment's file, with the overrides of its values as comments above it.

    A file from another sweep's folder begins with such comments itself, which an empty line keeps apart.
    """
    overrides = "".join(f"{provenance.OVERRIDE}{' '.join(override.split())}\n" for override in experiment.overrides)
    apart = "\n" if experiment.source.startswith(provenance.OVERRIDE) else ""
    return f"{overrides}{apart}{experiment.source}"


def keep_experiment(out: Path, experiment: Experiment, text: str) -> None:
    """Writes the experiment's file, and copies of the files that it names. Raises RunError."""
    files.write_in_folder(out / EXPERIMENT, text.encode())
    for path, source in experiment.side_files().items():
        if not path.is_absolute():
            files.write_in_folder(out / path, source.read_bytes())


def merged(sources: Sequence[Path]) -> str:
    """Returns the experiment's file of a folder with results from others: the first one's."""
    names = (" ".join(str(source).split()) for source in sources)
    return "".join(
        [provenance.experiment_text(sources[0]).rstrip("\n"), "\n", *(f"{provenance.MERGED}{name}\n" for name in names)]
    )


def differences(before: Experiment, now: Experiment, only: Sequence[str] = (), where: str = "there") -> str:
    """Returns the keys in which two experiments differ, with both values; empty if their results are the same.

    `only`: the only keys that are looked at, if any. `where` names the place of `before` in the result.
    """
    old, new = _described(before), _described(now)
    keys = [key for key in old | new if (key in only if only else key not in _SAME_RESULTS)]
    unequal = [key for key in keys if old.get(key) != new.get(key)]
    unequal = ["protocol"] if "protocol" in unequal else unequal  # of which most keys follow
    found = [f"{key} is {_show(old, key)} {where} and {_show(new, key)} here" for key in unequal]
    points = [[point.point_id for point in experiment.points] for experiment in (before, now)]
    if not only and not found and points[0] != points[1]:
        found.append(f"grid.where picks {counted(len(points[0]), 'point')} {where} and {len(points[1])} others here")
    return "; ".join(found)


def _described(experiment: Experiment) -> dict[str, Any]:
    """Returns the value of each key of an experiment: a list of values if there are several."""
    values: dict[str, dict[Any, None]] = {}
    for point in experiment.points:
        for key, value in dotted_values(experiment.model, point.point).items():
            values.setdefault(key, {})[value] = None
    points = {key: next(iter(them)) if len(them) == 1 else list(them) for key, them in values.items()}
    run = {f"run.{name}": value for name, value in experiment.run._asdict().items()}
    return {"protocol": experiment.protocol} | points | run


def _show(described: Mapping[str, Any], key: str) -> str:
    given = described.get(key)
    if "run.time_unit" in described and key.startswith("rates."):
        return ", ".join(map(say_rate, given if isinstance(given, list) else [given]))
    return as_toml(given) if key in described else "none"


def append(place: Path, rows: Sequence[Mapping[str, Any]], schema: pa.Schema = sweeps.TASK_SCHEMA) -> None:
    """Adds a file with these rows to the folder TASKS or YEARS, all of it or nothing. Raises RunError."""
    number = 1 + max((int(path.stem) for path in sweeps.numbered(place)), default=0)
    write_table(place / f"{number:06}.parquet", pa.Table.from_pylist(list(rows), schema))


class Waiting:
    """Rows that wait a moment for others to share a file with."""

    def __init__(self, place: Path, schema: pa.Schema = sweeps.TASK_SCHEMA) -> None:
        """Files are written as by `append`."""
        self._place, self._schema = place, schema
        self._rows: list[Mapping[str, Any]] = []
        self._started = self._committed = time.monotonic()

    def add(self, row: Mapping[str, Any]) -> None:
        """Keeps a row, on disk before long. Raises RunError."""
        self._rows.append(row)
        now = time.monotonic()
        if now - self._committed > max(COMMIT_S, COMMIT_PART * (now - self._started)):
            self.commit()

    def commit(self) -> None:
        """Writes the waiting rows to disk. Raises RunError."""
        if self._rows:
            append(self._place, self._rows, self._schema)
            self._rows = []
        self._committed = time.monotonic()


def tasks(out: Path) -> pa.Table:
    """Returns the rows of all jobs that have ended: `sweeps.TASK_SCHEMA`. Raises RunError."""
    with _told_what_to_do(out):
        return sweeps.tasks(out)


def result_rows(out: Path) -> pa.Table:
    """Returns the rows of RESULTS, and the seconds that they took: `schema.SCHEMA`. Raises RunError."""
    with _told_what_to_do(out):
        return sweeps.result_rows(out)


@contextmanager
def _told_what_to_do(out: Path) -> Iterator[None]:
    """Raises RunError, which says what to do about it, if a file in a folder is damaged."""
    try:
        yield
    except ResultError as error:
        instead = "delete this file, and `quorisk run --resume` repeats the runs that were in it"
        with suppress(ConfigError):
            instead = "merge again into another folder" if _is_merged(out) else instead
        raise RunError(f"{error}; {instead}") from None


def write_table(path: Path, table: pa.Table) -> None:
    """Writes a table as Parquet, all of it or nothing. Raises RunError."""
    with writing(path) as file:
        sealed.write_sealed(table, file)


def write_results(out: Path, table: pa.Table) -> None:
    """Writes a table of `schema.SCHEMA` to RESULTS, all of it or nothing. Raises RunError."""
    with writing(out / RESULTS) as file:
        schema.write_reproducible(table, file)
