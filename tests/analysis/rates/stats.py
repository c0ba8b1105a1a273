"""Drive statistics for tests: rows in files, as Backblaze has them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

HEADER = "date,serial_number,model,capacity_bytes,failure,smart_1_raw"
TB = 10**12


def row(day: str, serial: str, failure: int = 0, model: str = "M1", capacity: int = TB) -> str:
    return f"{day},{serial},{model},{capacity},{failure},7"


def write(path: Path, rows: Iterable[str], header: str = HEADER) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in (header, *rows)))
    return path


def days(folder: Path, drives: Sequence[str], num_days: int, model: str = "M1") -> list[Path]:
    """A file for each day of January 2025, on each of which all drives report."""
    names = [f"2025-01-{day + 1:02}" for day in range(num_days)]
    return [write(folder / f"{name}.csv", [row(name, drive, model=model) for drive in drives]) for name in names]
