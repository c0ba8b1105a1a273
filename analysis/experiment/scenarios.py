"""Scenarios: what happens to one modelled object a number of times a year.

    [scenarios.failover]
    per_year = 2_000
    about = "a broker dies; another one recovers the ledger"
    simplifications = ["time-outs are exponential"]
    model.clients = 2
    run.lifetime = "1 h"
    incident = true            # with [cluster]: its losses are incidents of their own

A scenario overrides the keys of the file's own tables, those of a profile among them, whatever --set puts in
their place. Only --set scenarios.failover.model.clients=1 overrides the scenario itself.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from quorisk.analysis.experiment.characters import check_words
from quorisk.analysis.experiment.keys import PER_YEAR, SWITCH, TEXT, TEXTS, Key, find, number, show, show_key
from quorisk.analysis.experiment.known import Stated, stated
from quorisk.kernels.errors import ConfigError

SCENARIO = "run.scenario"
"""The key of a grid that says which scenarios there are: all of the file's, unless it or --set picks some."""
_OWN = ("per_year", "about", "simplifications", "incident")
MOST_PER_YEAR = 1e30
_PER_YEAR = number("a number from 0 to 1e30, the times a year that it happens", lambda v: 0 <= v <= MOST_PER_YEAR)


class Scenario(NamedTuple):
    """A part of a design's year, as a small model of its own."""

    per_year: float
    """How many times a year it happens: its losses a year are that many times the probability of one."""
    about: str
    """What happens, in words."""
    simplifications: tuple[str, ...]
    """What the model makes simpler than it is, a sentence each."""
    values: dict[str, Any]
    """The values that it puts in place of the file's, by dotted key; rates and times in seconds."""
    incident: bool = False
    """Whether its losses are incidents of their own, beside those of a cluster; else these are its losses, too."""


def names(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the names of a file's scenarios. Raises ConfigError if they cannot be used."""
    tables = document.get("scenarios", {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise ConfigError("scenarios: must be tables, each [scenarios.NAME]")
    for name in tables:
        if not re.fullmatch(r"[A-Za-z]\w{0,39}", name):
            raise ConfigError(f"scenarios.{show(name)}: a name of letters, digits and _")
    return tuple(tables)


def take(name: str, value: object, keys: Mapping[str, Key], into: dict[str, dict[str, Any]]) -> tuple[str, Stated]:
    """Adds a value, checked, of a key such as scenarios.entry.model.clients; returns the key's whole name, and what is
    said of it. Raises ConfigError.
    """
    _, scenario, inner = (*name.split(".", 2), "", "")[:3]
    if scenario not in into:
        raise ConfigError(f"{show_key(name)} = {show(value)}: no such scenario; there are {', '.join(into) or 'none'}")
    if inner in _OWN:
        said = _read_own(name, inner, value)
        into[scenario][inner] = said.value
        return name, said
    try:
        key = find(inner, keys)
    except ConfigError as error:
        raise ConfigError(
            f"{show_key(name)} = {show(value)}: {error} (a scenario itself has {', '.join(_OWN)})"
        ) from None
    if not key.in_grid or key.name == SCENARIO or key.name.startswith("cluster."):
        table = key.name.partition(".")[0]
        raise ConfigError(f"{show_key(name)} = {show(value)}: cannot differ between scenarios; set it in [{table}]")
    try:
        said = stated(key, value)
    except ConfigError as error:
        raise ConfigError(f"scenarios.{scenario}.{error}") from None
    into[scenario][key.name] = said.value
    return f"scenarios.{scenario}.{key.name}", said


def _read_own(name: str, inner: str, value: object) -> Stated:
    if inner == "per_year":
        return stated(Key(name, _PER_YEAR, None, False, figure=PER_YEAR), value)
    if inner == "about":
        return Stated(check_words(name, TEXT.of(name, value)), None)
    if inner == "incident":
        return Stated(SWITCH.of(name, value), None)
    return Stated(tuple(check_words(name, each) for each in TEXTS.of(name, value)), None)


def finished(taken: Mapping[str, Mapping[str, Any]], keys: Mapping[str, Key]) -> dict[str, Scenario]:
    """Scenarios by name, from what `take` gathered. Raises ConfigError.

    Unless the file says otherwise, losses are incidents of their own where another client takes over. A protocol that
    has no clients loses what it loses as leaders change: there it is everywhere but in an outage of the cluster.
    """
    result = {}
    for name, values in taken.items():
        if "per_year" not in values:
            raise ConfigError(f"scenarios.{name}.per_year: missing; the times a year that it happens")
        outage = values.get("faults.max_outages", 0) > 0
        takes_over = values.get("model.clients", 1) > 1 if "model.clients" in keys else not outage
        own = {key: values.get(key, default) for key, default in zip(_OWN, (0.0, "", (), takes_over), strict=True)}
        result[name] = Scenario(**own, values={key: value for key, value in values.items() if key not in _OWN})
    return result


def check_whole(varied: Iterable[Mapping[str, Any]]) -> None:
    """Raises ConfigError unless each design has the same scenarios: a sum would lack one that a condition took out."""
    by_design: dict[tuple[Any, ...], set[str]] = {}
    for values in varied:
        if SCENARIO in values:
            design = tuple((key, value) for key, value in values.items() if key != SCENARIO)
            by_design.setdefault(design, set()).add(values[SCENARIO])
    everywhere = set().union(*by_design.values())
    for design, there in by_design.items():
        if there != everywhere:
            at = ", ".join(f"{key} = {show(value)}" for key, value in design)
            missing = ", ".join(sorted(everywhere - there))
            raise ConfigError(
                f"grid.where: leaves out scenario {missing} at {at}; without it, the losses a year would be too low"
            )
