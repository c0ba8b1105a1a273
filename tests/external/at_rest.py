"""Data at rest: copies that fail and are made anew, until too few are left.

The chains behind published mean times to data loss (MTTDL). Where copies fail at rate a each and are made anew at rate
r, three of them last about r^2 / (6 a^3) if missing ones are made one after the other (`serial`), and twice as long if
side by side (`parallel`). `urgent` has a rate of its own, of `last_copy_is_replicated`, while a single copy is left.
"""

from typing import NamedTuple

from quorisk.kernels.model import COMPLETED, Action, Invariant, Model, Parameter, sends_nothing
from quorisk.kernels.ops import where

MAX_COPIES = 8
SERIAL, PARALLEL, URGENT = range(3)
REPAIRS = ("serial", "parallel", "urgent")


class State(NamedTuple):
    copies: int


class Params(NamedTuple):
    copies: int
    needed: int
    repair: int


def copy_fails_enabled(state, params):
    return ((1 << state.copies) - 1,)


def copy_fails(state, params, instance, lost):
    return State(state.copies - 1)


def copy_is_repaired_enabled(state, params):
    missing = params.copies - state.copies
    one_by_one = where(missing > 0, 1, 0)
    waits = (params.repair == URGENT) & (state.copies == 1)
    return (where(waits, 0, where(params.repair == PARALLEL, (1 << missing) - 1, one_by_one)),)


def copy_is_repaired(state, params, instance, lost):
    return State(state.copies + 1)


def last_copy_is_replicated_enabled(state, params):
    return (where((params.repair == URGENT) & (state.copies == 1) & (params.copies > 1), 1, 0),)


def a_copy_is_left(state, params):
    return state.copies >= params.needed


def outcome(state, params):
    return COMPLETED


def initial(params, choice):
    return State(params.copies)


MODEL = Model(
    name="at_rest",
    version=3,
    parameters=(
        Parameter("copies", "model", (1, MAX_COPIES), "copies of the data"),
        Parameter("needed", "model", (1, MAX_COPIES), "copies, or parts of them, that the data can be made of"),
        Parameter("repair", "variant", REPAIRS, "whether missing copies are made one by one or side by side"),
    ),
    conditions=(),
    make_params=lambda values: Params(values["copies"], values["needed"], REPAIRS.index(values["repair"])),
    initial=initial,
    actions=(
        Action("copy_fails", copy_fails_enabled, sends_nothing, copy_fails),
        Action("copy_is_repaired", copy_is_repaired_enabled, sends_nothing, copy_is_repaired),
        Action("last_copy_is_replicated", last_copy_is_replicated_enabled, sends_nothing, copy_is_repaired),
    ),
    invariants=(Invariant("ACopyIsLeft", a_copy_is_left, data_loss=True),),
    outcome=outcome,
    widths=State(4),
    max_sends=0,
)
