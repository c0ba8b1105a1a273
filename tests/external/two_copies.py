"""Two copies in a house: one may get lost and is made anew, and a fire takes all that there is.

A copy that gets lost sends word, which may be lost as well. So runs have kinds of faults, an exposure and a message,
and all that is counted of them follows from two linear equations.
"""

from typing import NamedTuple

import numpy as np

from quorisk.kernels.model import COMPLETED, EXPOSURE, Action, Invariant, Model, Parameter, sends_nothing, sends_one
from quorisk.kernels.ops import where


class State(NamedTuple):
    missing: int
    burnt: int


class Params(NamedTuple):
    houses: int


def copy_is_lost_enabled(state, params):
    return (where((state.missing == 0) & (state.burnt == 0), 1, 0),)


def copy_is_lost(state, params, instance, lost):
    return state._replace(missing=1)


def copy_is_made_enabled(state, params):
    return (where((state.missing == 1) & (state.burnt == 0), 1, 0),)


def copy_is_made(state, params, instance, lost):
    return state._replace(missing=0)


def fire_enabled(state, params):
    return (where(state.burnt == 0, 1, 0),)


def fire(state, params, instance, lost):
    return state._replace(burnt=1)


def there_are_two_copies(state, params):
    return state.missing == 0


def a_copy_survives(state, params):
    return state.burnt == 0


def outcome(state, params):
    return COMPLETED


def initial(params, choice):
    return State(0, 0)


MODEL = Model(
    name="two_copies",
    version=1,
    parameters=(Parameter("houses", "model", (1, 1), "houses"),),
    conditions=(),
    make_params=lambda values: Params(values["houses"]),
    initial=initial,
    actions=(
        Action("copy_is_lost", copy_is_lost_enabled, sends_one, copy_is_lost, "lost copy"),
        Action("copy_is_made", copy_is_made_enabled, sends_nothing, copy_is_made),
        Action("fire", fire_enabled, sends_nothing, fire, "fire"),
    ),
    invariants=(
        Invariant("ThereAreTwoCopies", there_are_two_copies, data_loss=False, about=EXPOSURE),
        Invariant("ACopySurvives", a_copy_survives, data_loss=True),
    ),
    outcome=outcome,
    widths=State(1, 1),
    max_sends=1,
)


class Expected(NamedTuple):
    """What is to be expected of a run."""

    exposed: float
    """The time for which a copy is missing."""
    losses: dict[frozenset[str], float]
    """P(data is lost after meeting these kinds of faults)."""


def expected(lost: float, made: float, fire: float, loss: float, lifetime: float) -> Expected:
    """By the rates of the actions, the probability that a message is lost, and the mean of a run's lifetime.

    With x from two copies, y from one, and W the sum of all rates in a state: exposed time is y = (1 + made x) / W and
    x = lost y / W. P(loss) is fire / (fire + 1 / lifetime); without a lost copy it is fire / (lost + fire + 1 /
    lifetime); without a lost message it is that of a chain in which only lost copies with a message that comes through
    go on.
    """
    end = 1.0 / lifetime
    matrix = np.array([[lost + fire + end, -lost], [-made, made + fire + end]])
    exposed = np.linalg.solve(matrix, [0.0, 1.0])[0]
    matrix[0, 1] = -lost * (1.0 - loss)
    heard = np.linalg.solve(matrix, [fire, fire])[0]
    every, none = fire / (fire + end), fire / (lost + fire + end)
    return Expected(
        float(exposed),
        {
            frozenset({"fire"}): none,
            frozenset({"fire", "lost copy"}): float(heard) - none,
            frozenset({"fire", "lost copy", "lost message"}): every - float(heard),
        },
    )
