"""Numbers in words, for figures, reports and the screen. Ends of intervals are rounded outwards."""

import math
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

_DIGITS = 3
_LEAST_POWER = -300
"""Least power of ten to divide by: floats near and below it lack some of their digits."""
_NEAR_1 = 0.995
"""Number above which digits are added as needed: nothing below 1 rounds up to 1."""
_TINY = 1e-4
_IN_FULL = 9999.5
"""Number below which no power of ten is written: thousands have four digits."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = _DIGITS) -> str:
    """Returns `digits` significant digits: 0.0123, 1.23 × 10⁻⁵; close to 1 more, as needed: 0.99982."""
    if _NEAR_1 < value < 1:
        return f"{value:.{-_last_place(value)}f}"
    written = f"{value:.{digits - 1}e}"
    exponent = int(written.partition("e")[2] or 0)  # infinity has none
    if exponent >= -3 and (exponent < 4 or value < _IN_FULL):
        return f"{value:.{max(digits - 1 - exponent, 0)}f}"
    return with_powers(written)


def with_powers(written: str) -> str:
    """Returns words with powers of ten as people write them: 4.2 × 10⁻⁵ % / year, in place of 4.2e-05 % / year."""
    return re.sub(r"e([+-]\d+)", lambda power: f" × 10{str(int(power[1])).translate(_SUPERSCRIPTS)}", written)


def counted(count: int, noun: str, nouns: str = "") -> str:
    """Returns a count with its noun: 1 run, 2,000 runs, 1 loss, 2 losses."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def plain(value: float, digits: int = _DIGITS) -> str:
    """Returns `digits` significant digits, without zeros at the end: 0.012, 1.2 × 10⁻⁵; close to 1: 0.99982."""
    amount, *power = number(value, digits).split(" × ")
    return " × ".join([amount.rstrip("0").rstrip(".") if "." in amount else amount, *power])


def in_full(value: float) -> str:
    """Returns a size of three digits, without a power of ten from 1 to 10¹⁵: 173,000."""
    return f"{float(f'{value:.3g}'):,.0f}" if 1.0 <= value < 1e15 else plain(value)


def with_sign(value: float, write: Callable[[float], str] = plain) -> str:
    """Returns a difference, with its sign."""
    return f"{'+' if value >= 0 else '−'}{write(abs(value))}"


def in_brackets(low: float, high: float, write: Callable[[float], str] = plain) -> str:
    """Returns an interval in brackets."""
    return f"[{write(below(low))}, {write(above(high))}]"


def above(value: float) -> float:
    """Returns the next number up that `number` and `plain` write as it is."""
    return _rounded(value, ROUND_CEILING)


def below(value: float) -> float:
    """Returns the next number down that `number` and `plain` write as it is."""
    return _rounded(value, ROUND_FLOOR)


def _rounded(value: float, rounding: str) -> float:
    if value == 0 or not math.isfinite(value):
        return value
    return float(Decimal(repr(float(value))).quantize(Decimal((0, (1,), _last_place(value))), rounding))


def _last_place(value: float) -> int:
    """Returns the power of ten of the last digit that is written."""
    if _NEAR_1 < value < 1:
        return math.floor(math.log10(1 - value)) - 1
    exponent = Decimal(value).adjusted()
    return 0 if exponent == 3 else exponent - _DIGITS + 1


_HEAD = "exact head"
_SOLVED = "exact"


def is_solved(method: str) -> bool:
    """Whether a result's method is another than counting."""
    return method == _SOLVED or method.startswith(_HEAD)


def probability(risk: Mapping[str, Any], write: Callable[[float], str] = number) -> str:
    """Returns the estimate; without losses its upper bound, since nothing seen is not nothing there. It is at most 1,
    unless the risk is `yearly`. Of a head whose exits tell little, both ends are bounds, and there is no estimate."""
    if not risk["losses"]:
        return bound(risk["high"], write, math.inf if risk.get("yearly") else 1.0)
    is_bracket = risk.get("bounds", False) and str(risk.get("method", "")).startswith(_HEAD)
    return f"{write(risk['p'])} (bounds only)" if is_bracket else write(risk["p"])


def bound(high: float, write: Callable[[float], str] = number, most: float = 1.0) -> str:
    """Returns an upper bound of at most `most` for an event that was not seen; 0 if it is known to be impossible."""
    if high == 0:
        return write(0.0)
    return f"< {write(above(high))}" if high < most else "at most 1"


def interval(risk: Mapping[str, Any], write: Callable[[float], str] = number) -> str:
    """Returns both ends of the interval; empty without losses or width, where `probability` says it all."""
    if not risk["losses"] or (risk.get("method") == _SOLVED and risk["low"] == risk["high"]):
        return ""
    low, high = below(risk["low"]), above(risk["high"])
    return between(low, high) if write is number else f"{write(low)} to {write(high)}"


def between(low: float, high: float) -> str:
    """Returns two numbers; a power of ten that both have is written once: 1.12 to 1.45 × 10⁻⁶."""
    powers = [math.floor(math.log10(end)) if end > 0 else None for end in (low, high)]
    whole = powers[1]
    if whole is None or powers[0] != whole or -3 <= whole < 4 or whole < _LEAST_POWER:
        return f"{number(low)} to {number(high)}"
    mantissa = number(low / 10.0**whole)
    return f"{mantissa} to {number(high)}" if float(mantissa) < 10 else f"{number(low)} to {number(high)}"


def entries(number: str) -> str:
    """Returns a written number of entries: 1 entry, 850,000 entries."""
    return f"{number} {'entry' if number == '1' else 'entries'}"


def short(value: float) -> str:
    """Returns a number in full, for ticks, settings and targets: 10⁻⁴, 0.001, 200, 2.5 × 10⁻⁷, −0.1."""
    if value < 0:
        return f"−{short(-value)}"
    exponent = math.log10(value) if value > 0 else math.nan
    if -3 - 1e-9 <= exponent < 4 or math.isnan(exponent):
        return f"{value:g}"
    whole = math.floor(exponent + 1e-9)
    mantissa = "" if math.isclose(exponent, whole, abs_tol=1e-9) else f"{value / 10.0**whole:g} × "
    return f"{mantissa}10{str(whole).translate(_SUPERSCRIPTS)}"


def size(num_bytes: float) -> str:
    """Returns a number of bytes in powers of 1024: 512 B, 3 KiB, 1.44 TiB."""
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = min(max(int(math.log2(num_bytes) // 10), 0), len(units) - 1)
    amount = num_bytes / 1024.0**power
    return f"{amount:.3g} {units[power]}" if amount < 1000 else f"{amount:,.0f} {units[power]}"


def percent(confidence: float) -> str:
    """Returns a confidence level, with three digits of its distance from certainty: 95%, 99.9%, 98.33%."""
    missing = float(f"{1.0 - confidence:.3g}")
    return f"{100.0 * (1.0 - missing):.14g}%"


def share(value: float) -> str:
    """Returns a part of a whole in percent, of three digits: 91.2%, 0.05%, 99.98%."""
    if 1.0 - _TINY < value < 1:
        return "over 99.99%"
    if 0 < value < _TINY:
        return "under 0.01%"
    written = number(value) if _NEAR_1 < value < 1 else f"{value:.{_DIGITS}g}"
    return f"{Decimal(written).scaleb(2).normalize():f}%"
