"""A model of nothing in particular, made of what a step may be: instances that share a rate, in rows of several sizes,
of one word and of two, or all of them; and subsets that are lost with probabilities of their own, or as messages are.

Every step leaves its mark on the state: runs that pick another instance, or lose something else, come to differ.

Whoever changes it changes its name, too: code compiled for models outside `kernels/` is kept by their names.
"""

from typing import Any, NamedTuple

from quorisk.kernels import paths
from quorisk.kernels.model import (
    COMPLETED,
    EVERYTHING,
    EXPOSURE,
    STUCK,
    Action,
    Invariant,
    Model,
    Parameter,
    Probability,
    sends_nothing,
)
from quorisk.kernels.ops import popcount, where

PENS, MEADOWS = (1 << 60) - 1, (1 << 48) - 1


class State(NamedTuple):
    asleep: int  # a bit for each animal of ten pens of six
    others: int  # of five more pens
    grass: int  # a bit for each tuft of three meadows of 16
    gone: int  # those of a herd that are gone
    storms: int
    floods: int
    ticks: int
    trail: int  # what happened, mixed


class Params(NamedTuple):
    pens: int  # sleeping animals at the start, as a mask
    meadows: int
    herd: int  # as a mask
    ticks: int
    max_storms: int
    max_floods: int
    marks: int  # as many low bits as a trail has


def goes_on(state, params, mask):
    return where(state.ticks < params.ticks, mask, 0)


def marked(state, params, mark):
    """The state with one more mark on its trail."""
    return state._replace(trail=(state.trail * 5 + mark) & params.marks)


def wake_enabled(state, params):
    return goes_on(state, params, state.asleep), goes_on(state, params, state.others)


def wake_sends(state, params, instance):
    return where(instance & 1 == 0, 0b11, 0b101)


def wake(state, params, instance, lost):
    low = where(instance < 64, 1 << (instance & 63), 0)
    high = where(instance < 64, 0, 1 << (instance & 63))
    return marked(
        state._replace(asleep=state.asleep & ~low, others=state.others & ~high), params, instance + 200 * lost
    )


def graze_enabled(state, params):
    return (goes_on(state, params, state.grass),)


def graze(state, params, instance, lost):
    return marked(state._replace(grass=state.grass & ~(1 << instance)), params, instance)


def wander_enabled(state, params):
    """Some of those that are awake; nobody if all sleep."""
    awake = params.pens & ~state.asleep
    return goes_on(state, params, awake & 0b111000111), goes_on(state, params, awake >> 8 & 0xFF), 0


def wander(state, params, instance, lost):
    return marked(state, params, 3 * instance)


def storm_enabled(state, params):
    return (goes_on(state, params, where(state.storms < params.max_storms, 1, 0)),)


def storm_takes(state, params, instance):
    return params.herd & ~state.gone


def storm(state, params, instance, lost):
    return marked(state._replace(storms=state.storms + 1, gone=state.gone | lost), params, lost)


def flood_enabled(state, params):
    """Each of the herd that is left, in rows of three: where the water comes from."""
    return (goes_on(state, params, where(state.floods < params.max_floods, params.herd & ~state.gone, 0)),)


def flood_takes(state, params, instance):
    """Neighbours, the source among them."""
    return (0b111 << instance >> 1) & params.herd & ~state.gone


def flood(state, params, instance, lost):
    return marked(state._replace(floods=state.floods + 1, gone=state.gone | lost), params, 16 * lost + instance)


def tick_enabled(state, params):
    return (goes_on(state, params, 1),)


def tick(state, params, instance, lost):
    return state._replace(ticks=state.ticks + 1)


def three_are_left(state, params):
    return popcount(params.herd & ~state.gone) > 2


def one_is_left(state, params):
    return state.gone != params.herd


def outcome(state, params):
    return where((state.trail & 1) == 1, COMPLETED, STUCK)


def initial(params, choice):
    return State(params.pens, params.pens & 0x3FFFFFFF, params.meadows, 0, 0, 0, 0, 0)


def make_params(values):
    """Every `sparse`-th animal and tuft is there at the start."""
    some = sum(1 << i for i in range(0, 60, values["sparse"]))
    herd, marks = ((1 << values[name]) - 1 for name in ("herd", "marks"))
    return Params(some & PENS, some & MEADOWS, herd, values["ticks"], values["max_storms"], values["max_floods"], marks)


MODEL = Model(
    name="herds_of_many",
    version=1,
    parameters=(
        Parameter("sparse", "model", (1, 60), "of so many animals and tufts one is there"),
        Parameter("herd", "model", (1, 8), "animals of the herd that storms and floods take"),
        Parameter("ticks", "model", (1, 15), "ticks until everything ends"),
        Parameter("marks", "model", (0, 20), "bits of the trail", default=20),
        Parameter("max_storms", "faults", (0, 3), "storms"),
        Parameter("max_floods", "faults", (0, 3), "floods"),
    ),
    conditions=(),
    make_params=make_params,
    initial=initial,
    actions=(
        Action("wake", wake_enabled, wake_sends, wake, shared=6),
        Action("graze", graze_enabled, sends_nothing, graze, shared=16),
        Action("wander", wander_enabled, sends_nothing, wander, shared=EVERYTHING),
        Action("storm", storm_enabled, storm_takes, storm, "storm", lost_with="p_lost_in_storm", needs=("max_storms",)),
        Action("flood", flood_enabled, flood_takes, flood, "flood", shared=3, lost_with="p_lost_in_flood"),
        Action("tick", tick_enabled, sends_nothing, tick),
    ),
    invariants=(
        Invariant("ThreeAreLeft", three_are_left, data_loss=False, about=EXPOSURE),
        Invariant("OneIsLeft", one_is_left, data_loss=True),
    ),
    outcome=outcome,
    widths=State(60, 30, 48, 8, 2, 2, 4, 20),
    max_sends=8,
    probabilities=(
        Probability("p_lost_in_storm", "that one of the herd is gone after a storm"),
        Probability("p_lost_in_flood", "that one of the herd is gone after a flood"),
    ),
)
FEW = {"sparse": 59, "herd": 4, "ticks": 1, "marks": 0, "max_storms": 1, "max_floods": 1}
"""Values for which there are a thousand states."""


def group_of(action, instance):
    """What instances that share a rate have in common."""
    return 0 if action.shared == EVERYTHING else (instance // 64, instance % 64 // action.shared)


def flows(model, point, params, state, number=float):
    """By next state, the rate of going there from a state of any model: in plain Python, as the rule reads."""
    moves = list(paths.instances(model, state, params))
    groups = [(a, group_of(model.actions[a], instance)) for a, instance in moves]
    found: dict[Any, Any] = {}
    for (action, instance), group in zip(moves, groups, strict=True):
        rate = number(point.rates.get(model.actions[action].name, 1.0)) / groups.count(group)
        loss = number(point.p_lost(model.actions[action].lost_with))
        sent = paths.sends(model, state, params, paths.Step(action, instance, 0))
        for lost in paths.subsets(sent):
            k, n = lost.bit_count(), sent.bit_count()
            if flow := rate * loss**k * (1 - loss) ** (n - k):
                after = paths.after(model, state, params, paths.Step(action, instance, lost))
                found[after] = found.get(after, 0) + flow
    return found
