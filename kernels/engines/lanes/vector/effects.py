"""Effects of a step on runs in lanes. Those that lanes draw often are computed all at once, others if a lane does."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from llvmlite import ir

from quorisk.kernels.engines.lanes.parts.affected import effect_of
from quorisk.kernels.tracing.demand import in_order
from quorisk.kernels.tracing.emit import Emitter
from quorisk.kernels.tracing.expressions import is_constant
from quorisk.kernels.tracing.folding import make
from quorisk.kernels.tracing.machine import any_lane, constant
from quorisk.kernels.tracing.trace import TracedModel, Word, together

_WORTH_A_BRANCH = 20
"""Fewest operations saved in a step, on average, for which an effect that no lane draws is skipped by a branch."""


class Effects(NamedTuple):
    """The effects of a step: values of LLVM, in lanes."""

    leaves: dict[int, Any]
    """The leaves of the state after the step, by their places."""
    num_sent: Any
    met: Any
    """The bit of the kind of fault that it is."""
    redo: Any
    """Whether the generic engine is to repeat the run."""


def effects(
    builder: ir.IRBuilder,
    traced: TracedModel,
    before: dict[int, Any],
    drawn: Sequence[Any],
    number_bits: int,
    emitter: Callable[[Sequence[Any]], Emitter],
) -> Effects:
    """The effects of the words that are drawn: `drawn` says of each in which lanes.

    `before` are the leaves of the state, by their places; other numbers have `number_bits`. `emitter(outputs)` emits
    expressions of the state before the step. Leaves the builder in another block.
    """
    lanes = drawn[0].type.count
    seldom = [place for place, word in enumerate(traced.words) if _is_worth_a_branch(word, lanes)]
    step = together(traced, [place for place in range(len(traced.words)) if place not in seldom])
    emit = emitter([*step.after, step.num_sent, step.met, step.redo])
    leaves = {i: emit.get(step.after[i], leaf.type.element.width) for i, leaf in before.items()}
    num_sent, met = emit.get(step.num_sent, number_bits), emit.get(step.met, number_bits)
    found = Effects(leaves, num_sent, met, emit.flag(step.redo))
    for place in seldom:
        found = _if_drawn(builder, traced, traced.words[place], drawn[place], found, emitter)
    return found


def _is_worth_a_branch(word: Word, lanes: int) -> bool:
    """Whether the word's effect is so large, and so seldom drawn, that it is skipped if no lane draws it."""
    if word.after is None:
        return False
    operations = sum(node.op != "leaf" for node in in_order(word.after))
    return operations * (1.0 - word.share) ** lanes >= _WORTH_A_BRANCH


def _if_drawn(
    builder: ir.IRBuilder,
    traced: TracedModel,
    word: Word,
    drawn: Any,
    found: Effects,
    emitter: Callable[[Sequence[Any]], Emitter],
) -> Effects:
    """The effects found so far, and where the word is drawn its own."""
    effect, num_sent = effect_of(traced, word), make("popcount", word.sent)
    start, inside, after = builder.block, builder.append_basic_block("drawn"), builder.append_basic_block("drawn_not")
    builder.cbranch(any_lane(builder, drawn), inside, after)
    builder.position_at_end(inside)
    emit = emitter([*effect.outputs(), num_sent])

    def chosen(value: Any, otherwise: Any) -> Any:
        return builder.select(drawn, emit.get(value, otherwise.type.element.width), otherwise)

    its = {i: chosen(leaf, found.leaves[i]) for i, leaf in effect.leaves.items()}
    sent = found.num_sent if is_constant(num_sent, 0) else chosen(num_sent, found.num_sent)
    met = builder.select(drawn, constant(found.met.type, word.fault), found.met) if word.fault else found.met
    doubtful = found.redo if is_constant(effect.redo, 0) else chosen(effect.redo, found.redo)
    end = builder.block
    builder.branch(after)
    builder.position_at_end(after)

    def joined(new: Any, old: Any) -> Any:
        if new is old:
            return old
        value = builder.phi(old.type)
        value.add_incoming(new, end)
        value.add_incoming(old, start)
        return value

    leaves = found.leaves | {i: joined(new, found.leaves[i]) for i, new in its.items()}
    return Effects(leaves, *(joined(a, b) for a, b in zip((sent, met, doubtful), found[1:], strict=True)))
