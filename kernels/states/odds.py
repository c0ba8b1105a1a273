"""The probability and the cost of each step from a state, for all code that enumerates states.

With W the sum of the rates of all groups that have a member enabled (`kernels.rule`), and of 1 / lifetime, a step of
an instance of rate r, one of g enabled members of its group, that loses k of the n members of its subset, each with
probability p, has probability

    r / W / g * p^k * (1 - p)^(n - k)

and the cost, in decades below the likeliest group that is enabled with it,

    round(log10(highest rate enabled / r)) + k * round(-log10(p))

The end of a lifetime is enabled wherever anything is, at the rate 1 / lifetime: beside it, what is rarer has a cost.
Costs only choose where a head ends (`kernels.states.head`): a bad one wastes time, and makes no answer wrong.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.engines.points import Point
from quorisk.kernels.model import EVERYTHING, Model, instance_words
from quorisk.kernels.ops import jitable, popcount
from quorisk.kernels.rule import every_row, loss_names, losses, nonempty_rows, num_members


class Odds(NamedTuple):
    """Values of a point from which the probabilities and costs of its steps follow."""

    params: Any
    rates: np.ndarray  # float64 by action and, last, of the end of a lifetime: 1 / lifetime
    decades: np.ndarray  # float64, their decimal logarithms
    fates: np.ndarray  # float64, [action, n, k]: probability that a given k of n members are lost, and no others
    loss_cost: np.ndarray  # int64 by action, the cost of each member lost
    alike: int  # the number of things that no step tells apart; see `model.Alike`


class InstanceWords(NamedTuple):
    """Columns of a table of the words of instances, int64 by word."""

    action: np.ndarray
    first: np.ndarray
    """Its first instance."""
    shared: np.ndarray
    """`Action.shared` of its action."""
    every: np.ndarray
    """Mask of all its rows, `rule.every_row(shared)`."""
    begin: np.ndarray
    """The first word of its action."""
    end: np.ndarray
    """The word after the last one of its action."""


def odds_of(model: Model, point: Point) -> Odds:
    """The odds of a point's steps."""
    rates = np.array([*(float(point.rates.get(action.name, 1.0)) for action in model.actions), 1.0 / point.lifetime])
    decades = np.log10(rates, out=np.full(len(rates), -math.inf), where=rates > 0.0)
    by_name = [point.p_lost(name) for name in loss_names(model)]
    p_lost = [by_name[place] for place in losses(model)]
    loss_cost = np.array([round(-math.log10(p)) if p > 0.0 else 0 for p in p_lost], np.int64)
    params = model.make_params(point.values)
    alike = model.alike.number(params) if model.alike else 0
    return Odds(params, rates, decades, np.array([_fates(model, p) for p in p_lost]), loss_cost, alike)


def no_odds(model: Model, params: Any) -> Odds:
    """Returns a placeholder for odds, for code that needs no probability and no cost."""
    rates, num_actions, num = np.zeros(len(model.actions) + 1), len(model.actions), model.max_sends + 1
    return Odds(params, rates, rates, np.zeros((num_actions, num, num)), np.zeros(num_actions, np.int64), 0)


def _fates(model: Model, p: float) -> list[list[float]]:
    sizes = range(model.max_sends + 1)
    return [[p**k * (1.0 - p) ** (n - k) if k <= n else 0.0 for k in sizes] for n in sizes]


@cache
def instance_table(model: Model) -> InstanceWords:
    """The words of a model's instances."""
    action, first = np.array(instance_words(model), np.int64).T
    shared = np.array([model.actions[place].shared for place in action], np.int64)
    return InstanceWords(
        action=action.copy(),
        first=first.copy(),
        shared=shared,
        every=np.array(list(map(every_row, shared.tolist())), np.int64),
        begin=np.searchsorted(action, action, "left"),
        end=np.searchsorted(action, action, "right"),
    )


@jitable
def cost_of(odds, top, action, lost):
    """Returns the cost of a step; `top` is the highest decade enabled."""
    decade = odds.decades[action]
    below = np.int64(np.floor(top - decade + 0.5)) if decade > -np.inf and decade <= top else 0
    return below + odds.loss_cost[action] * popcount(lost)


@jitable
def num_groups(masks, word, words):
    """Counts the groups of a word with a member enabled; one of all words counts in the first word that has one.
    `masks` are all words of instances that are enabled in a state."""
    if words.shared[word] == 1:
        return popcount(masks[word])
    if words.shared[word] < EVERYTHING:
        return popcount(nonempty_rows(masks[word], words.shared[word], words.every[word]))
    for other in range(words.begin[word], word):
        if masks[other] != 0:
            return 0
    return 1


@jitable
def group_size(masks, word, instance, words):
    """Returns the number of enabled members of an instance's group."""
    if words.shared[word] < EVERYTHING:
        return num_members(masks[word], instance & 63, words.shared[word])
    size = 0
    for other in range(words.begin[word], words.end[word]):
        size += popcount(masks[other])
    return size
