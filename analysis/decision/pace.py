"""Time that work of like pieces still takes, for people who wait."""

import math
import time

_SOON_S = 1.0
"""Seconds after which a pace is known well enough to be shown."""


class Pace:
    """Pieces of work, and the time that they have taken so far."""

    def __init__(self, left: float, halvings: int = 0) -> None:
        """`left` is the number of pieces; a flip that is found adds `halvings`, which narrow it down."""
        self.left, self._done, self._halvings, self._narrowing = left, 0.0, halvings, 0
        self._start = self._last = time.monotonic()

    def took(self, is_flip: bool = False, part: float = 1.0) -> None:
        """Counts one more finished piece, or a `part`; in a search it may be the first to show a flip."""
        self._done, self._last = self._done + part, time.monotonic()
        self.left = max(self.left - part, 0.0)
        if self._narrowing:
            self._narrowing -= 1
        elif is_flip:
            self._narrowing = self._halvings
            self.left += self._halvings

    def told(self, at_most_s: float = math.inf) -> str:
        """Returns the remaining time in words; empty if it is unknown, as when a piece takes longer than expected."""
        took_s = self._last - self._start
        left_s = took_s * self.left / self._done - (time.monotonic() - self._last) if self._done else 0.0
        if took_s > _SOON_S and left_s > 0.0:
            return f"; about {rounded(min(left_s, at_most_s))} left"
        return f"; at most {rounded(at_most_s)} left" if math.isfinite(at_most_s) else ""


def rounded(seconds: float) -> str:
    """Returns a time in few digits: 15 s, 3 min, 1.5 h."""
    if seconds < 90:
        return f"{max(5 * math.ceil(seconds / 5), 5)} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
