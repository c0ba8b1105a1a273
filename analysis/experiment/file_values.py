"""Values of an experiment file, its profile and overrides: each checked on its own, by dotted key."""

import difflib
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from quorisk.analysis.experiment import scenarios, where
from quorisk.analysis.experiment.keys import INTERVAL, Key, as_toml, find_key, show_key, toml_value
from quorisk.analysis.experiment.known import Stated, is_stated, stated
from quorisk.analysis.experiment.tables import CALLED, READERS
from quorisk.analysis.statistics.known import Known
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.protocols.cluster_settings import Setting

_QUANTITY = re.compile(r"(?!0[xob])[\d._eE+-]++ *(?:[/%]|[^\W\d_])[\w ./%()+-]*")
"""Pattern of a number followed by a unit."""
TABLES = ("model", "variant", "faults", "rates", "cluster", "run", "grid", "scenarios", *READERS)
WORDS = ("protocol", "profile")
"""Keys of a file outside all tables."""


class FileSettings(NamedTuple):
    """Settings of a file and overrides, by dotted key, each value checked on its own."""

    values: dict[str, Any]
    grid: dict[str, list[Any]]
    where: list[where.Alternatives]
    scenarios: dict[str, dict[str, Any]]
    """Values that each scenario overlays, and its other fields in `Scenario`, by the scenario's name."""
    known: dict[str, Known]
    """Distributions of figures, by the names that files have for them: rates.KEY, scenarios.NAME.per_year."""
    known_in_grid: dict[tuple[str, Any], Known]
    """Distributions of the figures that [grid] lists, by key and value."""


def flatten(document: Mapping[str, Any], keys: Mapping[str, Key]) -> dict[str, Any]:
    """Returns values by dotted key; those of [grid] and [scenarios] start with "grid." and "scenarios."."""
    flat: dict[str, Any] = {}
    for table, content in document.items():
        if table in WORDS:
            continue
        if table not in TABLES:
            raise ConfigError(f"{show_key(table)}: no such table; {_suggest_table(table, keys)}")
        if not isinstance(content, dict):
            raise ConfigError(f"{table} = {as_toml(content)}: a table, [{table}]")
        if table not in READERS:
            flat |= _dotted(table, content, keys)
    return flat


def _dotted(table: str, content: Mapping[str, Any], keys: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """Keys and values of a table, those of tables inside it as dotted keys; so is a cluster's own name read, such as
    min.insync.replicas. What one of these `keys` has is its value, whatever it is."""
    for key, value in content.items():
        name = f"{table}.{key}"
        if isinstance(value, dict) and (value or key in TABLES) and name not in keys and not is_stated(value):
            yield from _dotted(name, value)
        else:
            yield name, value


def _suggest_table(table: str, keys: Mapping[str, Key]) -> str:
    inside = [key for key in keys if key.endswith(f".{table}")]
    near = inside or difflib.get_close_matches(table, TABLES, 1, 0.75)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(TABLES)}"


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


def with_tables(document: Mapping[str, Any], overrides: Sequence[str]) -> tuple[Mapping[str, Any], list[str]]:
    """Returns a parsed file with the overrides of the tables of `READERS` in place, and the other overrides."""
    changed, others = dict(document), []
    for override in overrides:
        name, _, text = (part.strip() for part in override.partition("="))
        table, _, key = name.partition(".")
        theirs = CALLED.get(table, {})
        inner = [theirs[key]] if key in theirs else key.split(".")
        there = changed.get(table, {})
        if table in READERS and all(inner) and text and isinstance(there, Mapping):
            others_named = {key: value for key, value in there.items() if theirs.get(key) != inner[0]}
            changed[table] = _put(others_named, inner, text if is_text(text) else toml_value(text))
        else:
            others.append(override)
    return changed, others


def _put(table: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """A table with a value put in, inside tables of its own."""
    first, *rest = path
    there = table.get(first)
    inner = _put(there if isinstance(there, Mapping) else {}, rest, value) if rest else value
    return {**table, first: inner}


def overridden(overrides: Sequence[str], keys: Mapping[str, Key]) -> dict[str, Any]:
    """Returns values by dotted key; a bare word is taken as a string."""
    flat: dict[str, Any] = {}
    for override in overrides:
        name, equals, text = (part.strip() for part in override.partition("="))
        if not equals or not name or not text:
            raise ConfigError(f"`overrides` {as_toml(override)}: written as section.key=value")
        value = text if is_text(text) else toml_value(text)
        if not name.startswith(("grid.", "scenarios.")):
            key = _find(name, value, keys)
            name = f"rates.{key.called[0]}" if key.kind is INTERVAL else key.name
        flat.pop(name, None)  # the last one counts, also against a list of the same key in between
        flat[name] = value
    return flat


def check_known(names: Iterable[str], keys: Mapping[str, Key], settings: Sequence[Setting]) -> None:
    """Raises ConfigError for a setting of a cluster that files cannot give, or not there; the error names the keys that
    it is about."""
    about = {own: each for each in settings for own in re.findall(r"`([\w.]+)[^`]*`", each.names)}
    for name in names:
        key = re.sub(r"^grid\.|^scenarios\.\w+\.", "", name)
        table, _, inside = key.partition(".")
        if (own := inside if table in TABLES else key) in about and not _found(key, keys):
            elsewhere = _found(own, keys)
            said = f"it belongs in [{elsewhere.name.partition('.')[0]}]" if elsewhere else about[own].said()
            raise ConfigError(f"{show_key(name)}: {said}")


def _found(name: str, keys: Mapping[str, Key]) -> Key | None:
    try:
        return find_key(name, keys)
    except ConfigError:
        return None


def is_text(given: str) -> bool:
    """Whether it needs no quotes to be a string on the command line: a bare word, or a number with a unit."""
    word = re.fullmatch(r"[A-Za-z_][\w-]*", given) and given not in ("true", "false", "inf", "nan")
    return bool(word or _QUANTITY.fullmatch(given))


def _find(name: str, value: object, keys: Mapping[str, Key]) -> Key:
    """The key called `name`, without a leading "grid.". Raises ConfigError."""
    try:
        return find_key(name.removeprefix("grid."), keys)
    except ConfigError as error:
        raise ConfigError(f"{show_key(name)} = {as_toml(value)}: {error}") from None


def check_values(
    figures: Mapping[str, Any],
    file: Mapping[str, Any],
    overrides: Mapping[str, Any],
    keys: Mapping[str, Key],
    scenario_names: Sequence[str],
) -> FileSettings:
    """Checks every value on its own: those of a profile, then of a file, then of overrides; the later one counts.

    An override counts as if it stood in the file, but that it takes the place of a key's list in the grid.
    """
    settings = FileSettings({}, {}, [], {name: {} for name in scenario_names}, {}, {})
    for name, value in figures.items():
        try:
            settings.values[name] = _keep(settings.known, name, stated(_find(name, value, keys), value))
        except ConfigError as error:
            raise ConfigError(f"profile: {error}") from None
    picks = scenarios.SCENARIO, scenarios.SCENARIO.rpartition(".")[2]
    picks_first = dict(sorted(overrides.items(), key=lambda given: given[0].removeprefix("grid.") not in picks))
    named: dict[str, str] = {}
    for source in (file, picks_first):
        for name, value in source.items():
            if name == "grid.where":
                settings.where[:] = [where.parse(text, keys) for text in _listed(name, value)]
            elif name.startswith("grid."):
                key = _find(name, value, keys)
                if source is file and key.name in settings.grid:
                    raise ConfigError(f"{show_key(name)} = {as_toml(value)}: [grid] lists {key.name} already")
                settings.grid[key.name] = _axis(key, _listed(name, value), settings.known_in_grid)
                if source is picks_first:
                    _make_way(settings, key.name)
            elif name.startswith("scenarios."):
                _keep(settings.known, *scenarios.take(name, value, keys, settings.scenarios))
            else:
                key = _find(name, value, keys)
                if source is file and (other := named.setdefault(key.name, name)) != name:
                    raise ConfigError(f"{show_key(name)} = {as_toml(value)}: the same as {other}, which is there, too")
                settings.values[key.name] = _keep(settings.known, key.name, stated(key, value))
                if source is picks_first:
                    settings.grid.pop(key.name, None)
    for scenario, overlaid in settings.scenarios.items():
        for name in overlaid.keys() & settings.grid.keys():
            raise ConfigError(f"scenarios.{scenario}.{name} = {as_toml(overlaid[name])}: [grid] lists {name} already")
    return settings


def _keep(known: dict[str, Known], name: str, said: Stated) -> Any:
    """The value stated. Its distribution goes into `known`; an earlier one is removed if it has none."""
    known.pop(name, None)
    if said.known:
        known[name] = said.known
    return said.value


def _picked(settings: FileSettings) -> list[str]:
    """The scenarios that a file and overrides pick; all of them if they pick none."""
    value = settings.values.get(scenarios.SCENARIO)
    return settings.grid.get(scenarios.SCENARIO) or ([value] if value else list(settings.scenarios))


def _make_way(settings: FileSettings, name: str) -> None:
    """Removes a key that an override lists from all scenarios. Raises ConfigError if several scenarios are picked: one
    of them would lose the value that makes it that scenario, and their sum would not show it.
    """
    picked = _picked(settings)
    own = [scenario for scenario in picked if name in settings.scenarios[scenario]]
    if own and len(picked) > 1:
        raise ConfigError(
            f"grid.{name}: scenario {own[0]} has its own {name}, which a list cannot vary along with the others'; pick "
            f"one scenario with scenario=NAME"
        )
    for overlaid in settings.scenarios.values():
        overlaid.pop(name, None)


def overrides_without_effect(
    settings: FileSettings, overrides: Mapping[str, Any], keys: Mapping[str, Key]
) -> tuple[str, ...]:
    """Returns a line for each override without effect on some of the picked scenarios, as they have a value of their
    own: the user may have meant these scenarios, too.
    """
    named: dict[str, dict[str, Any]] = {name: {} for name in settings.scenarios}
    for name, value in overrides.items():
        if name.startswith("scenarios."):
            scenarios.take(name, value, keys, named)
    lines = []
    outside = [name for name in overrides if not name.startswith(("grid.", "scenarios."))]
    for key in (find_key(name, keys).name for name in outside):
        own = [name for name in _picked(settings) if key in settings.scenarios[name] and key not in named[name]]
        if own:
            one, several = f"scenario {own[0]}, which has its", f"scenarios {', '.join(own)}, which have their"
            lines.append(
                f"{key} does not change {one if len(own) == 1 else several} own; to change that, set "
                f"scenarios.{own[0]}.{key}"
            )
    return tuple(lines)


def unused(profile: object, figures: Iterable[str], in_file: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns a line that names those figures of a profile in whose place a file has its own, if there are any."""
    own = [name for name in figures if name in in_file or f"grid.{name}" in in_file]
    told = f"the file has its own {', '.join(own)}: without these lines it takes those of profile {profile}"
    return (told,) if own else ()


def renamed(document: Mapping[str, Any], overrides: Sequence[str], keys: Mapping[str, Key]) -> tuple[str, ...]:
    """Returns a line for each key that a file or an override calls by its former name."""
    used = {part for name in _names(document) for part in re.findall(r"\w+", name)}
    used |= {part for override in overrides for part in re.findall(r"\w+", override.partition("=")[0])}
    old = (key for key in keys.values() if key.formerly and key.formerly in used)
    return tuple(f"{key.formerly} is called {key.name} now" for key in old)


def _names(table: Mapping[str, Any]) -> Iterator[str]:
    """The keys of a table and of those in it."""
    for name, value in table.items():
        yield name
        if isinstance(value, Mapping):
            yield from _names(value)


def time_unit(settings: FileSettings, keys: Mapping[str, Key]) -> str | None:
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
    given += [
        ("grid.where", each.value)
        for either in settings.where
        for each in either
        if each.right is None and keys[each.left].timed
    ]
    with_unit = next((name for name, value in given if isinstance(value, Fraction)), None)
    for name, value in given:
        if with_unit and not isinstance(value, Fraction) and value not in (0, math.inf):
            others = "either all rates and times of a file have units, or none do"
            raise ConfigError(f"{name} = {as_toml(value)}: no unit, but {with_unit} has one; {others}")
    return "s" if with_unit else None


def as_floats(settings: FileSettings) -> FileSettings:
    """Returns settings with exact fractions of seconds as the nearest floats: off by at most one part in 9e15."""
    return FileSettings(
        {name: _as_float(value) for name, value in settings.values.items()},
        {name: [_as_float(value) for value in values] for name, values in settings.grid.items()},
        [tuple(each._replace(value=_as_float(each.value)) for each in either) for either in settings.where],
        {
            scenario: {name: _as_float(value) for name, value in overlaid.items()}
            for scenario, overlaid in settings.scenarios.items()
        },
        settings.known,
        {(name, _as_float(value)): known for (name, value), known in settings.known_in_grid.items()},
    )


def _as_float(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else value


def _listed(name: str, value: object) -> list[Any]:
    if not isinstance(value, list) or not value:
        example = "[2, 3]" if isinstance(value, list) else as_toml([value])
        raise ConfigError(f"{show_key(name)} = {as_toml(value)}: a list, such as {example}")
    return value


def _axis(key: Key, items: list[Any], known: dict[tuple[str, Any], Known]) -> list[Any]:
    """The values that a grid gives to a key; adds their distributions to `known`."""
    if not key.in_grid:
        raise ConfigError(f"grid.{key.name} = {as_toml(items)}: cannot vary; set it in [run]")
    said = [stated(key._replace(name=f"value {i} of grid.{key.name}"), item) for i, item in enumerate(items, 1)]
    seen: set[Any] = set()
    for each in said:
        if each.value in seen:
            raise ConfigError(f"grid.{key.name} = {as_toml(items)}: {as_toml(each.value)} is listed twice")
        seen.add(each.value)
    for listed in [listed for listed in known if listed[0] == key.name]:  # by a list that this one takes the place of
        del known[listed]
    known |= {(key.name, each.value): each.known for each in said if each.known}
    return [each.value for each in said]
