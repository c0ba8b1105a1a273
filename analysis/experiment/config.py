"""An experiment file and what overrides it, read into grid points that are ready to run. Generic over models."""

import itertools
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from quorisk.analysis.experiment import where
from quorisk.analysis.experiment.identity import point_id
from quorisk.analysis.experiment.keys import Key, find, keys_of, show, show_key, toml_value
from quorisk.kernels.engines.points import Point, RateError, scale_rates
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import Model
from quorisk.kernels.protocols import registry

__all__ = ["ConfigError", "Experiment", "GridPoint", "RunSettings", "build", "load"]

_QUANTITY = re.compile(r"(?!0[xob])[\d._eE+-]++ *(?:[/%]|[^\W\d_])[\w ./%()+-]*")
"""A number that something follows: a unit."""
TABLES = ("model", "variant", "faults", "rates", "run", "grid")


class RunSettings(NamedTuple):
    """How many runs, and how they are told apart and judged."""

    runs: int
    """Runs of each grid point; at the most, if a precision is asked for."""
    seed: int
    confidence: float
    engine: str
    """`auto`, `numba` or `jax`."""
    precision: float
    """Half-width of the interval at which an estimate stops; infinite for none."""
    relative_precision: float
    """Half-width by the estimate at which it stops; infinite for none. Where both are given both have to be met."""
    precision_of: str
    """The invariant whose interval is meant, or DATA_LOSS."""
    simultaneous: bool
    """The intervals of a grid hold all together, each invariant's over all points, and not one by one."""
    at_any_time: bool
    """The question is a loss at any time: runs that the horizon ends may hide one. Else it is one by the horizon."""
    first_run: int
    """Index of the first run: parts of one job on several machines have run ranges end to end."""
    target: float
    """The probability of data loss that a sweep's report holds configurations to; infinite for none."""


class GridPoint(NamedTuple):
    """One configuration of a grid."""

    point: Point
    point_id: str
    """See `identity.point_id`."""
    varied: dict[str, Any]
    """Its values of the grid's keys, by dotted name."""


class Experiment(NamedTuple):
    """A checked experiment file."""

    path: str
    protocol: str
    model: Model
    points: tuple[GridPoint, ...]
    """In the order of the file's grid, the last key varying fastest."""
    run: RunSettings
    varied: tuple[str, ...]
    """Dotted names of the grid's keys, in the file's order."""
    overrides: tuple[str, ...]
    """What was put in the place of the file's values, as section.key=value."""
    given: frozenset[str]
    """Dotted names of the keys that the file or an override sets, the grid's among them."""


class Settings(NamedTuple):
    """What a file and overrides say, by dotted key, each value checked on its own."""

    values: dict[str, Any]
    grid: dict[str, list[Any]]
    where: list[where.Condition]


def load(path: Path, overrides: Sequence[str] = ()) -> Experiment:
    """The experiment of a TOML file and of overrides such as "run.runs=1000". Raises ConfigError."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, and numbers or nesting beyond Python's limits
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    return build(document, str(path), overrides)


def build(document: Mapping[str, Any], path: str, overrides: Sequence[str] = ()) -> Experiment:
    """The experiment of a parsed file; `path` is what errors call it. Raises ConfigError."""
    try:
        return _build(document, path, overrides)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _build(document: Mapping[str, Any], path: str, overrides: Sequence[str]) -> Experiment:
    if "protocol" not in document:
        raise ConfigError(f"protocol: missing; one of {', '.join(registry.names())}")
    model = registry.load(document["protocol"])
    keys = keys_of(model)
    settings = _check(_flatten(document, keys), _overridden(overrides, keys), keys)
    time_unit = _time_unit(settings, keys)
    settings = _as_floats(settings)
    missing = [key for key in keys.values() if key.default is None and key.name not in settings.values | settings.grid]
    if missing:
        raise ConfigError(f"missing: {'; '.join(f'{key.name} ({key.kind.allowed})' for key in missing)}")
    defaults = {key.name: key.default for key in keys.values()}
    values = defaults | settings.values
    return Experiment(
        path=path,
        protocol=model.name,
        model=model,
        points=tuple(_points(model, values, settings, time_unit)),
        run=RunSettings(**{name: values[f"run.{name}"] for name in RunSettings._fields}),
        varied=tuple(settings.grid),
        overrides=tuple(overrides),
        given=frozenset(settings.values | settings.grid),
    )


def _flatten(document: Mapping[str, Any], keys: Mapping[str, Key]) -> dict[str, Any]:
    """Values by dotted key; those of [grid] start with "grid."."""
    flat: dict[str, Any] = {}
    for table, content in document.items():
        if table == "protocol":
            continue
        if table not in TABLES:
            raise ConfigError(f"{show_key(table)}: no such table; {_suggest_table(table, keys)}")
        if not isinstance(content, dict):
            raise ConfigError(f"{table} = {show(content)}: a table, [{table}]")
        flat |= {f"{table}.{key}": value for key, value in (_dotted(content) if table == "grid" else content.items())}
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


def _overridden(overrides: Sequence[str], keys: Mapping[str, Key]) -> dict[str, Any]:
    """Values by dotted key; a bare word is taken as a string."""
    flat = {}
    for override in overrides:
        name, equals, text = (part.strip() for part in override.partition("="))
        if not equals or not name or not text:
            raise ConfigError(f"--set {show(override)}: written as section.key=value")
        word = re.fullmatch(r"[A-Za-z_]\w*", text) and text not in ("true", "false", "inf", "nan")
        value = text if word or _QUANTITY.fullmatch(text) else toml_value(text)
        flat[name if name.startswith("grid.") else _find(name, value, keys).name] = value
    return flat


def _find(name: str, value: object, keys: Mapping[str, Key]) -> Key:
    """The key that `name` stands for, a leading "grid." aside. Raises ConfigError."""
    try:
        return find(name.removeprefix("grid."), keys)
    except ConfigError as error:
        raise ConfigError(f"{show_key(name)} = {show(value)}: {error}") from None


def _check(file: Mapping[str, Any], overrides: Mapping[str, Any], keys: Mapping[str, Key]) -> Settings:
    """Checks every value on its own. An override of a key takes the place of its list in the grid."""
    settings = Settings({}, {}, [])
    for source in (file, overrides):
        for name, value in source.items():
            if name == "grid.where":
                settings.where[:] = [where.parse(text, keys) for text in _listed(name, value)]
            elif name.startswith("grid."):
                key = _find(name, value, keys)
                if source is file and key.name in settings.grid:
                    raise ConfigError(f"{show_key(name)} = {show(value)}: [grid] lists {key.name} already")
                settings.grid[key.name] = _axis(key, _listed(name, value))
            else:
                settings.values[name] = _find(name, value, keys).read(value)
                if source is overrides:
                    settings.grid.pop(name, None)
    return settings


def _time_unit(settings: Settings, keys: Mapping[str, Key]) -> str | None:
    """ "s" if rates and times have units, None if none has. Raises ConfigError if some have and others have not.

    Zero, and no end at all, are the same in every unit.
    """
    given = [(name, value) for name, value in settings.values.items() if keys[name].timed]
    given += [(f"grid.{name}", each) for name, values in settings.grid.items() if keys[name].timed for each in values]
    given += [("grid.where", each.value) for each in settings.where if each.right is None and keys[each.left].timed]
    with_unit = next((name for name, value in given if isinstance(value, Fraction)), None)
    for name, value in given:
        if with_unit and not isinstance(value, Fraction) and value not in (0, math.inf):
            others = "either all rates and times of a file have units, or none has"
            raise ConfigError(f"{name} = {show(value)}: no unit, but {with_unit} has one; {others}")
    return "s" if with_unit else None


def _as_floats(settings: Settings) -> Settings:
    """Exact fractions of seconds as the nearest floats: off by at most one part in 9e15."""
    plain = lambda value: float(value) if isinstance(value, Fraction) else value  # noqa: E731
    return Settings(
        {name: plain(value) for name, value in settings.values.items()},
        {name: [plain(value) for value in values] for name, values in settings.grid.items()},
        [condition._replace(value=plain(condition.value)) for condition in settings.where],
    )


def _listed(name: str, value: object) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{show_key(name)} = {show(value)}: a list with something in it")
    return value


def _axis(key: Key, items: list[Any]) -> list[Any]:
    """The values that a grid gives to a key."""
    if not key.in_grid:
        raise ConfigError(f"grid.{key.name} = {show(items)}: cannot vary; set it in [run]")
    values = [key.read(item) for item in items]
    twice = [value for i, value in enumerate(values) if value in values[:i]]
    if twice:
        raise ConfigError(f"grid.{key.name} = {show(items)}: {show(twice[0])} is in it twice")
    return values


def _points(model: Model, values: Mapping[str, Any], settings: Settings, time_unit: str | None) -> Iterable[GridPoint]:
    """The grid's points that its conditions leave over. Raises ConfigError if a point is not possible, or none is."""
    num_points = 0
    for combination in itertools.product(*settings.grid.values()):
        varied = dict(zip(settings.grid, combination, strict=True))
        here = {**values, **varied}
        if all(condition.holds(here) for condition in settings.where):
            num_points += 1
            point = _point(model, here, varied)._replace(time_unit=time_unit)
            yield GridPoint(point, point_id(model, point), varied)
    if num_points == 0:
        raise ConfigError("grid.where: no point of the grid meets all conditions")


def _point(model: Model, values: Mapping[str, Any], varied: Mapping[str, Any]) -> Point:
    parameters = {p.name: values[f"{p.table}.{p.name}"] for p in model.parameters}
    tables = {p.name: p.table for p in model.parameters}
    at = ", ".join(f"{name} = {show(value)}" for name, value in varied.items())
    for condition in model.conditions:
        if not condition.holds(parameters):
            key, value = f"{tables[condition.key]}.{condition.key}", parameters[condition.key]
            # "at most write_quorum" reads better with the number at hand
            limit = condition.allowed.rpartition(" ")[2]
            known = f" ({show(parameters[limit])})" if limit in parameters else ""
            hint = f" (at the grid point {at}; grid.where can exclude it)" if varied else ""
            raise ConfigError(f"{key} = {show(value)}: {condition.allowed}{known}{hint}")
    rates = {action.name: values[f"rates.{action.name}"] for action in model.actions}
    try:
        scale_rates(model, rates)
    except RateError as error:
        longest = max(rates, key=lambda name: max(Fraction(repr(rates[name])).as_integer_ratio()))
        raise ConfigError(f"rates.{longest} = {show(rates[longest])}: {error}") from None
    return Point(parameters, rates, values["faults.message_loss"], values["run.max_steps"], values["run.horizon"])
