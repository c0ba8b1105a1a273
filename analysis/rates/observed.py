"""Counts from data: events of a kind, day by day, and the exposure that they are counted in."""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from quorisk.analysis.statistics.known import Beta, Gamma
from quorisk.kernels.protocols.evidence import DRIVE_FAILURES, EventKind
from quorisk.say.quantities import say_time

DAY_S = 86_400
EPOCH = date(1970, 1, 1)
_MOST_MONTHS, _MOST_QUARTERS = 15, 24
"""Months, quarters or years that a series is cut into: as many as can be looked at."""


class Series(NamedTuple):
    """Counts of consecutive days."""

    first_day: int
    """The first day, in days since 1970."""
    events: np.ndarray
    """float64[days], whole numbers: no sum of them wraps around."""
    exposure: np.ndarray
    """float64[days], in seconds, days or trials."""

    def plus(self, other: "Series") -> "Series":
        """Returns the sum of both, day by day."""
        both = self, other
        days = [each.first_day + np.arange(len(each.events)) for each in both]
        columns = days, [each.events for each in both], [each.exposure for each in both]
        return series(*map(np.concatenate, columns))


class Period(NamedTuple):
    """A month, quarter or year of a series."""

    first: date
    last: date
    events: int
    exposure: float


class Observed(NamedTuple):
    """Counts of one kind."""

    kind: EventKind
    series: Series
    """Counts by day; the exposure is in trials if the kind's is, else in seconds."""
    source: str
    """Source of the counts, in words."""

    @property
    def events(self) -> int:
        return int(self.series.events.sum())

    @property
    def exposure(self) -> float:
        return float(self.series.exposure.sum())

    @property
    def amount(self) -> str:
        """The exposure in words."""
        if self.kind.in_trials:
            return f"{self.exposure:,.0f} {self.kind.counted_in}"
        if self.kind == DRIVE_FAILURES:
            return f"{self.exposure / DAY_S:,.0f} drive-days"
        return f"{say_time(self.exposure)} of {self.kind.counted_in}"

    @property
    def known(self) -> Gamma | Beta:
        """The posterior of the rate a second, or of the probability: all counts together."""
        return posterior(self.kind, self.events, self.exposure)


def posterior(kind: EventKind, events: int, exposure: float) -> Gamma | Beta:
    """Returns the posterior of a kind's rate, or of its probability, by its events in an exposure."""
    return (Beta if kind.in_trials else Gamma)(events, exposure)


def series(days: ArrayLike, events: ArrayLike, exposure: ArrayLike) -> Series:
    """Returns the sums of events and of exposure by day; days come in any order, and may come again."""
    days = np.asarray(days, np.int64)
    if not len(days):
        return Series(0, np.zeros(0), np.zeros(0))
    first, last = int(days.min()), int(days.max())
    whole = Series(first, np.zeros(last - first + 1), np.zeros(last - first + 1))
    np.add.at(whole.events, days - first, np.asarray(events, float))
    np.add.at(whole.exposure, days - first, np.asarray(exposure, float))
    return whole


def day_of(time_s: float) -> int:
    """Returns the day of a Unix time (UTC), as days since 1970."""
    return int(time_s // DAY_S)


def as_date(day: int) -> date:
    """Returns a number of days since 1970 as a date."""
    return EPOCH + timedelta(days=day)


def periods(whole: Series) -> Iterator[Period]:
    """Yields a series cut into months, or into quarters or years if it is long."""
    if not len(whole.events):
        return
    first, last = as_date(whole.first_day), as_date(whole.first_day + len(whole.events) - 1)
    num_months = 12 * (last.year - first.year) + last.month - first.month + 1
    step = 1 if num_months <= _MOST_MONTHS else 3 if num_months <= 3 * _MOST_QUARTERS else 12
    start = first
    while start <= last:
        month = (start.month - 1) // step * step + step  # months before the next period, counted from January
        after = date(start.year + month // 12, month % 12 + 1, 1)
        days = slice((start - first).days, (after - first).days)
        end = min(after - timedelta(days=1), last)
        yield Period(start, end, int(whole.events[days].sum()), float(whole.exposure[days].sum()))
        start = after
