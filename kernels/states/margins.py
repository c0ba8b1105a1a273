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
from quorisk.kernels.errors import ModelError
from quorisk.kernels.model import Model
from quorisk.kernels.states.expand import Expander
from quorisk.kernels.states.odds import Odds
from quorisk.kernels.states.programs import Programs
from quorisk.kernels.states.store import Kept

_AT_ONCE = 1 << 12
"""Number of states that programs compute on together."""


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


def faults_to_loss(programs: Programs, stored: Kept, places: np.ndarray) -> np.ndarray:
    """int64 by state, the number of faults that still have to come before a loss, at least."""
    parts = [places[i : i + _AT_ONCE] for i in range(0, len(places), _AT_ONCE)]
    found = (programs.needed(programs.rows(stored.rows[part], stored.layout)) for part in parts)
    return np.concatenate([places[:0], *found])


def bounds(margin: KnownMargin, expand: Expander, stored: Kept, arrays: Any, flows: np.ndarray) -> np.ndarray:
    """Bounds the losses among runs that leave a head with these flows; float64 by state. `arrays` are the head's.

    A step of another action leads to a state that needs no fewer faults, and a fault to one that needs one fewer.
    Raises ModelError where a state contradicts the margin.
    """
    found = np.zeros(len(flows))
    (places,) = np.nonzero(flows)
    chance = margin.p ** faults_to_loss(expand.programs, stored, places)
    found[places] = flows[places] * chance
    room = arrays.due[places] - arrays.cost[places]
    for begin in range(0, len(places), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        num, share, cost = expand.enabled(stored, places[part], margin.fault)
        if num.max(initial=0) > margin.most:
            too_many = "more instances of its fault are enabled than it says"
            raise ModelError(declared.unfit(expand.programs.model.name, "margin", too_many))
        (later,) = np.nonzero((room[part] > 0) & (room[part] <= cost) & (margin.p > 0.0))
        here = places[part][later]
        found[here] += flows[here] / arrays.leaves[here] * share[later] * chance[part][later] / margin.p
    return found
