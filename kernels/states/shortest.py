"""A shortest path to a state that breaks an invariant, as the search of all states finds it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from quorisk.kernels.model import Model
from quorisk.kernels.paths import Path, Step, after, instances, sends, subsets
from quorisk.kernels.states.search import Progress, Visited, visit


class Shortest(NamedTuple):
    """Result of a search for a shortest path."""

    path: Path | None
    proved: bool
    """Whether every reachable state was visited, so that there is no such path."""
    distinct_states: int
    depth: int


def shortest(
    model: Model, params: Any, memory_bytes: int, wanted: Sequence[int], progress: Progress | None = None
) -> Shortest:
    """A path with the fewest steps to a state that breaks any wanted invariant (places in the model's).

    The search goes on beyond states that break another one. It always finds the same one of several such paths. Memory,
    `progress` and errors as with `search.explore`.
    """
    visited = visit(model, params, memory_bytes, progress, wanted)
    places = [int(visited.breaking[3, i]) for i in wanted if visited.breaking[0, i]]
    path = _path(model, params, visited, min(places)) if places else None
    return Shortest(path, visited.complete, visited.num_states, visited.depth)


def _path(model: Model, params: Any, visited: Visited, place: int) -> Path:
    """The path on which the search found the state at `place`."""
    states = []
    while place >= 0:
        states.append(visited.store.state(place))
        place = int(visited.parents[place])
    states.reverse()
    choices = range(model.initial_choices(params))
    choice = next(choice for choice in choices if model.initial(params, choice) == states[0])
    steps = [_step(model, params, *pair) for pair in pairwise(states)]
    return Path(choice, tuple(steps))


def _step(model: Model, params: Any, before: Any, wanted: Any) -> Step:
    """The first step from one state to the other."""
    for action, instance in instances(model, before, params):
        for lost in subsets(sends(model, before, params, Step(action, instance, 0))):
            step = Step(action, instance, lost)
            if after(model, before, params, step) == wanted:
                return step
    raise AssertionError("the search found a successor that plain Python does not")
