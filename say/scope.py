"""What numbers are about, and what they leave out: words that stand beside them in a report."""

from typing import Any, NamedTuple


class Told(NamedTuple):
    """A scenario in words."""

    name: str
    per_year: float
    about: str
    simplifications: tuple[str, ...]
    """What it makes simpler than it is, a sentence each."""
    hits: float = 1.0
    """Objects that each event touches."""


class Scope(NamedTuple):
    """Of an experiment."""

    limits: tuple[str, ...] = ()
    """What its model leaves out, a sentence each."""
    scenarios: tuple[Told, ...] = ()
    latency: tuple[str, ...] = ()
    """Where write latencies come from, and what is not in them; empty if there are none."""
    profile: str = ""
    """Whose physical figures they are."""
    settings: tuple[tuple[str, str, str], ...] = ()
    """Settings of a real cluster, what becomes of each here, and a remark."""

    def as_json(self) -> dict[str, Any]:
        """For `json.dumps`."""
        return self._asdict() | {"scenarios": [each._asdict() for each in self.scenarios]}
