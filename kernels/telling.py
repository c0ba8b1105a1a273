"""What a protocol says of its steps for people to read. The protocol's words stand in its own module alone; what
draws or prints them knows no protocol."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol


class Message(NamedTuple):
    """From one participant to another; two that are equal are the same message."""

    sender: str
    receiver: str
    label: str


class Note(NamedTuple):
    """What became of the participants that it stands over."""

    over: tuple[str, ...]
    text: str


class Told(NamedTuple):
    """One step."""

    words: str
    """A sentence: who did what."""
    received: tuple[Message, ...] = ()
    """Messages that arrived with this step, sent at an earlier one or at once."""
    sent: tuple[Message, ...] = ()
    """Messages that are on their way after it."""
    lost: tuple[Message, ...] = ()
    """Messages sent and lost."""
    notes: tuple[Note, ...] = ()


class Function(NamedTuple):
    """A TLA+ function other than a sequence or a record."""

    items: tuple[tuple[Any, Any], ...]


class Set(NamedTuple):
    """A TLA+ set, in the order in which to print it."""

    elements: tuple[Any, ...]


class Teller(Protocol):
    """What the module has that puts a protocol's steps into words."""

    def participants(self, params: Any) -> tuple[str, ...]:
        """All who may take part, in the order in which to draw them."""

    def tell(self, state: Any, params: Any, action: str, instance: int, after: Any) -> Told:
        """The step from `state` to `after` that this action made."""

    def verdict(self, state: Any, params: Any, invariant: str) -> str:
        """How a state breaks an invariant: a sentence."""

    def variables(self, state: Any, params: Any) -> Any:
        """The specification's variables, as a named tuple or a mapping.

        Values are integers, booleans, None (Nil), model values (str), sequences (tuple), records (named tuple, dict),
        sets (frozenset, or Set in an order of its own) and Functions.
        """


def listed(names: Iterable[str]) -> str:
    """Names in a sentence: b1, b2 and b3; nothing if there are none."""
    *most, last = [*names] or [""]
    return f"{', '.join(most)} and {last}" if most else last


def members(names: Iterable[str]) -> str:
    """A set in print: {b1, b2}."""
    return "{" + ", ".join(names) + "}"
