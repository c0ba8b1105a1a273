"""A state's fields declare their bits once."""

from typing import Annotated, NamedTuple

from quorisk.kernels.protocols.fields import bits_by_node, blank, widths


class Sent(NamedTuple):
    there: Annotated[int, 4]
    lost: int


class State(NamedTuple):
    stored: Annotated[int, 18, 3]
    epoch: Annotated[int, 5]
    answers: Annotated[Sent, 12, 2]
    requests: Sent


def test_widths_bits_and_the_blank_state_follow_from_the_fields():
    assert widths(State) == State(18, 5, Sent(12, 12), Sent(4, 0))
    assert bits_by_node(State) == State(3, 0, Sent(2, 2), Sent(0, 0))
    assert blank(State) == State(0, 0, Sent(0, 0), Sent(0, 0))
    assert isinstance(widths(State).answers, Sent)
