"""Input files sorted by kind: CSV files by their columns, others by how their names end."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from quorisk.analysis.files import reason
from quorisk.analysis.rates import drives, incidents
from quorisk.analysis.rates.oddities import Oddities, Oddity, note
from quorisk.kernels.errors import ConfigError

ENDINGS = (".csv", ".parquet", ".json")
UNKNOWN = Oddity("files of no known kind", "left out")
_KINDS = (
    "drive statistics (CSV or Parquet with date, serial_number, model, capacity_bytes, failure), lists of incidents "
    "(CSV with kind, node, start, end, data_lost) or saved range queries of Prometheus (JSON)"
)


class Files(NamedTuple):
    """Files by kind, each sorted."""

    drives: tuple[Path, ...]
    incidents: tuple[Path, ...]
    metrics: tuple[Path, ...]


def sorted_out(data: Sequence[Path], oddities: Oddities) -> Files:
    """Returns the files of `data`, and those in its folders, by kind; adds files of no kind to `oddities`.

    Raises ConfigError if a file or folder is not there, or if none of the files is of a known kind.
    """
    found: dict[str, list[Path]] = {name: [] for name in Files._fields}
    for path in _listed(data):
        kind = _kind(path, oddities)
        if kind:
            found[kind].append(path)
    if not any(found.values()):
        why = f" ({oddities[UNKNOWN].where})" if UNKNOWN in oddities else ""
        raise ConfigError(f"{', '.join(map(str, data))}: no {_KINDS}{why}")
    return Files(*(tuple(found[name]) for name in Files._fields))


def _listed(data: Iterable[Path]) -> Iterator[Path]:
    for path in data:
        if path.is_dir():
            yield from sorted(each for each in path.rglob("*") if each.is_file() and not each.name.startswith("."))
        elif path.is_file():
            yield path
        else:
            raise ConfigError(f"{path}: {'neither a file nor a folder' if path.exists() else 'no such file or folder'}")


def _kind(path: Path, oddities: Oddities) -> str:
    """The kind of a file, one of the fields of Files; empty if it is of none."""
    if path.suffix == ".json":
        return "metrics"
    if path.suffix == ".parquet":
        return "drives"
    if path.suffix != ".csv":
        note(oddities, UNKNOWN, 1, f"{path}: does not end in {', '.join(ENDINGS)}")
        return ""
    try:
        with path.open("rb") as file:
            header = file.readline(1 << 20).decode("utf-8-sig", "replace")
    except OSError as error:
        note(oddities, UNKNOWN, 1, f"{path}: {reason(error)}")
        return ""
    if "\0" in header:
        note(oddities, UNKNOWN, 1, f"{path}: has zero bytes, as UTF-16 does; save it as UTF-8")
        return ""
    columns = {name.strip().strip('"').lower() for name in header.split(",")}
    missing = {"drives": set(drives.NEEDED) - columns, "incidents": set(incidents.COLUMNS) - columns}
    nearest = min(missing, key=lambda kind: len(missing[kind]))
    if not missing[nearest]:
        return nearest
    needed = drives.NEEDED if nearest == "drives" else incidents.COLUMNS
    note(
        oddities, UNKNOWN, 1, f"{path}: has no column {', '.join(each for each in needed if each in missing[nearest])}"
    )
    return ""
