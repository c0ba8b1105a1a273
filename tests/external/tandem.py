"""A tandem queue: what leaves the first queue enters the second; arrivals are lost while the first is full.

Starts with nobody in the first queue and one in the second, and ends when the second is full or empty.
"""

from typing import NamedTuple

from quorisk.kernels.model import COMPLETED, Action, Invariant, Model, Parameter, sends_nothing
from quorisk.kernels.ops import where

RATES = {"arrive": 3.0, "serve_first": 2.0, "serve_second": 6.0}
FIGURES = {8: "5.602364e-06", 10: "3.147278e-07", 12: "1.860151e-08", 14: "1.138931e-09"}
"""P(the second queue fills before it empties), by capacity of both queues."""


class State(NamedTuple):
    first: int
    second: int


class Params(NamedTuple):
    capacity: int


def goes_on(state, params):
    return (state.second > 0) & (state.second < params.capacity)


def arrive_enabled(state, params):
    return (where(goes_on(state, params) & (state.first < params.capacity), 1, 0),)


def arrive(state, params, instance, lost):
    return state._replace(first=state.first + 1)


def serve_first_enabled(state, params):
    return (where(goes_on(state, params) & (state.first > 0), 1, 0),)


def serve_first(state, params, instance, lost):
    return State(state.first - 1, state.second + 1)


def serve_second_enabled(state, params):
    return (where(goes_on(state, params), 1, 0),)


def serve_second(state, params, instance, lost):
    return state._replace(second=state.second - 1)


def second_has_room(state, params):
    return state.second < params.capacity


def outcome(state, params):
    return COMPLETED


def initial(params, choice):
    return State(0, 1)


MODEL = Model(
    name="tandem",
    version=2,
    parameters=(Parameter("capacity", "model", (1, 63), "of both queues"),),
    conditions=(),
    make_params=lambda values: Params(values["capacity"]),
    initial=initial,
    actions=(
        Action("arrive", arrive_enabled, sends_nothing, arrive),
        Action("serve_first", serve_first_enabled, sends_nothing, serve_first),
        Action("serve_second", serve_second_enabled, sends_nothing, serve_second),
    ),
    invariants=(Invariant("SecondHasRoom", second_has_room, data_loss=True),),
    outcome=outcome,
    widths=State(6, 6),
    max_sends=0,
)
