"""The folder that a sweep leaves behind: what may be in it before, and what is in it after."""

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from analysis import results, tidy
from analysis.errors import ConfigError

RESULTS, EXPERIMENT = tidy.RESULTS, tidy.EXPERIMENT
REPORT, FIGURES, LOG = "report.html", "figures", "spark.log"


def earlier(out: Path, identities: Sequence[results.Identity], num_runs: int, resume: bool) -> pa.Table:
    """The rows that the folder holds of this sweep; changes nothing. Raises ConfigError if it cannot hold the rest."""
    _check_writable(out)
    path = out / RESULTS
    if not path.exists():
        return results.SCHEMA.empty_table()
    try:
        table = results.read(path)
    except results.ResultError as error:
        raise ConfigError(str(error)) from None
    ours = set(identities)
    for row in table.to_pylist():
        if results.identity(row) not in ours or row["first_run"] != 0 or row["num_runs"] > num_runs:
            raise ConfigError(f"--out {out}: holds results of another experiment, or more runs; choose another folder")
    if not resume:
        raise ConfigError(
            f"--out {out}: holds results of this experiment; --resume keeps them and runs what is missing"
        )
    return table


def _check_writable(out: Path) -> None:
    try:
        there = next(path for path in (out, *out.absolute().parents) if path.exists() or path.is_symlink())
    except OSError as error:
        raise ConfigError(f"--out {out}: cannot be made: {error.strerror}") from None
    if not there.is_dir():
        raise ConfigError(f"--out {out}: {there} is not a directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"--out {out}: {there} cannot be written")


def create(out: Path) -> None:
    """Makes the folder. Raises ConfigError."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {out}: cannot be made: {error.strerror}") from None


def write(path: Path, content: bytes) -> None:
    """Writes a file, all of it or nothing."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(content)
    part.replace(path)
