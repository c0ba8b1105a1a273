"""The steps of many states at once, and the states that they lead to.

Search, chain and heads ask for them here. Programs of the protocol compute on the states' rows
(`kernels.states.programs`); all else is compiled once for all protocols.
"""

from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.engines.step import ending
from quorisk.kernels.errors import ModelError
from quorisk.kernels.keeping import njit_kept
from quorisk.kernels.model import UNFINISHED, Model, data_loss_mask
from quorisk.kernels.ops import lowest_bit, popcount
from quorisk.kernels.packing import RowLayout
from quorisk.kernels.states.odds import Odds, cost_of, group_size, instance_table, num_groups
from quorisk.kernels.states.programs import Programs
from quorisk.kernels.states.representatives import stand_in
from quorisk.kernels.states.store import MOST_SUCCESSORS, Kept
from quorisk.kernels.tracing.evaluate import Columns

ANY_COST = 1 << 20
"""A cost that no step exceeds."""
_LASTING, _SHARE = 1 << 12, 1 / 8
"""Number of states that are expanded as wide rows, after the last that made rows wider, before programs are made for
the rows as they are; and their share of all that were expanded before."""
_STEPS, _MOST_STATES = 1 << 15, 1 << 12
"""Number of steps that are listed at a time, about, and the largest number of states."""


class Expanded(NamedTuple):
    """Steps of some states, in their order; those of an instance come in descending order of `lost`."""

    first: np.ndarray
    """int64, one more than there are states: state i has the steps first[i] to first[i + 1] - 1."""
    first_row: np.ndarray
    """int64, the same for rows."""
    total: np.ndarray
    """float64 by state, W; 0 if nothing enabled has a rate."""
    breaks: np.ndarray
    """int64 by state, the mask of the invariants that it breaks."""
    ends: np.ndarray
    """int64 by state, how a run ends there, UNFINISHED if it goes on; then there are steps."""
    action: np.ndarray
    """int64 by step; so are all that follow but `p` and `rows`."""
    size: np.ndarray
    """The members of its subset."""
    lost: np.ndarray
    """Mask of those that are lost."""
    cost: np.ndarray
    """Its cost, in decades; see `odds`."""
    p: np.ndarray
    """float64 by step; 0 if its rate is 0."""
    is_wanted: np.ndarray
    """Bool by step."""
    rows: np.ndarray
    """uint64, [number, word]: rows of the states after the steps that are wanted."""
    layout: RowLayout
    """Layout of the rows."""

    @property
    def num_states(self) -> int:
        """Number of states."""
        return len(self.total)


class Expander:
    """Expands states of a configuration, for one thread at a time."""

    def __init__(
        self, model: Model, odds: Odds, judges: bool = True, lumps: bool = False, forgets: bool = False
    ) -> None:
        """It `judges` states, so that there are no steps where runs end, and wants none of probability 0; without that
        it wants all steps. With `lumps` rows are those of representatives; if it also `forgets`, without what nothing
        reads any more, so that runs take fewer steps. Raises ModelError as `general` does."""
        self.programs = self._fitting = Programs(model, odds.params)
        self._since, self._num_since, self._num = self.programs.layout, 0, 0
        self.at_once = 64
        """Number of states to expand together, as memory and caches like it."""
        self._odds, self._words = odds._replace(params=0), instance_table(model)
        self._judges, self._lumps, self._data_loss = judges, lumps, data_loss_mask(model)
        self._forgets = forgets and model.forget is not None
        self._too_many = f"protocol = {model.name!r}: a state has more than {MOST_SUCCESSORS:,} steps"

    def __call__(
        self, stored: Kept, places: np.ndarray, is_new: Any = True, low: Any = -ANY_COST, high: Any = ANY_COST
    ) -> Expanded:
        """The steps of the stored states at `places`; the rows of those that cost `low` to `high`. States that are not
        `is_new` are not judged again: runs go on there. Each may be an array, by state.

        Raises ModelError if the protocol contradicts its declarations.
        """
        return self.of_rows(stored.rows[places], stored.layout, is_new, low, high)

    def of_rows(
        self, rows: np.ndarray, layout: RowLayout, is_new: Any = True, low: Any = -ANY_COST, high: Any = ANY_COST
    ) -> Expanded:
        """The same for states given by their rows, uint64 by state and word."""
        programs, num, words, odds = self.fitting(layout, len(rows)), len(rows), self._words, self._odds
        given = programs.rows(rows, layout)
        is_new, low, high = (np.broadcast_to(each, num) for each in (is_new, low, high))
        seen, (judged,) = programs.enabled(given), np.nonzero(is_new & self._judges)
        breaks, outcome = np.zeros((2, num), np.int64)
        breaks[judged], outcome[judged] = programs.judged(given[judged])
        total, top, ends, instances = _judge(seen, words, odds, judged, outcome, breaks & self._data_loss != 0)
        state, word, instance = _instances(seen, words, instances)
        action, sent = words.action[word], np.zeros(len(word), np.int64)
        for sending in filter(programs.may_send, range(len(odds.loss_cost))):
            (part,) = np.nonzero(action == sending)
            if len(part):
                sent[part] = programs.sends(sending, given, state[part], instance[part])
        first = _first(state, sent, num)
        if np.diff(first).max(initial=0) > MOST_SUCCESSORS:
            raise ModelError(self._too_many)
        known = seen, words, odds, self._judges, total, top, low, high, state, word, instance, sent
        source, instance, action, size, lost, cost, p, is_wanted = _steps(*known, first[-1])
        self.at_once = int(np.clip(_STEPS * num // max(1, len(source)), 1, _MOST_STATES))
        wanted = tuple(each[is_wanted] for each in (source, instance, action, lost))
        after = self._rows(programs, given, *wanted)
        if after is None:  # a state does not fit the layout
            programs = self.programs
            after = self._rows(programs, programs.rows(rows, layout), *wanted)
        assert after is not None  # or `Programs.after` would have raised
        first_row, layout = np.searchsorted(np.flatnonzero(is_wanted), first), programs.layout
        return Expanded(first, first_row, total, breaks, ends, action, size, lost, cost, p, is_wanted, after, layout)

    def enabled(self, stored: Kept, places: np.ndarray, action: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The number of an action's enabled instances, which lose nothing, the probability of all of them, and the cost
        of each; by state."""
        words, odds, rows = self._words, self._odds, self.programs.rows(stored.rows[places], stored.layout)
        seen, nothing = self.programs.enabled(rows), np.zeros(len(places), np.int64)
        total, top, _, _ = _judge(seen, words, odds, nothing[:0], nothing, nothing != 0)
        found: tuple[np.ndarray, np.ndarray, np.ndarray] = _of_action(seen, words, odds, total, top, action)
        return found

    def fitting(self, layout: RowLayout, num: int = 0) -> Programs:
        """Programs of rows of a layout, for `num` states to expand, if it has lasted; else those of wide rows."""
        if self._lumps:  # these put things in order, and stop before new programs would pay
            return self.programs
        if layout is not self._since:
            self._since, self._num_since = layout, 0
        self._num_since, self._num = self._num_since + num, self._num + num
        if self._fitting.layout is not layout and self._num_since > max(_LASTING, _SHARE * self._num):
            self._fitting = self.programs.laid_out(layout)
        return self._fitting if self._fitting.layout is layout else self.programs

    def _rows(
        self,
        programs: Programs,
        given: np.ndarray,
        source: np.ndarray,
        instance: np.ndarray,
        action: np.ndarray,
        lost: np.ndarray,
    ) -> np.ndarray | None:
        """The rows of the states after steps, by step and word; None if one does not fit their layout."""
        rows, steps = given[source], np.array([instance, lost])
        order, bounds = _by_action(action, len(self._odds.loss_cost))
        for place in np.flatnonzero(np.diff(bounds)).tolist():
            part = order[bounds[place] : bounds[place + 1]]
            before = Columns(given.T, source[part]), Columns(steps, part)
            if not programs.after(place, before, len(part), Columns(rows.T, part)):
                return None
        if self._lumps:
            rows = programs.forgotten(rows) if self._forgets else rows
            stand_in(programs.model, rows, self._odds.alike)
        return rows.view(np.uint64)


@njit_kept
def _judge(seen, words, odds, judged, outcome, is_lost):
    """Returns W, the highest decade, how a run ends in each state, and the number of its instances: none in ends.

    `seen` are all words of instances by state, `judged` the places of the states in which runs may end.
    """
    num = seen.shape[1]
    total, top = np.zeros(num), np.full(num, -np.inf)
    ends, instances = np.full(num, UNFINISHED), np.zeros(num, np.int64)
    for word in range(len(words.action)):
        rate, decade = odds.rates[words.action[word]], odds.decades[words.action[word]]
        for i in range(num):
            if seen[word, i] != 0:
                total[i] += rate * num_groups(seen[:, i], word, words)
                top[i] = max(top[i], decade)
                instances[i] += popcount(seen[word, i])
    for i in range(num):
        if total[i] > 0.0:
            total[i] += odds.rates[-1]
            top[i] = max(top[i], odds.decades[-1])
    for i in judged:
        ends[i] = ending(UNFINISHED, False, total[i] <= 0.0, outcome[i], is_lost[i])
        if ends[i] != UNFINISHED:
            instances[i] = 0
    return total, top, ends, instances


@njit_kept
def _instances(seen, words, instances):
    """Lists the enabled instances of all states: the state, the word and the instance of each."""
    following = np.empty(len(instances), np.int64)
    num = 0
    for i in range(len(instances)):
        following[i] = num
        num += instances[i]
    state, word_of, instance = np.empty(num, np.int64), np.empty(num, np.int64), np.empty(num, np.int64)
    for word in range(len(words.action)):
        for i in range(len(instances)):
            mask = seen[word, i] if instances[i] > 0 else 0
            while mask != 0:
                at = following[i]
                state[at], word_of[at], instance[at] = i, word, words.first[word] + lowest_bit(mask)
                mask &= mask - 1
                following[i] += 1
    return state, word_of, instance


@njit_kept
def _first(state, sent, num):
    """Returns `Expanded.first`."""
    first = np.zeros(num + 1, np.int64)
    for i in range(len(state)):
        first[state[i] + 1] += 1 << popcount(sent[i])
    for i in range(num):
        first[i + 1] += first[i]
    return first


@njit_kept
def _steps(seen, words, odds, judges, totals, tops, low, high, state, word, instance, sent, num):
    """Lists the steps of instances: the state and instance of each, columns of `Expanded`, and whether it is wanted."""
    source, its_instance, action = np.empty(num, np.int64), np.empty(num, np.int64), np.empty(num, np.int64)
    size, lost, cost, p = np.empty(num, np.int64), np.empty(num, np.int64), np.empty(num, np.int64), np.empty(num)
    is_wanted, at = np.empty(num, np.bool_), 0
    for i in range(len(state)):
        place, number = state[i], words.action[word[i]]
        chance = odds.rates[number] / totals[place]
        if words.shared[word[i]] > 1:
            chance /= group_size(seen[:, place], word[i], instance[i], words)
        members, subset = popcount(sent[i]), sent[i]
        while True:
            source[at], its_instance[at], action[at], size[at], lost[at] = place, instance[i], number, members, subset
            p[at] = chance * odds.fates[number, members, popcount(subset)]
            cost[at] = cost_of(odds, tops[place], number, subset)
            is_wanted[at] = not judges or (p[at] > 0.0 and low[place] <= cost[at] <= high[place])
            at += 1
            if subset == 0:
                break
            subset = (subset - 1) & sent[i]
    return source, its_instance, action, size, lost, cost, p, is_wanted


@njit_kept
def _by_action(action, num_actions):
    """Returns the numbers of steps ordered by action, and where the steps of each action begin among them."""
    bounds, order = np.zeros(num_actions + 1, np.int64), np.empty(len(action), np.int64)
    for each in action:
        bounds[each + 1] += 1
    for i in range(num_actions):
        bounds[i + 1] += bounds[i]
    following = bounds.copy()
    for step in range(len(action)):
        order[following[action[step]]] = step
        following[action[step]] += 1
    return order, bounds


@njit_kept
def _of_action(seen, words, odds, totals, tops, action):
    """Returns what `Expander.enabled` does."""
    num, cost, share = np.zeros(len(tops), np.int64), np.empty(len(tops), np.int64), np.zeros(len(tops))
    for i in range(len(tops)):
        for word in range(len(words.action)):
            num[i] += popcount(seen[word, i]) if words.action[word] == action else 0
        cost[i] = cost_of(odds, tops[i], action, 0)
        if totals[i] > 0.0:
            share[i] = num[i] * odds.rates[action] / totals[i]
    return num, share, cost
