"""Scenarios: events of a year, and the modelled objects (entries, ledgers, partitions) that each of them touches.

    [scenarios.failover]
    per_year = 2_000           # in the whole cluster; or "1650 / s"; or of the cluster: "events.power_outage / 730"
    hits = 40                  # objects that each event touches, 1 unless said; or of the cluster: "broker_partitions"
    fates = "independent"      # of these objects, given the event; or "shared". Left out: both ends are given
    about = "a broker dies; another one recovers the ledger"
    simplifications = ["time-outs are exponential"]
    model.clients = 2
    run.lifetime = "1 h"
    incident = true            # with [cluster]: its losses are incidents of their own

A scenario overrides the keys of the file's own tables, those of a profile among them, whatever --set puts in
their place. Only --set scenarios.failover.model.clients=1 overrides the scenario itself.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from quorisk.analysis.experiment import units
from quorisk.analysis.experiment.characters import check_words
from quorisk.analysis.experiment.keys import (
    PER_YEAR,
    SWITCH,
    TEXT,
    TEXTS,
    Key,
    Kind,
    as_toml,
    find_key,
    one_of,
    real,
    show_key,
)
from quorisk.analysis.experiment.known import Stated, stated
from quorisk.analysis.experiment.placed import DESIGN, EVENTS, HITS, RATES, TABLE, Placed, is_key, rate_of
from quorisk.analysis.statistics.yearly import FATES
from quorisk.kernels.errors import ConfigError
from quorisk.say.quantities import YEAR_S

SCENARIO = "run.scenario"
"""The grid's key of scenarios: all of the file's, unless it or --set picks some."""
_OWN = ("per_year", "hits", "fates", "about", "simplifications", "incident")
_EVENTS = EVENTS.removeprefix(f"{TABLE}.")
MOST_PER_YEAR = 1e30


def _counted(allowed: str, least: float, words: Mapping[str, Any]) -> Kind:
    """The kind of numbers from `least` to 1e30, and of these words, which stand for a figure of the cluster."""
    bare = real(f"a number from {least:g} to 1e30, {allowed}", lambda v: least <= v <= MOST_PER_YEAR)
    named = ", ".join(map(as_toml, words))

    def read(value: object) -> Any:
        return value if isinstance(value, str) and value in words else bare.read_or_none(value)

    return Kind(float, f"{bare.allowed}; or, with [cluster], one of {named}", read)


def _with_rates(kind: Kind) -> Kind:
    """The kind that also takes rates with a unit, and reads them as times a year."""

    def read(value: object) -> Any:
        if isinstance(value, str) and (value.startswith(_EVENTS) or value.partition(" / ")[0] in RATES):
            return value  # of which there are, see `finished`
        found = kind.read_or_none(value)
        if found is None and isinstance(value, str) and value[:1].isdigit():
            return kind.read_or_none(float(units.read_rate(value) * YEAR_S))
        return found

    divided = 'with divisors, such as "node_losses / 730 / brokers"'
    return Kind(float, f"{kind.allowed}, {_EVENTS}NAME, {divided}; or {units.RATE}", read)


_PER_YEAR = _with_rates(_counted("the times a year that it happens", 0, RATES))
_HITS = _counted("the objects that each event touches", 1, HITS)


class ScenarioEvent(NamedTuple):
    """An event in a cluster: how many times a year it happens, and the objects that it touches."""

    per_year: float = 1.0
    hits: float = 1.0
    """The modelled objects that it touches each time."""
    fates: str = ""
    """One of `yearly.FATES`, for these objects given the event; empty if it is unknown."""

    @property
    def objects(self) -> float:
        """Objects touched in a year."""
        return self.per_year * self.hits


class Scenario(NamedTuple):
    """A part of a design's year, as a small model of its own."""

    per_year: float | str
    """Number of times a year that the event happens in the whole cluster; or a word of `placed.rate_of`."""
    about: str
    """The event in words."""
    simplifications: tuple[str, ...]
    """Simplifications of the model, one sentence each."""
    values: dict[str, Any]
    """The values that it puts in place of the file's, by dotted key; rates and times in seconds."""
    incident: bool = False
    """Whether its losses are incidents of their own, beside those of a cluster; else these are its losses, too."""
    hits: float | str = 1.0
    """Modelled objects that each event touches; or one of `placed.HITS`."""
    fates: str = ""
    """Fates of these objects, as in `ScenarioEvent`."""

    def event(self, placed: Placed | None) -> ScenarioEvent:
        """Returns the event, on the cluster of a design if the scenario follows from that."""
        per_year, hits = self.per_year, self.hits
        if placed and isinstance(per_year, str):
            per_year = rate_of(per_year, placed)
        if placed and isinstance(hits, str):
            hits = HITS[hits](placed)
            per_year, hits = float(per_year) * min(1.0, hits), max(1.0, hits)  # an event may touch none
        return ScenarioEvent(float(per_year), float(hits), self.fates)


def scenario_names(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the names of a file's scenarios. Raises ConfigError if they cannot be used."""
    tables = document.get("scenarios", {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise ConfigError("scenarios: must be tables, each [scenarios.NAME]")
    for name in tables:
        if not re.fullmatch(r"[A-Za-z]\w{0,39}", name):
            raise ConfigError(f"scenarios.{as_toml(name)}: a name of letters, digits and _")
    return tuple(tables)


def take(name: str, value: object, keys: Mapping[str, Key], into: dict[str, dict[str, Any]]) -> tuple[str, Stated]:
    """Adds a value, checked, of a key such as scenarios.entry.model.clients; returns the key's whole name, and the key
    as stated. Raises ConfigError.
    """
    _, scenario, inner = (*name.split(".", 2), "", "")[:3]
    if scenario not in into:
        raise ConfigError(
            f"{show_key(name)} = {as_toml(value)}: no such scenario; there are {', '.join(into) or 'none'}"
        )
    if inner in _OWN:
        said = _read_own(name, inner, value)
        into[scenario][inner] = said.value
        return name, said
    try:
        key = find_key(inner, keys)
    except ConfigError as error:
        raise ConfigError(
            f"{show_key(name)} = {as_toml(value)}: {error} (a scenario itself has {', '.join(_OWN)})"
        ) from None
    of_design = key.name in DESIGN and f"{TABLE}.nodes" in keys
    if not key.in_grid or key.name == SCENARIO or is_key(key.name) or of_design:
        differ = "cannot differ between scenarios" + (f" with [{TABLE}], which stores one design" if of_design else "")
        raise ConfigError(f"{show_key(name)} = {as_toml(value)}: {differ}; set it in [{key.name.partition('.')[0]}]")
    try:
        said = stated(key, value)
    except ConfigError as error:
        raise ConfigError(f"scenarios.{scenario}.{error}") from None
    into[scenario][key.name] = said.value
    return f"scenarios.{scenario}.{key.name}", said


def _read_own(name: str, inner: str, value: object) -> Stated:
    match inner:
        case "per_year" | "hits":
            kind = _PER_YEAR if inner == "per_year" else _HITS
            return stated(Key(name, kind, None, False, figure=PER_YEAR), value)
        case "about":
            return Stated(check_words(name, TEXT.read(name, value)), None)
        case "incident":
            return Stated(SWITCH.read(name, value), None)
        case "fates":
            return Stated(one_of(FATES).read(name, value), None)
    return Stated(tuple(check_words(name, each) for each in TEXTS.read(name, value)), None)


def finished(taken: Mapping[str, Mapping[str, Any]], keys: Mapping[str, Key], has_cluster: bool) -> dict[str, Scenario]:
    """Returns scenarios by name, from the values that `take` gathered. Raises ConfigError.

    Unless the file says otherwise, losses are incidents of their own where another client takes over. A protocol that
    has no clients loses what it loses as leaders change: there it is everywhere but in an outage of the cluster.
    """
    result = {}
    for name, values in taken.items():
        if "per_year" not in values:
            raise ConfigError(f"scenarios.{name}.per_year: missing; the times a year that it happens")
        for key in ("per_year", "hits"):
            if isinstance(values.get(key), str) and not has_cluster:
                raise ConfigError(f"scenarios.{name}.{key} = {as_toml(values[key])}: needs [cluster]; or give a number")
        often, *divisors = values["per_year"].split(" / ") if isinstance(values["per_year"], str) else [""]
        if often and often not in RATES and f"{TABLE}.{often}.per_year" not in keys:
            raise ConfigError(f"scenarios.{name}.per_year = {as_toml(often)}: there is no [{TABLE}.{often}]")
        for each in divisors:
            if not (re.fullmatch(r"[1-9]\d{0,9}(\.\d{1,6})?", each) or f"model.{each}" in keys):
                raise ConfigError(
                    f"scenarios.{name}.per_year: / {as_toml(each)}: a number from 1 up, or a key of [model]"
                )
        outage = values.get("faults.max_outages", 0) > 0
        takes_over = values.get("model.clients", 1) > 1 if "model.clients" in keys else not outage
        own: dict[str, Any] = {"incident": takes_over} | {key: values[key] for key in _OWN if key in values}
        own = {"about": "", "simplifications": ()} | own
        result[name] = Scenario(**own, values={key: value for key, value in values.items() if key not in _OWN})
    return result
