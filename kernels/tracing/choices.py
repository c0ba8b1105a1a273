"""Rules of `folding` for lanes, in which both arms of a choice are computed and a condition costs no branch.

An operation on a choice between constants becomes one on the constants, and choices between few values become one
condition: things that a configuration never does are contradictions then, and fold.
"""

from typing import Any, NamedTuple

from quorisk.kernels.tracing.expressions import Node, is_constant, known_bits, same, signed


class Arms(NamedTuple):
    """A choice between two constants."""

    chosen: Any
    """Condition of the choice; None for a constant, which is both arms."""
    yes: int
    no: int


def arms_of(value: Any) -> Arms | None:
    """The value as a choice between constants; None if it is none."""
    if not isinstance(value, Node):
        return Arms(None, value, value)
    if value.op == "select" and not isinstance(value.args[1], Node) and not isinstance(value.args[2], Node):
        return Arms(*value.args)
    return Arms(value.args[0], 1, 0) if value.op == "int" else None


def of_constants(op: str, a: Any, b: Any) -> Any:
    """The operation on choices between constants as such a choice; None if they are none, or more than two values."""
    first, second = arms_of(a), arms_of(b)
    if op == "and":
        first, second = first or _bit(a, second), second or _bit(b, first)
    make = (a if isinstance(a, Node) else b).graph.make
    if op == "and":
        for arms, beside, other in ((first, second, b), (second, first, a)):
            if arms and arms.chosen is not None and not beside and arms.no == 0 and arms.yes != 1:
                return make("select", arms.chosen, make("and", other, arms.yes), 0)
    if first is None or second is None or op == "div":  # an arm that is not chosen may be 0
        return None
    chosen = first.chosen if second.chosen is None else second.chosen
    if first.chosen is None or first.chosen is chosen:
        return make("select", chosen, make(op, first.yes, second.yes), make(op, first.no, second.no))
    if op == "and" and second.chosen is not None and 0 in first[1:] and 0 in second[1:]:
        conditions = (make("unequal", make("select", *arms), 0) for arms in (first, second))
        return make("select", make("and", *conditions), (first.yes or first.no) & (second.yes or second.no), 0)
    return None


def _bit(value: Node, beside: Arms | None) -> Arms | None:
    """A value of the lowest bit alone as a choice, if the other operand is a choice."""
    if beside is None or beside.chosen is None or value.may != 1:
        return None
    return Arms(value.graph.make("unequal", value, 0), 1, 0)


def of_fewer_arms(chosen: Node, yes: Any, no: Any) -> Any:
    """Merges a choice with an arm that is a choice and shares the other arm; returns None if no arm is."""
    make = chosen.graph.make
    for condition, here, other in ((chosen, yes, no), (make("not", chosen), no, yes)):
        if isinstance(other, Node) and other.op == "select":
            further, *arms = other.args
            if same(here, arms[1]):
                further, arms = make("not", further), arms[::-1]
            if same(here, arms[0]):
                neither = make("and", make("not", condition), make("not", further))
                if is_constant(here, 0):
                    return make("select", neither, arms[1], 0)
                return make("select", make("or", condition, further), here, arms[1])
    return None


def compared(op: str, a: Any, b: Any) -> Any:
    """Simplifies the comparison of `a` with a constant: of a choice that has a constant arm by comparing its arms, of a
    sum with a constant or the like by comparing the value alone. Returns None if `a` is neither."""
    if isinstance(b, Node) or not isinstance(a, Node) or not a.graph.lanes:
        return None
    make = a.graph.make
    if a.op == "select" and not (isinstance(a.args[1], Node) and isinstance(a.args[2], Node)):
        chosen, yes, no = a.args
        return make("select", chosen, make(op, yes, b), make(op, no, b))
    if op != "less" and a.op in ("add", "xor", "or") and not isinstance(a.args[1], Node):
        value, other = a.args
        if a.op != "or" or known_bits(value)[1] & other == 0:
            return make(op, value, signed(b - other) if a.op == "add" else b ^ other)
    return None


def are_opposed(op: str, a: Node, b: Node) -> bool:
    """Whether a part of one of these conjunctions or disjunctions is the opposite of a part of the other."""
    joined, make = {"and": "both", "or": "either"}[op], a.graph.make
    parts = _parts(joined, b)
    opposites = (make("not", each) for each in _parts(joined, a).values())
    return any(isinstance(each, Node) and each.id in parts for each in opposites)


def _parts(joined: str, value: Node) -> dict[int, Node]:
    """Returns, by id, a boolean and, if it joins others, these as well."""
    found: dict[int, Node] = {}
    todo = [value]
    while todo:
        each = todo.pop()
        if each.id not in found:
            found[each.id] = each
            todo.extend(each.args if each.op == joined else ())
    return found
