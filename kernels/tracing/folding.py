"""The rules that simplify expressions as they are made."""

from collections.abc import Callable
from typing import Any

from quorisk.kernels.ops import bits, deposit
from quorisk.kernels.tracing import choices
from quorisk.kernels.tracing.expressions import (
    HIGHEST,
    LOWEST,
    SIGN,
    WORD,
    Graph,
    Node,
    is_boolean,
    is_constant,
    known_bits,
    range_of,
    same,
    signed,
    trailing_zeros,
)


def new_graph(lanes: bool = False) -> Graph:
    """An empty graph of expressions for lanes, or not for lanes."""
    return Graph(make, lanes)


def condition(value: Any) -> Any:
    """Whether the value is not 0, as a boolean."""
    return value if is_boolean(value) else make("unequal", value, 0)


def as_integer(value: Any) -> Any:
    """A boolean as 0 or 1; integers as they are."""
    if not isinstance(value, Node):
        return int(value)
    if not value.is_bool:
        return value
    if value.graph.lanes and value.op == "unequal" and is_constant(value.args[1], 0) and value.args[0].may == 1:
        return value.args[0]
    return value.graph.node("int", (value,), 0, 1, 0, 1)


def negation(value: Any) -> Any:
    """The opposite of a boolean."""
    if isinstance(value, bool):
        return not value
    if value.op in ("equal", "unequal"):
        return make("unequal" if value.op == "equal" else "equal", *value.args)
    return value.args[0] if value.op == "not" else value.graph.node("not", (value,), 0, 1, 0, 1)


def select(chosen: Any, yes: Any, no: Any) -> Any:
    """`yes` where the boolean `chosen` holds, else `no`; tuples field by field."""
    if isinstance(chosen, bool):
        return yes if chosen else no
    if isinstance(yes, tuple):
        return type(yes)(*(select(chosen, a, b) for a, b in zip(yes, no, strict=True)))
    if is_boolean(yes) and is_boolean(no):
        return make("or", make("and", chosen, yes), make("and", negation(chosen), no))
    return _select(chosen, as_integer(yes), as_integer(no))


def make(op: str, *args: Any) -> Any:
    """The expression or the constant `op(*args)`, as simple as it gets."""
    if op in _OTHERS:
        return _OTHERS[op](*args)
    a, b = args
    if not isinstance(a, Node) and not isinstance(b, Node):
        folded = _CONSTANT[op](a, b)
        return folded if isinstance(folded, bool) else signed(folded)
    if op in ("and", "or", "xor") and is_boolean(a) and is_boolean(b):
        return _boolean(op, a, b)
    a, b = as_integer(a), as_integer(b)
    if (a if isinstance(a, Node) else b).graph.lanes and (found := choices.of_constants(op, a, b)) is not None:
        return found
    if op in _COMMUTATIVE and (not isinstance(a, Node) or (isinstance(b, Node) and b.id < a.id)):
        a, b = b, a
    return _MAKERS[op](a, b)


def _boolean(op: str, a: Any, b: Any) -> Any:
    if isinstance(a, bool):
        a, b = b, a
    if isinstance(b, bool):
        return {"and": a if b else False, "or": True if b else a, "xor": negation(a) if b else a}[op]
    if a is b:
        return False if op == "xor" else a
    if negation(a) is b:
        return op != "and"
    if a.graph.lanes and op != "xor" and choices.are_opposed(op, a, b):
        return op == "or"
    if b.id < a.id:
        a, b = b, a
    return a.graph.node({"and": "both", "or": "either", "xor": "differ"}[op], (a, b), 0, 1, 0, 1)


def _select(chosen: Node, yes: Any, no: Any) -> Any:
    if chosen.op == "not":
        chosen, yes, no = chosen.args[0], no, yes
    if isinstance(yes, Node) and yes.op == "select" and yes.args[0] is chosen:
        yes = yes.args[1]
    if isinstance(no, Node) and no.op == "select" and no.args[0] is chosen:
        no = no.args[2]
    if same(yes, no):
        return yes
    if chosen.graph.lanes and (found := choices.of_fewer_arms(chosen, yes, no)) is not None:
        return found
    if is_constant(yes, 1) and is_constant(no, 0):
        return as_integer(chosen)
    if is_constant(yes, 0) and is_constant(no, 1):
        return as_integer(negation(chosen))
    (ones, may), (other_ones, other_may) = known_bits(yes), known_bits(no)
    (lo, hi), (other_lo, other_hi) = range_of(yes), range_of(no)
    known = ones & other_ones, may | other_may, min(lo, other_lo), max(hi, other_hi)
    return chosen.graph.node("select", (chosen, yes, no), *known)


def _when(chosen: Any, guarded: Any) -> Any:
    """Makes a `select` between `guarded` and 0; machine code may skip `guarded`."""
    selected = select(condition(chosen), guarded, 0)
    if isinstance(selected, Node) and selected.op == "select" and is_constant(selected.args[2], 0):
        known = selected.ones, selected.may, selected.lo, selected.hi
        return selected.graph.node("when", selected.args[:2], *known)
    return selected


def _popcount(a: Any) -> Any:
    a = as_integer(a)
    if not isinstance(a, Node):
        return (a & WORD).bit_count()
    if a.graph.lanes and a.op == "select" and (arms := choices.arms_of(a)):
        return select(arms[0], _popcount(arms[1]), _popcount(arms[2]))
    if a.may.bit_count() == 1:
        return make("shr", a, trailing_zeros(a.may)) if a.may != SIGN else as_integer(a < 0)
    return a.graph.node("popcount", (a,), 0, 127, a.ones.bit_count(), a.may.bit_count())


def _taken(amount: Any, most: int) -> Any:
    """The amount, taken to be from 0 to `most`."""
    if not isinstance(amount, Node):
        return amount
    return amount.graph.node("taken", (amount, most), amount.ones, amount.may, max(0, amount.lo), most)


def _deposit(spread: Any, mask: Any) -> Any:
    """`ops.deposit`."""
    spread, mask = as_integer(spread), as_integer(mask)
    _, may = known_bits(mask)
    if not isinstance(spread, Node) and not isinstance(mask, Node):
        return signed(deposit(spread & WORD, mask & WORD))
    if may == 0:
        return 0
    if isinstance(mask, Node) and mask.graph.lanes and mask.op == "select" and (arms := choices.arms_of(mask)):
        return select(arms[0], _deposit(spread, arms[1]), _deposit(spread, arms[2]))
    if not isinstance(mask, Node) and mask & mask + 1 == 0:
        return make("and", spread, mask)
    if may.bit_count() == 1:
        return make("and", make("shl", make("and", spread, 1), trailing_zeros(may)), mask)
    graph = next(x.graph for x in (spread, mask) if isinstance(x, Node))
    return graph.node("deposit", (spread, mask), 0, may, 0 if may < SIGN else LOWEST, may & HIGHEST)


def _and(a: Node, b: Any) -> Any:
    (a_ones, a_may), (b_ones, b_may) = known_bits(a), known_bits(b)
    if a_may & b_may == 0:
        return 0
    if a is b or a_may & ~b_ones == 0:
        return a
    if b_may & ~a_ones == 0:
        return b
    if not isinstance(b, Node) and a.op == "and" and not isinstance(a.args[1], Node):
        return make("and", a.args[0], a.args[1] & b)
    highest = [hi for lo, hi in (range_of(a), range_of(b)) if lo >= 0]
    lo, hi = (0, min(highest)) if highest else (LOWEST, HIGHEST)
    return a.graph.node("and", (a, b), a_ones & b_ones, a_may & b_may, lo, hi)


def _below_power(a: Any, b: Any) -> tuple[int, int]:
    """The range of a bitwise operation on both."""
    (a_lo, a_hi), (b_lo, b_hi) = range_of(a), range_of(b)
    if a_lo < 0 or b_lo < 0:
        return LOWEST, HIGHEST
    return 0, (1 << max(a_hi.bit_length(), b_hi.bit_length())) - 1


def _or(a: Node, b: Any) -> Any:
    (a_ones, a_may), (b_ones, b_may) = known_bits(a), known_bits(b)
    if a is b or is_constant(b, 0):
        return a
    lo, hi = _below_power(a, b)
    if lo == 0:
        lo = max(range_of(a)[0], range_of(b)[0])
    return a.graph.node("or", (a, b), a_ones | b_ones, a_may | b_may, lo, hi)


def _xor(a: Node, b: Any) -> Any:
    (a_ones, a_may), (b_ones, b_may) = known_bits(a), known_bits(b)
    if a is b or is_constant(b, 0):
        return 0 if a is b else a
    if not isinstance(b, Node) and a.op == "xor" and not isinstance(a.args[1], Node):
        return make("xor", a.args[0], a.args[1] ^ b)
    lo, hi = (-1 - a.hi, -1 - a.lo) if is_constant(b, -1) else _below_power(a, b)
    ones, may = (a_ones & ~b_may) | (b_ones & ~a_may), (a_may | b_may) & ~(a_ones & b_ones)
    return a.graph.node("xor", (a, b), ones, may, lo, hi)


def _multiples_of(power: int) -> int:
    """The bits that multiples of 2 ** power can have."""
    return WORD & ~((1 << power) - 1)


def _add(a: Node, b: Any) -> Any:
    (_, a_may), (_, b_may) = known_bits(a), known_bits(b)
    if is_constant(b, 0):
        return a
    if not isinstance(b, Node) and a.op == "add" and not isinstance(a.args[1], Node):
        return make("add", a.args[0], signed(a.args[1] + b))
    if a_may & b_may == 0:
        return make("or", a, b)
    lo, hi = range_of(a)[0] + range_of(b)[0], range_of(a)[1] + range_of(b)[1]
    if lo < LOWEST or hi > HIGHEST:
        lo, hi = LOWEST, HIGHEST
    may = _multiples_of(min(trailing_zeros(a_may), trailing_zeros(b_may)))
    return a.graph.node("add", (a, b), 0, may, lo, hi)


def _sub(a: Any, b: Any) -> Any:
    if not isinstance(b, Node):
        return make("add", a, signed(-b))
    if a is b:
        return 0
    lo, hi = range_of(a)[0] - b.hi, range_of(a)[1] - b.lo
    if lo < LOWEST or hi > HIGHEST:
        lo, hi = LOWEST, HIGHEST
    may = _multiples_of(min(trailing_zeros(known_bits(a)[1]), trailing_zeros(b.may)))
    return b.graph.node("sub", (a, b), 0, may, lo, hi)


def _mul(a: Node, b: Any) -> Any:
    if is_constant(b, 0) or is_constant(b, 1):
        return a if b else 0
    if not isinstance(b, Node):
        if b > 0 and b & (b - 1) == 0:
            return make("shl", a, b.bit_length() - 1)
        if a.may == 1:
            return select(condition(a), b, 0)
        if a.op == "select" and not isinstance(a.args[1], Node) and not isinstance(a.args[2], Node):
            return select(a.args[0], signed(a.args[1] * b), signed(a.args[2] * b))
    corners = [x * y for x in range_of(a) for y in range_of(b)]
    lo, hi = min(corners), max(corners)
    wraps = lo < LOWEST or hi > HIGHEST
    (_, a_may), (_, b_may) = known_bits(a), known_bits(b)
    may = _multiples_of(min(64, trailing_zeros(a_may) + trailing_zeros(b_may)))
    if lo >= 0 and not wraps:
        may = _product_bits(a_may, b_may, may)
    return a.graph.node("mul", (a, b), 0, may, *((LOWEST, HIGHEST) if wraps else (lo, hi)))


def _product_bits(a_may: int, b_may: int, otherwise: int) -> int:
    """The bits that a product can have: copies of `a` side by side, if they do not overlap."""
    copies = 0
    for place in bits(b_may):
        if copies & (a_may << place):
            return otherwise
        copies |= a_may << place
    return copies if copies < SIGN else otherwise


def _shl(a: Any, b: Any) -> Any:
    if isinstance(b, Node) and is_constant(a, 1):
        if b.power is not None:
            return b.power
        for place, rest in (b.args, b.args[::-1]) if b.op in ("add", "or") else ():
            is_sum = b.op == "add" or known_bits(place)[1] & known_bits(rest)[1] == 0
            if is_sum and isinstance(place, Node) and place.power is not None and place.power.lo >= 0:
                if range_of(rest)[0] >= 0:
                    return make("shl", place.power, rest)
                if not isinstance(rest, Node):
                    return make("shr", place.power, -rest)
    return _shift("shl", a, b)


def _shift(op: str, a: Any, b: Any) -> Any:
    if is_constant(b, 0) or is_constant(a, 0):
        return a
    if not isinstance(b, Node):
        if not 0 <= b < 64:
            return 0
        if a.op == op and not isinstance(a.args[1], Node) and a.args[1] + b < 64:
            return make(op, a.args[0], a.args[1] + b)
    return _shifted(op, a, b)


def _shifted(op: str, a: Any, b: Any) -> Any:
    """A shift, whose known bits and range hold for all amounts that it can have."""
    (a_ones, a_may), (b_ones, b_may) = known_bits(a), known_bits(b)
    low, high = range_of(b)
    amounts = [n for n in range(max(0, low), min(63, high) + 1) if n & ~b_may == 0 and b_ones & ~n & 63 == 0] or [0]
    ones, may, lo, hi = WORD, 0, HIGHEST, LOWEST
    for n in amounts:
        if op == "shl":
            first, last = (value << n for value in range_of(a))
            if first < LOWEST or last > HIGHEST:
                first, last = LOWEST, HIGHEST
            ones, may = ones & (a_ones << n), may | (a_may << n & WORD)
        else:
            first, last = (value >> n for value in range_of(a))
            ones, may = ones & (signed(a_ones) >> n & WORD), may | (signed(a_may) >> n & WORD)
        lo, hi = min(lo, first), max(hi, last)
    graph = next(x.graph for x in (a, b) if isinstance(x, Node))
    return graph.node(op, (a, b), ones, may, lo, hi)


def _div(a: Any, b: Any) -> Any:
    if isinstance(b, Node):
        known = (0, range_of(a)[1]) if range_of(a)[0] >= 0 and b.lo >= 0 else (LOWEST, HIGHEST)
        return b.graph.node("div", (a, b), 0, WORD, *known)
    if b <= 0:
        raise TypeError("a division by a constant that is not positive")
    if b & (b - 1) == 0:
        return make("shr", a, b.bit_length() - 1)
    return a.graph.node("div", (a, b), 0, WORD, a.lo // b, a.hi // b)


def _less(a: Any, b: Any) -> Any:
    if range_of(a)[1] < range_of(b)[0]:
        return True
    if range_of(a)[0] >= range_of(b)[1]:
        return False
    if (found := choices.compared("less", a, b)) is not None:
        return found
    graph = next(x.graph for x in (a, b) if isinstance(x, Node))
    return graph.node("less", (a, b), 0, 1, 0, 1)


def _equal(op: str, a: Node, b: Any) -> Any:
    (a_ones, a_may), (b_ones, b_may) = known_bits(a), known_bits(b)
    if a is b:
        return op == "equal"
    if range_of(a)[1] < range_of(b)[0] or range_of(b)[1] < range_of(a)[0] or a_ones & ~b_may or b_ones & ~a_may:
        return op != "equal"
    if (found := choices.compared(op, a, b)) is not None:
        return found
    if not isinstance(b, Node):
        if a.op == "int":
            return a.args[0] if (b == 1) == (op == "equal") else negation(a.args[0])
        if a_may == b and a_may & (a_may - 1) == 0:  # of one bit: equal to it is unequal to 0
            return make("unequal" if op == "equal" else "equal", a, 0)
    return a.graph.node(op, (a, b), 0, 1, 0, 1)


_COMMUTATIVE = frozenset({"and", "or", "xor", "add", "mul", "equal", "unequal"})
_MAKERS: dict[str, Callable[[Any, Any], Any]] = {
    "and": _and,
    "or": _or,
    "xor": _xor,
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "shl": _shl,
    "shr": lambda a, b: _shift("shr", a, b),
    "div": _div,
    "less": _less,
    "equal": lambda a, b: _equal("equal", a, b),
    "unequal": lambda a, b: _equal("unequal", a, b),
}
_CONSTANT: dict[str, Callable[[Any, Any], Any]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "shl": lambda a, b: a << b if 0 <= b < 64 else 0,
    "shr": lambda a, b: a >> b if 0 <= b < 64 else 0,
    "div": lambda a, b: a // b,
    "less": lambda a, b: a < b,
    "equal": lambda a, b: a == b,
    "unequal": lambda a, b: a != b,
}
_OTHERS: dict[str, Callable[..., Any]] = {
    "select": lambda chosen, yes, no: select(condition(chosen), yes, no),
    "when": _when,
    "once": lambda value: value.graph.once.add(value.id),
    "not": negation,
    "both": lambda a, b: make("and", a, b),
    "either": lambda a, b: make("or", a, b),
    "differ": lambda a, b: make("xor", a, b),
    "int": as_integer,
    "popcount": _popcount,
    "deposit": _deposit,
    "taken": _taken,
}
