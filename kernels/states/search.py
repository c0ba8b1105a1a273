"""Exhaustive search of a model's states, breadth first, as a model checker does it.

States are packed to the bits that `Model.widths` declares and kept in one array in the order of their discovery; an
open-addressing table of (fingerprint, place) finds duplicates. Nothing here knows a protocol.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.compiled import bind, stepper
from quorisk.kernels.model import Model, num_words, smallest_params
from quorisk.kernels.ops import lowest_bit
from quorisk.kernels.states.packing import hash_words, num_packed_words, packing

MOST_SUCCESSORS = 1 << 14
"""Room kept for the successors of one state; more would need 2**6 lost subsets of 256 instances."""
SLICE = 1 << 15
"""States that compiled code expands at a time."""
_PLACE_BITS = 40
_PLACE = np.int64((1 << _PLACE_BITS) - 1)
ENDED, TABLE_FULL, FULL = range(3)
"""Why compiled code stopped: at the end of its slice, or because the hash table or the other arrays are full."""


Progress = Callable[[int, int], None]


class Search(NamedTuple):
    """What an exhaustive search found; a depth counts the initial states as 1, as TLC does."""

    complete: bool
    """False if memory ran out: all numbers then count what was found so far, and `depth` is the last level begun."""
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


def explore(model: Model, params: Any, memory_bytes: int, progress: Progress | None = None) -> Search:
    """Visits every reachable state. `progress(distinct_states, depth)` is called a few times a second.

    Raises SearchError if `memory_bytes` does not hold the initial states.
    """
    visited = visit(model, params, memory_bytes, progress)
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
    """What a search leaves behind."""

    complete: bool
    """False if memory ran out, or if it ended at a state that was wanted."""
    states: np.ndarray
    """uint64, packed states in the order of their discovery; the first `num_states` rows are in use."""
    parents: np.ndarray
    """int64, by state the one that it was found from, -1 for initial states; empty if no state is wanted."""
    num_states: int
    depth: int
    counts: np.ndarray
    """int64, transitions by action."""
    breaking: np.ndarray
    """int64, see `_note`."""


def visit(
    model: Model, params: Any, memory_bytes: int, progress: Progress | None = None, wanted: Sequence[int] = ()
) -> Visited:
    """Visits states until there are no more, memory is full, or one breaks a wanted invariant (a place in the model's).

    With nothing wanted it goes on. Raises SearchError.
    """
    start, expand, rehash = _functions(model)
    words = num_packed_words(model.widths)
    # a table of at most 4 places a state, twice while it grows
    capacity = memory_bytes // (8 * words + 8 * 6 + (8 if wanted else 0))
    num_initial = model.initial_choices(params)
    if capacity < num_initial + MOST_SUCCESSORS:
        raise SearchError(f"{num_initial} initial states and their successors need {_needed(num_initial, words)}")
    states = np.empty((capacity, words), np.uint64)
    parents = np.empty(capacity if wanted else 0, np.int64)
    table = np.zeros(1 << 16, np.int64)
    while len(table) < 4 * num_initial:
        table = np.zeros(2 * len(table), np.int64)
    counts = np.zeros(len(model.actions), np.int64)
    breaking = np.zeros((4, len(model.invariants)), np.int64)
    count = start(params, num_initial, states, parents, table, breaking)
    depth, first, status = 1, 0, ENDED
    while first < count and status != FULL and not breaking[0, list(wanted)].any():
        last = count
        while first < last and status != FULL and not breaking[0, list(wanted)].any():
            stop = min(last, first + SLICE)
            status, first, count = expand(
                params, states, parents, table, first, stop, count, depth + 1, counts, breaking
            )
            if status == TABLE_FULL:
                table = np.zeros(2 * len(table), np.int64)
                rehash(states, count, table)
            if progress:
                progress(count, depth)
        depth += 1 if count > last else 0
    found = breaking[0, list(wanted)].any()
    return Visited(bool(status != FULL and not found), states, parents, count, depth, counts, breaking)


def _needed(num_initial: int, words: int) -> str:
    return f"{(num_initial + MOST_SUCCESSORS) * 8 * (words + 6) / 2**20:.0f} MiB"


class StateTable(NamedTuple):
    """A model's compiled functions on packed states."""

    pack: Any
    """`pack(state, row)`."""
    unpack: Any
    """`unpack(like, row)`."""
    insert: Any
    """See `_insert`."""
    rehash: Any
    """`rehash(states, count, table)`: fills a larger, empty table."""


@cache
def state_table(model: Model) -> StateTable:
    """The functions that keep the states of a model, each once."""
    return StateTable(*packing(model.widths), bind(_insert, model.name), bind(_rehash, model.name, cached=True))


def word_tables(model: Model) -> dict[str, Any]:
    """What compiled code that enumerates instances needs as globals: a state for its type, and of each word of
    instances its action and its first instance."""
    per_action = num_words(model)
    return {
        "like": model.initial(smallest_params(model), 0),
        "num_words": sum(per_action),
        "word_action": np.repeat(np.arange(len(per_action)), per_action),
        "word_first": np.concatenate([64 * np.arange(n) for n in per_action]),
    }


@cache
def _functions(model: Model) -> tuple[Any, Any, Any]:
    steps, table = stepper(model), state_table(model)
    note = bind(_note, model.name, broken=steps.broken, num_invariants=len(model.invariants))
    shared = {"pack": table.pack, "insert": table.insert, "note": note}
    start = bind(_start, model.name, cached=True, initial=model.initial, **shared)
    expand = bind(
        _expand,
        model.name,
        cached=True,
        unpack=table.unpack,
        guards=steps.guards,
        sends=steps.sends,
        effect=steps.effect,
        **word_tables(model),
        **shared,
    )
    return start, expand, table.rehash


# Templates. The names that they use and this module lacks are bound by `_functions`.
# ruff: noqa: F821


def _insert(states, table, place):
    """The place of the state just written at `place`, behind all others: that of its equal, or its own if it is new."""
    row = states[place]
    slots = len(table) - 1
    mixed = hash_words(row)
    slot = np.int64(mixed) & slots
    fingerprint = np.int64(mixed >> np.uint64(_PLACE_BITS + 1)) << _PLACE_BITS
    while table[slot] != 0:
        entry = table[slot]
        if entry & ~_PLACE == fingerprint:
            other = states[(entry & _PLACE) - 1]
            same = True
            for i in range(len(row)):
                if row[i] != other[i]:
                    same = False
                    break
            if same:
                return (entry & _PLACE) - 1
        slot = (slot + 1) & slots
    table[slot] = fingerprint | (place + 1)
    return place


def _note(state, params, depth, place, breaking):
    """Counts what a new state breaks. Rows of `breaking`, by invariant: breaking states, first broken, and depth and
    place of the first one that breaks it."""
    mask = broken(state, params)
    if mask != 0:
        breaking[1, lowest_bit(mask)] += 1
        for i in range(num_invariants):
            if mask >> i & 1:
                breaking[0, i] += 1
                if breaking[2, i] == 0:
                    breaking[2, i] = depth
                    breaking[3, i] = place


def _start(params, num_initial, states, parents, table, breaking):
    count = 0
    for choice in range(num_initial):
        state = initial(params, choice)
        pack(state, states[count])
        if insert(states, table, count) == count:
            note(state, params, 1, count, breaking)
            if len(parents) > 0:
                parents[count] = -1
            count += 1
    return count


def _expand(params, states, parents, table, first, last, count, depth, counts, breaking):
    """Adds the successors of states first to last - 1. Returns why it stopped, the next state, and their number."""
    masks = np.empty(num_words, np.int64)
    for place in range(first, last):
        if count + MOST_SUCCESSORS > len(states):
            return FULL, place, count
        if 2 * (count + MOST_SUCCESSORS) > len(table):
            return TABLE_FULL, place, count
        state = unpack(like, states[place])
        guards(state, params, masks)
        for word in range(num_words):
            mask = masks[word]
            action = word_action[word]
            while mask != 0:
                instance = word_first[word] + lowest_bit(mask)
                mask &= mask - 1
                sent = sends(state, params, action, instance)
                lost = sent
                while True:
                    successor = effect(state, params, action, instance, lost)
                    counts[action] += 1
                    pack(successor, states[count])
                    if insert(states, table, count) == count:
                        note(successor, params, depth, count, breaking)
                        if len(parents) > 0:
                            parents[count] = place
                        count += 1
                    if lost == 0:
                        break
                    lost = (lost - 1) & sent
    return ENDED, last, count


def _rehash(states, count, table):
    slots = len(table) - 1
    for place in range(count):
        mixed = hash_words(states[place])
        slot = np.int64(mixed) & slots
        while table[slot] != 0:
            slot = (slot + 1) & slots
        table[slot] = np.int64(mixed >> np.uint64(_PLACE_BITS + 1)) << _PLACE_BITS | (place + 1)
