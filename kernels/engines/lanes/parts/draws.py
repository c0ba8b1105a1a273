"""The random numbers of a step, by the functions of `philox`, in machine code."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.engines.philox import (
    FIRST_MESSAGES,
    OPEN,
    draw_pair,
    fates_of,
    first_draws,
    is_accepted,
    later_fates,
    multiply_high,
    pick,
    settled_fates,
)
from quorisk.kernels.engines.points import ALWAYS
from quorisk.kernels.model import Model
from quorisk.kernels.ops import as_int64
from quorisk.kernels.tracing.general import PICKED
from quorisk.kernels.tracing.machine import I64, Value, any_lane, constant, splat
from quorisk.kernels.tracing.trace import Word, losses_leaf

_UNROLLED = 3
"""Set bits of a mask that are skipped without a branch before the one drawn."""


class StepDraws(NamedTuple):
    """The draws of a step, or of one in each lane: 64-bit values of LLVM."""

    choose: Any
    """32 bits, which choose the group."""
    wait: Any
    fates: Any
    """Bit j: message j of those that a step sends is lost; None if no message ever is."""


def source_of(builder: Any, seed: Any, run: Any, step: Any, loss: Any = None) -> tuple[Any, ...]:
    """The `source` argument of `philox`'s functions, for the first attempt at a step; `loss` is None if unused."""
    numbers = (seed, run, step, constant(step.type, 0))
    return *(Value(builder, number) for number in numbers), np.uint64(0) if loss is None else Value(builder, loss)


def draw(builder: Any, seed: Any, run: Any, step: Any, loss: Any, most_sent: int, max_sends: int) -> StepDraws:
    """The draws of a step, in lanes. `loss` is in units of 2**-63; None if there is none.

    Leaves the builder in another LLVM block: fates that Philox's block 0 leaves open are settled under a branch.
    """
    source = source_of(builder, seed, run, step, loss)
    choose, wait, fates = first_draws(source)
    if loss is None:
        return StepDraws(choose.value, wait.value, None)
    is_open = any_lane(builder, (fates >> OPEN >= 1).value)
    settled = emit_if(builder, is_open, "settle", fates.value, lambda: settled_fates(fates, source).value)
    all_fates = Value(builder, settled) & (1 << FIRST_MESSAGES) - 1
    if most_sent > FIRST_MESSAGES:
        all_fates = all_fates | later_fates(source, most_sent)
    return StepDraws(choose.value, wait.value, (all_fates & (1 << max_sends) - 1).value)


def asks_beside(model: Model, word: Word) -> list[Any]:
    """Returns the names of draws that only steps of this word make: the pick of a group's member, and the fates of
    members that are no messages."""
    picked = [PICKED] if model.actions[word.action].shared > 1 else []
    return picked + ([losses_leaf(word.loss)] if word.loss else [])


def draw_beside(builder: Any, name: Any, seed: Any, run: Any, step: Any, losses: Any, max_sends: int) -> Any:
    """Emits the draw that `asks_beside` names, in 64 bits. The kernel's losses are at the address `losses`."""
    if name == PICKED:
        return pick(source_of(builder, seed, run, step)).value
    loss = splat(builder, loss_at(builder, losses, name[1]), getattr(step.type, "count", 1))
    return (fates_of(source_of(builder, seed, run, step, loss), max_sends) & (1 << max_sends) - 1).value


def loss_at(builder: Any, losses: Any, place: int) -> Any:
    """One of the kernel's losses, in units of 2**-63."""
    return builder.load(builder.gep(losses, [constant(I64, place)], source_etype=I64), typ=I64)


def draw_rejected(builder: Any, live: Any, seed: Any, run: Any, step: Any, accept: Any) -> Any:
    """Whether the group that Philox's block 0 chose is rejected, by lane.

    Leaves the builder in another LLVM block: numbers are drawn only if a live lane is in doubt.
    """
    doubtful = builder.icmp_unsigned("!=", accept, constant(accept.type, ALWAYS))
    is_open = any_lane(builder, builder.and_(doubtful, live))
    none = constant(doubtful.type, 0)

    def rejected() -> Any:
        return builder.not_(is_accepted(Value(builder, accept), source_of(builder, seed, run, step)).value)

    return emit_if(builder, is_open, "doubt", none, rejected)


def emit_if(builder: Any, flag: Any, name: str, otherwise: Any, compute: Callable[[], Any]) -> Any:
    """Emits a branch: the value of `compute` if the flag is set, else `otherwise`, without computing it.

    Leaves the builder in another block.
    """
    start, inside, after = builder.block, builder.append_basic_block(name), builder.append_basic_block(f"{name}_not")
    builder.cbranch(flag, inside, after)
    builder.position_at_end(inside)
    computed = compute()
    end = builder.block
    builder.branch(after)
    builder.position_at_end(after)
    found = builder.phi(otherwise.type)
    found.add_incoming(otherwise, start)
    found.add_incoming(computed, end)
    return found


def draw_choice(builder: Any, seed: Any, run: Any, num_choices: int) -> Any:
    """The number of a run's initial state."""
    zero = Value(builder, constant(run.type, 0))
    drawn, _ = draw_pair(Value(builder, seed), Value(builder, run), zero, np.uint64(0))
    return as_int64(multiply_high(drawn, Value(builder, constant(run.type, num_choices)))).value


def draw_bit(builder: Any, live: Any, mask: Any, rest: Any, weight: Any) -> tuple[Any, Any]:
    """Emits, by live lane, the bit of a mask in whose share of the weight `rest` lies, and its place in that share.

    Leaves the builder in another block.
    """
    kind = mask.type

    def pass_over(mask: Any, rest: Any) -> tuple[Any, Any, Any]:
        beyond = builder.icmp_unsigned(">=", rest, weight)
        without = builder.and_(mask, builder.sub(mask, constant(kind, 1)))
        less = builder.sub(rest, weight)
        return builder.select(beyond, without, mask), builder.select(beyond, less, rest), beyond

    for _ in range(_UNROLLED):
        mask, rest, _ = pass_over(mask, rest)
    start, loop, after = builder.block, builder.append_basic_block("pass"), builder.append_basic_block("found")
    builder.cbranch(any_lane(builder, builder.and_(builder.icmp_unsigned(">=", rest, weight), live)), loop, after)
    builder.position_at_end(loop)
    masks, rests = builder.phi(kind), builder.phi(rest.type)
    mask_on, rest_on, _ = pass_over(masks, rests)
    for phi, before, on in ((masks, mask, mask_on), (rests, rest, rest_on)):
        phi.add_incoming(before, start)
        phi.add_incoming(on, builder.block)
    builder.cbranch(any_lane(builder, builder.and_(builder.icmp_unsigned(">=", rest_on, weight), live)), loop, after)
    end = builder.block
    builder.position_at_end(after)
    found, left = builder.phi(kind), builder.phi(rest.type)
    for phi, before, on in ((found, mask, mask_on), (left, rest, rest_on)):
        phi.add_incoming(before, start)
        phi.add_incoming(on, end)
    return builder.and_(found, builder.sub(constant(kind, 0), found)), left
