"""Arguments of the functions of `quorisk`: experiments and changed values, in the forms that Python has of them."""

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.config import Experiment
from quorisk.kernels.cores import num_cores
from quorisk.kernels.errors import ConfigError

PATH: Any = str | os.PathLike
"""Types of a path."""
Source = Experiment | str | Path | Mapping[str, Any]
"""An experiment: one that `load_experiment` returned, a file, or a dictionary of the tables that a file would have."""
Overrides = Mapping[str, Any] | Sequence[str]
"""Values by dotted key, `{"run.runs": 1000}`, or as `--set` takes them, `["run.runs=1000"]`; one may be alone."""


def load_experiment(source: Source, overrides: Overrides = ()) -> Experiment:
    """Reads an experiment, applies `overrides`, and checks it.

    An override counts as if it stood in the file: scenarios with a value of their own keep it, and a warning names
    them. `scenarios.NAME.rates.KEY` overrides a scenario's own.

    Args:
        source: the experiment; see `Source`.
        overrides: changed values by dotted key; see `Overrides`.

    Returns:
        The experiment, with the points of its grid.

    Raises:
        ConfigError: in one line that names the file, the key, the value and what is allowed.

    Example: `load_experiment("configs/defect1.toml", {"run.runs": 100_000})`, or without a file
    `load_experiment({"protocol": "kafka", "model": {"replicas": 3, "log_size": 2, "max_records": 2,
    "max_leader_epoch": 2}})`.
    """
    changes = _as_settings(overrides)
    if isinstance(source, Experiment) and not changes:
        return source
    if isinstance(source, Experiment):
        experiment = source.changed(*changes)
    elif isinstance(source, Mapping):
        experiment = config.build_experiment(_plain(source), "experiment", changes)
    elif isinstance(source, str | Path) and "\0" not in str(source):
        experiment = config.load(Path(source), changes)
    else:
        raise ConfigError(f" {source!r}: an experiment, the path of its file, or a dictionary of its tables", "source")
    for note in experiment.notes:
        warnings.warn(note, stacklevel=2)
    return experiment


def num_threads(threads: int | None) -> int:
    """Returns the number of cores to use. Raises ConfigError."""
    if threads is not None and (threads is True or not isinstance(threads, int | np.integer) or threads <= 0):
        raise ConfigError(f" {threads}: a whole number from 1 up, or None for all cores", "threads")
    return threads or num_cores()


def checked(name: str, value: Any, kind: Any, allowed: str) -> Any:
    """Returns an argument that is of one of some types. Raises ConfigError, which says what is allowed."""
    if not isinstance(value, kind):
        raise ConfigError(f" {value!r}: {allowed}", name)
    return value


def _as_settings(overrides: Overrides) -> list[str]:
    if isinstance(overrides, Mapping):
        return [f"{key}={toml_text(value)}" for key, value in overrides.items()]
    listed = checked("overrides", overrides, Iterable, 'values by dotted key, or texts such as "run.runs=1000"')
    return [listed] if isinstance(listed, str) else [*map(str, listed)]


def _plain(value: Any) -> Any:
    """Returns NumPy's scalars and arrays as Python's numbers and lists, tables and lists of them included."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def toml_text(value: Any) -> str:
    """Returns a value as TOML spells it."""
    value = _plain(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_text, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key} = {toml_text(inner)}' for key, inner in value.items())}}}"
    return f'"{value}"' if isinstance(value, str) else repr(value)
