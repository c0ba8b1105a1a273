"""LLVM values under Python's operators: functions over 64-bit integers, like those of `philox`, emit themselves."""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from quorisk.kernels.ops import Traced

I1, I8, I16, I32, I64 = map(ir.IntType, (1, 8, 16, 32, 64))
DOUBLE = ir.DoubleType()
POINTER = ir.PointerType()
INTEGERS = {"and": "and_", "or": "or_", "xor": "xor", "add": "add", "sub": "sub", "mul": "mul", "shl": "shl"}
RELATIONS = {"equal": "==", "unequal": "!=", "less": "<"}
"""Names of operations in builders."""


def lanes_of(kind: Any, lanes: int) -> Any:
    """A vector of that many values; the kind itself for 1."""
    return kind if lanes == 1 else ir.VectorType(kind, lanes)


def constant(kind: Any, value: Any) -> ir.Constant:
    """A number in every lane of a type."""
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    if isinstance(element, ir.IntType):
        value = int(value) & ((1 << element.width) - 1)
    return ir.Constant(kind, value)


def splat(builder: ir.IRBuilder, value: Any, lanes: int) -> Any:
    """A value in every lane."""
    if lanes == 1:
        return value
    kind = ir.VectorType(value.type, lanes)
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, undefined, constant(ir.VectorType(I32, lanes), 0))


def resized(builder: ir.IRBuilder, value: Any, width: int) -> Any:
    """An unsigned integer of `width` bits, or one in each lane."""
    have, kind = getattr(value.type, "element", value.type).width, _like(value.type, ir.IntType(width))
    if have == width:
        return value
    return (builder.trunc if have > width else builder.zext)(value, kind)


def intrinsic(
    builder: ir.IRBuilder, name: str, result: Any, args: Sequence[Any], overload: Any = None, further: str = ""
) -> Any:
    """A call of LLVM's intrinsic of that name, overloaded on the type `overload`, if given, and on `further` ones."""
    full = f"{name}.{_suffix(overload)}" if overload is not None else name
    full += f".{further}" if further else ""
    function = builder.module.globals.get(full)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(result, [arg.type for arg in args]), full)
    return builder.call(function, args)


def frozen(builder: ir.IRBuilder, value: Any) -> Any:
    """The value, or an arbitrary one where LLVM leaves it undefined: else all that depends on it would be undefined."""
    instruction = ir.instructions.Instruction(builder.block, value.type, "freeze", [value])
    builder._insert(instruction)
    return instruction


def any_lane(builder: ir.IRBuilder, flags: Any) -> Any:
    """Whether a boolean holds in any lane."""
    together = builder.bitcast(flags, ir.IntType(flags.type.count))
    return builder.icmp_unsigned("!=", together, constant(together.type, 0))


def lane_bits(builder: ir.IRBuilder, flags: Any) -> Any:
    """The lanes in which a boolean holds, as bits of a 64-bit integer."""
    return resized(builder, builder.bitcast(flags, ir.IntType(flags.type.count)), 64)


def only_bit(builder: ir.IRBuilder, hot: Any) -> Any:
    """The place of the only bit that is set in each lane."""
    kind, lanes = hot.type, hot.type.count
    if kind.element != I32:
        below = builder.sub(hot, constant(kind, 1))
        return intrinsic(builder, "llvm.ctpop", kind, [below], kind)
    # the exponent of a floating-point number, which takes fewer instructions than counting bits
    number = builder.bitcast(builder.sitofp(hot, lanes_of(ir.FloatType(), lanes)), kind)
    exponent = builder.and_(builder.lshr(number, constant(kind, 23)), constant(kind, 0xFF))
    return builder.sub(exponent, constant(kind, 127))


def with_wide_registers(text: str, name: str, width: int) -> str:
    """A module's text with attributes by which its function of that name may use vectors of `width` bits, and aligns
    the stack to them: llvmlite cannot set these."""
    head = f'define void @"{name}"'
    lines = [f"{line.rstrip('{ ')} #0" if line.startswith(head) else line for line in text.splitlines()]
    wide = f'"min-legal-vector-width"="{width}" "prefer-vector-width"="{width}"'
    return "\n".join([*lines, f'attributes #0 = {{ nounwind "stackrealign" {wide} }}\n'])


def _suffix(kind: Any) -> str:
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{_suffix(kind.element)}"
    return f"i{kind.width}" if isinstance(kind, ir.IntType) else "f64"


def _like(kind: Any, element: Any) -> Any:
    """A type of as many lanes."""
    return lanes_of(element, kind.count) if isinstance(kind, ir.VectorType) else element


class Value(Traced):
    """An integer or a floating-point number, or one in each lane."""

    __slots__ = ("builder", "signed", "value")
    __array_ufunc__ = None
    """NumPy's numbers leave operations to this class."""

    def __init__(self, builder: ir.IRBuilder, value: Any, signed: bool = False) -> None:
        self.builder, self.value, self.signed = builder, value, signed

    def _same(self, value: Any) -> "Value":
        return Value(self.builder, value, self.signed)

    def _other(self, other: Any) -> Any:
        return other.value if isinstance(other, Value) else constant(self.value.type, other)

    def _is(self, kind: Any) -> bool:
        """Whether its values are of that type."""
        return bool(getattr(self.value.type, "element", self.value.type) == kind)

    def make(self, op: str, *args: Any) -> "Value":
        builder, kind = self.builder, self.value.type
        if op == "select":
            condition, yes, no = args
            like = yes if isinstance(yes, Value) else no
            flag = condition if condition._is(I1) else condition != 0
            return like._same(builder.select(flag.value, like._other(yes), like._other(no)))
        if op == "popcount":
            return Value(builder, intrinsic(builder, "llvm.ctpop", kind, [self.value], kind), True)
        if op == "leading_zeros":
            given = [self.value, ir.Constant(I1, 0)]
            return Value(builder, intrinsic(builder, "llvm.ctlz", kind, given, kind), True)
        if op in ("signed", "unsigned"):  # a condition is 0 or 1
            value = builder.zext(self.value, _like(kind, I64)) if self._is(I1) else self.value
            return Value(builder, value, op == "signed")
        if op == "not":
            return Value(builder, builder.not_(args[0].value))
        values = map(self._other, args)
        if self._is(DOUBLE):
            return Value(builder, getattr(builder, f"f{op}")(*values))
        if op in RELATIONS:
            compare = builder.icmp_signed if self.signed else builder.icmp_unsigned
            return Value(builder, compare(RELATIONS[op], *values))
        shift = builder.ashr if self.signed else builder.lshr
        return self._same((shift if op == "shr" else getattr(builder, INTEGERS[op]))(*values))
