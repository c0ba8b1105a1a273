"""The table [cost] of an experiment file: how many bytes a design's copies take.

[cost]
entry_bytes = 1024     # of an entry, without copies
entries = 1e9          # that are kept at a time; 1 if not given, and bytes are those of one entry
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from quorisk.analysis.experiment.keys import check_keys, real
from quorisk.kernels.errors import ConfigError

_SIZE = real("a number above 0, and 1e30 at most", lambda v: 0 < v <= 1e30)


class CostSettings(NamedTuple):
    """Settings of a table [cost]."""

    entry_bytes: float
    entries: float = 1.0

    def stored_bytes(self, copies: int) -> float:
        """Returns the bytes that this many copies of all entries take."""
        return copies * self.entry_bytes * self.entries


def read_table(table: Mapping[str, Any], folder: Path) -> CostSettings:
    """Returns the settings of a table [cost]. Raises ConfigError."""
    check_keys("cost", table, CostSettings._fields)
    if "entry_bytes" not in table:
        raise ConfigError("cost.entry_bytes: missing; it is the size of an entry in bytes")
    return CostSettings(**{key: _SIZE.read(f"cost.{key}", value) for key, value in table.items()})
