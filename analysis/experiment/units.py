"""Physical quantities of an experiment file, exact: "5 s", "1 / 2 ms", "1 % / year", "1 / (3 years)".

    time = NUMBER UNIT                         250 us, 2.5 ms, 7 days
    rate = NUMBER [%] / [NUMBER] UNIT          1 / 2 ms, 1 % / year, 20 / s; "per" may stand for the slash
    size = NUMBER UNIT                         24 TB, 512 GiB
    bandwidth = SIZE/s                         125 MB/s, 1 Gbit/s

Everything after the slash is the denominator: 1 / 2 ms is one every two milliseconds, 500 a second. (Libraries of
units read it as half a millisecond, which is one reason for so small a grammar; that the best of them takes seconds to
load is another.) A year is the Julian one, 365.25 days. Months, which differ in length, and m, which may mean minutes,
are no units.
"""

import re
from collections.abc import Mapping
from fractions import Fraction

from quorisk.kernels.errors import ConfigError
from quorisk.say.quantities import YEAR_S, digits, written_rate, written_time

_SECONDS: Mapping[str, Fraction] = {
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "day": Fraction(86_400),
    "week": Fraction(7 * 86_400),
    "year": Fraction(YEAR_S),
}
_WORDS = {
    "us": ("us", "µs", "μs", "microsecond", "microseconds"),  # the micro sign, and the Greek letter
    "ms": ("ms", "millisecond", "milliseconds"),
    "s": ("s", "sec", "second", "seconds"),
    "min": ("min", "minute", "minutes"),
    "h": ("h", "hour", "hours"),
    "day": ("day", "days"),
    "week": ("week", "weeks"),
    "year": ("year", "years"),
}
_UNITS = {word: _SECONDS[unit] for unit, words in _WORDS.items() for word in words}
UNITS = ", ".join(_SECONDS)
_BYTES = {
    prefix + unit: Fraction(1000 if not prefix.endswith("i") else 1024) ** power
    * (1 if unit == "B" else Fraction(1, 8))
    for power, prefixes in enumerate((("",), ("k", "K", "Ki"), ("M", "Mi"), ("G", "Gi"), ("T", "Ti"), ("P", "Pi")))
    for prefix in prefixes
    for unit in ("B", "bit")
}
TIME = 'a time such as "5 s" or "7 days"'
RATE = 'a rate such as "1 / 2 ms" or "1 % / year"'
SIZE = 'a size such as "24 TB" or "512 GiB"'
BANDWIDTH = 'a bandwidth such as "125 MB/s" or "1 Gbit/s"'

# at most so long that an exact fraction of it stays small
_NUMBER = r"[0-9]{1,3}(?:_[0-9]{3}){1,6}|(?:[0-9]{1,20}(?:\.[0-9]{1,20})?|\.[0-9]{1,20})(?:[eE][+-]?[0-9]{1,2})?"
_TIME = re.compile(rf"({_NUMBER})\s*([^\W\d_]+)")
_RATE = re.compile(
    rf"({_NUMBER})\s*(%)?\s*(?:/|per\b)\s*(?:\(\s*({_NUMBER})\s*([^\W\d_]+)\s*\)|({_NUMBER})?\s*([^\W\d_]+))"
)


def read_time(text: str) -> Fraction:
    """Returns the seconds of a time. Raises ConfigError."""
    text = text.strip()
    if match := _TIME.fullmatch(text):
        return Fraction(match[1]) * _unit(match[2])
    if _RATE.fullmatch(text):
        raise ConfigError(f"{TIME}; this is a rate")
    raise ConfigError(TIME)


def read_rate(text: str) -> Fraction:
    """Returns how many times a second a rate means. Raises ConfigError."""
    text = text.strip()
    if match := _RATE.fullmatch(text):
        time_s = Fraction(match[3] or match[5] or 1) * _unit(match[4] or match[6])
        if time_s == 0:
            raise ConfigError(f"{RATE}; the time must not be 0")
        return Fraction(match[1]) / (100 if match[2] else 1) / time_s
    if _TIME.fullmatch(text):
        raise ConfigError(f'{RATE}; this is a time: is "1 / {text}" meant?')
    raise ConfigError(RATE)


def read_size(text: str) -> Fraction:
    """Returns the bytes of a size. Raises ConfigError."""
    match = _TIME.fullmatch(text.strip())
    if not match or match[2] not in _BYTES or match[2].endswith("bit"):
        raise ConfigError(SIZE)
    return Fraction(match[1]) * _BYTES[match[2]]


def read_bandwidth(text: str) -> Fraction:
    """Returns the bytes a second of a bandwidth. Raises ConfigError."""
    match = _TIME.fullmatch(re.sub(r"\s*/\s*s$", "", text.strip()))
    if not match or match[2] not in _BYTES or not re.search(r"/\s*s$", text.strip()):
        raise ConfigError(BANDWIDTH)
    return Fraction(match[1]) * _BYTES[match[2]]


def say_like(text: str, rate_per_s: float) -> str:
    """Returns a rate, of three digits, in the form of another one: as 0.75 % / min, 1 / 2 ms or 20 / s. If that is not
    the text of a rate, the form is one that people would use.
    """
    match = _RATE.fullmatch(text.strip())
    if not match or rate_per_s <= 0:
        return written_rate(rate_per_s)
    if not match[2] and float(match[1]) == 1:
        return f"1 / {written_time(1 / rate_per_s).removeprefix('1 ')}"
    per, percent = re.split(r"/|per\b", text, maxsplit=1)[1].strip(), match[2] or ""
    time_s = Fraction(match[3] or match[5] or 1) * _unit(match[4] or match[6])
    amount = digits(rate_per_s * float(time_s) * (100 if percent else 1))
    return " ".join(filter(None, (amount, percent, "/", per)))


def _unit(word: str) -> Fraction:
    if word not in _UNITS:
        raise ConfigError(f"{word} is not a unit of time; use {UNITS}")
    return _UNITS[word]
