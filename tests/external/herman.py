"""Herman's self-stabilising ring: three processes, a bit each, that all move at once.

A process whose bit equals its left neighbour's has a token, and draws a random bit; the others copy their neighbour.
The ring is stable with one token. The random bits are messages: one that is lost, at a loss of 1/2, is a 1.
"""

from typing import NamedTuple

from quorisk.kernels.model import COMPLETED, Action, Invariant, Model
from quorisk.kernels.ops import popcount, where

NUM_PROCESSES = 3
ALL = (1 << NUM_PROCESSES) - 1
MESSAGE_LOSS = 0.5
FIGURE = 4 / 3
"""Expected steps from three tokens to one."""


class State(NamedTuple):
    bits: int


class Params(NamedTuple):
    starts: int


def tokens(state):
    """The processes that have a token."""
    neighbours = ((state.bits << 1) | (state.bits >> (NUM_PROCESSES - 1))) & ALL
    return ~(state.bits ^ neighbours) & ALL


def move_enabled(state, params):
    return (where(popcount(tokens(state)) > 1, 1, 0),)


def move_sends(state, params, instance):
    return tokens(state)


def move(state, params, instance, lost):
    neighbours = ((state.bits << 1) | (state.bits >> (NUM_PROCESSES - 1))) & ALL
    return State((neighbours & ~tokens(state)) | lost)


def has_token(state, params):
    return tokens(state) != 0


def outcome(state, params):
    return COMPLETED


def initial_choices(params):
    """All bits 0, or all bits 1: three tokens."""
    return params.starts


def initial(params, choice):
    return State(where(choice == 1, ALL, 0))


MODEL = Model(
    name="herman",
    version=2,
    parameters=(),
    conditions=(),
    make_params=lambda values: Params(2),
    initial_choices=initial_choices,
    initial=initial,
    actions=(Action("move", move_enabled, move_sends, move),),
    invariants=(Invariant("HasToken", has_token, data_loss=False),),
    outcome=outcome,
    widths=State(NUM_PROCESSES),
    max_sends=NUM_PROCESSES,
)
