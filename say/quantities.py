"""Physical times and rates in words: 3.2 ms, 5 days, 1 % / year."""

from quorisk.say import numbers

YEAR_S = 31_557_600
"""Seconds of a year."""
_LARGE = (("year", YEAR_S), ("day", 86_400), ("h", 3600), ("min", 60), ("s", 1), ("ms", 1e-3), ("us", 1e-6))
"""Units and their seconds, without months and weeks: 40 days say more than 5.7 weeks."""


def say_time(time_s: float) -> str:
    """Returns a time as people say it, of three digits: 3.2 ms, 5 days, 1,200 years, 3.3 × 10⁹ years."""
    return numbers.with_powers(written_time(time_s))


def say_rate(rate_per_s: float) -> str:
    """Returns a rate as people say it: as `written_rate`, with powers of ten."""
    return numbers.with_powers(written_rate(rate_per_s))


def written_rate(rate_per_s: float) -> str:
    """Returns a rate of three digits, as in an experiment file: 20 / s, 1 % / year, 1 / 2.5 ms; 0.

    The first of these ways that is exact; else the first.
    """
    if rate_per_s == 0:
        return "0"
    a_year = rate_per_s * YEAR_S
    ways = [(f"{digits(100 * a_year)} % / year", _said(100 * a_year) / 100 / YEAR_S)] if a_year < 1 else []
    between = written_time(1 / rate_per_s)
    amount, unit = between.split(" ")
    seconds = dict(_LARGE)[unit.removesuffix("s") if unit in ("days", "years") else unit]
    ways.append((f"1 / {between.removeprefix('1 ')}", 1 / (float(amount.replace(",", "")) * seconds)))
    ways.append((f"{digits(rate_per_s)} / s", _said(rate_per_s)))
    ways += [(f"{digits(a_year)} / year", _said(a_year) / YEAR_S)] if a_year >= 1 else []
    exact = [said for said, value in ways if abs(value / rate_per_s - 1) < 1e-9]
    return exact[0] if exact else ways[0][0]


def written_time(time_s: float) -> str:
    """Returns a time of three digits, as in an experiment file."""
    unit, seconds = next((each for each in _LARGE if time_s >= 0.9995 * each[1]), _LARGE[-1])
    amount = digits(time_s / seconds)
    return f"{amount} {unit}{'s' if unit in ('day', 'year') and amount != '1' else ''}"


def digits(number: float) -> str:
    """Returns three digits, thousands with commas, and no zeros at the end of a fraction."""
    if number >= 1e6 or number < 1e-3:
        return f"{number:.3g}"
    rounded = float(f"{number:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:g}"


def _said(number: float) -> float:
    return float(digits(number).replace(",", ""))
