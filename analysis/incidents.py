"""The table [incident] of an experiment file: a story of lost data that a model can reproduce.

The museum is `configs/incidents`: experiment files that have such a table. Their other tables are like any other's, so
every verb answers for them.

[incident]
title = "Recovery reads that did not fence (BookKeeper, 2021)"
happened = "what happened, for a reader who has not heard of it"
sources = ["https://..."]
mechanism = "one line: how the data are lost"
invariant = "what breaks; its name in the model"
fixed_by = ["variant.fence_recovery_reads=true"]
prevented_by = "the setting or version that prevents it"
simplified = ["what the model leaves out or makes simpler"]
shown_with = ["model.entries=1"]    # if the trace is to be of a smaller model
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from quorisk.analysis.experiment.keys import DATA_LOSS, as_toml, check_keys
from quorisk.kernels.errors import ConfigError

if TYPE_CHECKING:
    from quorisk.analysis.experiment.config import Experiment

FOLDER = Path(__file__).absolute().parents[1] / "configs" / "incidents"
_LISTS = ("sources", "fixed_by", "simplified", "shown_with")
_REQUIRED = ("title", "happened", "sources", "mechanism", "invariant", "fixed_by", "prevented_by", "simplified")


class Incident(NamedTuple):
    """Contents of a table [incident]; see the module."""

    title: str
    happened: str
    sources: tuple[str, ...]
    mechanism: str
    invariant: str
    fixed_by: tuple[str, ...]
    """Overrides under which it cannot happen, or hardly."""
    prevented_by: str
    simplified: tuple[str, ...]
    shown_with: tuple[str, ...] = ()
    """Overrides under which its trace is searched for."""


def read_table(table: Mapping[str, Any], folder: Path) -> Incident:
    """Returns the contents of a table [incident]. Raises ConfigError."""
    check_keys("incident", table, Incident._fields)
    for key, value in table.items():
        is_list = key in _LISTS
        if is_list and not isinstance(value, list):
            raise ConfigError(f"incident.{key} = {as_toml(value)}: a list of texts")
        if not all(isinstance(text, str) and text.strip() for text in (value if is_list else [value])):
            allowed = "texts that are not empty" if is_list else "a text, and not empty"
            raise ConfigError(f"incident.{key} = {as_toml(value)}: {allowed}")
    for key in _REQUIRED:
        if key not in table:
            raise ConfigError(f"incident.{key}: missing")
    read: dict[str, Any] = {key: tuple(value) if key in _LISTS else value.strip() for key, value in table.items()}
    return Incident(**read)


def check_table(experiment: "Experiment") -> None:
    """Raises ConfigError if the incident's invariant is none of the model's."""
    incident: Incident = experiment.tables["incident"]
    known = [invariant.name for invariant in experiment.model.invariants]
    if incident.invariant not in (DATA_LOSS, *known):
        raise ConfigError(f"incident.invariant = {as_toml(incident.invariant)}: one of {', '.join(known)}")


def incident_names() -> list[str]:
    """Returns the names of the incidents that come with Quorisk."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def file_of(name: str) -> Path:
    """Returns the experiment file of an incident. Raises ConfigError if there is none of that name."""
    if name not in incident_names():
        raise ConfigError(f"incidents {name}: one of {', '.join(incident_names())}")
    return FOLDER / f"{name}.toml"
