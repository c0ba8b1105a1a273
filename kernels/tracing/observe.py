"""Observed runs of a configuration: the bits that leaves of the state take, the words that are enabled and taken.

They need not show all that can happen: they decide how fast runs are stepped, never how runs go.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from quorisk.kernels.model import Model
from quorisk.kernels.rule import PICK_BITS, group_words
from quorisk.kernels.tracing.evaluate import Evaluation
from quorisk.kernels.tracing.expressions import Node, same
from quorisk.kernels.tracing.general import CHOICE, PICKED
from quorisk.kernels.tracing.program import program
from quorisk.kernels.tracing.trace import Bounds, Follower, TracedModel, bit_leaf, losses_leaf, mask_leaf, trace_all

NUM_RUNS = 1 << 10
"""Number of runs that go on at a time."""
MAX_ROUNDS = 1 << 9
"""Largest number of steps of each of them."""
_PATIENCE = 1 << 6
"""Number of steps without anything new after which no more is expected."""


def observe(model: Model, params: Any, weights: Sequence[int], losses: Sequence[float]) -> Bounds:
    """The bounds of some runs with these rates and probabilities of `rule.loss_names`. Raises as `trace` does."""
    return _Watch(model, trace_all(model, params, tuple(weights)), losses).bounds()


class Shown:
    """Statistics of the values that expressions were seen to have together."""

    def __init__(self, num: int) -> None:
        self.times = 0
        """Number of values of each; all else is by expression."""
        self.total, self.highest = np.zeros((2, num), np.int64)
        """Sum of the values, and the highest of them, at least 0."""

    def add(self, values: np.ndarray) -> None:
        """Adds more values, by expression."""
        self.times += values.shape[1]
        self.total += values.sum(axis=1)
        self.highest = np.maximum(self.highest, values.max(axis=1))


def values(
    model: Model, traced: TracedModel, losses: Sequence[float], asked: Sequence[Sequence[Node]]
) -> tuple[list[Shown], int]:
    """Returns the values of expressions in the runs that show the bounds: of each word's, wherever it is taken, and of
    the last list's in every state. Returns as well how many runs were observed, from their beginning."""
    watch = _Watch(model, traced, losses, asked)
    watch.bounds()
    return watch.shown, watch.runs


class _Flags:
    """Finds the leaves of a state that never have two values besides 0, and which of them are 0 at the same time."""

    def __init__(self, num_leaves: int) -> None:
        self.least = np.full(num_leaves, np.iinfo(np.int64).max)
        self.greatest = np.zeros(num_leaves, np.int64)
        self.marks = [0] * num_leaves
        """Equal for leaves that were 0 in the same states."""

    def add(self, state: np.ndarray) -> None:
        """Adds more states."""
        is_set = state != 0
        self.least = np.minimum(self.least, np.where(is_set, state, self.least[:, None]).min(axis=1))
        self.greatest = np.maximum(self.greatest, state.max(axis=1))
        self.marks = [hash((mark, row.tobytes())) for mark, row in zip(self.marks, is_set, strict=True)]

    def followers(self) -> tuple[Follower, ...]:
        """Leaves as they follow from one of those that are 0 at the same time."""
        alike: dict[int, list[int]] = defaultdict(list)
        for leaf in np.flatnonzero(self.least == self.greatest).tolist():
            alike[self.marks[leaf]].append(leaf)
        found = []
        for leaves in alike.values():
            flag = min(leaves, key=lambda leaf: self.greatest[leaf])
            found += [Follower(leaf, flag, int(self.greatest[leaf])) for leaf in leaves if leaf != flag]
        return tuple(found)


class _Watch:
    """Runs in lockstep. One that ends is followed by another, until none of the first ones goes on or nothing new is
    seen any more."""

    def __init__(
        self, model: Model, traced: TracedModel, losses: Sequence[float], asked: Sequence[Sequence[Node]] | None = None
    ) -> None:
        self.traced, self.losses, self.num_words = traced, losses, len(group_words(model))
        self.members = np.arange(model.max_sends)[:, None]
        self.shares = [model.actions[word.action].shared > 1 for word in traced.words]
        self.data_loss = [invariant.data_loss for invariant in model.invariants]
        self.random = np.random.Generator(np.random.Philox(0))
        self.weights = np.array([float(word.weight) for word in traced.words])[:, None]
        asked = asked or [[] for _ in (*traced.words, "state")]
        self.shown = [Shown(len(nodes)) for nodes in asked]
        self.runs = self.ended = 0
        self.initial = Evaluation(program(traced.initial, {CHOICE: 0}))
        state = {("state", i): i for i in range(len(traced.state))}
        self.look = Evaluation(program([*traced.now.masks, *traced.now.broken, *asked[-1]], state))
        self.changed, self.effects = list[list[int]](), list[Evaluation]()
        for place, (word, nodes) in enumerate(zip(traced.words, asked, strict=False)):
            after = [(i, leaf) for i, leaf in enumerate(word.after or ()) if not same(leaf, traced.state[i])]
            self.changed.append([i for i, _ in after])
            drawn = [bit_leaf(place), mask_leaf(place), losses_leaf(word.loss), PICKED]
            places = state | {name: len(state) + i for i, name in enumerate(drawn)}
            self.effects.append(Evaluation(program([*(leaf for _, leaf in after), *nodes], places)))
        self.state = self._first(NUM_RUNS)
        self.seen = np.zeros(len(self.state), np.int64)
        self.flags = _Flags(len(self.state))
        self.enabled, self.broken = set[int](), set[int]()
        self.taken = Counter[int]()

    def bounds(self) -> Bounds:
        old = np.ones(NUM_RUNS, bool)
        known = last = 0
        for number in range(MAX_ROUNDS):
            self.seen |= np.bitwise_or.reduce(self.state, axis=1)
            self.flags.add(self.state)
            ended = self._step()
            self.ended += int(ended.sum())
            self.state[:, ended] = self._first(int(ended.sum()))
            old &= ~ended
            found = int(np.bitwise_count(self.seen).sum()) + len(self.enabled) + len(self.taken) + len(self.broken)
            if found > known:
                known, last = found, number
            if not old.any() or number - last >= _PATIENCE:
                break
        self.seen |= np.bitwise_or.reduce(self.state, axis=1)
        steps = self.taken.total()
        shares = tuple(self.taken[i] / max(1, steps) for i in range(self.num_words))
        words = frozenset(self.enabled), frozenset(self.taken)
        mean_steps = math.inf if old.any() else steps / self.ended
        return Bounds(self._bits(), *words, frozenset(self.broken), shares, mean_steps, self.flags.followers())

    def _bits(self) -> tuple[int, ...]:
        """Bits that each leaf was seen to have, of those that it may have; all of these where nothing depends on a
        leaf, which then has no values."""
        leaves, wide = self.traced.state, self.traced.bounds.state
        found = zip(self.seen, leaves, wide, strict=True)
        return tuple(int(seen) & may if isinstance(leaf, Node) else may for seen, leaf, may in found)

    def _first(self, num: int) -> np.ndarray:
        self.runs += num
        choices = self.random.integers(0, self.traced.num_choices, num)
        return self.initial(choices[None])

    def _step(self) -> np.ndarray:
        """Takes every run a step on; returns which of them have ended instead."""
        num, words = self.state.shape[1], self.traced.words
        seen = self.look(self.state)
        masks, broken, values = np.split(seen, [len(words), len(words) + len(self.data_loss)])
        broken = broken.astype(bool)
        self.shown[-1].add(values)
        self.enabled |= {word.number for word, mask in zip(words, masks, strict=True) if mask.any()}
        self.broken |= set(np.flatnonzero(broken.any(axis=1)).tolist())
        sums = np.cumsum(self.weights * np.bitwise_count(masks.view(np.uint64)), axis=0)
        ended: np.ndarray = (sums[-1] == 0) | broken[self.data_loss].any(axis=0)
        drawn = self.random.random(num) * sums[-1]
        chosen = np.where(ended, -1, (sums <= drawn).sum(axis=0))
        fates = self.random.random((len(self.members), num))
        for place, word in enumerate(words):
            (runs,) = np.nonzero(chosen == place)
            if len(runs):
                self.taken[word.number] += len(runs)
                self._take(place, runs, masks[place, runs], fates[:, runs] < self.losses[word.loss])
        return ended

    def _take(self, place: int, runs: np.ndarray, mask: np.ndarray, lost: np.ndarray) -> None:
        """Takes a random instance of a random group of a word, in those runs."""
        enabled = mask >> np.arange(64)[:, None] & 1
        bit = np.argmax(np.where(enabled, self.random.random(enabled.shape), -1.0), axis=0)
        lost_bits = (lost.astype(np.int64) << self.members).sum(axis=0)
        picked = self.random.integers(0, 1 << PICK_BITS, len(runs)) if self.shares[place] else 0 * bit
        leaves = np.vstack([self.state[:, runs], bit, np.int64(1) << bit, lost_bits, picked])
        after, values = np.split(self.effects[place](leaves), [len(self.changed[place])])
        self.state[np.array(self.changed[place], int)[:, None], runs] = after
        self.shown[place].add(values)
