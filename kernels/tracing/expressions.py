"""Expressions over 64-bit integers: a protocol's functions, called with expressions, return expressions.

Equal expressions are one object. Each knows its possible bits and its range, so that whatever is settled folds into a
constant as it is built: a bookie that does not exist, a switch that is off, an action that never is enabled. A constant
is a plain `int` or `bool`.

Bits and range hold wherever the value of an expression is used. An arm that `where` does not choose may be anything: a
shift by a negative amount there has no meaning, and needs none.
"""

from collections.abc import Callable
from typing import Any

from quorisk.kernels.ops import Traced

WORD = (1 << 64) - 1
SIGN = 1 << 63
LOWEST, HIGHEST = -SIGN, SIGN - 1

BOOLEAN = frozenset({"equal", "unequal", "less", "not", "both", "either", "differ"})
"""Operations whose values are booleans; all others give integers."""


class Node(Traced):
    """An expression that is no constant. `op` is `leaf`, an operation of BOOLEAN, or one of the integers'."""

    __slots__ = ("args", "graph", "hi", "id", "is_bool", "lo", "may", "ones", "op", "power")

    graph: "Graph"
    op: str
    args: tuple[Any, ...]
    """Nodes and constants; a leaf's only one is its name."""
    ones: int
    """Bits that are set for certain."""
    may: int
    """Bits that can be set."""
    lo: int
    hi: int
    """The range in which the value lies, as a signed integer."""
    id: int
    """Counted from 0 as nodes are made, so that arguments come before what is made of them."""
    is_bool: bool
    power: "Node | None"
    """An expression that is 1 << this one, if there is one at hand."""

    def make(self, op: str, *args: Any) -> Any:
        return self.graph.make(op, *args)

    def __invert__(self):
        if self.is_bool:
            raise TypeError("~ of a condition; its meaning in Python differs from that in compiled code")
        return super().__invert__()

    def __hash__(self):
        return self.id

    def __bool__(self):
        raise TypeError("a branch on a traced value; write it with `where` or `when`")

    def __repr__(self):
        return f"%{self.id}:{self.op}"


class Graph:
    """A graph of expressions, which `make(op, *args)` makes by the rules of `folding`; see `folding.new_graph`.

    In `lanes` both arms of a choice are computed, and a condition costs no branch: there a choice is worth turning into
    operations on conditions, as elsewhere it is not.
    """

    def __init__(self, make: Callable[..., Any], lanes: bool) -> None:
        self.make, self.lanes = make, lanes
        self._nodes: dict[Any, Any] = {}
        self.once: set[int] = set()
        """Ids of expressions that machine code computes before a branch to what uses them; see `ops.once`."""
        self._number = 0

    def leaf(self, name: Any, may: int, lo: int = 0, hi: int | None = None, is_bool: bool = False) -> Node:
        """A variable of these bits in this range, at least 0; `name` is anything."""
        leaf = Node()
        leaf.graph, leaf.op, leaf.args = self, "leaf", (name,)
        leaf.ones, leaf.may, leaf.lo, leaf.hi = 0, may, lo, may if hi is None else min(may, hi)
        leaf.is_bool, leaf.power, leaf.id = is_bool, None, self._next()
        return leaf

    def node(self, op: str, args: tuple[Any, ...], ones: int, may: int, lo: int, hi: int) -> Any:
        """The expression, or the constant that it turns out to be."""
        key = op, *((arg.id if isinstance(arg, Node) else (type(arg), arg)) for arg in args)
        if key not in self._nodes:
            self._nodes[key] = self._new(op, args, ones & WORD, may & WORD, lo, hi)
        return self._nodes[key]

    def _new(self, op: str, args: tuple[Any, ...], ones: int, may: int, lo: int, hi: int) -> Any:
        if not may & SIGN:
            lo, hi = max(lo, ones), min(hi, may)
        if lo >= 0:
            may &= (1 << hi.bit_length()) - 1
        is_bool = op in BOOLEAN
        if not is_bool and (ones == may or lo == hi):
            return signed(ones) if ones == may else lo
        node = Node()
        node.graph, node.op, node.args = self, op, args
        node.ones, node.may, node.lo, node.hi = ones, may, lo, hi
        node.is_bool, node.power, node.id = is_bool, None, self._next()
        return node

    def _next(self) -> int:
        self._number += 1
        return self._number - 1


def signed(value: int) -> int:
    """The signed 64-bit integer of these bits."""
    value &= WORD
    return value - (1 << 64) if value & SIGN else value


def is_constant(value: Any, constant: int) -> bool:
    """Whether the value is this constant."""
    return not isinstance(value, Node) and value == constant


def same(a: Any, b: Any) -> bool:
    """Whether both are one expression or one constant."""
    if isinstance(a, Node) or isinstance(b, Node):
        return a is b
    return bool(a == b)


def known_bits(value: Any) -> tuple[int, int]:
    """Masks of the bits that are surely set, and of those that may be."""
    return (value.ones, value.may) if isinstance(value, Node) else (value & WORD, value & WORD)


def range_of(value: Any) -> tuple[int, int]:
    """Lowest and highest value."""
    return (value.lo, value.hi) if isinstance(value, Node) else (value, value)


def is_boolean(value: Any) -> bool:
    """Whether the value is a condition."""
    return value.is_bool if isinstance(value, Node) else isinstance(value, bool)


def trailing_zeros(mask: int) -> int:
    """Zeros below the lowest bit set; 64 if none is."""
    return (mask & -mask).bit_length() - 1 if mask else 64
