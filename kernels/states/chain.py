"""The Markov chain of one configuration: the states that a random run can be in, and the odds of each next state.

It is the exhaustive search, except that a run's end is an end here too (a data-loss invariant is broken, or nothing is
enabled that has a rate) and that steps of probability 0 are not followed. A transition's probability is the sum of
those of the steps that lead to the same state (`kernels.states.odds`). These are sums and products of positive numbers:
the relative error is some 1e-15, however small the probability and however far apart the rates. If there is a lifetime,
its end is one more state, to which all others lead with probability 1 / lifetime / W.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from quorisk.kernels.engines.points import Point
from quorisk.kernels.keeping import njit_kept
from quorisk.kernels.model import HORIZON, UNFINISHED, Model
from quorisk.kernels.states import growth
from quorisk.kernels.states.expand import Expander
from quorisk.kernels.states.odds import odds_of
from quorisk.kernels.states.store import ENDED, FULL, MOST_SUCCESSORS, Store, approach, halted, seek, settle

MOST_STATES = 2**31 - 2
"""Largest number of states of a chain, which numbers them in 32 bits, however much memory there is."""
LOOK_AT, TOO_MANY = 1 / 8, 2.0
"""Share of the memory that is full, and ratio of the expected states to those that fit into memory, above which a chain
is given up: the expected number is a guess."""
STATE_BYTES, TRANSITION_BYTES = 41, 12
"""Bytes by state and by transition of the arrays below; the states themselves (`store.Store`) come on top."""
NOWHERE = -1
"""Target of transitions to the end of a lifetime, until the number of that state is known."""


class Chain(NamedTuple):
    """A Markov chain. States are numbered in the order of their discovery; those with an end have no transitions. The
    end of a lifetime, if there is one, is the last state."""

    initial: np.ndarray  # float64 by state, the probability that a run starts in it
    first: np.ndarray  # int64, one more than there are states: state i has the transitions first[i] to first[i + 1] - 1
    target: np.ndarray  # int32 by transition
    p: np.ndarray  # float64 by transition
    total_rate: np.ndarray  # float64 by state, W: 1 / W is the mean time until the next step or the end
    broken: np.ndarray  # int64 by state, bit i: invariant i does not hold
    ends: np.ndarray  # int8 by state, an index of OUTCOMES: how a run ends here; UNFINISHED if it goes on


class ChainError(ValueError):
    """A chain that does not fit in the memory allowed."""


Progress = Callable[[int, int, float], None]
"""`progress(states, transitions, expected)`: their numbers so far, and a guess at the number of states in all: see
`growth.expected`."""


def build_chain(
    model: Model, point: Point, memory_bytes: int, progress: Progress | None = None, lumps: bool = False
) -> Chain:
    """Builds the chain of a point; the point's `max_steps` and `horizon` play no part.

    `progress` is called a few times a second. With `lumps`, states in which things that are alike change places are
    merged. Raises ChainError as soon as memory is likely to be too small.
    """
    odds = odds_of(model, point)
    params = odds.params
    num_initial = model.initial_choices(params)
    store = Store(model, params, memory_bytes, STATE_BYTES)
    if lacking := store.lacks(num_initial):
        raise ChainError(lacking)
    expand = Expander(model, odds, lumps=lumps and odds.alike > 1)
    states, most = min(len(store.kept.rows), MOST_STATES), memory_bytes // TRANSITION_BYTES
    chain = Chain(  # only what is written takes memory
        initial=np.zeros(states),
        first=np.zeros(states + 1, np.int64),
        target=np.empty(most, np.int32),
        p=np.empty(most),
        total_rate=np.empty(states),
        broken=np.empty(states, np.int64),
        ends=np.empty(states, np.int8),
    )
    latest = np.zeros(len(chain.ends), np.int64)
    places, count = store.begin(expand.programs)
    np.add.at(chain.initial, places, 1.0 / num_initial)
    status = ENDED if len(places) == num_initial else FULL
    place, transitions, over = 0, 0, False
    by_depth, level_end, in_all = [count], count, math.inf
    while place < count and status != FULL and not over:
        if place == level_end:
            by_depth, level_end = [*by_depth, count - level_end], count
            in_all = growth.expected(by_depth)
            _check_room(count, in_all, count * store.state_bytes + transitions * TRANSITION_BYTES, memory_bytes)
        here = np.arange(place, min(level_end, place + expand.at_once))
        batch = expand(store.kept, here)
        add = partial(_add, batch=batch, place=place, end_rate=odds.rates[-1], latest=latest, chain=chain)
        status, done, count = store.keep(batch.rows, batch.layout, len(here), count, add)
        place += done
        transitions = int(chain.first[place])
        over = count * store.state_bytes + transitions * TRANSITION_BYTES > memory_bytes
        if progress:
            progress(count, transitions, in_all)
    if place < count:
        filled = f"{count:,} states and {transitions:,} transitions"
        raise ChainError(f"the first {filled} fill {memory_bytes >> 20:,} MiB, and there are more")
    return _cut(_with_end(chain, count), count + 1) if point.lifetime < math.inf else _cut(chain, count)


def _check_room(count: int, expected: float, used_bytes: int, memory_bytes: int) -> None:
    """Raises ChainError if the `expected` states will hardly fit, the first `count` of which take `used_bytes`."""
    if used_bytes > LOOK_AT * memory_bytes and expected > TOO_MANY * count * memory_bytes / used_bytes:
        guess = f"some {expected:.1g}" if expected < math.inf else "many times more"
        raise ChainError(
            f"{count:,} states so far fill {used_bytes >> 20:,} of {memory_bytes >> 20:,} MiB, and "
            f"{guess} are to be expected"
        )


def p_step(chain: Chain) -> np.ndarray:
    """Returns, by state, the probability that a run's lifetime does not end there before the next step; 0 in ends."""
    goes_on = chain.ends == UNFINISHED
    if not (chain.ends == HORIZON).any():
        return goes_on.astype(float)
    steps = np.where(chain.ends[chain.target] == HORIZON, 0.0, chain.p)
    return np.bincount(np.repeat(np.arange(len(goes_on)), np.diff(chain.first)), steps, len(goes_on))


def _with_end(chain: Chain, place: int) -> Chain:
    """Adds the end of a lifetime as the state at `place`, the target of all transitions that still lead NOWHERE."""
    target = chain.target[: chain.first[place]]
    target[target == NOWHERE] = place
    chain.first[place + 1] = chain.first[place]
    chain.total_rate[place], chain.broken[place], chain.ends[place] = 0.0, 0, HORIZON
    return chain


def _cut(chain: Chain, states: int) -> Chain:
    """Returns the chain without unused room in its arrays."""
    by_transition = {name: getattr(chain, name)[: chain.first[states]] for name in ("target", "p")}
    by_state = {name: getattr(chain, name)[:states] for name in ("initial", "total_rate", "broken", "ends")}
    return Chain(first=chain.first[: states + 1], **by_state, **by_transition)


@njit_kept
def _add(stored, rows, i, count, batch, place, end_rate, latest, chain):
    """Adds the transitions of states from number `place` + i on, whose steps are in a batch, as `Store.keep` has it.

    latest[i] - 1 is the last transition into state i so far. A state in which it stops is taken again later.
    """
    place += i
    mixed, end = np.empty(MOST_SUCCESSORS, np.uint64), chain.first[place]
    while i < len(batch.total):
        if count + MOST_SUCCESSORS > len(chain.ends) or end + MOST_SUCCESSORS > len(chain.target):
            return FULL, i, count
        why = halted(stored, count)
        if why != ENDED:
            return why, i, count
        first_row = batch.first_row[i]
        num = batch.first_row[i + 1] - first_row
        for k in range(num):
            mixed[k] = seek(rows[first_row + k], stored, count + k)
        for k in range(num):
            approach(stored, mixed[k])
        total, ends = batch.total[i], batch.ends[i]
        chain.broken[place], chain.ends[place] = batch.breaks[i], ends
        chain.total_rate[place] = total if total > 0.0 else end_rate
        row, first_at, k = end, count, 0
        for step in range(batch.first[i], batch.first[i + 1]):
            if not batch.is_wanted[step]:
                continue
            found = settle(stored, first_at + k, mixed[k], count)
            k += 1
            count += found == count
            if latest[found] <= row:
                chain.target[end] = found
                chain.p[end] = 0.0
                end += 1
                latest[found] = end
            chain.p[latest[found] - 1] += batch.p[step]
        if ends == UNFINISHED and end_rate > 0.0:
            chain.target[end] = NOWHERE
            chain.p[end] = end_rate / total
            end += 1
        place += 1
        i += 1
        chain.first[place] = end
    return ENDED, i, count
