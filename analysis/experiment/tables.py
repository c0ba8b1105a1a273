"""Tables of an experiment file that runs do not depend on: each is read by a module of its own, if it is there."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

READERS: Mapping[str, str] = {
    "cost": "quorisk.analysis.decision.cost_table",
    "incident": "quorisk.analysis.incidents",
    "latency": "quorisk.analysis.decision.latency_table",
    "targets": "quorisk.analysis.decision.targets",
}
"""Modules by the name of the table that they read. `read_table(table, folder)` checks the table of a file in `folder`;
its result becomes `Experiment.tables[name]`. `check_table(experiment)`, if there is one, sees whether the file as a
whole agrees with the table. Both raise ConfigError."""
CALLED: Mapping[str, Mapping[str, str]] = {"latency": {"replica.lag.time.max.ms": "cut_ms"}}
"""Clusters' own names of keys, by the name of the table: files and overrides may use them, too."""


def read_table(name: str, table: Mapping[str, Any], folder: Path) -> Any:
    """Returns the contents of a table, checked. Raises ConfigError."""
    return import_module(READERS[name]).read_table(table, folder)


def named_files(document: Mapping[str, Any]) -> list[str]:
    """Returns the files that a parsed file's tables name, as they name them: `table_files(table)` of their modules."""
    modules = ((import_module(READERS[name]), document[name]) for name in READERS if name in document)
    return [file for module, own in modules if hasattr(module, "table_files") for file in module.table_files(own)]


def checks(names: Iterable[str]) -> list[Callable[[Any], None]]:
    """Returns `check_table(experiment)` of the modules of these tables that have it; it raises ConfigError if the table
    does not agree with the rest of its file."""
    modules = (import_module(READERS[name]) for name in names)
    return [module.check_table for module in modules if hasattr(module, "check_table")]
