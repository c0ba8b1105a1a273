"""A model of nothing in particular, made of what kernels find hard: lamps that are lit and put out again.

Its masks are longer than a lane, or have gaps, or the highest bit of a lane; its values fill 32 bits and 63; steps send
more messages than one draw decides, or change nothing; exposures begin and end many times, and last at the end; and of
its initial states one is exposed already, and one is the last.

Whoever changes it changes its name, too: code compiled for models outside `kernels/` is kept by their names.
"""

import math
from typing import NamedTuple

from quorisk.kernels.engines.points import Point
from quorisk.kernels.model import (
    AVAILABILITY,
    COMPLETED,
    EXPOSURE,
    STUCK,
    Action,
    Invariant,
    Model,
    Parameter,
    sends_nothing,
    sends_one,
)
from quorisk.kernels.ops import popcount, where

SPARSE = 1 | 1 << 9 | 3 << 30 | 1 << 45 | 1 << 62


class State(NamedTuple):
    lit: int  # a bit for each lamp
    sparse: int  # some of SPARSE
    ticks: int
    hits: int
    dword: int  # all values that 32 bits have


class Params(NamedTuple):
    lamps: int
    ticks: int  # at the last of which everything ends
    starts: int
    fatal: int  # so many hits are


def goes_on(state, params):
    return state.ticks < params.ticks


def light_enabled(state, params):
    return (where(goes_on(state, params), ~state.lit & ((1 << params.lamps) - 1), 0),)


def light_sends(state, params, instance):
    return 0b110111


def light(state, params, instance, lost):
    return state._replace(lit=state.lit | 1 << instance, hits=(state.hits + popcount(lost)) & 31)


def put_out_enabled(state, params):
    return (where(goes_on(state, params), state.lit, 0),)


def put_out(state, params, instance, lost):
    return state._replace(lit=state.lit & ~(1 << instance))


def flip_enabled(state, params):
    return tuple(where(goes_on(state, params), bits & SPARSE, 0) for bits in (~state.sparse, state.sparse))


def flip_sends(state, params, instance):
    return where(instance < 32, 1, 0b11)


def flip(state, params, instance, lost):
    dword = (state.dword + 0x9E3779B9 + where(lost > 1, 2, 0)) & 0xFFFFFFFF
    return state._replace(sparse=state.sparse ^ 1 << (instance & 63), dword=dword)


def idle_enabled(state, params):
    return (where(goes_on(state, params), 1 << 31, 0), where(goes_on(state, params), 1 << 31 | 1, 0))


def idle(state, params, instance, lost):
    return state


def tick_enabled(state, params):
    return (where(goes_on(state, params), 1, 0),)


def tick(state, params, instance, lost):
    return state._replace(ticks=state.ticks + 1)


def flash_enabled(state, params):
    return (where(goes_on(state, params) & ((state.dword & 31) == 9), 1 << 40, 0),)


def flash(state, params, instance, lost):
    return state._replace(dword=(state.dword + 1) & 0xFFFFFFFF)


def few_are_lit(state, params):
    return popcount(state.lit) < 6


def highest_is_out(state, params):
    return state.sparse >> 62 == 0


def not_five(state, params):
    return (state.dword & 7) != 5


def not_fatal(state, params):
    return state.hits != params.fatal


def outcome(state, params):
    return where((state.lit & 1) == 1, COMPLETED, STUCK)


def initial(params, choice):
    exposed = (choice == 0) & (params.starts > 1)
    return State(0, where(exposed, 1 << 62, 0), where(choice == 2, params.ticks, 0), 0, choice << 31)


MODEL = Model(
    name="lamps",
    version=1,
    parameters=(
        Parameter("lamps", "model", (1, 40), "lamps"),
        Parameter("ticks", "model", (1, 60), "ticks until everything ends"),
        Parameter("starts", "model", (1, 3), "initial states"),
        Parameter("fatal", "model", (1, 32), "hits at which data is lost"),
    ),
    conditions=(),
    make_params=lambda values: Params(**values),
    initial=initial,
    actions=(
        Action("light", light_enabled, light_sends, light),
        Action("put_out", put_out_enabled, sends_nothing, put_out),
        Action("flip", flip_enabled, flip_sends, flip, "flip"),
        Action("idle", idle_enabled, sends_nothing, idle, "idleness"),
        Action("tick", tick_enabled, sends_one, tick),
        Action("flash", flash_enabled, sends_nothing, flash, "flash"),
    ),
    invariants=(
        Invariant("FewAreLit", few_are_lit, data_loss=False, about=EXPOSURE),
        Invariant("NotFatal", not_fatal, data_loss=True),
        Invariant("HighestIsOut", highest_is_out, data_loss=False, about=EXPOSURE),
        Invariant("NotFive", not_five, data_loss=False, about=AVAILABILITY),
    ),
    outcome=outcome,
    widths=State(40, 63, 6, 5, 32),
    max_sends=6,
    initial_choices=lambda params: params.starts,
)

POINT = Point({"lamps": 33, "ticks": 10, "starts": 1, "fatal": 32}, {"tick": 8.0}, 0.3, 10_000, math.inf)
"""A configuration that uses all of it."""
