"""What became of acknowledged messages: all that can be read again is held against all that was acknowledged."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tests.reality.load import number_of, payload

READ, UNANSWERED = "read", "unanswered"
"""How a trial may end: everything that the servers say they have was read, or they did not give it within a minute."""


class Reading(NamedTuple):
    """What a client could read."""

    messages: Sequence[bytes]
    complete: bool
    """Whether that is everything that the servers say they have."""


def judge(
    seed: int,
    acknowledged: Mapping[int, float],
    read: Reading,
    instant: float,
    on_disk: Callable[[], set[int]] | None = None,
) -> dict[str, Any]:
    """The outcome of a trial.

    Args:
        seed: the trial's, which says what each message was.
        acknowledged: when each message was.
        read: what a client can read within a minute of the power's return.
        instant: the fault's, from which the age of what is lost is counted.
        on_disk: finds the messages that some disk has. It is asked if not everything could be read.

    Returns:
        `acked` messages, how many of them are `lost` (a client cannot read them) or `differ` from what was written,
        and the age of the oldest such one in seconds, 0 if there is none; of those lost, those `on_no_disk`, if not
        everything could be read. A message that is there twice is there.
    """
    kept: dict[int, set[bytes]] = {}
    for message in read.messages:
        kept.setdefault(number_of(message), set()).add(message)
    lost = [number for number in acknowledged if number not in kept]
    differ = [number for number in acknowledged if number in kept and kept[number] != {payload(seed, number)}]
    ages = [instant - acknowledged[number] for number in lost + differ]
    return {
        "outcome": READ if read.complete else UNANSWERED,
        "acked": len(acknowledged),
        "lost": len(lost),
        "differ": len(differ),
        "oldest_lost_s": round(max(0.0, *ages), 3) if ages else 0.0,
        "on_no_disk": None if read.complete or on_disk is None else len(set(lost) - on_disk()),
    }
