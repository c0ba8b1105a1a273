"""The likeliest path to a loss, among the steps of a head.

A head has one state for all that differ in nothing that matters (`kernels.states.representatives`), so that one of its
steps stands for all those that do the same to things that are alike: their probabilities are added up. The path is then
traced through the model's own states.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from quorisk.kernels import paths
from quorisk.kernels.model import Model
from quorisk.kernels.paths import Path, Step
from quorisk.kernels.states.head import Head
from quorisk.kernels.states.moves import Moves
from quorisk.kernels.states.representatives import representative


class Likeliest(NamedTuple):
    """A path to a loss."""

    path: Path
    p: float
    """Probability that a run takes this path, or one that only differs in which of things that are alike do what."""


def likeliest(head: Head, moves: Moves) -> Likeliest | None:
    """Returns the likeliest path to a state in which data is lost; None if no path leads there."""
    found = likeliest_states(moves)
    if found is None:
        return None
    states, p = found
    model, odds, number = head.model, head.odds, moves.chain.first
    choices = range(model.initial_choices(odds.params))
    first = head.state(states[0])
    choice = next(choice for choice in choices if model.initial(odds.params, choice) == first)
    here, steps = first, list[Step]()
    for before, after in pairwise(states):
        row = np.arange(number[before], number[before + 1])
        row = row[moves.chain.target[row] == after]
        taken = row[moves.chain.p[row].argmax()]
        wanted = head.state(after)
        for step in _steps(model, here, odds.params, int(moves.action[taken]), int(moves.lost[taken])):
            there = paths.after(model, here, odds.params, step)
            if representative(head.expand.programs, there, odds.alike) == wanted:
                here = there
                steps.append(step)
                break
        else:
            raise AssertionError("a head has a step that plain Python does not")
    return Likeliest(Path(choice, tuple(steps)), p)


def likeliest_states(moves: Moves) -> tuple[list[int], float] | None:
    """Returns the states of the path to a loss with the largest product of probabilities, and that product."""
    chain, start = moves.chain, len(moves.chain.ends)
    initial = np.flatnonzero(chain.initial)
    first = np.append(chain.first, len(chain.p) + len(initial))  # one more state leads to where runs start
    p = np.append(chain.p, chain.initial[initial])
    graph = csr_array((p, np.append(chain.target, initial).astype(np.int32), first), (start + 1,) * 2)
    graph.sum_duplicates()
    graph.data = np.maximum(-np.log(graph.data), 0.0)
    costs, before = dijkstra(graph, indices=start, return_predecessors=True)
    lost = np.flatnonzero(moves.is_lost)
    if not len(lost) or not np.isfinite(costs[lost].min()):
        return None
    states = [int(lost[costs[lost].argmin()])]
    cost = costs[states[0]]
    while before[states[-1]] != start:
        states.append(int(before[states[-1]]))
    return states[::-1], float(np.exp(-cost))


def _steps(model: Model, state: Any, params: Any, action: int, num_lost: int) -> list[Step]:
    """Lists the steps of an action from a state that lose `num_lost` members of their subset."""
    instances = [instance for place, instance in paths.instances(model, state, params) if place == action]
    sent = {instance: paths.sends(model, state, params, Step(action, instance, 0)) for instance in instances}
    return [
        Step(action, instance, lost)
        for instance, mask in sent.items()
        for lost in paths.subsets(mask)
        if lost.bit_count() == num_lost
    ]
