"""The cost of a step, in decades below the likeliest one that is enabled with it:

    round(log10(highest rate enabled / its rate)) + messages lost x round(-log10(message_loss))

The end of a lifetime is enabled wherever anything is, at the rate 1 / lifetime: beside it, what is rarer has a cost.
Costs only choose where a head ends (`kernels.states.head`): a bad one wastes time, and makes no answer wrong.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.compiled import LATE, bind
from quorisk.kernels.engines.points import Point
from quorisk.kernels.model import Model
from quorisk.kernels.ops import popcount
from quorisk.kernels.states.chain import fates
from quorisk.kernels.states.store import word_tables


class Odds(NamedTuple):
    """What probabilities and costs of the steps of a point follow from."""

    params: Any
    rates: np.ndarray  # float64 by action and, last, of the end of a lifetime: 1 / lifetime
    decades: np.ndarray  # float64, their decimal logarithms
    fates: np.ndarray  # see `chain.fates`
    loss_cost: int  # of a message lost
    alike: int  # the number of things that no step tells apart; see `model.Alike`


class CostFunctions(NamedTuple):
    """A model's compiled functions."""

    enabled: Any
    """`enabled(masks, odds)`: the sum of the rates of all that is enabled, 0 if nothing is, and the highest decade."""
    decades_below: Any
    """`decades_below(top, decade)`: the cost of a step whose rate has this decade, of no lost message."""


def odds_of(model: Model, point: Point) -> Odds:
    """The odds of a point's steps."""
    rates = np.array([*(float(point.rates.get(action.name, 1.0)) for action in model.actions), 1.0 / point.lifetime])
    decades = np.log10(rates, out=np.full(len(rates), -math.inf), where=rates > 0.0)
    loss_cost = round(-math.log10(point.message_loss)) if point.message_loss > 0.0 else 0
    params = model.make_params(point.values)
    alike = model.alike.number(params) if model.alike else 0
    return Odds(params, rates, decades, fates(model, point.message_loss), loss_cost, alike)


@cache
def cost_functions(model: Model) -> CostFunctions:
    """The functions that weigh the steps of a model."""
    return CostFunctions(
        bind(_enabled, model.name, **word_tables(model)),
        bind(_decades_below, model.name),
    )


# Templates, with the names that are bound by `cost_functions`

num_words = word_action = LATE


def _enabled(masks, odds):
    total, top = 0.0, -np.inf
    for word in range(num_words):
        if masks[word] != 0:
            total += odds.rates[word_action[word]] * popcount(masks[word])
            top = max(top, odds.decades[word_action[word]])
    if total > 0.0:
        total += odds.rates[-1]
        top = max(top, odds.decades[-1])
    return total, top


def _decades_below(top, decade):
    return np.int64(np.floor(top - decade + 0.5)) if decade > -np.inf and decade <= top else 0
