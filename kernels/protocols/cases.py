"""Configurations to try a protocol on: the form of CASES in the module `cases` of its package.

Tests and benchmarks go through the registry and take from here what they need, so that a new protocol is tested like
the others without a line changed outside its package. A configuration is a dictionary of parameters by name; those that
it leaves out are as in `Cases.small`, and those that `small` leaves out have their defaults.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

Configuration = Mapping[str, Any]


class Cases(NamedTuple):
    """Configurations of a protocol to try."""

    small: Configuration
    """Sizes whose states a test can search in a second."""
    variants: tuple[Configuration, ...]
    """Each switch off and each choice taken at least once, in runs of some dozens of steps: engines are compared on
    these, run by run. Besides parameters they may set `rates` (by action), `message_loss` and the model's other
    probabilities, `horizon` and `max_steps`.
    """
    walks: tuple[Configuration, ...]
    """Larger ones, up to the limits of the bit layout, in which random walks come to every action: plain Python, Numba
    and JAX are compared on these, step by step, and their stories are told."""
    rarely: tuple[str, ...] = ()
    """Actions that end a run, or nearly: random walks take them 50 times less often."""
    silent: tuple[str, ...] = ()
    """Actions without a message or a note in the story."""
    bench: Mapping[str, Configuration] | None = None
    """The tables of the experiment file that `quorisk bench` steps; `small` if None."""
    bench_search: Mapping[str, Configuration] | None = None
    """The tables of the experiment file that `quorisk bench` searches; none if None."""
