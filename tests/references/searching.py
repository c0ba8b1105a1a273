"""The search of all states of a literal interpreter, breadth first."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple


class Found(NamedTuple):
    """What TLC counts."""

    states: dict[Any, int]  # by state, its depth, counted from 1, in the order in which they are met
    generated_states: int  # initial states and every successor of every state
    depth: int


def search(first: Hashable, successors: Callable[[Any], Iterable[Any]]) -> Found:
    """All states that come of the first one."""
    seen, left = {first: 1}, [first]
    generated = 1
    for state in left:  # which grows
        for after in successors(state):
            generated += 1
            if after not in seen:
                seen[after] = seen[state] + 1
                left.append(after)
    return Found(seen, generated, seen[left[-1]])
