"""Descriptions of a protocol's steps for people to read. A protocol's words stand only in its own module; code that
draws or prints them knows no protocol."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from quorisk.kernels.model import Parameter


class Message(NamedTuple):
    """A message from one participant to another; two that are equal are the same message."""

    sender: str
    receiver: str
    label: str


class Note(NamedTuple):
    """A remark drawn over these participants."""

    over: tuple[str, ...]
    text: str


class Told(NamedTuple):
    """The description of one step."""

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


class SpecSet(NamedTuple):
    """A TLA+ set, in the order in which to print it."""

    elements: tuple[Any, ...]


class Teller(Protocol):
    """Interface of a protocol's module that puts its steps into words."""

    def participants(self, params: Any) -> tuple[str, ...]:
        """Returns all that may take part, in the order in which to draw them."""

    def tell(self, state: Any, params: Any, action: str, instance: int, after: Any) -> Told:
        """Describes the step from `state` to `after` that this action made."""

    def verdict(self, state: Any, params: Any, invariant: str) -> str:
        """Says in a sentence how a state breaks an invariant."""

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


def words_beside(module: str) -> dict[str, Any]:
    """The contents of `words.toml` in the folder of a protocol's module, whose `__file__` is given."""
    return tomllib.loads(Path(module).with_name("words.toml").read_text("utf-8"))


def with_docs(module: str, *parameters: Parameter) -> tuple[Parameter, ...]:
    """Parameters with their descriptions in that file."""
    docs = words_beside(module)["parameters"]
    return tuple(each._replace(doc=docs[each.name]) for each in parameters)
