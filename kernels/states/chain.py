"""The Markov chain of one configuration: the states that a random run can be in, and the odds of each next state.

It is the exhaustive search, except that a run's end is an end here too (a data-loss invariant is broken, or nothing is
enabled that has a rate) and that what has probability 0 is not followed. With W the sum of the rates r of all enabled
instances, and of 1 / lifetime, a transition's probability is

    sum of  r / W * loss^k * (1 - loss)^(n - k)

over the instances and the subsets of their n messages, k of them lost, that lead to the same state. These are sums and
products of positive numbers: the relative error is some 1e-15, however small the probability and however far apart the
rates. If there is a lifetime, its end is one more state, to which all others lead with probability 1 / lifetime / W.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.compiled import LATE, bind
from quorisk.kernels.engines.points import Point
from quorisk.kernels.model import HORIZON, LOST, UNFINISHED, Model, data_loss_mask
from quorisk.kernels.ops import lowest_bit, popcount
from quorisk.kernels.states.store import (
    ENDED,
    FULL,
    MOST_SUCCESSORS,
    NO_ROW,
    SLICE,
    TABLE_FULL,
    WIDER,
    Store,
    store_functions,
    word_tables,
)
from quorisk.kernels.stepper import stepper

MOST_STATES = 2**31 - 2
"""A chain numbers its states in 32 bits, whatever memory there is."""
STATE_BYTES, TRANSITION_BYTES = 41, 12
"""Of the arrays below, beside the states themselves (`store.Store`)."""
NOWHERE = -1
"""The target of transitions to the end of a lifetime, until its number is known."""


class Chain(NamedTuple):
    """States are numbered in the order of their discovery; those of `ends` have no transitions. The end of a lifetime
    is the last one."""

    initial: np.ndarray  # float64 by state, the probability that a run starts in it
    first: np.ndarray  # int64, one more than there are states: state i has the transitions first[i] to first[i + 1] - 1
    target: np.ndarray  # int32 by transition
    p: np.ndarray  # float64 by transition
    total_rate: np.ndarray  # float64 by state, W: 1 / W is the mean time until the next step or the end
    broken: np.ndarray  # int64 by state, bit i: invariant i does not hold
    ends: np.ndarray  # int8 by state, an index of OUTCOMES: how a run ends here; UNFINISHED if it goes on


class ChainError(ValueError):
    """A chain that does not fit in the memory allowed."""


def build(model: Model, point: Point, memory_bytes: int, progress: Callable[[int, int], None] | None = None) -> Chain:
    """The chain of a point; its `max_steps` and `horizon` play no part.

    `progress(states, transitions)` is called a few times a second. Raises ChainError.
    """
    start, expand = start_function(model), _expand_function(model)
    params = model.make_params(point.values)
    num_initial = model.initial_choices(params)
    store = Store(model, params, memory_bytes, STATE_BYTES)
    if lacking := store.lacks(num_initial):
        raise ChainError(lacking)
    # only what is written takes memory
    chain = _empty(min(len(store.kept.rows), MOST_STATES), memory_bytes // TRANSITION_BYTES)
    latest = np.zeros(len(chain.ends), np.int64)
    rates = np.array([float(point.rates.get(action.name, 1.0)) for action in model.actions])
    constants = params, rates, 1.0 / point.lifetime, fates(model, point.message_loss)
    choice, count, status = 0, 0, ENDED
    while choice < num_initial and status != FULL:
        status, choice, count = start(params, choice, num_initial, store.kept, count, chain.initial)
        status = store.make_room(status, count)
    place, transitions, over = 0, 0, False
    while place < count and status != FULL and not over:
        stop = min(count, place + SLICE)
        status, place, count = expand(*constants, store.kept, latest, place, stop, count, chain)
        status = store.make_room(status, count)
        transitions = int(chain.first[place])
        over = count * store.state_bytes + transitions * TRANSITION_BYTES > memory_bytes
        if progress:
            progress(count, transitions)
    if place < count:
        filled = f"{count:,} states and {transitions:,} transitions"
        raise ChainError(f"the first {filled} fill {memory_bytes >> 20:,} MiB, and there are more")
    return _cut(_with_end(chain, count), count + 1) if point.lifetime < math.inf else _cut(chain, count)


def p_step(chain: Chain) -> np.ndarray:
    """By state, the probability that a run takes a step there, and is not at the end of its lifetime; 0 in ends."""
    goes_on = chain.ends == UNFINISHED
    if not (chain.ends == HORIZON).any():
        return goes_on.astype(float)
    steps = np.where(chain.ends[chain.target] == HORIZON, 0.0, chain.p)
    return np.bincount(np.repeat(np.arange(len(goes_on)), np.diff(chain.first)), steps, len(goes_on))


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


def _with_end(chain: Chain, place: int) -> Chain:
    """The chain with the end of a lifetime at that place, where the transitions that lead nowhere yet lead to."""
    target = chain.target[: chain.first[place]]
    target[target == NOWHERE] = place
    chain.first[place + 1] = chain.first[place]
    chain.total_rate[place], chain.broken[place], chain.ends[place] = 0.0, 0, HORIZON
    return chain


def _cut(chain: Chain, states: int) -> Chain:
    """The chain without the room that was not needed."""
    by_transition = {name: getattr(chain, name)[: chain.first[states]] for name in ("target", "p")}
    by_state = {name: getattr(chain, name)[:states] for name in ("initial", "total_rate", "broken", "ends")}
    return Chain(first=chain.first[: states + 1], **by_state, **by_transition)


def fates(model: Model, loss: float) -> np.ndarray:
    """[n, k]: the probability that of n messages a given k are lost and the others are not."""
    sizes = range(model.max_sends + 1)
    return np.array([[loss**k * (1.0 - loss) ** (n - k) if k <= n else 0.0 for k in sizes] for n in sizes])


@cache
def start_function(model: Model) -> Any:
    """Compiled `_start`."""
    return bind(_start, model.name, cached=True, initial=stepper(model).initial, keep=store_functions(model).keep)


@cache
def _expand_function(model: Model) -> Any:
    steps = stepper(model)
    return bind(
        _expand,
        model.name,
        cached=True,
        guards=steps.guards,
        sends_of=steps.sends_of,
        broken=steps.broken,
        outcome=steps.outcome,
        data_loss=data_loss_mask(model),
        **store_functions(model)._asdict(),
        **word_tables(model),
    )


# Templates, with the names that are bound above

approach = broken = data_loss = follow = guards = initial = keep = num_words = outcome = LATE
seek = sends_of = settle = state = word_action = word_first = LATE


def _start(params, choice, num_initial, kept, count, initial_p):
    """Keeps the initial states from number `choice` on. Returns why it stopped, the next one, the number of states."""
    while choice < num_initial:
        if count + MOST_SUCCESSORS > len(kept.rows):
            return FULL, choice, count
        found = keep(initial(params, choice), kept, count)
        if found == NO_ROW:
            return WIDER, choice, count
        initial_p[found] += 1.0 / num_initial
        count += found == count
        choice += 1
    return ENDED, choice, count


def _expand(params, rates, end_rate, fates, kept, latest, place, last, count, chain):
    """Adds the transitions of states `place` to last - 1. Returns why it stopped, the next state, the number of states.

    latest[i] - 1 is the last transition into state i so far. A state in which it stopped is expanded anew.
    """
    masks = np.empty(num_words, np.int64)
    mixed, odds = np.empty(MOST_SUCCESSORS, np.uint64), np.empty(MOST_SUCCESSORS)
    end = chain.first[place]
    while place < last:
        if count + MOST_SUCCESSORS > min(len(kept.rows), len(chain.ends)) or end + MOST_SUCCESSORS > len(chain.target):
            return FULL, place, count
        if 2 * (count + MOST_SUCCESSORS) > len(kept.table):
            return TABLE_FULL, place, count
        before = state(kept, place)
        chain.broken[place] = broken(before, params)
        guards(before, params, masks)
        total = 0.0
        for word in range(num_words):
            total += rates[word_action[word]] * popcount(masks[word])
        ends = UNFINISHED if total > 0.0 else outcome(before, params)
        total += end_rate
        if chain.broken[place] & data_loss:
            ends = LOST
        chain.ends[place] = ends
        chain.total_rate[place] = total
        num = 0
        for word in range(num_words if ends == UNFINISHED else 0):
            mask = masks[word]
            action = word_action[word]
            chance = rates[action] / total
            while mask != 0 and chance > 0.0:
                instance = word_first[word] + lowest_bit(mask)
                mask &= mask - 1
                sent = sends_of(kept.here, params, action, instance)
                lost = sent
                while True:
                    odds[num] = chance * fates[popcount(sent), popcount(lost)]
                    if odds[num] > 0.0:
                        if not follow(place, params, action, instance, lost, kept, count + num):
                            return WIDER, place, count
                        mixed[num] = seek(kept, count + num)
                        num += 1
                    if lost == 0:
                        break
                    lost = (lost - 1) & sent
        for i in range(num):
            approach(kept, mixed[i])
        row, first_at = end, count
        for i in range(num):
            found = settle(kept, first_at + i, mixed[i], count)
            count += found == count
            if latest[found] <= row:
                chain.target[end] = found
                chain.p[end] = 0.0
                end += 1
                latest[found] = end
            chain.p[latest[found] - 1] += odds[i]
        if ends == UNFINISHED and end_rate > 0.0:
            chain.target[end] = NOWHERE
            chain.p[end] = end_rate / total
            end += 1
        place += 1
        chain.first[place] = end
    return ENDED, place, count
