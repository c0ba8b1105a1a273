"""Uncertainty of a figure as a file states it, in the place of the figure's value alone.

    bookie_is_lost = { value = "1 % / year", error_factor = 2 }       a factor of 2 either way
    bookie_is_lost = { events = 3, exposure = "200 years" }           counted: 3 in 200 years
    message_loss = { events = 3, trials = 4_000 }                     counted: 3 of 4,000, of a probability
    bookie_is_lost = { low = "0.5 % / year", high = "2 % / year" }    90 % that it is between them

Answers are computed with `value`, or where counts or a range stand alone with the median of what is known. Runs depend
on the value alone, and so does a point's identity.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from quorisk.analysis.experiment import units
from quorisk.analysis.experiment.keys import PER_YEAR, PROBABILITY, Key, as_toml, integral, quantity, real
from quorisk.analysis.statistics.known import Beta, Gamma, Known, LogitNormal, LogNormal, log_normal_between
from quorisk.kernels.errors import ConfigError
from quorisk.say.quantities import YEAR_S, digits, say_time

FIELDS = ("value", "error_factor", "events", "exposure", "trials", "low", "high")
_UNLIKELY = 5e-4
"""A value that is below this quantile, or above 1 minus it, contradicts the counts beside it."""
_COUNT = integral(0, 10**12)
_FACTOR = real("a number from 1 (known exactly) to 1000", lambda v: 1 <= v <= 1000)
_EXPOSURE = quantity(real("a number from 1e-100 to 1e100", lambda v: 1e-100 <= v <= 1e100), units.read_time, units.TIME)


class Stated(NamedTuple):
    """A figure as a file states it."""

    value: Any
    known: Known | None
    """The figure's distribution; None if the file gives a value alone, which counts as exact."""


def is_stated(given: object) -> bool:
    """Whether a value in a file is a table that may say how well a figure is known."""
    return isinstance(given, Mapping) and any(
        field in FIELDS and not isinstance(value, Mapping) for field, value in given.items()
    )


def value_in(given: Any) -> Any:
    """Returns the value that a file gives, unchanged; None if it gives only counts or a range."""
    return given.get("value") if is_stated(given) else given


def stated(key: Key, given: Any) -> Stated:
    """Returns a key as a file states it, by a value or, if the key is a figure, by a table. Raises ConfigError."""
    if not (key.figure and is_stated(given)):
        return Stated(key.read(given), None)
    value, low, high = (_part(key, given, name) for name in ("value", "low", "high"))
    _check_units(key, given)
    match sorted(given.keys() - {"value"}):
        case []:
            return Stated(value, None)
        case ["error_factor"] if value is not None:
            return Stated(value, _with_factor(key, float(value), _part(key, given, "error_factor")))
        case ["events", "exposure"] if key.figure != PROBABILITY:
            known: Known = _counted_in_time(key, given)
        case ["events", "trials"] if key.figure == PROBABILITY:
            known = _counted_in_trials(key, given)
        case ["high", "low"]:
            known = _range(key, given, float(low), float(high))
        case _:
            counts = "events with trials" if key.figure == PROBABILITY else "events with exposure"
            raise ConfigError(
                f"{key.name} = {as_toml(given)}: value with error_factor; or {counts}, or low with high, both with or "
                "without a value"
            )
    if value is None:
        has_units = any(isinstance(each, str) for each in given.values())
        return Stated(Fraction(known.median) if has_units else known.median, known)
    _check_value(key, given, float(value), known)
    return Stated(value, known)


def _part(key: Key, given: Mapping[str, Any], name: str) -> Any:
    """A part of a table, checked; None if it is not there. Raises ConfigError."""
    if name not in given:
        return None
    kinds = {"error_factor": _FACTOR, "events": _COUNT, "trials": _COUNT, "exposure": _EXPOSURE}
    return key._replace(name=f"{key.name}.{name}", kind=kinds.get(name, key.kind)).read(given[name])


def _check_units(key: Key, given: Mapping[str, Any]) -> None:
    there = [given[name] for name in ("value", "low", "high", "exposure") if name in given]
    if key.timed and len({isinstance(each, str) for each in there}) > 1:
        raise ConfigError(f"{key.name} = {as_toml(given)}: either all of it has units, or nothing")


def _with_factor(key: Key, value: float, factor: float) -> LogNormal:
    if value == 0 and factor > 1:
        raise ConfigError(f"{key.name}.error_factor = {as_toml(factor)}: 1, as 0 has no multiples; or low and high")
    if key.figure == PROBABILITY and value * factor**2 > 1:
        raise ConfigError(
            f"{key.name}.error_factor = {as_toml(factor)}: at most {digits(value**-0.5)} with this value, as a "
            "probability is at most 1; or give low and high"
        )
    return LogNormal(value, factor, 1.0 if key.figure == PROBABILITY else float("inf"))


def _counted_in_time(key: Key, given: Mapping[str, Any]) -> Gamma:
    exposure = _part(key, given, "exposure")
    if key.figure == PER_YEAR and isinstance(exposure, Fraction):
        exposure /= YEAR_S
    return Gamma(_part(key, given, "events"), float(exposure))


def _counted_in_trials(key: Key, given: Mapping[str, Any]) -> Beta:
    events, trials = _part(key, given, "events"), _part(key, given, "trials")
    if not max(events, 1) <= trials:
        raise ConfigError(f"{key.name}.trials = {as_toml(trials)}: at least 1, and at least events ({events:,})")
    return Beta(events, trials)


def _range(key: Key, given: Mapping[str, Any], low: float, high: float) -> Known:
    most = 1.0 if key.figure == PROBABILITY else float("inf")
    if not 0 < low < high or high >= most:
        allowed = "above 0, and low below high" + (", which is below 1" if key.figure == PROBABILITY else "")
        ends = ", ".join(f"{key.name}.{end} = {as_toml(given[end])}" for end in ("low", "high"))
        raise ConfigError(f"{ends}: {allowed}")
    return LogitNormal(low, high) if key.figure == PROBABILITY else log_normal_between(low, high)


def _check_value(key: Key, given: Mapping[str, Any], value: float, known: Known) -> None:
    if "low" in given:
        if not float(known.quantile(0.05)) * (1 - 1e-9) <= value <= float(known.quantile(0.95)) * (1 + 1e-9):
            raise ConfigError(f"{key.name}.value = {as_toml(given['value'])}: between low and high")
    elif not known.quantile(_UNLIKELY) <= value <= known.quantile(1 - _UNLIKELY):
        raise ConfigError(
            f"{key.name}.value = {as_toml(given['value'])}: contradicts the counts beside it; without it, answers "
            "are computed with the median of what these tell"
        )


def say(known: Known) -> str:
    """Returns in words how exactly a rate a second or a probability is known: "3 in 200 years", "a factor of 2 either
    way"."""
    match known:
        case Gamma(events, exposure):
            return f"{events:,} in {say_time(exposure)}"
        case Beta(events, trials):
            return f"{events:,} of {trials:,}"
        case LogNormal(_, factor, _):
            return "known exactly" if factor == 1 else f"a factor of {digits(factor)} either way"
    low, high = known.quantile([0.05, 0.95])
    return f"{low:.3g} to {high:.3g}"
