"""The Markov chain of one configuration: the states that a random run can be in, and the odds of each next state.

It is the exhaustive search, except that a run's end is an end here too (a data-loss invariant is broken, or nothing is
enabled that has a rate) and that what has probability 0 is not followed. With W the sum of the weights w of all enabled
instances, a transition's probability is

    sum of  w / W * loss^k * (1 - loss)^(n - k)

over the instances and the subsets of their n messages, k of them lost, that lead to the same state. These are sums and
products of positive numbers: the relative error is some 1e-15, however small the probability.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.compiled import bind, stepper
from quorisk.kernels.engines.points import Point, scale_rates
from quorisk.kernels.model import LOST, UNFINISHED, Model
from quorisk.kernels.ops import lowest_bit, popcount
from quorisk.kernels.states.packing import num_packed_words
from quorisk.kernels.states.search import ENDED, FULL, MOST_SUCCESSORS, SLICE, TABLE_FULL, state_table, word_tables


class Chain(NamedTuple):
    """States are numbered in the order of their discovery; those of `ends` have no transitions."""

    initial: np.ndarray  # float64 by state, the probability that a run starts in it
    first: np.ndarray  # int64, one more than there are states: state i has the transitions first[i] to first[i + 1] - 1
    target: np.ndarray  # int32 by transition
    p: np.ndarray  # float64 by transition
    total_rate: np.ndarray  # float64 by state, W in the unit of rates: 1 / W is the mean time until the next step
    broken: np.ndarray  # int64 by state, bit i: invariant i does not hold
    ends: np.ndarray  # int8 by state, an index of OUTCOMES: how a run ends here; UNFINISHED if it goes on


class ChainError(ValueError):
    """A chain that does not fit in the memory allowed."""


def build(model: Model, point: Point, memory_bytes: int, progress: Callable[[int, int], None] | None = None) -> Chain:
    """The chain of a point; its `max_steps` and `horizon` play no part.

    `progress(states, transitions)` is called a few times a second. Raises ChainError, RateError.
    """
    start, expand, rehash = _functions(model)
    params = model.make_params(point.values)
    capacity = memory_bytes // bytes_needed(model, 1, 0)
    num_initial = model.initial_choices(params)
    if capacity < num_initial + MOST_SUCCESSORS:
        needed = bytes_needed(model, num_initial + MOST_SUCCESSORS, 0)
        raise ChainError(f"{num_initial:,} initial states and their successors need {-(-needed >> 20)} MiB")
    # only what is written takes memory
    chain = _empty(capacity, memory_bytes // bytes_needed(model, 0, 1))
    states = np.empty((capacity, num_packed_words(model.widths)), np.uint64)
    latest = np.zeros(capacity, np.int64)
    table = np.zeros(max(1 << 16, 1 << (4 * num_initial).bit_length()), np.int64)
    weights, unit = scale_rates(model, point.rates)
    constants = params, np.array(weights, np.int64), 1.0 / float(unit), _fates(model, point.message_loss)
    count = start(params, num_initial, states, table, chain.initial)
    place, status = 0, ENDED
    while place < count:
        stop = min(count, place + SLICE)
        status, place, count = expand(*constants, states, table, latest, place, stop, count, chain)
        transitions = int(chain.first[place])
        over = bytes_needed(model, count, transitions) > memory_bytes
        if status == FULL or (over and place < count):
            filled = f"{count:,} states and {transitions:,} transitions"
            raise ChainError(f"the first {filled} fill {memory_bytes >> 20:,} MiB, and there are more")
        if status == TABLE_FULL:
            table = np.zeros(2 * len(table), np.int64)
            rehash(states, count, table)
        if progress:
            progress(count, transitions)
    return _cut(chain, count)


def bytes_needed(model: Model, states: int, transitions: int) -> int:
    """Memory for a chain of that size: packed states, their table (see `search.explore`), and the arrays."""
    return states * (8 * num_packed_words(model.widths) + 8 * 6 + 41) + transitions * 12


def _empty(states: int, transitions: int) -> Chain:
    return Chain(
        initial=np.zeros(states),
        first=np.zeros(states + 1, np.int64),
        target=np.empty(transitions, np.int32),
        p=np.empty(transitions),
        total_rate=np.empty(states),
        broken=np.empty(states, np.int64),
        ends=np.empty(states, np.int8),
    )


def _cut(chain: Chain, states: int) -> Chain:
    """The chain without the room that was not needed."""
    by_transition = {name: getattr(chain, name)[: chain.first[states]] for name in ("target", "p")}
    by_state = {name: getattr(chain, name)[:states] for name in ("initial", "total_rate", "broken", "ends")}
    return Chain(first=chain.first[: states + 1], **by_state, **by_transition)


def _fates(model: Model, loss: float) -> np.ndarray:
    """[n, k]: the probability that of n messages a given k are lost and the others are not."""
    sizes = range(model.max_sends + 1)
    return np.array([[loss**k * (1.0 - loss) ** (n - k) if k <= n else 0.0 for k in sizes] for n in sizes])


@cache
def _functions(model: Model) -> tuple[Any, Any, Any]:
    """Compiled `start`, `expand` and `rehash`."""
    steps, table = stepper(model), state_table(model)
    shared = {"pack": table.pack, "insert": table.insert}
    start = bind(_start, model.name, cached=True, initial=model.initial, **shared)
    expand = bind(
        _expand,
        model.name,
        cached=True,
        unpack=table.unpack,
        guards=steps.guards,
        sends=steps.sends,
        effect=steps.effect,
        broken=steps.broken,
        outcome=model.outcome,
        data_loss=sum(1 << i for i, invariant in enumerate(model.invariants) if invariant.data_loss),
        **word_tables(model),
        **shared,
    )
    return start, expand, table.rehash


# Templates. The names that they use and this module lacks are bound by `_functions`.
# ruff: noqa: F821


def _start(params, num_initial, states, table, initial_p):
    count = 0
    for choice in range(num_initial):
        pack(initial(params, choice), states[count])
        place = insert(states, table, count)
        initial_p[place] += 1.0 / num_initial
        count += place == count
    return count


def _expand(params, weights, time_unit, fates, states, table, latest, place, last, count, chain):
    """Adds the transitions of states `place` to last - 1. Returns why it stopped, the next state, the number of states.

    latest[i] - 1 is the last transition into state i so far.
    """
    masks = np.empty(num_words, np.int64)
    end = chain.first[place]
    while place < last:
        if count + MOST_SUCCESSORS > len(states) or end + MOST_SUCCESSORS > len(chain.target):
            return FULL, place, count
        if 2 * (count + MOST_SUCCESSORS) > len(table):
            return TABLE_FULL, place, count
        state = unpack(like, states[place])
        chain.broken[place] = broken(state, params)
        guards(state, params, masks)
        total = 0
        for word in range(num_words):
            total += weights[word_action[word]] * popcount(masks[word])
        ends = UNFINISHED if total else outcome(state, params)
        if chain.broken[place] & data_loss:
            ends = LOST
        chain.ends[place] = ends
        chain.total_rate[place] = total * time_unit
        row = end
        for word in range(num_words if ends == UNFINISHED else 0):
            mask = masks[word]
            action = word_action[word]
            chance = weights[action] / total
            while mask != 0 and chance > 0.0:
                instance = word_first[word] + lowest_bit(mask)
                mask &= mask - 1
                sent = sends(state, params, action, instance)
                lost = sent
                while True:
                    p = chance * fates[popcount(sent), popcount(lost)]
                    if p > 0.0:
                        pack(effect(state, params, action, instance, lost), states[count])
                        found = insert(states, table, count)
                        count += found == count
                        if latest[found] <= row:
                            chain.target[end] = found
                            chain.p[end] = 0.0
                            end += 1
                            latest[found] = end
                        chain.p[latest[found] - 1] += p
                    if lost == 0:
                        break
                    lost = (lost - 1) & sent
        place += 1
        chain.first[place] = end
    return ENDED, place, count
