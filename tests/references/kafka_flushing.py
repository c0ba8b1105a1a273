"""What of a replica's log is on disk in Kafka before KRaft, and how it loses the rest: from tests/data/tla/FLUSH.md.

A state is the interpreter's own with a flush point for each replica beside it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from quorisk.kernels.protocols.kafka.describe import NIL, SpecState
from tests.references.kafka import Values, actions, controller_update_isr, initial


class State(NamedTuple):
    """All but the disks, the flush points, and the restarts so far."""

    spec: SpecState
    flushed: tuple[int, ...]
    unclean_restarts: int = 0


def first_state(v: Values) -> State:
    return State(initial(v), (0,) * v["replicas"])


def ends(spec: SpecState) -> tuple[int, ...]:
    return tuple(map(len, spec.replicaLog))


def published_actions(s: State, v: Values) -> Iterator[State]:
    """Truncation goes to disk at once, records once they are flushed."""
    for action in actions(v).values():
        for after in action(s.spec, v):
            end = ends(after)
            yield s._replace(spec=after, flushed=end if v["flush_every_message"] else tuple(map(min, s.flushed, end)))


def replica_flushes(s: State, v: Values) -> Iterator[State]:
    for r, end in enumerate(ends(s.spec)):
        if s.flushed[r] < end:
            yield s._replace(flushed=(*s.flushed[:r], end, *s.flushed[r + 1 :]))


def controller_sees_failure(spec: SpecState, v: Values, r: int) -> Iterator[SpecState]:
    """The controller sees that the broker is gone, before it is back."""
    quorum = spec.quorumState
    leads = quorum.leader == r
    if leads or r in quorum.isr:
        isr = quorum.isr if leads and quorum.isr == {r} else quorum.isr - {r}
        yield from controller_update_isr(spec, v, NIL if leads else quorum.leader, isr)
    else:
        yield spec


def replica_restarts_unclean(s: State, v: Values) -> Iterator[State]:
    if s.unclean_restarts >= v["max_unclean_restarts"]:
        return
    for r, end in enumerate(s.flushed):
        for after in controller_sees_failure(s.spec, v, r):
            state = after.replicaState[r]
            state = state._replace(hw=min(state.hw, end), leader=NIL if state.leader == r else state.leader)
            logs = (*after.replicaLog[:r], after.replicaLog[r][:end], *after.replicaLog[r + 1 :])
            states = (*after.replicaState[:r], state, *after.replicaState[r + 1 :])
            spec = after._replace(replicaLog=logs, replicaState=states)
            yield s._replace(spec=spec, unclean_restarts=s.unclean_restarts + 1)


def successors(s: State, v: Values) -> Iterator[State]:
    for action in (published_actions, replica_flushes, replica_restarts_unclean):
        yield from action(s, v)
