"""The subject of numbers, and the limits of their model: words that stand beside them in a report."""

from typing import NamedTuple


class ScenarioWords(NamedTuple):
    """A scenario in words."""

    name: str
    per_year: float
    about: str
    simplifications: tuple[str, ...]
    """Simplifications in it, a sentence each."""
    hits: float = 1.0
    """Objects that each event touches."""


class Scope(NamedTuple):
    """The scope of an experiment."""

    limits: tuple[str, ...] = ()
    """Limits of the model, a sentence each."""
    scenarios: tuple[ScenarioWords, ...] = ()
    latency: tuple[str, ...] = ()
    """Sentences on the source of write latencies, and on their omissions; empty if there are none."""
    profile: str = ""
    """Name and description of the profile that physical figures come from; empty without one."""
    settings: tuple[tuple[str, str, str], ...] = ()
    """Settings of a real cluster: names, key of the experiment file, and a remark on each."""
