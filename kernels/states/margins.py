"""Bounds on losses beyond a head, from the faults that have to come first (`kernels.model.Margin`).

At most n instances of the fault are enabled at a time, each with the rate r, and a lifetime of mean T may end wherever
one may happen. So a fault comes before that end with probability p = n r / (n r + 1 / T) at most, whatever happened
before, and k faults with p^k at most. If a state needs k of them before anything is lost, p^k bounds the probability of
a loss from there.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels import declared
from quorisk.kernels.compiled import LATE, refusal
from quorisk.kernels.model import Model
from quorisk.kernels.states.functions import compiled_for
from quorisk.kernels.states.odds import Odds
from quorisk.kernels.states.store import Kept


class KnownMargin(NamedTuple):
    """A model's margin at a point."""

    fault: int
    """Place of the fault among the model's actions."""
    most: int
    """Largest number of its instances that are enabled at a time."""
    p: float
    """Upper bound on the probability that one more of them comes before a run ends."""

    def ahead(self, odds: Odds) -> Odds:
        """Returns the odds with the fault cheaper by the decades of p. A head then goes from fault to fault, and has
        the paths to a loss long before the harmless ones that are as likely."""
        decades = odds.decades.copy()
        decades[self.fault] -= math.log10(self.p) if self.p > 0.0 else 0.0
        return odds._replace(decades=decades)


def margin_at(model: Model, odds: Odds) -> KnownMargin | None:
    """Returns the model's margin at the point of these odds; None if it has none there."""
    most = model.margin.most(odds.params) if model.margin else 0
    if model.margin is None or not most:
        return None
    fault = [action.name for action in model.actions].index(model.margin.fault)
    together = most * odds.rates[fault]
    return KnownMargin(fault, most, together / (together + odds.rates[-1]) if together > 0.0 else 0.0)


def bounds(model: Model, margin: KnownMargin, odds: Odds, kept: Kept, arrays: Any, flows: np.ndarray) -> np.ndarray:
    """Bounds the losses among runs that leave a head with these flows; float64 by state. `arrays` are the head's.

    Raises ModelError where a state contradicts the margin.
    """
    found = np.zeros(len(flows))
    too_many = declared.unfit(model.name, "margin", "more instances of its fault are enabled than it says")
    compiled_for(model, _bounds, refuse=refusal(too_many))(
        odds, *margin, kept, arrays.cost, arrays.due, arrays.leaves, flows, found
    )
    return found


# Templates, with names that are bound by `compiled_for`

cost = enabled = guards = needed = num_of = num_words = refuse = state = LATE


def chances(params, p, kept, flows):
    """Multiplies the flow to each state by an upper bound on the probability of the faults that are needed there."""
    for place in range(len(flows)):
        flows[place] *= p ** needed(state(kept, place), params)


def _bounds(odds, fault, most, p, kept, costs, due, leaves, flows, found):
    """A step of another action leads to a state that needs no fewer faults, and a fault to one that needs one fewer."""
    masks = np.empty(num_words, np.int64)
    for place in range(len(flows)):
        if flows[place] == 0.0:
            continue
        before = state(kept, place)
        chance = p ** needed(before, odds.params)
        found[place] = flows[place] * chance
        guards(before, odds.params, masks)
        num = num_of(masks, fault)
        refuse(num > most)
        total, top = enabled(masks, odds)
        is_followed = due[place] > costs[place] + cost(odds, top, fault, 0)
        if p > 0.0 and due[place] > costs[place] and not is_followed:
            found[place] += flows[place] / leaves[place] * num * odds.rates[fault] / total * chance / p
