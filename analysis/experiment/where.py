"""Conditions on grid points: `ack_quorum <= write_quorum`, `bookies == write_quorum + 1`.

A tiny grammar, NAME OP (NAME | NAME + INTEGER | NAME - INTEGER | literal), several of them with "or"; never `eval`.
"""

import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from quorisk.analysis.experiment.keys import INTERVAL, Key, Kind, as_toml, find_key, toml_value
from quorisk.kernels.errors import ConfigError

_ORDER: Mapping[str, Callable[..., bool]] = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
_OPERATORS: Mapping[str, Callable[..., bool]] = {"==": operator.eq, "!=": operator.ne, **_ORDER}
_GRAMMAR = re.compile(r"\s*([A-Za-z_][\w.]*)\s*(<=|>=|==|!=|<|>)\s*(\S.*?)\s*")
_OFFSET = re.compile(r"([A-Za-z_][\w.]*)\s*([+-])\s*(\d{1,9})")
_NAME = re.compile(r"(?!(?:true|false|inf|nan)$)[A-Za-z_][\w.]*")


class GridCondition(NamedTuple):
    """A comparison of a key with another key, or with a value."""

    left: str
    operator: str
    right: str | None
    """A key, or None: `value` is the right-hand side."""
    value: Any
    offset: int = 0
    """Number added to the key on the right."""

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether it holds of these values, by dotted key."""
        right = self.value if self.right is None else values[self.right]
        if self.offset:
            right += self.offset
        return _OPERATORS[self.operator](values[self.left], right)


Alternatives = tuple[GridCondition, ...]
"""Conditions, at least one of which has to hold."""


def parse(text: object, keys: Mapping[str, Key]) -> Alternatives:
    """Returns the conditions in `text`, at least one of which has to hold. Raises ConfigError."""
    parts = text.split(" or ") if isinstance(text, str) else []
    found = [match for match in map(_GRAMMAR.fullmatch, parts) if match]
    if not parts or len(found) < len(parts):
        raise ConfigError(f'grid.where = {as_toml(text)}: conditions look like "ack_quorum <= write_quorum"')
    try:
        return tuple(_condition(match[1], match[2], match[3], keys) for match in found)
    except ConfigError as error:
        raise ConfigError(f"grid.where = {as_toml(text)}: {error}") from None


def _condition(name: str, symbol: str, other: str, keys: Mapping[str, Key]) -> GridCondition:
    left = find_key(name, keys)
    kind = left.kind
    is_word = kind.type is str and kind.read_or_none(other) is not None  # acks == all, as on the command line
    if offset := _OFFSET.fullmatch(other):
        right, by = find_key(offset[1], keys), int(offset[2] + offset[3])
        condition, said = GridCondition(left.name, symbol, right.name, None, by), other
        comparable = right.kind.type is kind.type is float and not (left.timed or right.timed)
    elif _NAME.fullmatch(other) and not is_word:
        right = find_key(other, keys)
        condition, said = GridCondition(left.name, symbol, right.name, None), other
        comparable = right.kind.type is kind.type
    else:
        value = other if is_word else toml_value(other)
        said = as_toml(value)
        if left.timed and isinstance(value, str):
            value = left.read(value)
        if (comparable := _may_equal(kind, value)) and not _is_number(kind):
            value = left.read(value)  # as in the file: acks == 1, eligible.leader.replicas.version == 1
        condition = GridCondition(left.name, symbol, None, value)
    if not comparable:
        raise ConfigError(f"{left.name} is {kind.allowed}; {said} is not")
    if symbol in _ORDER and not _is_number(kind):
        raise ConfigError(f"{left.name} is {kind.allowed}; compare with == or !=")
    return condition


def _is_number(kind: Kind) -> bool:
    """Whether its values are the numbers that the file says: of an interval they are rates."""
    return kind.type is float and kind is not INTERVAL


def _may_equal(kind: Kind, value: object) -> bool:
    """Whether a value can be compared: any number with a number, else only the key's allowed values."""
    if _is_number(kind):
        return isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    return kind.read_or_none(value) is not None
