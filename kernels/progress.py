"""Progress of a computation, as whoever computes reports it."""

from collections.abc import Callable

Progress = Callable[[int], None]
"""Callback that is called with the number of runs, or whatever is counted, that ended since its last call."""
