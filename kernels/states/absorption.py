"""Visits, hitting probabilities and arrival times of the runs of a Markov chain, by compiled code that only adds.

Every number is a sum of products and quotients of positive numbers: nothing is ever subtracted, so nothing cancels, and
a probability of 1e-300 is known to as many digits as one of 0.5. Strongly connected components are taken in topological
order; inside one, states are eliminated as Grassmann, Taksar and Heyman do (1985), which takes 1 - p[i, i] as the
sum of the odds of leaving i. With single states as components (most protocols only ever move on) that is one pass over
the transitions. The relative error is some 1e-16 for every addition on the way, which add up to well below 1e-12.

Compiled code loops over single numbers: Numba takes seconds to compile the same as operations on whole arrays.
"""

from typing import NamedTuple

import numpy as np

from quorisk.kernels import declared
from quorisk.kernels.errors import ModelError
from quorisk.kernels.keeping import njit_kept
from quorisk.kernels.model import UNFINISHED
from quorisk.kernels.states.chain import Chain

MAX_DEVIATION = 1e-6
"""Largest deviation from 1 of the sum of the ends' probabilities: far above the rounding error."""
MAX_COMPONENT = 2000
"""Most states of a component that is eliminated: time grows with the third power, memory with the second (32 MB)."""


class Components(NamedTuple):
    """Strongly connected components, each before those that lead to it."""

    states: np.ndarray  # int32, component after component
    first: np.ndarray  # int64, one more than components: component c has states[first[c]] to states[first[c + 1] - 1]

    @property
    def largest(self) -> int:
        """States of the largest one; 1 if no run ever comes back to a state that it has left."""
        return int(np.diff(self.first).max())


def components(chain: Chain) -> Components:
    """The strongly connected components of a chain."""
    return Components(*_components(chain.first, chain.target))


def visits(chain: Chain, parts: Components, stop: np.ndarray | None = None) -> np.ndarray:
    """Returns the mean number of a run's visits to each state; for an end, visited once at most, it is a probability.

    A run ends at the chain's ends and in the states of `stop` (bool by state). The number is infinite in a component
    that runs come to and never leave. Components must have at most MAX_COMPONENT states.
    """
    stops = (chain.ends != UNFINISHED) if stop is None else (chain.ends != UNFINISHED) | stop
    return _visits(chain.first, chain.target, chain.p, chain.initial, stops, *parts)


def check_that_runs_end(chain: Chain, visits: np.ndarray, name: str) -> None:
    """Raises ModelError, which names the protocol, if runs do not end for certain, because the odds of a state's steps
    do not add up to 1. Chains with infinite visits, whose runs may go on for ever, are not checked."""
    ended = float(visits[chain.ends != UNFINISHED].sum())
    if np.isfinite(visits).all() and not abs(ended - 1.0) < MAX_DEVIATION:
        why = f"runs end with probability {ended:.6g}, not 1"
        raise ModelError(declared.unfit(name, "max_sends, or the odds of steps", why))


def hits(chain: Chain, parts: Components, goal: np.ndarray) -> np.ndarray:
    """Returns, by state, the probability that a run in it comes to a goal. `goal` is float64 by state: the probability
    that the state counts as a goal; only ends count. Components must have at most MAX_COMPONENT states.
    """
    ends = chain.ends != UNFINISHED
    return _hits(chain.first, chain.target, chain.p, np.where(ends, goal, 0.0), ends, *parts)


def arrivals(
    chain: Chain, goal: np.ndarray, leave: np.ndarray, mass: np.ndarray, num_jumps: int
) -> tuple[np.ndarray, float]:
    """Returns, by jump, the probability that a run arrives at a state of `goal` (bool by state, all of them ends).

    At a jump a state is left with probability leave[state]. `mass` is the probability of being in each state, first at
    the start, and on return after `num_jumps`, or after fewer if all is in ends. Also returns the mass not in ends.
    """
    found = np.zeros(num_jumps)
    rest = _arrivals(chain.first, chain.target, chain.p, chain.ends != UNFINISHED, goal, leave, mass, found)
    return found, rest


@njit_kept
def _components(first, target):
    """Tarjan's algorithm with its recursion unrolled; a state of a finished component has a `low` above all others."""
    num_states = len(first) - 1
    number, low = np.zeros(num_states, np.int32), np.empty(num_states, np.int32)
    edge = first[:-1].copy()
    path, opened = np.empty(num_states, np.int32), np.empty(num_states, np.int32)
    states, bounds = np.empty(num_states, np.int32), [0]
    count, height, done = 0, 0, 0
    for root in range(num_states):
        depth = 0
        following = root if number[root] == 0 else -1
        while following >= 0 or depth > 0:
            if following >= 0:
                count += 1
                number[following] = low[following] = count
                path[depth] = opened[height] = following
                depth, height = depth + 1, height + 1
                following = -1
            here = path[depth - 1]
            if edge[here] < first[here + 1]:
                there = target[edge[here]]
                edge[here] += 1
                if number[there] == 0:
                    following = there
                else:
                    low[here] = min(low[here], low[there])
                continue
            depth -= 1
            if low[here] == number[here]:
                last = -1
                while last != here:
                    height -= 1
                    last = opened[height]
                    low[last] = num_states + 1
                    states[done] = last
                    done += 1
                bounds.append(done)
            if depth > 0:
                low[path[depth - 1]] = min(low[path[depth - 1]], low[here])
    return states, np.array(bounds)


@njit_kept
def _visits(first, target, p, initial, stops, states, bounds):
    result = initial.copy()
    local = np.full(len(initial), -1, np.int32)
    for c in range(len(bounds) - 2, -1, -1):
        part = states[bounds[c] : bounds[c + 1]]
        for i in range(len(part)):
            local[part[i]] = i
        if len(part) > 1 or _loops(first, target, part[0]):
            _stay(first, target, p, stops, part, local, result)
        for here in part:
            for t in range(first[here], first[here] if stops[here] or result[here] == 0.0 else first[here + 1]):
                if local[target[t]] < 0:
                    result[target[t]] += result[here] * p[t]
        for here in part:
            local[here] = -1
    return result


@njit_kept
def _loops(first, target, state):
    loops = False
    for t in range(first[state], first[state + 1]):
        loops |= target[t] == state
    return loops


@njit_kept
def _stay(first, target, p, stops, part, local, result):
    """Replaces, in `result`, the odds of entering a component at each of its states by the visits to that state."""
    size = len(part)
    inside, out = _odds_within(first, target, p, stops, part, local)
    entering = result[part]
    leaving = _eliminate(inside, out)
    for k in range(size - 1, 0, -1):
        share = entering[k] / leaving[k]
        for i in range(k):
            entering[i] += share * inside[k, i]
    for k in range(size):
        coming = entering[k]
        for i in range(k):
            if inside[i, k] > 0.0:
                coming += result[part[i]] * inside[i, k]
        result[part[k]] = coming / leaving[k] if coming > 0.0 else 0.0


@njit_kept
def _odds_within(first, target, p, stops, part, local):
    """Returns, for each state of a component, the odds of each next one inside, and those of leaving it or ending."""
    size = len(part)
    inside, out = np.zeros((size, size)), np.zeros(size)
    for i in range(size):
        out[i] = 1.0 if stops[part[i]] else 0.0
        for t in range(first[part[i]], first[part[i]] if stops[part[i]] else first[part[i] + 1]):
            j = local[target[t]]
            if j >= 0:
                inside[i, j] += p[t]
            else:
                out[i] += p[t]
    return inside, out


@njit_kept
def _eliminate(inside, out):
    """Eliminates the states of a component, the last first; returns the odds of leaving each for an earlier one or for
    outside. `inside` then has the odds between each state and those before it, as of its elimination.
    """
    size = len(out)
    leaving = np.empty(size)
    for k in range(size - 1, -1, -1):
        before = 0.0
        for j in range(k):
            before += inside[k, j]
        leaving[k] = out[k] + before
        for i in range(k):
            if inside[i, k] > 0.0:
                share = inside[i, k] / leaving[k]
                for j in range(k):
                    inside[i, j] += share * inside[k, j]
                out[i] += share * out[k]
    return leaving


@njit_kept
def _hits(first, target, p, goal, stops, states, bounds):
    """Solves component after component: the states of each lead to components before it, which are done."""
    result = goal.copy()
    local = np.full(len(goal), -1, np.int32)
    for c in range(len(bounds) - 1):
        part = states[bounds[c] : bounds[c + 1]]
        for i in range(len(part)):
            local[part[i]] = i
        for here in part:
            for t in range(first[here], first[here] if stops[here] else first[here + 1]):
                if local[target[t]] < 0:
                    result[here] += p[t] * result[target[t]]
        if len(part) > 1 or _loops(first, target, part[0]):
            _stay_until(first, target, p, stops, part, local, result)
        for here in part:
            local[here] = -1
    return result


@njit_kept
def _stay_until(first, target, p, stops, part, local, result):
    """Replaces, in `result`, each state's odds of leaving the component for the goal by those of ever reaching it."""
    size = len(part)
    inside, out = _odds_within(first, target, p, stops, part, local)
    found = result[part]
    leaving = _eliminate(inside, out)
    for k in range(size - 1, 0, -1):
        for i in range(k):
            if inside[i, k] > 0.0:
                found[i] += inside[i, k] / leaving[k] * found[k]
    for k in range(size):
        coming = found[k]
        for i in range(k):
            coming += inside[k, i] * result[part[i]]
        result[part[k]] = coming / leaving[k] if coming > 0.0 else 0.0


@njit_kept
def _arrivals(first, target, p, stops, goal, leave, mass, found):
    after = np.zeros(len(mass))
    rest = 1.0
    for jump in range(len(found)):
        for here in range(len(mass)):
            if stops[here] or mass[here] == 0.0:
                continue
            after[here] += mass[here] * (1.0 - leave[here])
            for t in range(first[here], first[here + 1]):
                flow = mass[here] * leave[here] * p[t]
                if stops[target[t]]:
                    found[jump] += flow if goal[target[t]] else 0.0
                else:
                    after[target[t]] += flow
        rest = 0.0
        for here in range(len(mass)):
            mass[here] = after[here]
            after[here] = 0.0
            rest += mass[here]
        if rest == 0.0:
            break
    return rest
