"""What of a broker's log is on disk: written from tests/data/tla/FLUSH.md.

Every action of the interpreter goes on as it is; here stands what it leaves on the disks.
"""

from collections.abc import Callable
from functools import wraps

from quorisk.kernels.protocols.kraft.spec import SpecState
from tests.references.kraft.state import Successors, Values, brokers, leo_of, put


def logs_on_disk(s: SpecState, v: Values) -> SpecState:
    """Truncation goes to disk at once, records once they are flushed."""
    ends = tuple(data.leo for data in s.partition_data)
    flushed = ends if v["flush_every_message"] else tuple(map(min, s.partition_flushed, ends))
    return s if flushed == s.partition_flushed else s._replace(partition_flushed=flushed)


def on_disk(action: Callable[[SpecState, Values], Successors]) -> Callable[[SpecState, Values], Successors]:
    """The action, and what it leaves on the disks."""

    @wraps(action)
    def with_disks(s: SpecState, v: Values) -> Successors:
        return (logs_on_disk(after, v) for after in action(s, v))

    return with_disks


def broker_flushes(s: SpecState, v: Values) -> Successors:
    for b in brokers(v):
        if s.partition_flushed[b - 1] < leo_of(s, b):
            yield s._replace(partition_flushed=put(s.partition_flushed, b, leo_of(s, b)))
