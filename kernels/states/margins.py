"""What may be lost beyond a head, by the faults that have to come first (`kernels.model.Margin`).

Of these faults at most n instances are enabled at a time, each with the rate r, and a lifetime of T may end wherever
one may happen. So of these two a fault comes first with probability p = n r / (n r + 1 / T) at most, whatever happened
before, and k of them before the end with p^k at most. If a state needs k of them before anything is lost, p^k bounds
the probability of a loss from there.
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


class Known(NamedTuple):
    """What a model's margin says of a point."""

    fault: int
    """The place of the fault among the model's actions."""
    most: int
    """Instances of it that are enabled at a time, at most."""
    p: float
    """That one more of them comes before a run ends, at most."""

    def ahead(self, odds: Odds) -> Odds:
        """The odds with the fault as much cheaper as p says: a head then goes from fault to fault, and has the paths to
        a loss long before all that are as likely, but harmless."""
        decades = odds.decades.copy()
        decades[self.fault] -= math.log10(self.p) if self.p > 0.0 else 0.0
        return odds._replace(decades=decades)


def known(model: Model, odds: Odds) -> Known | None:
    """What the model's margin says of the point of these odds; None if it says nothing."""
    most = model.margin.most(odds.params) if model.margin else 0
    if model.margin is None or not most:
        return None
    fault = [action.name for action in model.actions].index(model.margin.fault)
    together = most * odds.rates[fault]
    return Known(fault, most, together / (together + odds.rates[-1]) if together > 0.0 else 0.0)


def bounds(model: Model, margin: Known, odds: Odds, kept: Kept, arrays: Any, flows: np.ndarray) -> np.ndarray:
    """What at most is lost where runs leave a head with these flows; all float64 by state. `arrays` are the head's.

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
    """Multiplies flows to states by the probability that as many faults as are needed there come, at most."""
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
