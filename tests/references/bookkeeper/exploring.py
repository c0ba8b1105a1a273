"""The search of all states, and the exact chain of random runs through them."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import fsum
from typing import Any

import numpy as np
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import splu

from quorisk.kernels.protocols.bookkeeper.describe import SpecState
from tests.references import absorbing
from tests.references.bookkeeper.actions import ACTIONS, LOST_WITH, instances
from tests.references.bookkeeper.beginning import initial
from tests.references.bookkeeper.properties import DATA_LOSS, INVARIANTS, invariants
from tests.references.bookkeeper.state import Constants
from tests.references.searching import search


def explore(constants: Constants) -> dict[str, Any]:
    """Counts of a search of all states."""
    first_broken = dict.fromkeys(INVARIANTS, 0)
    breaking_states = dict.fromkeys(INVARIANTS, 0)
    first_depth: dict[str, int] = {}
    action_counts = dict.fromkeys(ACTIONS, 0)

    def successors(state: SpecState) -> Iterator[SpecState]:
        for instance in instances(state, constants):
            action_counts[instance.action] += len(instance.outcomes)
            yield from (after for *_, after in instance.outcomes)

    found = search(initial(constants), successors)
    for state, depth in found.states.items():
        breaks = [name for name, holds in invariants(state, constants).items() if not holds]
        for name in breaks[:1]:
            first_broken[name] += 1
        for name in breaks:
            breaking_states[name] += 1
            first_depth.setdefault(name, depth)
    return {
        "distinct_states": len(found.states),
        "generated_states": found.generated_states,
        "depth": found.depth,
        "states_by_first_broken_invariant": first_broken,
        "invariants": {
            name: {"breaking_states": breaking_states[name], "first_depth": first_depth.get(name)}
            for name in INVARIANTS
        },
        "action_counts": action_counts,
    }


Graph = list[dict[int, float]]  # by state, the probabilities of its successors; state 0 is the initial one


def expected_visits(graph: Graph, stop: set[int]) -> list[float]:
    """How often each state is visited on average by a run that ends at the states in stop."""
    out = [{} if i in stop else row for i, row in enumerate(graph)]
    waiting = Counter(j for row in out for j in row)
    visits = [1.0] + [0.0] * (len(graph) - 1)
    ready = deque(i for i in range(len(graph)) if waiting[i] == 0)
    done = 0
    while ready:
        i = ready.popleft()
        done += 1
        for j, p in out[i].items():
            visits[j] += visits[i] * p
            waiting[j] -= 1
            if waiting[j] == 0:
                ready.append(j)
    if done == len(graph):  # no cycles: only sums of positive terms
        return visits
    rows, cols, values = zip(*((j, i, p) for i, row in enumerate(out) for j, p in row.items()), strict=True)
    inflow = csc_array((values, (rows, cols)), shape=(len(graph), len(graph)))
    start = np.zeros(len(graph))
    start[0] = 1.0
    system = csc_array(eye_array(len(graph)) - inflow)
    return [float(x) for x in splu(system, diag_pivot_thresh=0.0).solve(start)]


@lru_cache(maxsize=1)  # one that is asked for at several rates in a row is explored once
def _steps(constants: Constants) -> tuple[list[list[tuple[str, list[tuple[int, int, int]]]]], list[dict[str, bool]]]:
    """Of every state that runs reach, whatever their rates: each action instance and what it may come to (messages
    sent, lost, the next state's number); and which invariants hold. State 0 is the initial one."""
    holding: list[dict[str, bool]] = []

    def is_lost(state: SpecState) -> bool:
        holding.append(invariants(state, constants))
        return not all(holding[-1][name] for name in DATA_LOSS)

    graph = absorbing.explore(initial(constants), lambda state: instances(state, constants), is_lost)
    return graph.instances, holding


def loss_chain(
    constants: Constants, message_loss: float, rates: Mapping[str, float] | None = None, **others: float
) -> dict[str, Any]:
    """Exact probabilities that a random run breaks each invariant by its end, and its expected length.

    A run ends at the first state that breaks a data-loss invariant or enables no action with a rate. `others` are the
    probabilities of LOST_WITH.
    """
    p_lost = {action: others.get(LOST_WITH[action], 0.0) if action in LOST_WITH else message_loss for action in ACTIONS}
    rate = dict.fromkeys(ACTIONS, 1.0) | dict(rates or {})
    moves, holding = _steps(constants)
    number = {0: 0}
    queue = deque([0])
    graph: Graph = []
    breaking: dict[str, set[int]] = {name: set() for name in INVARIANTS}
    while queue:  # states are numbered anew, in the order in which they leave the queue
        state = queue.popleft()
        row: dict[int, float] = {}
        for name in INVARIANTS:
            if not holding[state][name]:
                breaking[name].add(len(graph))
        total = sum(rate[action] for action, _ in moves[state])
        for action, outcomes in moves[state]:
            for sent, lost, successor in outcomes if rate[action] > 0 else ():
                p = rate[action] / total * p_lost[action] ** lost * (1.0 - p_lost[action]) ** (sent - lost)
                if p > 0:
                    if successor not in number:
                        number[successor] = len(number)
                        queue.append(successor)
                    index = number[successor]
                    row[index] = row.get(index, 0.0) + p
        graph.append(row)
    visits = expected_visits(graph, set())
    probability = {}
    for name, states in breaking.items():
        seen = visits if name in DATA_LOSS or not states else expected_visits(graph, states)
        probability[name] = fsum(seen[i] for i in states)
    return {
        "p": probability,
        "expected_steps": fsum(visits[i] for i, row in enumerate(graph) if row),
        "states": len(graph),
    }
