"""Machine code for expressions: one value of 64 bits, or one in each of several lanes as narrow as the values allow."""

from collections.abc import Callable, Iterable
from typing import Any

from llvmlite import ir

from quorisk.kernels.ops import bits
from quorisk.kernels.tracing import demand
from quorisk.kernels.tracing.expressions import Node, is_constant, known_bits, range_of
from quorisk.kernels.tracing.general import PARAMS
from quorisk.kernels.tracing.machine import I64, INTEGERS, RELATIONS, constant, frozen, intrinsic, lanes_of

_BOOLEANS = {"both": "and_", "either": "or_", "differ": "xor"}
_WORTH_A_BRANCH = {"when": 6, "select": 256}
"""Fewest operations that a branch skips, not computed in vain: of what a condition guards, or a parameter chooses."""
_MOST_TRIED = 1 << 12
"""Largest range of numbers for which division by a product is tried, number by number."""


class Emitter:
    """Emits expressions where the builder stands, each once. `leaf(name, width)` gives the value of a leaf."""

    def __init__(
        self,
        builder: ir.IRBuilder,
        lanes: int,
        narrowest: int,
        leaf: Callable[[Any, int], Any],
        outputs: Iterable[Any],
        has_pdep: bool,
    ) -> None:
        self.builder, self.lanes, self.narrowest, self.leaf, self.has_pdep = builder, lanes, narrowest, leaf, has_pdep
        outputs = list(outputs)
        self.widths = demand.widths(outputs, narrowest)
        self.chosen_together = _chosen_together(outputs) if lanes == 1 else {}
        self.values: dict[int, Any] = {}
        self.converted: dict[tuple[int, int], Any] = {}

    def kind(self, width: int) -> Any:
        """The type of lanes of that many bits."""
        return lanes_of(ir.IntType(width), self.lanes)

    def get(self, value: Any, width: int) -> Any:
        """An expression or constant in lanes of `width` bits; a boolean as 0 or 1, or as it is for width 1."""
        if not isinstance(value, Node):
            return constant(self.kind(width), value)
        here, have = self._value(value), self.widths[value.id]
        if have == width:
            return here
        if (value.id, width) not in self.converted:
            # what was cut to the bits that matter may be extended in any way
            change = self.builder.trunc if have > width else self.builder.zext
            if have < width and value.lo < 0 and not value.is_bool:
                change = self.builder.sext
            self.converted[value.id, width] = change(here, self.kind(width))
        return self.converted[value.id, width]

    def flag(self, value: Any) -> Any:
        """A boolean."""
        return self.get(value, 1)

    def _value(self, node: Node) -> Any:
        if node.id not in self.values:
            value = self._emit(node)
            self.values[node.id] = value
        return self.values[node.id]

    def _emit(self, node: Node) -> Any:
        builder, width, args = self.builder, self.widths[node.id], node.args
        if node.op == "leaf":
            return self.leaf(args[0], width)
        if node.op in INTEGERS and node.op != "shl":
            return getattr(builder, INTEGERS[node.op])(self.get(args[0], width), self.get(args[1], width))
        if node.op in _BOOLEANS:
            return getattr(builder, _BOOLEANS[node.op])(self.flag(args[0]), self.flag(args[1]))
        if node.op in RELATIONS:
            wide = self._wide(*args)
            return builder.icmp_signed(RELATIONS[node.op], self.get(args[0], wide), self.get(args[1], wide))
        if node.op == "not":
            return builder.not_(self.flag(args[0]))
        if node.op == "int":
            return builder.zext(self.flag(args[0]), self.kind(width))
        if node.op == "taken":
            return self.get(args[0], width)
        if node.op in _WORTH_A_BRANCH and (key := (node.op, args[0].id)) in self.chosen_together:
            self._choose_together(key)
            return self.values[node.id]
        if node.op in _WORTH_A_BRANCH:
            otherwise = args[2] if node.op == "select" else 0
            return builder.select(self.flag(args[0]), self.get(args[1], width), self.get(otherwise, width))
        return getattr(self, f"_{node.op}")(node, width)

    def _wide(self, *args: Any) -> int:
        """Lanes that hold all of these as they are."""
        return max(
            max(self.widths[a.id], self.narrowest) if isinstance(a, Node) else demand.width(a, self.narrowest)
            for a in args
        )

    def _resized(self, value: Any, have: int, width: int, signed: bool) -> Any:
        if have == width:
            return value
        change = self.builder.trunc if have > width else self.builder.sext if signed else self.builder.zext
        return change(value, self.kind(width))

    def _choose_together(self, key: tuple[str, int]) -> None:
        """Emits choices of one condition with a branch around their first arms."""
        chosen = self.chosen_together.pop(key)  # those that are within an arm are emitted by themselves
        choices = [(node, self.widths[node.id]) for node in chosen if node.id not in self.values]
        for node in demand.in_order([each.args[1] for each, _ in choices]):
            if node.op == "leaf" or node.id in node.graph.once:  # computed before, as others may need it
                self._value(node)
        flag = self.flag(chosen[0].args[0])
        others = [self.get(node.args[2] if node.op == "select" else 0, width) for node, width in choices]
        builder, before = self.builder, (self.values.copy(), self.converted.copy())
        start, inside, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
        builder.cbranch(flag, inside, after)
        builder.position_at_end(inside)
        values, end = [self.get(node.args[1], width) for node, width in choices], builder.block
        builder.branch(after)
        builder.position_at_end(after)
        self.values, self.converted = before
        for (node, width), value, other in zip(choices, values, others, strict=True):
            self.values[node.id] = result = builder.phi(self.kind(width))
            result.add_incoming(value, end)
            result.add_incoming(other, start)
        self.chosen_together[key] = chosen

    def _shl(self, node: Node, width: int) -> Any:
        amount = node.args[1]
        if not isinstance(amount, Node) and amount >= width:
            return constant(self.kind(width), 0)  # no bit of it matters
        return self._shifted(self.builder.shl, self.get(node.args[0], width), amount, width)

    def _shr(self, node: Node, width: int) -> Any:
        value, amount = node.args
        wide, signed = self._wide(value), range_of(value)[0] < 0
        shift = self.builder.ashr if signed else self.builder.lshr
        if not isinstance(amount, Node):
            if amount >= wide:
                amount = wide - 1
            shifted = shift(self.get(value, wide), constant(self.kind(wide), amount))
        else:
            wide = 64 if signed and amount.hi >= wide else wide
            shifted = self._shifted(shift, self.get(value, wide), amount, wide)
        return self._resized(shifted, wide, width, signed)

    def _shifted(self, shift: Callable[[Any, Any], Any], value: Any, amount: Any, width: int) -> Any:
        """Lanes of `width` bits shifted: to 0 by amounts that only wider ones have room for."""
        by, (lowest, highest) = self.get(amount, width), range_of(amount)
        if lowest >= 0 and highest < width:
            shifted = shift(value, by)
            # what is known of the amount need not hold in a lane that draws another word
            return frozen(self.builder, shifted) if self.lanes > 1 and isinstance(amount, Node) else shifted
        if width == 64:
            return shift(value, self.builder.and_(by, constant(by.type, width - 1)))
        fits = self.builder.icmp_unsigned("<", by, constant(by.type, width))
        return self.builder.select(fits, shift(value, by), constant(by.type, 0))

    def _popcount(self, node: Node, width: int) -> Any:
        (value,) = node.args
        wide = self._wide(value) if value.lo >= 0 else 64
        count = intrinsic(self.builder, "llvm.ctpop", self.kind(wide), [self.get(value, wide)], self.kind(wide))
        return self._resized(count, wide, width, False)

    def _div(self, node: Node, width: int) -> Any:
        value, divisor = node.args
        wide, (lo, hi) = self._wide(*node.args), range_of(value)
        kind, builder = self.kind(wide), self.builder
        if isinstance(divisor, Node):
            return self._resized(self._divided(value, divisor, wide), wide, width, True)
        if factor := _factor(lo, hi, divisor, wide):
            product = builder.mul(self.get(value, wide), constant(kind, factor[0]))
            quotient = (builder.ashr if lo < 0 else builder.lshr)(product, constant(kind, factor[1]))
        elif lo >= 0:
            quotient = builder.udiv(self.get(value, wide), constant(kind, divisor))
        else:
            quotient = self._floor(self.get(value, wide), constant(kind, divisor))
        return self._resized(quotient, wide, width, lo < 0)

    def _divided(self, value: Any, divisor: Node, width: int) -> Any:
        """The quotient by a positive number that is known only at run time."""
        builder, by, kind = self.builder, self.get(divisor, width), self.kind(width)
        # in an arm that is not chosen it may be anything, and is divided by all the same
        positive = builder.icmp_signed(">", by, constant(kind, 0))
        return self._floor(self.get(value, width), builder.select(positive, by, constant(kind, 1)))

    def _floor(self, number: Any, by: Any) -> Any:
        """The quotient by a positive number, rounded down."""
        builder = self.builder
        negative = builder.icmp_signed("<", builder.srem(number, by), constant(number.type, 0))
        return builder.sub(builder.sdiv(number, by), builder.zext(negative, number.type))

    def _deposit(self, node: Node, width: int) -> Any:
        spread, mask = node.args
        if self.has_pdep and self.lanes == 1:
            return intrinsic(self.builder, "llvm.x86.bmi.pdep.64", I64, [self.get(spread, 64), self.get(mask, 64)])
        builder, kind = self.builder, self.kind(width)
        one, losses, sent = constant(kind, 1), self.get(spread, width), self.get(mask, width)
        result, below = constant(kind, 0), constant(kind, 0)
        for place in bits(known_bits(mask)[1]):
            is_set = builder.and_(builder.lshr(sent, constant(kind, place)), one)
            bit = builder.and_(is_set, builder.lshr(losses, below))
            result = builder.or_(result, builder.shl(bit, constant(kind, place)))
            below = builder.add(below, is_set)
        return result


def _chosen_together(outputs: list[Any]) -> dict[tuple[str, int], list[Node]]:
    """Returns what a condition guards, or chooses if it is on one parameter alone, where that skips many operations; by
    the operation and the condition's id."""
    found: dict[tuple[str, int], list[Node]] = {}
    for node in demand.in_order(outputs):
        if node.op == "when" or (node.op == "select" and _is_of_parameter(node.args[0])):
            found.setdefault((node.op, node.args[0].id), []).append(node)
    return {key: chosen for key, chosen in found.items() if _num_skipped(chosen) >= _WORTH_A_BRANCH[key[0]]}


def _is_of_parameter(chosen: Node) -> bool:
    leaf = chosen.args[0]
    unequal = chosen.op == "unequal" and leaf.op == "leaf" and is_constant(chosen.args[1], 0)
    return unequal and isinstance(leaf.args[0], tuple) and leaf.args[0][0] == PARAMS


def _num_skipped(selects: list[Node]) -> int:
    needed = {node.id for node in demand.in_order(arm for each in selects for arm in (each.args[0], *each.args[2:]))}
    return sum(node.id not in needed for node in demand.in_order([node.args[1] for node in selects]))


def _factor(lo: int, hi: int, divisor: int, width: int) -> tuple[int, int] | None:
    """A factor and a shift that divide every number of the range, all of it within `width` bits; None if none do."""
    if hi - lo >= _MOST_TRIED:
        return None
    for shift in range(1, width - 1):
        factor = (1 << shift) // divisor + 1
        if max(hi, -lo) * factor >= 1 << (width - 1):
            return None
        if all(number * factor >> shift == number // divisor for number in range(lo, hi + 1)):
            return factor, shift
    return None
