"""Tables of an experiment file that runs do not depend on: each is read by a module of its own, if it is there."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

READERS: Mapping[str, str] = {
    "latency": "quorisk.analysis.decision.latency_table",
}
"""By name of the table, the module whose `read(table, folder)` checks it: `folder` is where the file is, and what it
returns becomes `Experiment.tables[name]`. It raises ConfigError."""


def read(name: str, table: Mapping[str, Any], folder: Path) -> Any:
    """What a table says, checked. Raises ConfigError."""
    return import_module(READERS[name]).read(table, folder)
