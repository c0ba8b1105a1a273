"""The benchmarks that were made on this machine before: with them, a regression is seen as a ratio."""

import json
import platform
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from quorisk.analysis import files
from quorisk.analysis.bench import Speed
from quorisk.kernels.errors import QuoriskError
from quorisk.kernels.keeping import cache_folder

_CPUS = Path("/proc/cpuinfo")


def path() -> Path:
    """Returns the file with the last speeds of machines that share this cache."""
    return cache_folder() / "bench.json"


def beside_last(rows: Sequence[Speed], file: Path) -> list[Speed]:
    """Returns speeds with their ratios to the last ones that a file has of this machine, and puts them in their place.

    Ratios are None where there are none. A file that is damaged has none, and one that cannot be written stays as it
    is: a benchmark is not lost for that.
    """
    known = _read(file)
    before = known.get(machine(), {})
    told = [
        row._replace(to_last=row.steps_per_s / before[_name(row)] if _name(row) in before else None) for row in rows
    ]
    known[machine()] = before | {_name(row): row.steps_per_s for row in rows}
    with suppress(QuoriskError, OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        files.write(file, json.dumps(known, indent=1).encode(), "out")
    return told


def machine() -> str:
    """Returns what tells machines apart that share a home: name and processor."""
    with suppress(OSError, UnicodeError):
        if found := re.search(r"^model name\s*: (.*)$", _CPUS.read_text("utf-8"), re.MULTILINE):
            return f"{platform.node()}, {found[1]}"
    return f"{platform.node()}, {platform.processor()}"


def _name(row: Speed) -> str:
    return f"{row.model}, {row.engine}, {row.threads}, {row.device or ''}"


def _read(file: Path) -> dict[str, dict[str, float]]:
    try:
        found: Any = json.loads(file.read_bytes()) if file.is_file() else {}
        return {
            str(where): {str(name): float(speed) for name, speed in speeds.items() if float(speed) > 0.0}
            for where, speeds in found.items()
        }
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
