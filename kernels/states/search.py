"""Exhaustive search of a model's states, breadth first, as a model checker does it.

States are kept, each once, in the order of their discovery (`kernels.states.store`). Nothing here knows a protocol.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.cores import num_cores
from quorisk.kernels.keeping import njit_kept
from quorisk.kernels.model import Model
from quorisk.kernels.ops import bits
from quorisk.kernels.states.expand import Expanded, Expander
from quorisk.kernels.states.odds import no_odds
from quorisk.kernels.states.store import ENDED, FULL, MOST_SUCCESSORS, Kept, Store, approach, halted, seek, settle

_MANY = 64
"""Number of successors that are collected before they are settled."""
_THREADS = 4
"""Largest number of threads that expand states: keeping what they find is one thread's work, a fourth of all."""
_LOOKED_AT = 1 << 12
"""Number of new states of which it is noted together what they break."""
Progress = Callable[[int, int], None]


class Search(NamedTuple):
    """Results of an exhaustive search; a depth counts the initial states as 1, as TLC does."""

    complete: bool
    """False if memory ran out, or at `max_depth`: numbers count what was found, and `depth` is the last level begun."""
    distinct_states: int
    generated_states: int
    """Initial states and every successor of every state, duplicates included."""
    depth: int
    breaking_states: dict[str, int]
    first_broken: dict[str, int]
    """States by the first invariant, in the model's order, that they break."""
    first_depth: dict[str, int | None]
    action_counts: dict[str, int]
    """Transitions by action; an action with none is dead in this configuration."""


class SearchError(ValueError):
    """A search that cannot even begin."""


def explore(
    model: Model, params: Any, memory_bytes: int, progress: Progress | None = None, max_depth: int | None = None
) -> Search:
    """Visits every reachable state, or those of no more than `max_depth`. `progress(distinct_states, depth)` is called
    a few times a second.

    Raises SearchError if `memory_bytes` does not hold the initial states.
    """
    visited = visit(model, params, memory_bytes, progress, max_depth=max_depth)
    names = [invariant.name for invariant in model.invariants]
    return Search(
        complete=visited.complete,
        distinct_states=visited.num_states,
        generated_states=model.initial_choices(params) + int(visited.counts.sum()),
        depth=visited.depth,
        breaking_states=dict(zip(names, visited.breaking[0].tolist(), strict=True)),
        first_broken=dict(zip(names, visited.breaking[1].tolist(), strict=True)),
        first_depth={name: int(d) or None for name, d in zip(names, visited.breaking[2], strict=True)},
        action_counts={a.name: int(n) for a, n in zip(model.actions, visited.counts, strict=True)},
    )


class Visited(NamedTuple):
    """The states that a search visited, and its counts."""

    complete: bool
    """False if memory ran out, or if the search ended at `max_depth` or at a state that breaks a wanted invariant."""
    store: Store
    """The states in the order of their discovery, `num_states` of them."""
    parents: np.ndarray
    """int64 by state, the state that it was found from, -1 for initial states; empty if no invariant is wanted."""
    num_states: int
    depth: int
    counts: np.ndarray
    """int64, transitions by action."""
    breaking: np.ndarray
    """int64, see `_note`."""


def visit(
    model: Model,
    params: Any,
    memory_bytes: int,
    progress: Progress | None = None,
    wanted: Sequence[int] = (),
    max_depth: int | None = None,
) -> Visited:
    """Visits states until there are no more, memory is full, or one breaks a wanted invariant (a place in the model's).
    Successors of states of `max_depth` are left out.

    If `wanted` is empty, no breach ends the search. Raises SearchError.
    """
    num_initial = model.initial_choices(params)
    store = Store(model, params, memory_bytes, 8 if wanted else 0)
    if lacking := store.lacks(num_initial):
        raise SearchError(lacking)
    parents = np.empty(len(store.kept.rows) if wanted else 0, np.int64)
    counts = np.zeros(len(model.actions), np.int64)
    breaking = np.zeros((4, len(model.invariants)), np.int64)
    expanders = [Expander(model, no_odds(model, params), judges=False) for _ in range(min(num_cores(), _THREADS))]
    places, count = store.begin(expanders[0].programs)
    status = ENDED if len(places) == num_initial else FULL
    parents[:count] = -1
    _note(expanders[0], store.kept, 0, count, 1, breaking)
    depth, first = 1, 0
    with ThreadPoolExecutor(len(expanders)) as pool:
        while first < count and depth != max_depth and status != FULL and not breaking[0, list(wanted)].any():
            last = count
            while first < last and status != FULL and not breaking[0, list(wanted)].any():
                before = count
                for batch in _side_by_side(expanders, pool, store.kept, first, last):
                    add = partial(_add, batch=batch, first=first, parents=parents, counts=counts)
                    status, done, count = store.keep(batch.rows, batch.layout, batch.num_states, count, add)
                    first += done
                    if status == FULL:
                        break
                _note(expanders[0], store.kept, before, count, depth + 1, breaking)
                if progress:
                    progress(count, depth)
            depth += 1 if count > last else 0
    complete = status != FULL and first == count and not breaking[0, list(wanted)].any()
    return Visited(bool(complete), store, parents, count, depth, counts, breaking)


def _side_by_side(
    expanders: Sequence[Expander], pool: ThreadPoolExecutor, stored: Kept, first: int, last: int
) -> Iterable[Expanded]:
    """The steps of as many of the states `first` to last - 1, in order, as the expanders take together."""
    at_once = expanders[0].at_once
    begins = range(first, min(last, first + at_once * len(expanders)), at_once)
    rows = [stored.rows[begin : begin + at_once][: last - begin].copy() for begin in begins]  # `Store.admit` moves them
    together = pool.map if len(rows) > 1 else map
    return together(lambda expand, part: expand.of_rows(part, stored.layout), expanders, rows)


def _note(expander: Expander, stored: Kept, first: int, last: int, depth: int, breaking: np.ndarray) -> None:
    """Counts what new states break, from number `first` to last - 1. Rows of `breaking`, by invariant: breaking states,
    first broken, and depth and place of the first one that breaks it."""
    programs = expander.fitting(stored.layout)
    for begin in range(first, last, _LOOKED_AT):
        places = np.arange(begin, min(last, begin + _LOOKED_AT))
        broken = programs.judged(programs.rows(stored.rows[places], stored.layout))[0]
        for mask in np.unique(broken[broken != 0]).tolist():
            (those,) = np.nonzero(broken == mask)
            breaking[1, bits(mask)[0]] += len(those)
            for i in bits(mask):
                breaking[0, i] += len(those)
                if breaking[2, i] == 0 or breaking[3, i] > places[those[0]]:
                    breaking[2:, i] = depth, places[those[0]]


@njit_kept
def _add(stored, rows, i, count, batch, first, parents, counts):
    """Adds the successors of states from number `first` + i on, whose steps are in a batch, as `Store.keep` has it.

    Successors are settled many at a time, once the processor has prefetched what that reads. States whose successors
    are not settled when it stops are taken again later.
    """
    mixed, sources = np.empty(_MANY + MOST_SUCCESSORS, np.uint64), np.empty(_MANY + MOST_SUCCESSORS, np.int64)
    while i < len(batch.total):
        num, begun = 0, i
        while i < len(batch.total) and num < _MANY:
            why = halted(stored, count + num)
            if why != ENDED:
                if num > 0:
                    break
                return why, i, count
            for at in range(batch.first[i], batch.first[i + 1]):
                mixed[num] = seek(rows[at], stored, count + num)
                sources[num] = first + i
                num += 1
            i += 1
        for k in range(num):
            approach(stored, mixed[k])
        at = count
        for k in range(num):
            found = settle(stored, at + k, mixed[k], count)
            if found == count:
                if len(parents) > 0:
                    parents[count] = sources[k]
                count += 1
        for step in range(batch.first[begun], batch.first[i]):
            counts[batch.action[step]] += 1
    return ENDED, i, count
