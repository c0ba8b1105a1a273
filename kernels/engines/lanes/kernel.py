"""What kernels have in common: their face, their rows, and how masks of enabled instances lie side by side."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from quorisk.kernels.model import Model, exposures
from quorisk.kernels.tracing.expressions import bits, trailing_zeros
from quorisk.kernels.tracing.folding import make
from quorisk.kernels.tracing.trace import Word

NAME = "kernel"
"""`kernel(seed, first_run, num_runs, scratch, rows)`: writes row i for run `first_run` + i. All are 64-bit words."""
REDO = -1
"""Outcome of a run that left the bounds; the rest of its row means nothing."""
FIXED_COLUMNS = ("outcome", "broken_mask", "met_mask", "steps", "messages", "time")
"""Columns of a row before those of the first steps at which the invariants broke, and of how long each exposure lasted;
times are float64."""


class Limits(NamedTuple):
    """What ends a run besides the model, and what is to be known of it."""

    loss: int
    """Probability that a message is lost, in units of 2**-63."""
    lifetime_weight: int
    """Weight of the end of a lifetime; 0 if there is none."""
    accepts: tuple[int, ...]
    """By word of instances, and last for the end of a lifetime: the probability to accept one that is drawn, in units
    of 2**-63. One that is not accepted is left to the generic engine."""
    max_steps: int
    horizon: float
    """In the engines' unit of time."""
    timed: bool
    """Whether the rows' times are to be right. If not, the horizon is infinite, and what is told of a run that loses
    data or stands exposed is not all of it."""


class Field(NamedTuple):
    """Where the mask of a word of instances lies among the masks packed together."""

    group: int
    offset: int
    lowest: int
    """The word's bit that lies there."""
    size: int


class Group(NamedTuple):
    """Words of one rate whose masks lie side by side, in the order in which they are drawn."""

    weight: int
    places: tuple[int, ...]


def row_words(model: Model) -> int:
    """Words of a row."""
    return len(FIXED_COLUMNS) + len(model.invariants) + len(exposures(model))


def pack_masks(words: Sequence[Word], size: int) -> tuple[list[Group], list[Field]]:
    """Masks side by side, as many as `size` bits hold."""
    groups: list[Group] = []
    fields: list[Field] = []
    used = 0
    for place, word in enumerate(words):
        _, may = bits(word.mask)
        lowest = trailing_zeros(may)
        needed = may.bit_length() - lowest
        if not groups or groups[-1].weight != word.weight or used + needed > size:
            groups.append(Group(word.weight, ()))
            used = 0
        groups[-1] = groups[-1]._replace(places=(*groups[-1].places, place))
        fields.append(Field(len(groups) - 1, used, lowest, needed))
        used += needed
    return groups, fields


def packed(masks: Sequence[Any], fields: Sequence[Field], group: int, places: Sequence[int]) -> Any:
    """The masks that belong to a group, side by side in one word."""
    together: Any = 0
    for place in places:
        field = fields[place]
        if field.group == group:
            together = make("or", together, make("shl", make("shr", masks[place], field.lowest), field.offset))
    return together


def places_of_bits(fields: Sequence[Field], num_groups: int) -> list[int]:
    """The place of the word that each bit of the packed masks belongs to, 64 bits for each group."""
    owners = [0] * (64 * num_groups)
    for place, field in enumerate(fields):
        start = 64 * field.group + field.offset
        owners[start : start + field.size] = [place] * field.size
    return owners
