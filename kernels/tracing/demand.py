"""The demand for expressions: the order in which to compute them, the bits that matter, the width of their lanes."""

from collections.abc import Iterable
from typing import Any

from quorisk.kernels.tracing.expressions import SIGN, WORD, Node, known_bits, range_of, trailing_zeros

_LOW_BITS_OF_LOW_BITS = frozenset({"and", "or", "xor", "add", "sub", "mul", "shl", "select", "taken", "when"})
"""Operations whose low bits depend on no higher bits of their arguments."""


def nodes(values: Iterable[Any]) -> list[Node]:
    """The values that are not constants."""
    return [value for value in values if isinstance(value, Node)]


def in_order(outputs: Iterable[Any]) -> list[Node]:
    """All expressions that the outputs are made of, arguments first."""
    found: dict[int, Node] = {}
    todo = nodes(outputs)
    while todo:
        node = todo.pop()
        if node.id not in found:
            found[node.id] = node
            todo.extend(nodes(node.args))
    return [found[number] for number in sorted(found)]


def leaf_names(outputs: Iterable[Any]) -> set[Any]:
    """The names of the leaves that the outputs are made of."""
    return {node.args[0] for node in in_order(outputs) if node.op == "leaf"}


def demanded_bits(outputs: Iterable[Any]) -> dict[int, int]:
    """Returns, by id, the bits of each expression on which the outputs' bits depend."""
    outputs = nodes(outputs)
    wanted: dict[int, int] = {}
    for output in outputs:
        wanted[output.id] = wanted.get(output.id, 0) | (1 if output.is_bool else output.may)
    for node in reversed(in_order(outputs)):
        for argument, mask in _asked(node, wanted.get(node.id, 0)):
            if isinstance(argument, Node):
                wanted[argument.id] = wanted.get(argument.id, 0) | mask & WORD
    return wanted


def _asked(node: Node, wanted: int) -> list[tuple[Any, int]]:
    """The arguments of a node, and of each the bits that decide the bits `wanted` of the node."""
    args, low = node.args, (1 << wanted.bit_length()) - 1
    match node.op:
        case "leaf":
            return []
        case "and":
            return [(args[0], wanted & known_bits(args[1])[1]), (args[1], wanted & known_bits(args[0])[1])]
        case "or" | "xor" | "taken":
            return [(arg, wanted) for arg in args]
        case "select" | "when":
            return [(args[0], 1), *((arm, wanted) for arm in args[1:])]
        case "add" | "sub" | "mul":
            return [(args[0], low), (args[1], low)]
        case "shl" if not isinstance(args[1], Node):
            return [(args[0], wanted >> args[1])]
        case "shl":
            return [(args[0], low), (args[1], 63)]
        case "shr" if not isinstance(args[1], Node):
            return [(args[0], wanted << args[1] | (SIGN if range_of(args[0])[0] < 0 else 0))]
        case "shr":
            return [(args[0], WORD & ~((1 << trailing_zeros(wanted)) - 1) if wanted else 0), (args[1], 63)]
        case "less" | "div" | "equal" | "unequal" if (
            node.op in ("less", "div") or min(range_of(a)[0] for a in args) < 0
        ):
            # compared and divided as numbers with a sign, for which a lane must have room
            return [(arg, arg.may | 1 << arg.may.bit_length() if arg.lo >= 0 else WORD) for arg in nodes(args)]
    return [(arg, arg.may if arg.lo >= 0 else WORD) for arg in nodes(args)]


def width(value: Any, narrowest: int) -> int:
    """Bits of the narrowest lane that holds the value as a signed integer: a power of two, `narrowest` to 64."""
    lo, hi = range_of(value)
    lane = narrowest
    while lane < 64 and not (-(1 << (lane - 1)) <= lo and hi < 1 << (lane - 1)):
        lane *= 2
    return lane


def widths(outputs: Iterable[Any], narrowest: int) -> dict[int, int]:
    """Returns, by id, the number of bits in which to compute each expression, 1 for booleans."""
    outputs = nodes(outputs)
    wanted = demanded_bits(outputs)
    lanes: dict[int, int] = {}
    for node in in_order(outputs):
        lane = width(node, narrowest)
        if node.op in _LOW_BITS_OF_LOW_BITS:
            asked = narrowest
            while wanted.get(node.id, 0) >> asked:
                asked *= 2
            lane = min(lane, asked)
        lanes[node.id] = 1 if node.is_bool else lane
    return lanes
