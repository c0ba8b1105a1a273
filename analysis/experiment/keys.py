"""The keys of an experiment file, with their allowed values and defaults."""

import difflib
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from quorisk.analysis.experiment import units
from quorisk.analysis.experiment.tables import READERS
from quorisk.kernels.engines import ENGINES
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import Model, Parameter, loses_messages
from quorisk.kernels.protocols import registry

MAX_RUNS, MAX_STEPS = 10**12, 10**9
MAX_SEED = 2**63 - 1
"""Largest seed, also in result tables: Spark has no unsigned integers."""
METHODS = ("auto", "count", "head", "exact")
"""Methods by which an estimate finds its numbers; see docs/rare-events.md."""
RATE, PROBABILITY, PER_YEAR = "rate", "probability", "times a year"
"""Kinds of figures whose uncertainty a file may state: see `analysis.experiment.known`."""
DATA_LOSS = "data loss"
"""Name in the place of an invariant's: the breach of any whose breach is data loss."""


class Kind(NamedTuple):
    """A set of values."""

    type: type
    """float for all numbers, bool or str."""
    allowed: str
    read_or_none: Callable[[Any], Any]
    """The value in the form that the program uses, or None if it is not in the set."""

    def read(self, name: str, value: object) -> Any:
        """Returns the value of the key `name` as the program uses it. Raises ConfigError."""
        try:
            result = self.read_or_none(value)
        except ConfigError as error:
            raise ConfigError(f"{name} = {as_toml(value)}: {error}") from None
        if result is None:
            raise ConfigError(f"{name} = {as_toml(value)}: {self.allowed}")
        return result


class Key(NamedTuple):
    """A key of an experiment file, such as model.ack_quorum."""

    name: str
    kind: Kind
    default: Any
    """The default value; None if the file has to give one."""
    in_grid: bool
    """Whether a run depends on it, so that [grid] may vary it."""
    timed: bool = False
    """A rate or a time: it may carry a unit. With one it is read as an exact fraction (of seconds), not as a float."""
    figure: str = ""
    """RATE, PROBABILITY or PER_YEAR if a file may say how well it is known."""
    follows: str = ""
    """The key whose value is its default."""
    called: tuple[str, ...] = ()
    """Aliases, as clusters name it: for a rate, the interval in milliseconds."""
    formerly: str = ""
    """Its former name, without its table: files may still use it, and get a note."""

    def read(self, value: object) -> Any:
        """Returns the value as the program uses it. Raises ConfigError."""
        return self.kind.read(self.name, value)


def integer(low: int, high: int) -> Kind:
    """Returns the kind of the integers from low to high; true and 3.0 are refused."""
    allowed = f"an integer from {low} to {high}"
    return Kind(float, allowed, lambda v: v if type(v) is int and low <= v <= high else None)


def integral(low: int, high: int) -> Kind:
    """Returns the kind that `integer` returns, which also takes floats that are whole, such as 1e6."""
    bare = integer(low, high)
    whole = lambda v: int(v) if type(v) is float and v.is_integer() else v  # noqa: E731
    return Kind(float, bare.allowed, lambda v: bare.read_or_none(whole(v)))


def real(allowed: str, holds: Callable[[float], bool]) -> Kind:
    """Returns the kind of the integers and floats for which `holds`, all read as floats (-0.0 as 0.0)."""

    def read(value: object) -> float | None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not holds(value):
            return None
        return float(value) + 0.0

    return Kind(float, allowed, read)


def quantity(bare: Kind, parse: Callable[[str], Fraction], example: str) -> Kind:
    """Returns the kind that takes what `bare` allows, and such quantities with their units, read as fractions."""

    def read(value: object) -> float | Fraction | None:
        if not isinstance(value, str):
            return bare.read_or_none(value)
        exact = parse(value)
        return exact if bare.read_or_none(float(exact)) is not None else None

    return Kind(float, f"{bare.allowed}, or {example}", read)


def one_of(names: tuple[str, ...], note: str = "") -> Kind:
    """Returns the kind of these names."""
    allowed = f"one of {', '.join(as_toml(name) for name in names)}{note}"
    bare = lambda v: str(v) if type(v) is int else v  # noqa: E731  acks = 1
    return Kind(str, allowed, lambda v: bare(v) if isinstance(bare(v), str) and bare(v) in names else None)


def _per_second(interval_ms: object) -> Fraction | None:
    """The rate a second of an event once in `interval_ms` milliseconds; None if that is no time."""
    if isinstance(interval_ms, bool) or not isinstance(interval_ms, int | float) or not 1e-3 <= interval_ms <= 1e15:
        return None
    return 1000 / Fraction(str(interval_ms))


INTERVAL = Kind(float, "a number of milliseconds, from 0.001 to 1e15, under its name in clusters", _per_second)
SWITCH = Kind(bool, "true or false", lambda v: v if isinstance(v, bool) else None)
TEXT = Kind(str, "a string", lambda v: v if isinstance(v, str) else None)
TEXTS = Kind(list, "a list of strings", lambda v: v if isinstance(v, list) and {*map(type, v)} <= {str} else None)


def keys_of(model: Model, scenario_names: tuple[str, ...] = ()) -> dict[str, Key]:
    """Returns all keys that an experiment file of a model with these scenarios may set, by name."""
    # engines draw losses in units of 2**-63, and floats hold all products of such losses, rates and times
    p = real("0, or a number from 1e-15 to 1", lambda v: v == 0 or 1e-15 <= v <= 1)
    loss = (
        p
        if loses_messages(model)
        else real(f"0, as {model.name} sends no messages that could be lost", lambda v: v == 0)
    )
    rate = real("0, or a number from 1e-100 to 1e100", lambda v: v == 0 or 1e-100 <= v <= 1e100)
    rate = quantity(rate, units.read_rate, units.RATE)
    time = real("a number from 1e-100 to 1e100 (inf: none)", lambda v: 1e-100 <= v <= 1e100 or v == math.inf)
    time = quantity(time, units.read_time, units.TIME)
    confidence = real("a number between 0 and 1", lambda v: 0 < v < 1)
    limit = real("a number between 0 and 1 (inf: none)", lambda v: 0 < v < 1 or v == math.inf)
    judged = one_of((DATA_LOSS, *(invariant.name for invariant in model.invariants)))
    engine = one_of(("auto", *ENGINES))
    keys = [
        *(_parameter_key(parameter) for parameter in model.parameters),
        Key("faults.message_loss", loss, 0.0, True, figure=PROBABILITY),
        *(Key(f"faults.{probability.name}", p, 0.0, True, figure=PROBABILITY) for probability in model.probabilities),
        *(
            Key(
                *(f"rates.{action.name}", rate, None if action.rate_of else action.rate, True, True, RATE),
                follows=f"rates.{action.rate_of}" if action.rate_of else "",
                called=action.interval_ms,
            )
            for action in model.actions
        ),
        Key("run.max_steps", integral(1, MAX_STEPS), 100_000, True),
        Key("run.horizon", time, math.inf, True, True),
        Key("run.lifetime", time, math.inf, True, True),
        Key("run.runs", integral(1, MAX_RUNS), 1_000_000, False),
        Key("run.first_run", integral(0, MAX_RUNS), 0, False),
        Key("run.seed", integer(0, MAX_SEED), 0, False),
        Key("run.confidence", confidence, 0.95, False),
        Key("run.precision", limit, math.inf, False),
        Key("run.relative_precision", limit, math.inf, False),
        Key("run.precision_of", judged, DATA_LOSS, False),
        Key("run.simultaneous", SWITCH, False, False),
        Key("run.at_any_time", SWITCH, False, False),
        Key("run.target", limit, math.inf, False),
        Key("run.engine", engine, "auto", False),
        Key("run.method", one_of(METHODS), "auto", False),
        *([Key("run.scenario", one_of(scenario_names), None, True)] if scenario_names else []),
    ]
    return {key.name: key for key in keys}


def _parameter_key(parameter: Parameter) -> Key:
    match parameter.allowed:
        case None:
            kind = SWITCH
        case (int(low), int(high)):
            kind = integer(low, high)
        case names:
            kind = one_of(names)
    kind = _spelled(kind, parameter.spelled)
    follows = f"{parameter.table}.{parameter.follows}" if parameter.follows else ""
    name, default = f"{parameter.table}.{parameter.name}", parameter.default_value
    return Key(name, kind, default, True, follows=follows, called=parameter.called, formerly=parameter.formerly)


def _spelled(bare: Kind, spelled: tuple[tuple[int, Any], ...]) -> Kind:
    """The kind that also takes integers that a cluster has for some of its values."""
    if not spelled:
        return bare
    theirs = dict(spelled)
    allowed = f"{bare.allowed}; or {' or '.join(map(str, theirs))}"
    spelled_out = lambda v: theirs[v] if type(v) is int and v in theirs else bare.read_or_none(v)  # noqa: E731
    return bare._replace(allowed=allowed, read_or_none=spelled_out)


def find_key(name: str, keys: Mapping[str, Key]) -> Key:
    """Returns the key of a dotted name, of a last part that only one key has, of a key's former name, or of a cluster's
    own name, which reads the values that clusters have there. Raises ConfigError."""
    if name in keys:
        return keys[name]
    for key in keys.values():
        table = key.name.partition(".")[0]
        if name in key.called or name.removeprefix(f"{table}.") in key.called:
            return key._replace(kind=INTERVAL) if key.timed else key
        if key.formerly and name in (key.formerly, f"{table}.{key.formerly}"):
            return key
    same = [key for key in keys if key.partition(".")[2] == name]
    if len(same) > 1:
        raise ConfigError(f"{show_key(name)} may be {' or '.join(same)}; write the dotted name")
    if not same:
        raise ConfigError(f"there is no key {show_key(name)}; {suggest(name, keys)}")
    return keys[same[0]]


def suggest(name: str, keys: Mapping[str, Key]) -> str:
    """Returns a suggestion of the key that may be meant by `name`."""
    table, _, last = name.rpartition(".")
    if table in READERS:
        return f"[{table}] is the same for all points of a grid, and for all scenarios"
    if name == "run.scenario":
        return "the file has no [scenarios]"
    models = {other: keys_of(registry.load(other)).values() for other in registry.own()}
    theirs = {other: {each for key in keys for each in (key.name, *key.called)} for other, keys in models.items()}
    if others := [as_toml(other) for other, names in theirs.items() if {name, name.partition(".")[2]} & names]:
        return f"it is a key of protocol = {' or '.join(others)}"
    by_last = {key.partition(".")[2]: key for key in keys}
    near = difflib.get_close_matches(name, keys, 1, 0.75) or [
        by_last[match] for match in difflib.get_close_matches(last, by_last, 1, 0.75)
    ]
    if near:
        return f"did you mean {near[0]}?"
    siblings = [key.partition(".")[2] for key in keys if key.startswith(f"{table}.")]
    return f"[{table}] has {', '.join(siblings)}" if siblings else "use table.key, such as run.runs"


def as_toml(value: object) -> str:
    """Returns a value as TOML writes it, on one line, cut short; quantities with units in seconds."""
    text = json.dumps(value, default=lambda other: float(other) if isinstance(other, Fraction) else str(other))
    return text if len(text) <= 60 else f"{text[:57]}..."


def show_key(name: str) -> str:
    """Returns a key that may be anything, on one line."""
    return name if re.fullmatch(r"[\w.-]{1,80}", name) else as_toml(name)


def check_keys(table: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raises ConfigError if a table of a file has another key than these."""
    for key in given:
        if key not in known:
            raise ConfigError(f"{show_key(f'{table}.{key}')}: no such key; [{table}] has {', '.join(known)}")


def as_float(text: str) -> float:
    """Returns the number that TOML spells. Raises ConfigError if it is not 0, but too small for a float."""
    value = float(text)
    if value == 0.0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        raise ConfigError(f"{text[:40]}: too small a number; at least 5e-324, or 0")
    return value


def toml_value(text: str) -> Any:
    """Returns the value that a piece of TOML spells. Raises ConfigError."""
    try:
        document = tomllib.loads(f"value = {text}", parse_float=as_float)
    except ConfigError:
        raise
    except (ValueError, RecursionError):  # TOMLDecodeError, and numbers or nesting beyond Python's limits
        document = {}
    if set(document) != {"value"}:
        raise ConfigError(f"{as_toml(text)}: not a TOML value (numbers, true, false, [lists] and quoted strings are)")
    return document["value"]
