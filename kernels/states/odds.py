"""The steps from a state, with the probability and the cost of each, for all code that enumerates states.

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

from quorisk.kernels.compiled import LATE, bind, refusal
from quorisk.kernels.engines.points import Point
from quorisk.kernels.model import EVERYTHING, Model, instance_words, leaves
from quorisk.kernels.ops import jitable, lowest_bit, popcount
from quorisk.kernels.rule import every_row, loss_names, losses, nonempty_rows, num_members
from quorisk.kernels.states.store import MOST_SUCCESSORS
from quorisk.kernels.stepper import stepper


class Odds(NamedTuple):
    """Values of a point from which the probabilities and costs of its steps follow."""

    params: Any
    rates: np.ndarray  # float64 by action and, last, of the end of a lifetime: 1 / lifetime
    decades: np.ndarray  # float64, their decimal logarithms
    fates: np.ndarray  # float64, [action, n, k]: probability that a given k of n members are lost, and no others
    loss_cost: np.ndarray  # int64 by action, the cost of each member lost
    alike: int  # the number of things that no step tells apart; see `model.Alike`


class Steps(NamedTuple):
    """The steps from one state, at the start of each array; those of an instance come in descending order of `lost`."""

    word: np.ndarray  # int64, its word of instances
    instance: np.ndarray  # int64
    size: np.ndarray  # int64, the members of its subset
    lost: np.ndarray  # int64, mask of those that are lost
    p: np.ndarray  # float64; 0 if its rate is 0
    action: np.ndarray  # int64: only if `successors` or `followers` listed them
    cost: np.ndarray  # int64: only if `successors` did


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


def in_words(odds: Odds) -> Odds:
    """Returns the odds with the leaves of `params` as an int64 array: of one type for all models."""
    return odds._replace(params=np.array(leaves(odds.params), np.int64))


def no_odds(model: Model, params: Any) -> Odds:
    """Returns a placeholder for odds, for code that needs no probability and no cost."""
    rates, num_actions = np.zeros(len(model.actions) + 1), len(model.actions)
    return Odds(params, rates, rates, np.zeros((num_actions, 1, 1)), np.zeros(num_actions, np.int64), 0)


def _fates(model: Model, p: float) -> list[list[float]]:
    sizes = range(model.max_sends + 1)
    return [[p**k * (1.0 - p) ** (n - k) if k <= n else 0.0 for k in sizes] for n in sizes]


def room_for_steps() -> Steps:
    """Room for the steps from one state."""
    word, instance, size, lost, action, cost = np.empty((6, MOST_SUCCESSORS), np.int64)
    return Steps(word, instance, size, lost, np.empty(MOST_SUCCESSORS), action, cost)


@cache
def step_functions(model: Model) -> dict[str, Any]:
    """Returns the functions that list and weigh the steps of a model, by their names below, and the tables of its words
    that they read. `masks` are the words of enabled instances."""
    action, first = np.array(instance_words(model), np.int64).T
    shared = np.array([model.actions[place].shared for place in action], np.int64)
    words = InstanceWords(
        action=action.copy(),
        first=first.copy(),
        shared=shared,
        every=np.array(list(map(every_row, shared.tolist())), np.int64),
        begin=np.searchsorted(action, action, "left"),
        end=np.searchsorted(action, action, "right"),
    )
    given: dict[str, Any] = {"num_words": len(action), "words": words}
    too_many = f"protocol = {model.name!r}: a state has more than {MOST_SUCCESSORS:,} steps"
    return given | {
        "listed": bind(_listed, model.name, sends_of=stepper(model).sends_of, refuse=refusal(too_many), **given),
        "enabled": bind(_enabled, model.name, **given),
        "weigh": bind(_weigh, model.name, words=words),
        "num_of": bind(_num_of, model.name, **given),
        "cost": bind(_cost, model.name),
    }


# Templates, with the names that are bound by `step_functions`

num_words = refuse = sends_of = words = LATE


def _listed(here, params, masks, steps):
    """Writes all steps from the state of a wide row, whatever their probability, except `p`; returns their number."""
    num = 0
    for word in range(num_words):
        mask = masks[word]
        while mask != 0:
            instance = words.first[word] + lowest_bit(mask)
            mask &= mask - 1
            sent = sends_of(here, params, words.action[word], instance)
            size, lost = popcount(sent), sent
            refuse(num + (1 << size) > MOST_SUCCESSORS)
            while True:
                steps.word[num] = word
                steps.instance[num] = instance
                steps.size[num] = size
                steps.lost[num] = lost
                num += 1
                if lost == 0:
                    break
                lost = (lost - 1) & sent
    return num


def _enabled(masks, odds):
    """Returns W, which is 0 if nothing enabled has a rate, and the highest decade."""
    total, top = 0.0, -np.inf
    for word in range(num_words):
        if masks[word] != 0:
            total += odds.rates[words.action[word]] * _num_groups(masks, word, words)
            top = max(top, odds.decades[words.action[word]])
    if total > 0.0:
        total += odds.rates[-1]
        top = max(top, odds.decades[-1])
    return total, top


def _weigh(masks, odds, total, steps, num):
    """Writes the probabilities of the first `num` steps; `total` is W."""
    for i in range(num):
        word = steps.word[i]
        action = words.action[word]
        chance = odds.rates[action] / total
        if words.shared[word] > 1:
            chance /= _group_size(masks, word, steps.instance[i], words)
        steps.p[i] = chance * odds.fates[action, steps.size[i], popcount(steps.lost[i])]


def _num_of(masks, action):
    """Returns the number of enabled instances of an action."""
    num = 0
    for word in range(num_words):
        num += popcount(masks[word]) if words.action[word] == action else 0
    return num


def _cost(odds, top, action, lost):
    """Returns the cost of a step; `top` is the highest decade enabled."""
    decade = odds.decades[action]
    below = np.int64(np.floor(top - decade + 0.5)) if decade > -np.inf and decade <= top else 0
    return below + odds.loss_cost[action] * popcount(lost)


@jitable
def _num_groups(masks, word, words):
    """Counts the groups of a word with a member enabled; one of all words counts in the first word that has one."""
    if words.shared[word] == 1:
        return popcount(masks[word])
    if words.shared[word] < EVERYTHING:
        return popcount(nonempty_rows(masks[word], words.shared[word], words.every[word]))
    for other in range(words.begin[word], word):
        if masks[other] != 0:
            return 0
    return 1


@jitable
def _group_size(masks, word, instance, words):
    """Returns the number of enabled members of an instance's group."""
    if words.shared[word] < EVERYTHING:
        return num_members(masks[word], instance & 63, words.shared[word])
    size = 0
    for other in range(words.begin[word], words.end[word]):
        size += popcount(masks[other])
    return size
