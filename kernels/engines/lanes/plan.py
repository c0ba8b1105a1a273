"""The interface of all kernels, their rows, and the packing of masks of enabled instances."""

from collections.abc import Container, Sequence
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.engines.philox import highest_place, lowest_place
from quorisk.kernels.engines.points import Points, like_losses
from quorisk.kernels.model import Model, exposures
from quorisk.kernels.ops import bits
from quorisk.kernels.tracing.expressions import Node, is_constant, known_bits, trailing_zeros
from quorisk.kernels.tracing.folding import make
from quorisk.kernels.tracing.trace import Seen, TracedModel, Word

NAME = "kernel"
"""`kernel(seed, losses, first_run, num_runs, scratch, rows)`: writes row i for run `first_run` + i. All are 64-bit
words; at `losses` are those of `Limits`, which may be any that `shared` makes the same. Kernels for a list of runs get
its address as `first_run`, and write row i for the i-th of the list."""
REDO = -2
"""Outcome of a run that the generic engine has to make; the rest of its row means nothing."""
FIXED_COLUMNS = ("outcome", "broken_mask", "met_mask", "steps", "messages", "time")
"""Columns of a row before those of the first steps at which watched invariants broke, and of how long exposures lasted;
times are float64."""
GAP = 8
"""Fewest adjacent bits never set that are worth an operation or two to leave out."""
_ROOM = 64
"""Multiple of a run's mean number of steps that few bits must hold for steps to be counted in them."""


class Limits(NamedTuple):
    """Losses of a run, its limits besides the model's, and whether its time is needed."""

    losses: tuple[int, ...]
    """The probabilities of `rule.loss_names`, in units of 2**-63."""
    lifetime_weight: int
    """Weight of the end of a lifetime; 0 if there is none."""
    accepts: tuple[int, ...]
    """Probability, by word of groups and last for the end of a lifetime, to accept one that is drawn, in units of
    2**-63. One that is not accepted is left to the generic engine."""
    max_steps: int
    horizon: float
    """Horizon in the engines' unit of time."""
    timed: bool
    """Whether the rows' times have to be right. If not, the horizon is infinite, and the row of a run that loses data
    or stands exposed is incomplete."""


class Field(NamedTuple):
    """The place of the mask of a word of groups, or of a piece of it, among the masks packed together."""

    place: int
    """Place of the word."""
    group: int
    offset: int
    lowest: int
    """Lowest bit of the word that lies in it."""
    size: int

    @property
    def bits(self) -> int:
        """The bits of the group's masks that it takes."""
        return ((1 << self.size) - 1) << self.offset


class Lanes(NamedTuple):
    """The values that a kernel of many runs at once keeps of each, and their widths in bits."""

    leaves: tuple[int, ...]
    """Places of the leaves of the state that are no constants."""
    watched: tuple[int, ...]
    """Places of the invariants that may be broken without an end of the run."""
    exposed: tuple[int, ...]
    """Places of those of them whose breach is exposure, if times are needed."""
    mask_bits: int
    groups: tuple[int, ...]
    """The rate of each group: words of one rate whose masks lie side by side, in the order in which they are drawn."""
    fields: tuple[Field, ...]
    share_bits: int
    """Bits of a number below the sum of all rates."""
    most_sent: int
    """Largest number of messages that a step sends."""


def limits_of(points: Points, point: int, timed: bool) -> Limits:
    """The limits of a point."""
    return Limits(
        losses=tuple(points.losses[point].tolist()),
        lifetime_weight=int(points.weights[point, -1]),
        accepts=tuple(points.accepts[point].tolist()),
        max_steps=int(points.max_steps[point]),
        horizon=float(points.horizons[point]),
        timed=timed,
    )


def shared(limits: Limits) -> Limits:
    """Returns the limits for which code is made in place of these: points of a grid that differ in losses share it."""
    return limits._replace(losses=like_losses(limits.losses))


def weights_of(points: Points, point: int) -> tuple[int, ...]:
    """The rates of a point's words of groups."""
    return tuple(points.weights[point, :-1].tolist())


def lane_layout(model: Model, traced: TracedModel, limits: Limits, narrowest: int, in_pieces: bool = False) -> Lanes:
    """Plans the values that a kernel of many runs keeps, in lanes of `narrowest` bits or more.

    Masks that are longer, or have large gaps, are cut to pieces if they may be `in_pieces`.
    """
    broken = [i for i, flag in enumerate(traced.now.broken) if i in traced.bounds.broken and not is_constant(flag, 0)]
    watched = tuple(i for i in broken if not model.invariants[i].data_loss)
    masks = [known_bits(word.mask)[1] for word in traced.words]
    longest = max((mask.bit_length() - trailing_zeros(mask) for mask in masks), default=0)
    mask_bits = narrowest if in_pieces else lane(longest, narrowest)
    groups, fields = pack_masks(traced.words, mask_bits, GAP if in_pieces else 64)
    most = sum(word.weight * mask.bit_count() for word, mask in zip(traced.words, masks, strict=True))
    return Lanes(
        leaves=tuple(i for i, leaf in enumerate(traced.state) if isinstance(leaf, Node)),
        watched=watched,
        exposed=tuple(i for i in exposures(model) if i in watched and limits.timed),
        mask_bits=mask_bits,
        groups=tuple(groups),
        fields=tuple(fields),
        share_bits=lane((most + limits.lifetime_weight).bit_length() + 1, narrowest),
        most_sent=max((known_bits(word.sent)[1].bit_count() for word in traced.words), default=0),
    )


def counted_steps(traced: TracedModel, limits: Limits, lane_bits: int, most_sent: int) -> int:
    """Returns the number of steps to count: no more than lanes of `lane_bits` hold, if hardly any run is longer."""
    room = ((1 << lane_bits - 1) - 1) // max(1, most_sent)
    return min(limits.max_steps, room) if traced.bounds.mean_steps * _ROOM <= room else limits.max_steps


def lane(bits: int, narrowest: int) -> int:
    """Returns the bits of the narrowest lane that holds `bits` of them."""
    return next(lane for lane in (narrowest, 32, 64) if lane >= bits)


def doom(first: Seen) -> Any:
    """Whether a first state is out of bounds, broken or the last one: that is left to the generic engine."""
    doomed, enabled = first.unbounded, 0
    for broken in first.broken:
        doomed = make("or", doomed, broken)
    for mask in first.masks:
        enabled = make("or", enabled, mask)
    return make("or", doomed, make("equal", enabled, 0))


def places(word: Any, total: Any, share_bits: int) -> tuple[Any, Any]:
    """The first place below the total that `word`, 32 bits of a fraction, leads to, and how far the last is from it.

    All of them are 64-bit values of one back end; the total is below 2 ** `share_bits`.
    """
    if share_bits == 64:
        lowest = lowest_place(word, total)
        return lowest, highest_place(word, total) - lowest
    product = word * total
    lowest = product >> np.uint64(32)
    return lowest, (product + total - np.uint64(1) >> np.uint64(32)) - lowest


def row_words(watched: Sequence[int], exposed: Sequence[int]) -> int:
    """Words of a row with the first step of each of the invariants `watched`, and the times of `exposed` ones."""
    return len(FIXED_COLUMNS) + len(watched) + len(exposed)


def columns_of(model: Model, watched: Sequence[int], exposed: Sequence[int]) -> tuple[int, ...]:
    """The columns of such a row that have each invariant's first step and each exposure's time; -1 if it has none.

    Data is lost in the run's last step.
    """
    at = {i: len(FIXED_COLUMNS) + k for k, i in enumerate(watched)}
    lost = FIXED_COLUMNS.index("steps")
    steps = (lost if each.data_loss else at.get(i, -1) for i, each in enumerate(model.invariants))
    times = {i: len(FIXED_COLUMNS) + len(watched) + k for k, i in enumerate(exposed)}
    return *steps, *(times.get(i, -1) for i in exposures(model))


def pack_masks(words: Sequence[Word], size: int, gap: int = 64) -> tuple[list[int], list[Field]]:
    """Masks side by side, as many as `size` bits hold; one that is longer, or has such a gap, is in pieces. Returns the
    rate of each group, and the fields."""
    groups: list[int] = []
    fields: list[Field] = []
    used = 0
    for place, word in enumerate(words):
        for lowest, needed in pieces(known_bits(word.mask)[1], size, gap):
            if not groups or groups[-1] != word.weight or used + needed > size:
                groups.append(word.weight)
                used = 0
            fields.append(Field(place, len(groups) - 1, used, lowest, needed))
            used += needed
    return groups, fields


def pieces(mask: int, size: int, gap: int) -> list[tuple[int, int]]:
    """(lowest bit, number of bits) of pieces that have all bits of a mask, none longer than `size`; in between are
    gaps of `gap` bits or more, unless the mask is too long."""
    found: list[tuple[int, int]] = []
    for bit in bits(mask):
        if found and bit - sum(found[-1]) < gap and bit - found[-1][0] < size:
            found[-1] = (found[-1][0], bit - found[-1][0] + 1)
        else:
            found.append((bit, 1))
    return found


def packed(masks: Sequence[Any], fields: Sequence[Field], group: int, places: Container[int]) -> Any:
    """The masks that belong to a group, side by side in one word."""
    together: Any = 0
    for field in fields:
        if field.group == group and field.place in places:
            piece = make("and", make("shr", masks[field.place], field.lowest), (1 << field.size) - 1)
            together = make("or", together, make("shl", piece, field.offset))
    return together


def places_of_bits(fields: Sequence[Field], num_groups: int, size: int) -> list[int]:
    """The place of the word that each bit of the packed masks belongs to, `size` bits for each group."""
    owners = [0] * (size * num_groups)
    for field in fields:
        start = size * field.group + field.offset
        owners[start : start + field.size] = [field.place] * field.size
    return owners
