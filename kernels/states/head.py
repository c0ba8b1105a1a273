"""The likeliest paths of a configuration, solved exactly, and the states in which runs leave them.

Each step has a cost, in decades below the likeliest one that is enabled with it:

    round(log10(highest rate enabled / its rate)) + messages lost x round(-log10(message_loss))

The head has every path of cost d at most. Of a run that is in it, three things are known to as many digits as an exact
answer has (`kernels.states.absorption`): L, the probability that it loses data before it leaves; F, the probability
that it leaves; and the distribution of the first state outside, its exit. So P(loss) = L + F q, with q the probability
of loss of a run that starts from an exit. Costs only choose where the head ends: L, F and q mean what they say whatever
the costs are.

A head grows by levels of cost, and nothing is built again: a state keeps `due`, the lowest cost of a path on that has
not been followed. Where memory ends a level is left unfinished; a path that is not followed, for whatever reason, leads
out of the head.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from quorisk.kernels.compiled import bind, stepper, store_words
from quorisk.kernels.engines.points import Point
from quorisk.kernels.model import HORIZON, LOST, UNFINISHED, Model, data_loss_mask, leaves
from quorisk.kernels.ops import lowest_bit, popcount
from quorisk.kernels.states import absorption
from quorisk.kernels.states.chain import Chain, fates, start_function
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

STATE_BYTES, TRANSITION_BYTES = 100, 28
"""Of the arrays here and of solving them, beside the states themselves."""
NEVER = 1 << 14
"""The cost of what cannot happen."""
MOST_CYCLE = absorption.MAX_COMPONENT


class Arrays(NamedTuple):
    """What is known of each state, and the transitions in the order in which they were found."""

    initial: np.ndarray  # float64 by state, the probability that a run starts in it
    cost: np.ndarray  # int16 by state, of the cheapest path to it
    due: np.ndarray  # int16 by state, the lowest cost of a path through it that is not followed yet; NEVER if none
    leaves: np.ndarray  # float64 by state, the probability that the step from it leads out of the head
    broken: np.ndarray  # int64 by state, bit i: invariant i does not hold
    ends: np.ndarray  # int8 by state, an index of OUTCOMES: how a run ends here; UNFINISHED if it goes on
    latest: np.ndarray  # int64 by state, the last transition to it, counted from 1
    source: np.ndarray  # int32 by transition
    target: np.ndarray  # int32 by transition
    p: np.ndarray  # float64 by transition


class Solved(NamedTuple):
    """What is known for certain of a head."""

    cost: int
    """Of the paths in it, at the most; -1 if none is."""
    states: int
    transitions: int
    complete: bool
    """No run leaves it: it is the whole chain."""
    lost: float
    """L, the probability that a run loses data inside it."""
    leaves: float
    """F, the probability that a run leaves it."""
    broken: dict[str, tuple[float, float]]
    """By invariant, L and F as if runs ended where it is broken: P(broken) lies between L and L + F."""
    outcomes: np.ndarray
    """float64 by outcome, the probability that a run ends so inside it."""
    flows: np.ndarray
    """float64 by state, the probability that a run leaves the head from it."""


class Exits(NamedTuple):
    """The first states outside the head."""

    states: np.ndarray
    """int64, [exit, integer]: the integers of its state, as `compiled.load_words` takes them."""
    flows: np.ndarray
    """float64 by exit, the probability that a run leaves the head by it, in descending order."""
    left_out: float
    """The probability that a run leaves the head by an exit for which there was no room."""


class Head:
    """A head of a point that grows; its `max_steps` and `horizon` play no part."""

    def __init__(self, model: Model, point: Point, memory_bytes: int) -> None:
        self._model, self._point, self._memory_bytes = model, point, memory_bytes
        params = model.make_params(point.values)
        self._store = Store(model, params, memory_bytes, STATE_BYTES)
        self._arrays = _empty(len(self._store.kept.rows), memory_bytes // TRANSITION_BYTES)
        rates = np.array([float(point.rates.get(action.name, 1.0)) for action in model.actions])
        decades = np.log10(rates, out=np.full(len(rates), -math.inf), where=rates > 0.0)
        loss_cost = round(-math.log10(point.message_loss)) if point.message_loss > 0.0 else 0
        self._constants = params, rates, decades, fates(model, point.message_loss), loss_cost
        self._count, self._transitions, self.is_full = 0, 0, False
        start, choices = start_function(model), model.initial_choices(params)
        choice, status = 0, ENDED
        while choice < choices and status != FULL:
            status, choice, self._count = start(
                params, choice, choices, self._store.kept, self._count, self._arrays.initial
            )
            status = self._store.make_room(status, self._count)
        if choice < choices:
            raise MemoryError("the initial states do not fit")
        self._arrays.cost[: self._count] = self._arrays.due[: self._count] = 0
        self._arrays.leaves[: self._count] = 1.0
        self._arrays.ends[: self._count] = UNFINISHED
        self.cost = -1

    @property
    def transitions(self) -> int:
        """How many there are, those to the same state in different levels counted apart."""
        return self._transitions

    @property
    def next_cost(self) -> int:
        """Of the cheapest path that is not followed yet; NEVER if there is none."""
        return int(self._arrays.due[: self._count].min())

    def grow(self, most_transitions: int, progress: Callable[[int, int], None] | None = None) -> bool:
        """Follows all paths of the next cost. False if there are none, or no room: `is_full` then.

        Stops at `most_transitions` as where memory ends. `progress(states, transitions)` is called now and then.
        """
        expand, *_ = _functions(self._model)
        level = self.next_cost
        if level == NEVER or self.is_full:
            return False
        place, status = 0, ENDED
        while place < self._count and status != FULL:
            stop = min(self._count, place + SLICE)
            kept = self._store.kept
            status, place, self._count, self._transitions = expand(
                *self._constants, level, kept, self._arrays, place, stop, self._count, self._transitions
            )
            status = self._store.make_room(status, self._count)
            used = self._count * self._store.state_bytes + self._transitions * TRANSITION_BYTES
            if used > self._memory_bytes or self._transitions > most_transitions:
                status = FULL
            if progress:
                progress(self._count, self._transitions)
        self.is_full = status == FULL and self.next_cost != NEVER
        self.cost = level - 1 if self.is_full else level
        return not self.is_full

    def solve(self) -> Solved | None:
        """What is certain now; None if runs move to and fro among more states than elimination can take."""
        chain = self._chain()
        parts = absorption.components(chain)
        if parts.largest > MOST_CYCLE:
            return None
        visits = absorption.visits(chain, parts)
        inside, ends = visits[:-1], chain.ends[:-1]
        names = [invariant.name for invariant in self._model.invariants]
        return Solved(
            cost=self.cost,
            states=self._count,
            transitions=self._transitions,
            complete=self.next_cost == NEVER,
            lost=float(inside[ends == LOST].sum()),
            leaves=float(visits[-1]),
            broken={name: self._broken(i, chain, parts, visits) for i, name in enumerate(names)},
            outcomes=np.array([inside[ends == i].sum() for i in range(UNFINISHED + 1)]),
            flows=np.where(ends == UNFINISHED, inside, 0.0) * self._arrays.leaves[: self._count],
        )

    def _broken(
        self, invariant: int, chain: Chain, parts: absorption.Components, visits: np.ndarray
    ) -> tuple[float, float]:
        breaks = chain.broken >> invariant & 1 == 1
        if not self._model.invariants[invariant].data_loss:
            visits = absorption.visits(chain, parts, breaks)
        return float(visits[breaks].sum()), float(visits[-1])

    def _chain(self) -> Chain:
        """The head as a chain whose last state is outside: all that leaves the head leads there."""
        arrays, count = self._arrays, self._count
        source, target, p = (each[: self._transitions] for each in (arrays.source, arrays.target, arrays.p))
        first, target, p = _by_source(source, target, p, arrays.leaves[:count])
        nothing = np.zeros(count + 1)
        return Chain(
            initial=np.append(arrays.initial[:count], 0.0),
            first=first,
            target=target,
            p=p,
            total_rate=nothing,
            broken=np.append(arrays.broken[:count], 0),
            ends=np.append(arrays.ends[:count], np.int8(HORIZON)),
        )

    def exits(self, solved: Solved, memory_bytes: int) -> Exits:
        """Where runs leave the head, as it was when it was solved; those with the highest flows if memory is short."""
        _, leave, read = _functions(self._model)
        num_integers = len(leaves(self._model.widths))
        store = Store(self._model, self._constants[0], memory_bytes // 2, 8)
        flows = np.zeros(len(store.kept.rows))
        order = np.argsort(-solved.flows, kind="stable")[: np.count_nonzero(solved.flows)]
        i, count, status = 0, 0, ENDED
        while i < len(order) and status != FULL:
            status, i, count = leave(
                *self._constants, self._store.kept, self._arrays, solved.flows, order, i, store.kept, flows, count
            )
            status = store.make_room(status, count)
        best = np.argsort(-flows[:count], kind="stable")[: memory_bytes // (2 * 8 * (num_integers + 2))]
        states = np.empty((len(best), num_integers), np.int64)
        read(store.kept, best, states)
        all_there = i == len(order) and len(best) == count
        left_out = 0.0 if all_there else max(0.0, solved.leaves - math.fsum(flows[best]))
        return Exits(states, flows[best], left_out)


def _empty(states: int, transitions: int) -> Arrays:
    return Arrays(
        initial=np.zeros(states),
        cost=np.zeros(states, np.int16),
        due=np.zeros(states, np.int16),
        leaves=np.empty(states),
        broken=np.zeros(states, np.int64),
        ends=np.empty(states, np.int8),
        latest=np.zeros(states, np.int64),
        source=np.empty(transitions, np.int32),
        target=np.empty(transitions, np.int32),
        p=np.empty(transitions),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _by_source(
    source: np.ndarray, target: np.ndarray, p: np.ndarray, out: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transitions ordered by source, and those that lead out, to the state behind all others."""
    num_states = len(out)
    first = np.zeros(num_states + 2, np.int64)
    for state in source:
        first[state + 1] += 1
    for state in range(num_states):
        first[state + 1] += first[state] + (out[state] > 0.0)
    first[num_states + 1] = first[num_states]
    following = first[:-1].copy()
    targets, odds = np.empty(first[-1], np.int32), np.empty(first[-1])
    for i in range(len(source)):
        place = following[source[i]]
        targets[place], odds[place] = target[i], p[i]
        following[source[i]] += 1
    for state in range(num_states):
        if out[state] > 0.0:
            targets[following[state]], odds[following[state]] = num_states, out[state]
    return first, targets, odds


@cache
def _functions(model: Model) -> tuple[Any, Any, Any]:
    """Compiled `expand`, `leave` and `read`."""
    steps, states = stepper(model), store_functions(model)
    enabled = bind(_enabled, model.name, **word_tables(model))
    moves = {"guards": steps.guards, "sends": steps.sends, "effect": steps.effect, "enabled": enabled}
    moves |= {"decades_below": bind(_decades_below, model.name)}
    expand = bind(
        _expand,
        model.name,
        cached=True,
        broken=steps.broken,
        outcome=model.outcome,
        data_loss=data_loss_mask(model),
        **moves,
        **states._asdict(),
        **word_tables(model),
    )
    leave = bind(_leave, model.name, cached=True, **moves, **states._asdict(), **word_tables(model))
    return expand, leave, bind(_read, model.name, cached=True, state=states.state)


# Templates. The names that they use and this module lacks are bound by `_functions`.
# ruff: noqa: F821


def _enabled(masks, rates, decades):
    """The sum of the rates of all instances enabled, and the decade of the highest."""
    total, top = 0.0, -np.inf
    for word in range(num_words):
        if masks[word] != 0:
            total += rates[word_action[word]] * popcount(masks[word])
            top = max(top, decades[word_action[word]])
    return total, top


def _decades_below(top, decade):
    return np.int64(np.floor(top - decade + 0.5)) if decade > -np.inf and decade <= top else 0


def _expand(params, rates, decades, fates, loss_cost, level, kept, arrays, place, stop, count, end):
    """Follows the paths of cost `level` from states `place` to stop - 1. Returns why it stopped, the next state, and
    the numbers of states and transitions. A state in which it stopped is expanded anew.
    """
    masks = np.empty(num_words, np.int64)
    while place < stop:
        if arrays.due[place] != level:
            place += 1
            continue
        if count + MOST_SUCCESSORS > min(len(kept.rows), len(arrays.cost)) or end + MOST_SUCCESSORS > len(arrays.p):
            return FULL, place, count, end
        if 2 * (count + MOST_SUCCESSORS) > len(kept.table):
            return TABLE_FULL, place, count, end
        before = state(kept, place)
        guards(before, params, masks)
        total, top = enabled(masks, rates, decades)
        if level == arrays.cost[place]:
            arrays.broken[place] = broken(before, params)
            arrays.ends[place] = UNFINISHED if total > 0.0 else outcome(before, params)
            if arrays.broken[place] & data_loss:
                arrays.ends[place] = LOST
        row, out, due = end, 0.0, NEVER
        for word in range(num_words if arrays.ends[place] == UNFINISHED else 0):
            mask = masks[word]
            action = word_action[word]
            chance = rates[action] / total
            step_cost = arrays.cost[place] + decades_below(top, decades[action])
            while mask != 0 and chance > 0.0:
                instance = word_first[word] + lowest_bit(mask)
                mask &= mask - 1
                sent = sends(before, params, action, instance)
                lost = sent
                while True:
                    p = chance * fates[popcount(sent), popcount(lost)]
                    cost = step_cost + loss_cost * popcount(lost)
                    if p > 0.0 and cost > level:
                        out += p
                        due = min(due, cost)
                    elif p > 0.0 and cost == level:
                        found = keep(effect(before, params, action, instance, lost), kept, count)
                        if found == NO_ROW:
                            for begun in range(row, end):
                                arrays.latest[arrays.target[begun]] = 0
                            return WIDER, place, count, row
                        if found == count:
                            arrays.cost[found] = arrays.due[found] = level
                            arrays.leaves[found] = 1.0
                            arrays.ends[found] = UNFINISHED
                            count += 1
                        if arrays.latest[found] <= row:
                            arrays.source[end] = place
                            arrays.target[end] = found
                            arrays.p[end] = 0.0
                            end += 1
                            arrays.latest[found] = end
                        arrays.p[arrays.latest[found] - 1] += p
                    if lost == 0:
                        break
                    lost = (lost - 1) & sent
        arrays.leaves[place] = out
        arrays.due[place] = due
        place += 1
    return ENDED, place, count, end


def _leave(params, rates, decades, fates, loss_cost, kept, arrays, flows, order, i, exits, exit_flows, count):
    """Adds the exits of states order[i] and on. Returns why it stopped, the next i, the number of exits.

    A state of which no path was followed yet is an exit itself. Flows are added to only when all exits of a state are
    kept, so that a state in which it stopped can be taken anew.
    """
    masks = np.empty(num_words, np.int64)
    while i < len(order):
        place = order[i]
        if count + MOST_SUCCESSORS > len(exits.rows):
            return FULL, i, count
        if 2 * (count + MOST_SUCCESSORS) > len(exits.table):
            return TABLE_FULL, i, count
        before = state(kept, place)
        due = arrays.due[place]
        if due == arrays.cost[place]:
            found = keep(before, exits, count)
            if found == NO_ROW:
                return WIDER, i, count
            exit_flows[found] += flows[place]
            count += found == count
            i += 1
            continue
        guards(before, params, masks)
        total, top = enabled(masks, rates, decades)
        share = flows[place] / arrays.leaves[place]
        for adding in range(2):
            for word in range(num_words):
                mask = masks[word]
                action = word_action[word]
                chance = rates[action] / total
                step_cost = arrays.cost[place] + decades_below(top, decades[action])
                while mask != 0 and chance > 0.0:
                    instance = word_first[word] + lowest_bit(mask)
                    mask &= mask - 1
                    sent = sends(before, params, action, instance)
                    lost = sent
                    while True:
                        p = chance * fates[popcount(sent), popcount(lost)]
                        if p > 0.0 and step_cost + loss_cost * popcount(lost) >= due:
                            found = keep(effect(before, params, action, instance, lost), exits, count)
                            if found == NO_ROW:
                                return WIDER, i, count
                            count += found == count
                            if adding == 1:
                                exit_flows[found] += share * p
                        if lost == 0:
                            break
                        lost = (lost - 1) & sent
        i += 1
    return ENDED, i, count


def _read(kept, places, states):
    for i in range(len(places)):
        store_words(state(kept, places[i]), states[i], 0)
