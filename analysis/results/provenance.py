"""The experiment's file that a sweep keeps beside its results: read again, and only if the results are of it.

A folder may come from somebody else, or be edited: in place of the file there may be a pipe to which nobody ever
writes, and the file may describe other points than those that were run.
"""

import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.identity import canonical_parameters, id_of
from quorisk.analysis.experiment.keys import as_toml
from quorisk.kernels.errors import ConfigError

EXPERIMENT = "experiment.toml"
OVERRIDE, MERGED = "# --set ", "# merged from "
"""Prefixes of the file's lines that give the overrides, at the top, and the folders that results were merged from."""
_MOST_NAMED = 3


def experiment_text(folder: Path) -> str:
    """Returns the experiment's file of a folder. Raises ConfigError."""
    path = folder / EXPERIMENT
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path}: not a file")
    return config.text_of(path)


def overrides(text: str) -> list[str]:
    """Returns the overrides of an experiment file that a sweep left behind: the `--set` of its first lines."""
    first = itertools.takewhile(lambda line: line.startswith(OVERRIDE), text.splitlines())
    return [line.removeprefix(OVERRIDE) for line in first]


def is_merged(text: str) -> bool:
    """Whether it is the file of results that were merged."""
    return any(line.startswith(MERGED) for line in text.splitlines())


def experiment_of_folder(folder: Path) -> Experiment:
    """Returns the experiment that a folder is about. Raises ConfigError."""
    return config.load(folder / EXPERIMENT, overrides(experiment_text(folder)))


def check_origin(experiment: Experiment, table: pa.Table, where: Path) -> None:
    """Raises ConfigError unless a table of results, at `where`, is of this experiment's points and seed.

    Points that were merged from other folders are in none of the experiment's files: the first folder's come first.
    """
    seeds = sorted({*table["seed"].to_pylist()} - {experiment.run.seed})
    if seeds:
        raise ConfigError(f"{experiment.path}: run.seed = {experiment.run.seed}, but {where} is of seed {seeds[0]}")
    known: dict[int, set[str]] = {}
    for row in table.select(["point_id", "model_version"]).to_pylist():
        version = row["model_version"]
        if version not in known:
            known[version] = _ids(experiment, version)
        if row["point_id"] not in known[version]:
            raise ConfigError(f"{experiment.path}: not the experiment of {where}, {_foreign(experiment, table, row)}")
        if is_merged(experiment.source):
            return


def _ids(experiment: Experiment, version: int) -> set[str]:
    """Its points' ids, under a version of its model that may be older than the one here."""
    model = experiment.model
    if version == model.version:
        return {each.point_id for each in experiment.points}
    return {id_of(model.name, version, canonical_parameters(model, each.point)) for each in experiment.points}


def _foreign(experiment: Experiment, table: pa.Table, row: dict[str, Any]) -> str:
    """Words for the protocol or settings of a row that no point of the experiment has."""
    place = table["point_id"].index(row["point_id"]).as_py()
    if (protocol := table["protocol"][place].as_py()) != experiment.protocol:
        return f"which is of protocol = {as_toml(protocol)}"
    try:
        theirs = dict(json.loads(table["parameters"][place].as_py()))
    except (RecursionError, TypeError, ValueError):
        return "which no sweep wrote"
    ours = [json.loads(canonical_parameters(experiment.model, each.point)) for each in experiment.points]
    keys = [key for key, value in theirs.items() if all(key not in each or each[key] != value for each in ours)]
    named = [key for key in (keys or experiment.varied)[:_MOST_NAMED] if key in theirs]
    return f"which has a point with {', '.join(f'{key} = {as_toml(theirs[key])}' for key in named)}"
