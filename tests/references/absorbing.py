"""The probability that a run is lost, in sixty decimal digits: an oracle for exact numbers at rates far apart.

It shares nothing with what it judges: states come from a literal interpreter of a specification, rates are decimals,
and the equations h[i] = sum over j of p[i, j] h[j] are solved as they are written down, component by component.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from decimal import Decimal, localcontext
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

DIGITS = 60
Row = dict[int, Decimal]


class Graph(NamedTuple):
    """Every state that runs reach, whatever their rates; state 0 is the initial one."""

    instances: list[list[tuple[str, list[tuple[int, int, int]]]]]
    """By state: of each action instance the name, and what it may come to: messages sent, lost, and the next state."""
    is_lost: list[bool]


def explore(start: Hashable, instances: Callable[[Any], Iterable[Any]], is_lost: Callable[[Any], bool]) -> Graph:
    """The graph of an interpreter, whose instances have an `action` and `outcomes`."""
    number = {start: 0}
    queue = deque([start])
    graph = Graph([], [])
    while queue:
        state = queue.popleft()
        graph.is_lost.append(is_lost(state))
        found = []
        for one in () if graph.is_lost[-1] else instances(state):
            moves = []
            for sent, lost, successor in one.outcomes:
                if successor not in number:
                    number[successor] = len(number)
                    queue.append(successor)
                moves.append((sent, lost, number[successor]))
            found.append((one.action, moves))
        graph.instances.append(found)
    return graph


def p_lost(
    graph: Graph,
    rates: Mapping[str, Decimal],
    message_loss: Decimal,
    end_rate: Decimal,
    others: Mapping[str, Decimal] | None = None,
) -> Decimal:
    """P(a run is lost) that ends anyhow at `end_rate` in every state; actions in `others` lose what they may lose with
    another probability than messages."""
    p_by_action = dict.fromkeys(rates, message_loss) | dict(others or {})
    with localcontext() as context:
        context.prec = DIGITS
        rows = [_row(instances, rates, p_by_action, end_rate) for instances in graph.instances]
        found: dict[int, Decimal] = {i: Decimal(int(lost)) for i, lost in enumerate(graph.is_lost) if lost}
        for component in _components(rows):
            if not graph.is_lost[component[0]]:
                _solve(component, rows, found)
        return found[0]


def _row(
    instances: list[tuple[str, list[tuple[int, int, int]]]],
    rates: Mapping[str, Decimal],
    p_by_action: Mapping[str, Decimal],
    end_rate: Decimal,
) -> Row:
    total = sum((rates[action] for action, _ in instances), end_rate)
    row: Row = {}
    for action, moves in instances:
        for sent, lost, to in moves:
            loss = p_by_action[action]
            p = rates[action] / total * _power(loss, lost) * _power(1 - loss, sent - lost)
            if p:
                row[to] = row.get(to, Decimal(0)) + p
    return row


def _components(rows: list[Row]) -> list[list[int]]:
    """Strongly connected components, each after those that it leads to."""
    source = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    target = np.array([j for row in rows for j in row], np.int64)
    graph = csr_array((np.ones(len(target)), (source, target)), shape=(len(rows), len(rows)))
    _, label = connected_components(graph, connection="strong")
    members: dict[int, list[int]] = {}
    for state, component in enumerate(label.tolist()):
        members.setdefault(component, []).append(state)
    leads_to: dict[int, set[int]] = {component: set() for component in members}
    for i, j in zip(label[source].tolist(), label[target].tolist(), strict=True):
        if i != j:
            leads_to[i].add(j)
    return [members[component] for component in TopologicalSorter(leads_to).static_order()]


def _solve(component: list[int], rows: list[Row], found: dict[int, Decimal]) -> None:
    """Gauss and Jordan on the states of a component, those that it leads to being found already."""
    place = {state: i for i, state in enumerate(component)}
    size = len(component)
    system = [[Decimal(int(i == j)) for j in range(size)] + [Decimal(0)] for i in range(size)]
    for state, i in place.items():
        for to, p in rows[state].items():
            if to in place:
                system[i][place[to]] -= p
            else:
                system[i][size] += p * found[to]
    for i in range(size):
        pivot = system[i][i]
        system[i] = [value / pivot if value else value for value in system[i]]
        for k in range(size):
            factor = system[k][i]
            if k != i and factor:
                system[k] = [a - factor * b if b else a for a, b in zip(system[k], system[i], strict=True)]
    for state, i in place.items():
        found[state] = system[i][size]


def _power(base: Decimal, exponent: int) -> Decimal:
    return base**exponent if exponent else Decimal(1)  # decimals have no 0**0
