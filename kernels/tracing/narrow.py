"""Removal of all parts of expressions on which no bit in use depends: of a row for each of four entries, a mask further
up may use only that of the first."""

from collections.abc import Sequence
from typing import Any

from quorisk.kernels.tracing.demand import in_order
from quorisk.kernels.tracing.expressions import SIGN, WORD, Node, is_constant, known_bits, range_of, signed
from quorisk.kernels.tracing.folding import make
from quorisk.kernels.tracing.trace import Seen, TracedModel, needed_leaves


def narrowed(traced: TracedModel) -> TracedModel:
    """The model with as little to compute as that leaves: effects by themselves, and what engines need of a state."""
    effects = [(word.subset, word.doubt, *(word.after or ())) for word in traced.words]
    made = iter(only_asked_for([value for effect in effects for value in effect]))
    words = []
    for word, effect in zip(traced.words, effects, strict=True):
        subset, doubt, *after = (next(made) for _ in effect)
        words.append(word._replace(subset=subset, doubt=doubt, after=word.after and tuple(after)))
    now = traced.now
    unbounded, outcome, *others = only_asked_for([now.unbounded, now.outcome, *now.masks, *now.broken])
    masks, broken = tuple(others[: len(words)]), tuple(others[len(words) :])
    return _with_needed_leaves(traced._replace(words=tuple(words), now=Seen(masks, unbounded, broken, outcome)))


def _with_needed_leaves(traced: TracedModel) -> TracedModel:
    """The model without leaves of the state that cannot leave their bounds, and on which nothing depends."""
    bounds, words = traced.bounds.state, [word for word in traced.words if word.after]
    may_stray = {i for word in words for i, new in enumerate(word.after or ()) if known_bits(new)[1] & ~bounds[i]}
    needed = needed_leaves(traced.now, words, may_stray)

    def kept(values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(value if i in needed else 0 for i, value in enumerate(values))

    return traced._replace(
        state=kept(traced.state),
        words=tuple(word._replace(after=word.after and kept(word.after)) for word in traced.words),
        initial=kept(traced.initial),
    )


def only_asked_for(outputs: Sequence[Any]) -> list[Any]:
    """The outputs, made only of what they depend on."""
    nodes, needed = in_order(outputs), {output.id: WORD for output in outputs if isinstance(output, Node)}
    masks: dict[int, list[int]] = {}
    for node in reversed(nodes):
        masks[node.id] = _demanded_of_arguments(node, needed[node.id])
        for argument, mask in zip(node.args, masks[node.id], strict=True):
            if isinstance(argument, Node):
                needed[argument.id] = needed.get(argument.id, 0) | mask
    made: dict[int, Any] = {}
    for node in nodes:
        args = [made[each.id] if isinstance(each, Node) else each for each in node.args]
        args = [_within(each, mask) for each, mask in zip(args, masks[node.id], strict=True)]
        # lanes compute both arms anyway
        made[node.id] = make("select", *args, 0) if node.op == "when" else remade(node, args)
    return [made[output.id] if isinstance(output, Node) else output for output in outputs]


def remade(node: Node, args: list[Any]) -> Any:
    """The node, made of other arguments."""
    if node.op == "leaf" or all(new is old for new, old in zip(args, node.args, strict=True)):
        return node
    return make(node.op, *args)


def _within(value: Any, mask: int) -> Any:
    """An expression that equals the value within the mask, and is arbitrary elsewhere."""
    if isinstance(value, Node):
        return 0 if value.may & mask == 0 else value
    return value if mask == WORD else signed(value & mask)


def _demanded_of_arguments(node: Node, needed: int) -> list[int]:
    """Returns the bits of each argument that must be right for the bits `needed` of a node to be right."""
    args = node.args
    match node.op:
        case "and":
            first, second = (known_bits(each)[1] for each in args)
            # where neither has a bit, one of them must be right
            return [needed, needed & first] if first.bit_count() < second.bit_count() else [needed & second, needed]
        case "or" | "xor" if not is_constant(args[1], -1):
            return [needed, needed]
        case "select" | "when":
            return [WORD, *(needed for _ in args[1:])]
        case "add" | "sub" | "mul":
            lowest = (1 << needed.bit_length()) - 1
            return [lowest if isinstance(each, Node) else WORD for each in args]
        case "shl" if not isinstance(args[1], Node):
            return [needed >> args[1], WORD]
        case "shr" if not isinstance(args[1], Node):
            return [needed << args[1] & WORD | (SIGN if range_of(args[0])[0] < 0 else 0), WORD]
    return [WORD for _ in args]
