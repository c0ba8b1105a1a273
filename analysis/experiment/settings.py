"""What an experiment file, its profile and overrides say: each value checked on its own, by dotted key."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from quorisk.analysis.experiment import scenarios, where
from quorisk.analysis.experiment.keys import Key, find, show, show_key, toml_value
from quorisk.analysis.experiment.tables import READERS
from quorisk.kernels.errors import ConfigError

_QUANTITY = re.compile(r"(?!0[xob])[\d._eE+-]++ *(?:[/%]|[^\W\d_])[\w ./%()+-]*")
"""A number that something follows: a unit."""
TABLES = ("model", "variant", "faults", "rates", "run", "grid", "scenarios", *READERS)
WORDS = ("protocol", "profile")
"""Keys of a file outside all tables."""


class Settings(NamedTuple):
    """What a file and overrides say, by dotted key, each value checked on its own."""

    values: dict[str, Any]
    grid: dict[str, list[Any]]
    where: list[where.Condition]
    scenarios: dict[str, dict[str, Any]]
    """By name what is overlaid, and what `Scenario` has besides."""


def flatten(document: Mapping[str, Any], keys: Mapping[str, Key]) -> dict[str, Any]:
    """Returns values by dotted key; those of [grid] and [scenarios] start with "grid." and "scenarios."."""
    flat: dict[str, Any] = {}
    for table, content in document.items():
        if table in WORDS:
            continue
        if table not in TABLES:
            raise ConfigError(f"{show_key(table)}: no such table; {_suggest_table(table, keys)}")
        if not isinstance(content, dict):
            raise ConfigError(f"{table} = {show(content)}: a table, [{table}]")
        if table not in READERS:
            dotted = _dotted(content) if table in ("grid", "scenarios") else content.items()
            flat |= {f"{table}.{key}": value for key, value in dotted}
    return flat


def _dotted(table: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Keys and values of a table, those of tables inside it as dotted keys."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", v) for inner, v in _dotted(value))
        else:
            yield key, value


def _suggest_table(table: str, keys: Mapping[str, Key]) -> str:
    inside = [key for key in keys if key.endswith(f".{table}")]
    return f"did you mean {inside[0]}?" if inside else f"there are {', '.join(TABLES)}"


def profile_of(document: Mapping[str, Any], overrides: Sequence[str]) -> tuple[Any, list[str]]:
    """Returns the profile's name by the last override of it or by the file, None without one; the other overrides."""
    name, others = document.get("profile"), []
    for override in overrides:
        key, _, text = (part.strip() for part in override.partition("="))
        if key == "profile" and text:
            name = text if is_text(text) else toml_value(text)
        else:
            others.append(override)
    return name, others


def overridden(overrides: Sequence[str], keys: Mapping[str, Key]) -> dict[str, Any]:
    """Returns values by dotted key; a bare word is taken as a string."""
    flat = {}
    for override in overrides:
        name, equals, text = (part.strip() for part in override.partition("="))
        if not equals or not name or not text:
            raise ConfigError(f"`overrides` {show(override)}: written as section.key=value")
        value = text if is_text(text) else toml_value(text)
        flat[name if name.startswith(("grid.", "scenarios.")) else _find(name, value, keys).name] = value
    return flat


def is_text(given: str) -> bool:
    """Whether it needs no quotes to be a string on the command line: a bare word, or a number with a unit."""
    word = re.fullmatch(r"[A-Za-z_]\w*", given) and given not in ("true", "false", "inf", "nan")
    return bool(word or _QUANTITY.fullmatch(given))


def _find(name: str, value: object, keys: Mapping[str, Key]) -> Key:
    """The key that `name` stands for, a leading "grid." aside. Raises ConfigError."""
    try:
        return find(name.removeprefix("grid."), keys)
    except ConfigError as error:
        raise ConfigError(f"{show_key(name)} = {show(value)}: {error}") from None


def check(
    figures: Mapping[str, Any],
    file: Mapping[str, Any],
    overrides: Mapping[str, Any],
    keys: Mapping[str, Key],
    scenario_names: Sequence[str],
) -> Settings:
    """Checks every value on its own: those of a profile, a file and overrides, each before the one in front of it.

    An override of a key takes the place of its list in the grid, and of what scenarios have for it.
    """
    settings = Settings({}, {}, [], {name: {} for name in scenario_names})
    for source in (figures, file, overrides):
        for name, value in source.items():
            if name == "grid.where":
                settings.where[:] = [where.parse(text, keys) for text in _listed(name, value)]
            elif name.startswith("grid."):
                key = _find(name, value, keys)
                if source is file and key.name in settings.grid:
                    raise ConfigError(f"{show_key(name)} = {show(value)}: [grid] lists {key.name} already")
                settings.grid[key.name] = _axis(key, _listed(name, value))
                if source is overrides:
                    _take_out(settings, key.name)
            elif name.startswith("scenarios."):
                scenarios.take(name, value, keys, settings.scenarios)
            else:
                settings.values[name] = _find(name, value, keys).read(value)
                if source is overrides:
                    settings.grid.pop(name, None)
                    _take_out(settings, name)
    _check_apart(settings)
    return settings


def _take_out(settings: Settings, name: str) -> None:
    """Has no scenario overlay a key."""
    for overlaid in settings.scenarios.values():
        overlaid.pop(name, None)


def _check_apart(settings: Settings) -> None:
    for scenario, overlaid in settings.scenarios.items():
        for name in overlaid.keys() & settings.grid.keys():
            raise ConfigError(f"scenarios.{scenario}.{name} = {show(overlaid[name])}: [grid] lists {name} already")


def time_unit(settings: Settings, keys: Mapping[str, Key]) -> str | None:
    """ "s" if rates and times have units, None if none has. Raises ConfigError if some have and others have not.

    Zero, and no end at all, are the same in every unit.
    """
    given = [(name, value) for name, value in settings.values.items() if keys[name].timed]
    given += [(f"grid.{name}", each) for name, values in settings.grid.items() if keys[name].timed for each in values]
    given += [
        (f"scenarios.{scenario}.{name}", value)
        for scenario, overlaid in settings.scenarios.items()
        for name, value in overlaid.items()
        if name in keys and keys[name].timed
    ]
    given += [("grid.where", each.value) for each in settings.where if each.right is None and keys[each.left].timed]
    with_unit = next((name for name, value in given if isinstance(value, Fraction)), None)
    for name, value in given:
        if with_unit and not isinstance(value, Fraction) and value not in (0, math.inf):
            others = "either all rates and times of a file have units, or none do"
            raise ConfigError(f"{name} = {show(value)}: no unit, but {with_unit} has one; {others}")
    return "s" if with_unit else None


def as_floats(settings: Settings) -> Settings:
    """Exact fractions of seconds as the nearest floats: off by at most one part in 9e15."""
    return Settings(
        {name: _as_float(value) for name, value in settings.values.items()},
        {name: [_as_float(value) for value in values] for name, values in settings.grid.items()},
        [condition._replace(value=_as_float(condition.value)) for condition in settings.where],
        {
            scenario: {name: _as_float(value) for name, value in overlaid.items()}
            for scenario, overlaid in settings.scenarios.items()
        },
    )


def _as_float(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else value


def _listed(name: str, value: object) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{show_key(name)} = {show(value)}: a list that is not empty")
    return value


def _axis(key: Key, items: list[Any]) -> list[Any]:
    """The values that a grid gives to a key."""
    if not key.in_grid:
        raise ConfigError(f"grid.{key.name} = {show(items)}: cannot vary; set it in [run]")
    values = [key.read(item) for item in items]
    seen: set[Any] = set()
    for value in values:
        if value in seen:
            raise ConfigError(f"grid.{key.name} = {show(items)}: {show(value)} is listed twice")
        seen.add(value)
    return values
