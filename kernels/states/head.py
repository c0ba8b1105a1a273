"""The likeliest paths of a configuration, solved exactly.

A head has every path of cost d at most, in decades (`kernels.states.odds`). Three things are known of a run in it, to
as many digits as an exact answer has (`kernels.states.absorption`): L, the probability that it loses data before it
leaves; F, the probability that it leaves; and the distribution of the first state outside, its exit
(`kernels.states.exits`). So P(loss) = L + F q, with q the probability of loss of a run that starts from an exit. Costs
only choose where the head ends: L, F and q mean what they say whatever the costs are. A lifetime is one more end; runs
that go on from an exit have all of it before them, as it has no memory. Where it is known how many faults a loss takes,
F q is bounded without runs (`kernels.states.margins`).

A head grows by levels of cost, and nothing is built again: each state has its `due`, the lowest cost of a path through
it that has not been followed. Where memory ends a level is left unfinished; every path that is not followed leads out
of the head.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.engines.points import Point
from quorisk.kernels.keeping import njit_kept
from quorisk.kernels.model import HORIZON, LOST, UNFINISHED, Model
from quorisk.kernels.states import absorption, margins
from quorisk.kernels.states.chain import Chain
from quorisk.kernels.states.expand import Expander
from quorisk.kernels.states.odds import odds_of
from quorisk.kernels.states.store import ENDED, FULL, MOST_SUCCESSORS, SLICE, Kept, Store, halted, keep_row

STATE_BYTES, TRANSITION_BYTES = 116, 28
"""Bytes by state and by transition of the arrays here and of solving them; the states themselves come on top."""
NEVER = 1 << 14
"""The cost of what cannot happen."""
FAR = 0.5
"""B/F below which it is worth while to hurry runs that leave a head."""
STOPPED_BY_MEMORY, STOPPED_BY_SIZE = "memory", "size"
"""Reasons why a head grows no further."""


class HeadArrays(NamedTuple):
    """Arrays of a head: columns of its states, and of its transitions in the order of their discovery."""

    initial: np.ndarray  # float64 by state, the probability that a run starts in it
    cost: np.ndarray  # int16 by state, of the cheapest path to it
    due: np.ndarray  # int16 by state, the lowest cost of a path through it that is not followed yet; NEVER if none
    leaves: np.ndarray  # float64 by state, the probability that the step from it leads out of the head
    expires: np.ndarray  # float64 by state, the probability that the run's lifetime ends there, before its step
    broken: np.ndarray  # int64 by state, bit i: invariant i does not hold
    ends: np.ndarray  # int8 by state, an index of OUTCOMES: how a run ends here; UNFINISHED if it goes on
    latest: np.ndarray  # int64 by state, the last transition to it, counted from 1
    source: np.ndarray  # int32 by transition
    target: np.ndarray  # int32 by transition
    p: np.ndarray  # float64 by transition


class SolvedHead(NamedTuple):
    """A head solved: exact probabilities, and bounds that hold for certain."""

    cost: int
    """Highest cost of a path in the head; -1 if there is no path."""
    states: int
    transitions: int
    complete: bool
    """Whether no run leaves it, so that it is the whole chain."""
    lost: float
    """L, the probability that a run loses data inside it."""
    leaves: float
    """F, the probability that a run leaves the head."""
    beyond: float
    """B, an upper bound on the probability of a loss after leaving the head: F, or less by the model's margin."""
    broken: dict[str, tuple[float, float]]
    """L and F by invariant, as if runs ended where it is broken: P(broken) lies between L and L + F."""
    flows: np.ndarray
    """float64 by state, the probability that a run leaves the head from it."""
    bounds: np.ndarray
    """float64 by state, an upper bound on the part of the flow that is lost."""
    stopped_by: str
    """Reason why it grows no further: STOPPED_BY_MEMORY, STOPPED_BY_SIZE, or empty if it may grow."""

    @property
    def is_far(self) -> bool:
        """Whether most runs that leave it are known never to be lost."""
        return self.beyond < FAR * self.leaves


class Head:
    """A head of a point that grows; its `max_steps` and `horizon` play no part."""

    def __init__(self, model: Model, point: Point, memory_bytes: int, by_margin: bool = False) -> None:
        """`by_margin`: if the model says how many faults a loss takes, it follows these first and bounds `beyond`."""
        self.model, self._memory_bytes = model, memory_bytes
        self.odds = odds_of(model, point)
        self.margin = margins.margin_at(model, self.odds) if by_margin else None
        if self.margin:
            self.odds = self.margin.ahead(self.odds)
        self._store = Store(model, self.odds.params, memory_bytes, STATE_BYTES)
        self.expand = Expander(model, self.odds, lumps=True, forgets=True)
        self.arrays = _empty(len(self._store.kept.rows), memory_bytes // TRANSITION_BYTES)
        self.transitions, self.stopped_by = 0, ""
        """Number of transitions, those between the same two states in different levels counted separately; and the
        reason why it grows no further, as in `SolvedHead`."""
        choices = model.initial_choices(self.odds.params)
        places, self.num_states = self._store.begin(self.expand.programs)
        if len(places) < choices:
            raise MemoryError("the initial states do not fit")
        np.add.at(self.arrays.initial, places, 1.0 / choices)
        self.arrays.cost[: self.num_states] = self.arrays.due[: self.num_states] = 0
        self.arrays.leaves[: self.num_states] = 1.0
        self.arrays.ends[: self.num_states] = UNFINISHED
        self.cost = -1

    @property
    def kept(self) -> Kept:
        """The store of its states, as compiled code sees it."""
        return self._store.kept

    @property
    def is_full(self) -> bool:
        """Whether it has stopped growing, though there are more paths."""
        return self.stopped_by != ""

    @property
    def num_bytes(self) -> int:
        """Memory that it takes, in bytes."""
        return self.num_states * self._store.state_bytes + self.transitions * TRANSITION_BYTES

    @property
    def next_cost(self) -> int:
        """Cost of the cheapest path that is not followed yet; NEVER if there is none."""
        return int(self.arrays.due[: self.num_states].min())

    def state(self, place: int) -> Any:
        """Returns the state of number `place`, for plain Python."""
        return self._store.state(place)

    def grow(self, most_transitions: int, progress: Callable[[int, int], None] | None = None) -> bool:
        """Follows all paths of the next cost. Returns False if there are none, or no room: then it `is_full`.

        Stops at `most_transitions` as where memory ends; it goes on from there if called with more.
        `progress(states, transitions)` is called now and then.
        """
        level = self.next_cost
        if self.stopped_by == STOPPED_BY_SIZE and self.transitions <= most_transitions:
            self.stopped_by = ""
        if level == NEVER or self.is_full:
            return False
        place, status, stopped_by = 0, ENDED, STOPPED_BY_MEMORY
        while place < self.num_states and status != FULL:
            status, place = self._follow(level, place)
            if self.num_bytes <= self._memory_bytes and self.transitions > most_transitions:
                stopped_by = STOPPED_BY_SIZE
            if self.num_bytes > self._memory_bytes or self.transitions > most_transitions:
                status = FULL
            if progress:
                progress(self.num_states, self.transitions)
        self.stopped_by = stopped_by if status == FULL and self.next_cost != NEVER else ""
        self.cost = level - 1 if self.is_full else level
        return not self.is_full

    def _follow(self, level: int, place: int) -> tuple[int, int]:
        """Follows the paths of this cost from some states, from number `place` on. Returns ENDED or FULL, and the next
        state."""
        arrays, stop = self.arrays, min(self.num_states, place + SLICE)
        here = place + np.flatnonzero(arrays.due[place:stop] == level)
        if len(here) > self.expand.at_once:
            stop = int(here[self.expand.at_once])
            here = here[: self.expand.at_once]
        cost = level - arrays.cost[here].astype(np.int64)
        batch = self.expand(self.kept, here, cost == 0, cost, cost)

        def add(kept: Kept, rows: np.ndarray, i: int, count: int) -> tuple[int, int, int]:
            given = kept, rows, i, count, batch, here, level, self.odds.rates[-1], arrays
            why, i, count, self.transitions = _add(*given, self.transitions)
            return why, i, count

        given = batch.rows, batch.layout, len(here), self.num_states
        status, done, self.num_states = self._store.keep(*given, add)
        return status, stop if done == len(here) else int(here[done])

    def solve(self, wholly: bool = True) -> SolvedHead | None:
        """Solves the head as it is; returns None if runs move to and fro among more states than elimination can take.

        Unless `wholly`, `broken` leaves out invariants whose breach is no data loss: each takes as long as all else.
        """
        chain = _chain(self.arrays, self.num_states, self.transitions)
        parts = absorption.components(chain)
        if parts.largest > absorption.MAX_COMPONENT:
            return None
        visits = absorption.visits(chain, parts)
        absorption.check_that_runs_end(chain, visits, self.model.name)
        inside, ends, leaves = visits[:-1], chain.ends[:-1], self.arrays.leaves[: self.num_states]
        chosen = [(i, each) for i, each in enumerate(self.model.invariants) if wholly or each.data_loss]
        flows = np.where((ends[:-1] == UNFINISHED) & (leaves > 0.0), inside[:-1], 0.0) * leaves
        bounds = self._bounds(flows)
        return SolvedHead(
            cost=self.cost,
            states=self.num_states,
            transitions=self.transitions,
            complete=self.next_cost == NEVER,
            lost=float(inside[ends == LOST].sum()),
            leaves=float(visits[-1]),
            beyond=min(float(visits[-1]), float(bounds.sum())) if self.margin else float(visits[-1]),
            broken={each.name: self._broken(i, chain, parts, visits) for i, each in chosen},
            stopped_by=self.stopped_by,
            flows=flows,
            bounds=bounds,
        )

    def _bounds(self, flows: np.ndarray) -> np.ndarray:
        if self.margin is None:
            return flows
        return margins.bounds(self.margin, self.expand, self.kept, self.arrays, flows)

    def _broken(
        self, invariant: int, chain: Chain, parts: absorption.Components, visits: np.ndarray
    ) -> tuple[float, float]:
        breaks = chain.broken >> invariant & 1 == 1
        if not self.model.invariants[invariant].data_loss and breaks.any():
            visits = absorption.visits(chain, parts, breaks)
        return float(visits[breaks].sum()), float(visits[-1])


def _chain(arrays: HeadArrays, count: int, transitions: int) -> Chain:
    """Returns a head as a chain with two more states: the end of a lifetime and, last, all that is outside."""
    source, target, p = (each[:transitions] for each in (arrays.source, arrays.target, arrays.p))
    return with_ends(arrays, count, *_by_source(source, target, p, arrays.expires[:count], arrays.leaves[:count]))


def with_ends(arrays: HeadArrays, count: int, first: np.ndarray, target: np.ndarray, p: np.ndarray) -> Chain:
    """Returns the chain of a head's first `count` states and those two, with these transitions."""
    nothing = np.zeros(2)
    return Chain(
        initial=np.append(arrays.initial[:count], nothing),
        first=first,
        target=target,
        p=p,
        total_rate=np.zeros(count + 2),
        broken=np.append(arrays.broken[:count], nothing.astype(np.int64)),
        ends=np.append(arrays.ends[:count], np.full(2, HORIZON, np.int8)),
    )


def _empty(states: int, transitions: int) -> HeadArrays:
    return HeadArrays(
        initial=np.zeros(states),
        cost=np.zeros(states, np.int16),
        due=np.zeros(states, np.int16),
        leaves=np.empty(states),
        expires=np.zeros(states),
        broken=np.zeros(states, np.int64),
        ends=np.empty(states, np.int8),
        latest=np.zeros(states, np.int64),
        source=np.empty(transitions, np.int32),
        target=np.empty(transitions, np.int32),
        p=np.empty(transitions),
    )


@njit_kept
def _by_source(source, target, p, expires, leaves):
    """Orders transitions by source, and adds those to the two states after all others."""
    num_states = len(leaves)
    first = np.zeros(num_states + 3, np.int64)
    for state in source:
        first[state + 1] += 1
    for state in range(num_states):
        first[state + 1] += first[state] + (expires[state] > 0.0) + (leaves[state] > 0.0)
    first[num_states + 1 :] = first[num_states]
    following = first[:-1].copy()
    targets, odds = np.empty(first[-1], np.int32), np.empty(first[-1])
    for i in range(len(source)):
        place = following[source[i]]
        targets[place], odds[place] = target[i], p[i]
        following[source[i]] += 1
    for state in range(num_states):
        for behind, out in enumerate((expires[state], leaves[state])):
            if out > 0.0:
                targets[following[state]], odds[following[state]] = num_states + behind, out
                following[state] += 1
    return first, targets, odds


@njit_kept
def _add(stored, rows, i, count, batch, places, level, end_rate, arrays, end):
    """Follows the paths of cost `level` from the states at places[i] and on, whose steps are in a batch, as
    `Store.keep` has it; returns the number of transitions as well. A state in which it stops is taken again later."""
    while i < len(places):
        place = places[i]
        why = FULL if end + MOST_SUCCESSORS > len(arrays.p) else halted(stored, count)
        if why != ENDED:
            return why, i, count, end
        cost, total = arrays.cost[place], batch.total[i]
        if level == cost:
            arrays.broken[place], arrays.ends[place] = batch.breaks[i], batch.ends[i]
        row, out, due, at = end, 0.0, NEVER, batch.first_row[i]
        for step in range(batch.first[i], batch.first[i + 1]):
            p, step_cost = batch.p[step], cost + batch.cost[step]
            if p > 0.0 and step_cost > level:
                out += p
                due = min(due, step_cost)
            elif batch.is_wanted[step]:
                found = keep_row(rows[at], stored, count)
                at += 1
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
        if arrays.ends[place] == UNFINISHED:  # set together with `leaves`, so that both are of the same level
            arrays.expires[place] = end_rate / total
        arrays.leaves[place] = out
        arrays.due[place] = due
        i += 1
    return ENDED, i, count, end
