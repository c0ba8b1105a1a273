"""Exhaustive search of one configuration: every state that any order of events and any lost messages lead to."""

import re
import time
from collections.abc import Callable
from typing import Any

from quorisk.analysis.estimate.estimate import only_point
from quorisk.analysis.experiment.config import Experiment
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.states import search
from quorisk.kernels.states.search import Search, SearchError

MAX_BYTES = 2**50
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
NOTE = (
    "Every enabled action and every subset of lost messages is followed, whatever the rates and message_loss: "
    "an exhaustive search says what can happen, not how likely it is."
)


def parse_memory(text: str) -> int:
    """Returns the number of bytes that a text such as 4GiB means. Raises ConfigError."""
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*([A-Za-z]*)\s*", text)
    units = {unit.lower(): size for unit, size in UNITS.items()}
    size = round(float(match[1]) * units.get(match[2].lower() or "b", 0)) if match else 0
    if not 0 < size <= MAX_BYTES:
        raise ConfigError(f" {text!r}: above 0 and at most 1024TiB, written as 4GiB (or {', '.join(UNITS)})", "memory")
    return size


def too_much(memory_bytes: int, instead: str = "ask for less") -> ConfigError:
    """Returns the error to raise if the system does not have that much memory."""
    unit, size = next(each for each in reversed(UNITS.items()) if each[1] <= memory_bytes)
    said = f"{memory_bytes / size:.4g}{unit}"
    return ConfigError(f" {said}: this machine does not have that much memory; {instead}", "memory")


def history_switches(experiment: Experiment) -> list[str]:
    """Returns the switches for history that the specification's own states lack and that the file does not set."""
    return [p.name for p in experiment.model.parameters if p.history and f"{p.table}.{p.name}" not in experiment.given]


def explore(
    experiment: Experiment,
    memory_bytes: int,
    progress: Callable[[int, int], None] | None = None,
    max_depth: int | None = None,
) -> tuple[Search, float]:
    """Searches all states of the one point of an experiment, up to a depth, if any; initial states have depth 1.
    Returns the result, and the seconds it took, with compilation. `progress` is called with the number of states and
    the depth reached. Raises ConfigError."""
    model, point = experiment.model, only_point(experiment).point
    values = dict(point.values) | dict.fromkeys(history_switches(experiment), False)
    start = time.perf_counter()
    try:
        found = search.explore(model, model.make_params(values), memory_bytes, progress, max_depth)
    except SearchError as error:
        raise ConfigError(f": {error}", "memory") from None
    except MemoryError:
        raise too_much(memory_bytes) from None
    return found, time.perf_counter() - start


def as_json(experiment: Experiment, found: Search, seconds: float) -> dict[str, Any]:
    """Returns an object for `json.dumps`: the fields of `Search`; None in place of 0 where not all was looked at."""
    left_out = history_switches(experiment)
    none = 0 if found.complete and not left_out else None
    invariants = {
        name: {"breaking_states": states or none, "first_depth": found.first_depth[name]}
        for name, states in found.breaking_states.items()
    }
    kept = {k: v for k, v in found._asdict().items() if k not in ("breaking_states", "first_depth")}
    kept["first_broken"] = {name: states or none for name, states in found.first_broken.items()}
    identity = {"protocol": experiment.protocol, "point_id": only_point(experiment).point_id}
    return identity | kept | {"left_out": left_out, "invariants": invariants, "seconds": seconds}
