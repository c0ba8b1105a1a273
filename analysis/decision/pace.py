"""Time that work of like pieces still takes, for people who wait."""

import math
import time

_SOON_S = 1.0
"""Seconds after which a pace is known well enough to be shown."""


class Pace:
    """Pieces of work, and the time that they have taken so far."""

    def __init__(self, left: int, halvings: int = 0) -> None:
        """`left` is the number of pieces; a flip that is found adds `halvings`, which narrow it down."""
        self.left, self._done, self._start = left, 0, time.monotonic()
        self._halvings, self._narrowing = halvings, 0

    def took(self, is_flip: bool = False) -> None:
        """Counts one more finished piece, which in a search may be the first to show a flip."""
        self._done += 1
        self.left = max(self.left - 1, 0)
        if self._narrowing:
            self._narrowing -= 1
        elif is_flip:
            self._narrowing = self._halvings
            self.left += self._halvings

    def told(self, at_most_s: float = math.inf) -> str:
        """Returns the remaining time in words; empty if it is unknown."""
        elapsed_s = time.monotonic() - self._start
        if self._done and elapsed_s > _SOON_S:
            return f"; about {rounded(min(elapsed_s / self._done * self.left, at_most_s))} left"
        return f"; at most {rounded(at_most_s)} left" if math.isfinite(at_most_s) else ""


def rounded(seconds: float) -> str:
    """Returns a time in few digits: 15 s, 3 min, 1.5 h."""
    if seconds < 90:
        return f"{max(5 * math.ceil(seconds / 5), 5)} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
