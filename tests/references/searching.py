"""The search of all states of a literal interpreter, breadth first."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple


class Found(NamedTuple):
    """What TLC counts."""

    states: set[Any]
    generated_states: int  # initial states and every successor of every state
    depth: int


def search(first: Hashable, successors: Callable[[Any], Iterable[Any]]) -> Found:
    """All states that come of the first one."""
    seen, level = {first}, [first]
    generated, depth = 1, 0
    while level:
        depth += 1
        following = []
        for state in level:
            for after in successors(state):
                generated += 1
                if after not in seen:
                    seen.add(after)
                    following.append(after)
        level = following
    return Found(seen, generated, depth)
