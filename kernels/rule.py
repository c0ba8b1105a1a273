"""The rule of a step: the weights of a draw, the instance drawn, and the probability of each loss.

The engines, the replay of their runs and the chain take it from here: as data, or as functions over 64-bit integers
that compute in plain Python, in code that Numba compiles, and when they are traced.

Instances that share a rate (`Action.shared`) are a group; any other instance is one by itself. A group with a member
that is enabled has its action's rate, whatever the number of its members. A step draws a group, each in proportion to
its rate. If the group may have several members, a random number of its own (`philox.pick`) says which of those that are
enabled goes off, each as likely as the others. Members of the instance's subset (`Action.sends`) are lost with the
probability that the action names.
"""

from functools import cache, reduce
from operator import or_
from typing import Any

from quorisk.kernels.model import EVERYTHING, INSTANCE_BITS, MESSAGE_LOSS, Action, Model, num_words
from quorisk.kernels.ops import jitable, nth_bit_branch_free, popcount, where

PICK_BITS = 53
"""Bits of the random number that picks a member: its product with the number of members stays below 2**63, and each
member is as likely as the others to within 2**-53."""
_WORD_BITS = 1 << INSTANCE_BITS


@cache
def group_words(model: Model) -> tuple[tuple[int, int], ...]:
    """(place of the action, first instance) of each word of all actions' groups, as they are drawn in order."""
    return tuple(
        (place, word << INSTANCE_BITS)
        for place, (action, words) in enumerate(zip(model.actions, num_words(model), strict=True))
        for word in range(1 if action.shared == EVERYTHING else words)
    )


@cache
def loss_names(model: Model) -> tuple[str, ...]:
    """The probabilities with which something is lost, that of messages first."""
    return (MESSAGE_LOSS, *(probability.name for probability in model.probabilities))


@cache
def losses(model: Model) -> tuple[int, ...]:
    """Returns, by action, the place in `loss_names` of the probability of its losses; 0 if it loses messages."""
    return tuple(loss_names(model).index(action.lost_with) for action in model.actions)


def groups(action: Action, masks: tuple[Any, ...]) -> tuple[Any, ...]:
    """Words of an action's groups with a member enabled, each by its lowest bit; `masks` are the enabled instances."""
    if action.shared == 1:
        return masks
    if action.shared == EVERYTHING:
        return (where(reduce(or_, masks) != 0, 1, 0),)
    return tuple(nonempty_rows(mask, action.shared, every_row(action.shared)) for mask in masks)


def member(action: Action, masks: tuple[Any, ...], group: Any, pick: Any) -> Any:
    """Returns the instance of a group, given by its first, that goes off if `pick`, below 2**PICK_BITS, is drawn."""
    if action.shared == 1:
        return group
    if action.shared == EVERYTHING:
        return _nth_of_all(masks, pick * sum(map(popcount, masks)) >> PICK_BITS)
    word, mask = group >> INSTANCE_BITS, masks[0]
    for i in range(1, len(masks)):
        mask = where(word == i, masks[i], mask)
    row = (mask >> (group & (_WORD_BITS - 1))) & ((1 << action.shared) - 1)
    return group + nth_bit_branch_free(row, pick * popcount(row) >> PICK_BITS, action.shared)


def _nth_of_all(masks: tuple[Any, ...], nth: Any) -> Any:
    """The instance that has `nth` others before it in all words."""
    found: Any = 0
    for word, mask in enumerate(masks):
        here = (nth >= 0) & (nth < popcount(mask))
        found = where(here, (word << INSTANCE_BITS) + nth_bit_branch_free(mask, nth), found)
        nth = nth - popcount(mask)
    return found


def every_row(size: int) -> int:
    """The lowest bit of each row of `size` bits of a mask."""
    return sum(1 << bit for bit in range(0, _WORD_BITS - 1, size))


@jitable
def nonempty_rows(mask, size, every):
    """The lowest bit of each row of `size` bits that has one set; `every` is `every_row(size)`."""
    covered = 1
    while covered < size:
        step = min(covered, size - covered)
        mask |= mask >> step
        covered += step
    return mask & every


@jitable
def num_members(mask, bit, size):
    """Returns the number of bits set in the row of `size` bits of a word that `bit` lies in."""
    return popcount(mask >> bit - bit % size & (2 << size - 1) - 1)
