"""The steps from a state, and the states that they lead to, as one function of machine code for each protocol.

What follows paths by their cost (a head, its exits, its moves) calls it by its address, and so is compiled once for all
protocols; as a part of each, LLVM would optimize a protocol's guards and effects three times.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from quorisk.kernels.compiled import LATE, load_words, packing
from quorisk.kernels.model import LOST, UNFINISHED, Model, instance_words, smallest_params
from quorisk.kernels.states.by_address import address_of, calling
from quorisk.kernels.states.odds import Odds, Steps, in_words, room_for_steps
from quorisk.kernels.states.representatives import room_for
from quorisk.kernels.states.store import MOST_SUCCESSORS, Kept

ANY_COST = 1 << 20
"""No step's cost is more."""
_RESULT = types.Tuple((types.int64, types.float64, types.int64, types.int64))
_ASKED = types.int64, types.int64, types.boolean, types.int64, types.int64


class Successors(NamedTuple):
    """A protocol's function, what it is given and where it leaves what it finds; of one type for all protocols."""

    address: int
    odds: Odds
    """See `odds.in_words`."""
    steps: Steps
    """All steps from the state that was asked about last."""
    rows: np.ndarray
    """uint64, [number, word]: the wide rows of the representatives of the states that were asked for, in the order of
    their steps."""
    masks: np.ndarray
    room: np.ndarray
    """Both int64, for the function alone."""


def unlinked(model: Model, odds: Odds, kept: Kept) -> Successors:
    """What `successors_of` returns, but for the function, which need not be compiled."""
    return Successors(
        address=0,
        odds=in_words(odds),
        steps=room_for_steps(),
        rows=np.empty((MOST_SUCCESSORS, len(kept.wide)), np.uint64),  # only what is written takes memory
        masks=np.empty(len(instance_words(model)), np.int64),
        room=np.empty(max(1, room_for(model)), np.int64),
    )


def successors_of(model: Model, odds: Odds, kept: Kept) -> Successors:
    """What `successors` takes, for states that are kept like these. Raises ModelError as `tracing.general` does."""
    given = unlinked(model, odds, kept)
    pack, _ = packing(model.widths, model.name)
    others = {"like": smallest_params(model), "pack": pack}
    return given._replace(address=address_of(model, _successors, _ASKED, _RESULT, (given, kept), **others))


@intrinsic
def successors(typing_context, address, place_in_memory, place, is_new, low, high):
    """Compiled code's call of `_successors`, which raises what that raises."""
    return calling(_RESULT, _ASKED)


# A template, with names that are bound by `compiled_for`

broken = cost = data_loss = effect_of = enabled = guards = like = listed = loaded = outcome = pack = LATE
representative = state = weigh = words = LATE


def _successors(given_and_kept, place, is_new, low, high):
    """Lists the steps from a state, with their odds and costs, and the state after each that has odds and costs `low`
    to `high`. Returns how many steps there are, W, and, if it `is_new`, what it breaks and how a run ends there.
    """
    given, kept = loaded(given_and_kept)
    odds, steps, masks = given.odds, given.steps, given.masks
    params = load_words(like, odds.params)
    before = state(kept, place)
    guards(before, params, masks)
    total, top = enabled(masks, odds)
    breaks, ends = 0, UNFINISHED
    if is_new:
        breaks = broken(before, params)
        if breaks & data_loss:
            ends = LOST
        elif total <= 0.0:
            ends = outcome(before, params)
    if ends != UNFINISHED:
        return 0, total, breaks, ends
    num, at = listed(kept.here, params, masks, steps), 0
    weigh(masks, odds, total, steps, num)
    for i in range(num):
        action = words.action[steps.word[i]]
        steps.action[i], steps.cost[i] = action, cost(odds, top, action, steps.lost[i])
        if steps.p[i] > 0.0 and low <= steps.cost[i] <= high:
            after = effect_of(kept.here, params, action, steps.instance[i], steps.lost[i])
            pack(
                representative(after, params, odds.alike, given.room),
                given.rows[at],
                kept.layout.base,
                kept.layout.fixed,
            )
            at += 1
    return num, total, breaks, ends
