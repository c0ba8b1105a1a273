"""The successors of a state, written as rows, by one function of machine code for each protocol.

The exhaustive search and the chain follow every step, and call it by its address; heads follow few steps of many, and
use `kernels.states.successors`.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from quorisk.kernels.compiled import LATE, load_words
from quorisk.kernels.model import UNFINISHED, Model, instance_words, smallest_params
from quorisk.kernels.states.by_address import address_of, calling
from quorisk.kernels.states.odds import Odds, Steps, in_words, room_for_steps
from quorisk.kernels.states.store import Kept

BEYOND = -1
"""Value in place of the number of successors: one of them differs from all other states where rows have no bits."""
_RESULT = types.Tuple((types.int64, types.float64, types.int64, types.int64))
_ARGUMENT_TYPES = types.int64, types.int64, types.int64, types.boolean


class Followers(NamedTuple):
    """A protocol's function, its inputs and its output arrays; of one type for all protocols."""

    address: int
    odds: Odds
    """See `odds.in_words`."""
    steps: Steps
    """Steps to the successors found last, in their order: `action` and, if the state was judged, `p`."""
    masks: np.ndarray
    """int64, scratch memory of the function."""


def followers_of(model: Model, odds: Odds, kept: Kept) -> Followers:
    """Makes the arguments of `followers` for states stored as in `kept`. Raises ModelError as `general` does."""
    given = Followers(
        address=0,
        odds=in_words(odds),
        steps=room_for_steps(),
        masks=np.empty(len(instance_words(model)), np.int64),
    )
    like = smallest_params(model)
    return given._replace(address=address_of(model, _followers, _ARGUMENT_TYPES, _RESULT, (given, kept), like=like))


@intrinsic
def followers(typing_context, address, place_in_memory, place, at, judged):
    """Calls `_followers` from compiled code; raises what that raises."""
    return calling(_RESULT, _ARGUMENT_TYPES)


# A template, with names that are bound by `compiled_for`

enabled = follow = guards = judge = like = listed = loaded = state = weigh = words = LATE


def _followers(given_and_kept, place, at, judged):
    """Writes the rows of the successors of state `place` to `at` and on, one for each step; if `judged`, none where
    runs end and none for steps of probability 0. Returns the number of rows, or BEYOND, with the successor that fits no
    row in `kept.wide`, and, if `judged`, W, the invariants that the state breaks and how a run ends there.
    """
    given, kept = loaded(given_and_kept)
    odds, steps, masks = given.odds, given.steps, given.masks
    params = load_words(like, odds.params)
    before = state(kept, place)
    guards(before, params, masks)
    total, breaks, ends = 0.0, 0, UNFINISHED
    if judged:
        total, _ = enabled(masks, odds)
        breaks, ends = judge(before, params, total)
        if ends != UNFINISHED:
            return 0, total, breaks, ends
    num_steps, num = listed(kept.here, params, masks, steps), 0
    if judged:
        weigh(masks, odds, total, steps, num_steps)
    for i in range(num_steps):
        if not judged or steps.p[i] > 0.0:
            action = words.action[steps.word[i]]
            if not follow(place, params, action, steps.instance[i], steps.lost[i], kept, at + num):
                return BEYOND, total, breaks, ends
            steps.action[num], steps.p[num] = action, steps.p[i]
            num += 1
    return num, total, breaks, ends
