"""The steps from a state, and the states that they lead to, by one function of machine code for each protocol.

Code that follows paths by their cost (a head, its exits, its moves) calls it by its address, and so is compiled once
for all protocols; as a part of each, LLVM would optimize a protocol's guards and effects three times.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from quorisk.kernels.compiled import LATE, load_words, packing
from quorisk.kernels.model import UNFINISHED, Model, instance_words, smallest_params
from quorisk.kernels.states.by_address import address_of, calling
from quorisk.kernels.states.odds import Odds, Steps, in_words, room_for_steps
from quorisk.kernels.states.representatives import room_for
from quorisk.kernels.states.store import MOST_SUCCESSORS, Kept

ANY_COST = 1 << 20
"""A cost that no step exceeds."""
_RESULT = types.Tuple((types.int64, types.float64, types.int64, types.int64))
_ARGUMENT_TYPES = types.int64, types.int64, types.boolean, types.int64, types.int64


class Successors(NamedTuple):
    """A protocol's function, its inputs and its output arrays; of one type for all protocols."""

    address: int
    odds: Odds
    """See `odds.in_words`."""
    steps: Steps
    """All steps from the state of the last call."""
    rows: np.ndarray
    """uint64, [number, word]: the wide rows of the representatives of the successors that the last call wanted, in the
    order of their steps."""
    masks: np.ndarray
    room: np.ndarray
    """Scratch memory of the function, like `masks`; both int64."""


def unlinked(model: Model, odds: Odds, kept: Kept) -> Successors:
    """Returns what `successors_of` does, but with address 0: the function is not compiled."""
    return Successors(
        address=0,
        odds=in_words(odds),
        steps=room_for_steps(),
        rows=np.empty((MOST_SUCCESSORS, len(kept.wide)), np.uint64),  # only what is written takes memory
        masks=np.empty(len(instance_words(model)), np.int64),
        room=np.empty(max(1, room_for(model)), np.int64),
    )


def successors_of(model: Model, odds: Odds, kept: Kept) -> Successors:
    """Makes the arguments of `successors` for states stored as in `kept`. Raises ModelError as `general` does."""
    given = unlinked(model, odds, kept)
    pack, _ = packing(model.widths, model.name)
    others = {"like": smallest_params(model), "pack": pack}
    return given._replace(address=address_of(model, _successors, _ARGUMENT_TYPES, _RESULT, (given, kept), **others))


@intrinsic
def successors(typing_context, address, place_in_memory, place, is_new, low, high):
    """Calls `_successors` from compiled code; raises what that raises."""
    return calling(_RESULT, _ARGUMENT_TYPES)


# A template, with names that are bound by `compiled_for`

cost = effect_of = enabled = guards = judge = like = listed = loaded = pack = representative = LATE
state = weigh = words = LATE


def _successors(given_and_kept, place, is_new, low, high):
    """Lists the steps from a state, with their odds and costs, and the successor by each that has odds and a cost of
    `low` to `high`. Returns the number of steps, W, and, if `is_new`, what the state breaks and how a run ends there.
    """
    given, kept = loaded(given_and_kept)
    odds, steps, masks = given.odds, given.steps, given.masks
    params = load_words(like, odds.params)
    before = state(kept, place)
    guards(before, params, masks)
    total, top = enabled(masks, odds)
    breaks, ends = 0, UNFINISHED
    if is_new:
        breaks, ends = judge(before, params, total)
    if ends != UNFINISHED:
        return 0, total, breaks, ends
    num, at = listed(kept.here, params, masks, steps), 0
    weigh(masks, odds, total, steps, num)
    for i in range(num):
        action = words.action[steps.word[i]]
        steps.action[i], steps.cost[i] = action, cost(odds, top, action, steps.lost[i])
        if steps.p[i] > 0.0 and low <= steps.cost[i] <= high:
            after = effect_of(kept.here, params, action, steps.instance[i], steps.lost[i])
            found = representative(after, params, odds.alike, given.room)
            pack(found, given.rows[at], kept.layout.base, kept.layout.fixed)
            at += 1
    return num, total, breaks, ends
