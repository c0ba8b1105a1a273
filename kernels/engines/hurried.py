"""Hurried runs, which meet the faults of a loss sooner: a known factor relates their losses to those of ordinary runs.

Where a model says how many faults k a state needs before any loss (`kernels.model.Margin`), at most n of them can
happen at a time, each at the rate r, and lifetimes end at the rate m, one more fault comes before the end with
probability p = n r / (n r + m) at most. A run is hurried so:

- Where its lifetime would end, one of n places is drawn. If one of the faults that may happen has this place, it
  happens instead. So each of them happens at the rate r + m / n, which is r / p, and everything else as before.
- A step after which a loss takes more faults than it should is taken with probability p for each fault too many: for
  each one that another step adds, and for a fault after which as many are needed as before. Else the run is dropped,
  as if its lifetime had ended.

A path with j faults is taken 1 / p^j times as often, and kept with probability p^(k' - k + j) if k' are needed at its
end. At a loss k' is 0: so the probability of a loss from a state is p^k times that of a hurried run from there. That is
exact, and so are the shares of the paths to a loss: hurried runs that are lost take each of them as often, among the
others, as lost runs do. The margin alone keeps factors from being more than 1.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels import declared
from quorisk.kernels.compiled import LATE, bind, refusal
from quorisk.kernels.engines.philox import PICK, draw_pair, multiply_high
from quorisk.kernels.model import Model
from quorisk.kernels.ops import as_int64, as_uint64, popcount
from quorisk.kernels.rule import group_words
from quorisk.kernels.stepper import stepper

_UNIT = 2.0**-64


class HurryFunctions(NamedTuple):
    """Functions that hurry the runs of a model, compiled into them; in ordinary runs they compile to nothing."""

    needed: Any
    """`needed(state, params)`: the faults that a loss takes."""
    instead: Any
    """`instead(masks, starts, source)`: the word of groups and the group in it that goes off where a lifetime would
    end; the word after all others if it does end."""
    is_dropped: Any
    """`is_dropped(more, action, starts, source)`: whether a run is, as a loss takes `more` faults more."""


@cache
def hurry_functions(model: Model, hurried: bool) -> HurryFunctions:
    """Returns the functions for a model's runs; only a model with a margin has `hurried` ones."""
    words = group_words(model)
    if not hurried:
        ends = bind(_ends, model.name, num_words=len(words))
        return HurryFunctions(bind(_nothing, model.name), ends, bind(_never, model.name))
    assert model.margin
    fault = [action.name for action in model.actions].index(model.margin.fault)
    of_fault = [i for i, (action, _) in enumerate(words) if action == fault]
    nearer = declared.unfit(model.name, "margin", "a step takes more of the faults that are needed than it says")
    return HurryFunctions(
        needed=stepper(model).needed,
        instead=bind(_instead, model.name, num_words=len(words), first=of_fault[0], end=of_fault[-1] + 1),
        is_dropped=bind(_is_dropped, model.name, fault=fault, refuse=refusal(nearer)),
    )


# Templates, with the names that are bound by `hurry_functions`

end = fault = first = num_words = refuse = LATE


def _nothing(state, params):
    return 0


def _ends(masks, starts, source):
    return num_words, 0


def _never(more, action, starts, source):
    return False


def _instead(masks, starts, source):
    seed, run, step, block, _ = source
    _, drawn = draw_pair(seed, run, step, block + np.uint64(PICK))
    nth = as_int64(multiply_high(drawn, as_uint64(starts.places)))
    for word in range(first, end):
        num = popcount(masks[word])
        if nth < num:
            return word, nth
        nth -= num
    return num_words, 0


def _is_dropped(more, action, starts, source):
    """Draws 128 bits, so that a small p has as many significant bits as a large one."""
    behind = more + as_int64(action == fault)
    refuse(behind < 0)
    if behind <= 0:
        return False
    seed, run, step, block, _ = source
    high, low = draw_pair(seed, run, step, block + np.uint64(PICK + 1))
    return (high + low * _UNIT) * _UNIT >= starts.p**behind
