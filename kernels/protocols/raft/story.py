"""The story of a Raft group, in words: servers are n1, n2, ..., values A, B, ...

Messages of a step follow from the difference between two bags. Notes over leaders tell what clients see.
"""

from collections.abc import Iterator
from typing import Any

from quorisk.kernels.protocols.raft import MODEL, spec
from quorisk.kernels.protocols.raft.describe import spec_state
from quorisk.kernels.protocols.raft.election import panics
from quorisk.kernels.protocols.raft.layout import State
from quorisk.kernels.telling import Message, Note, Told, listed, words_beside

WORDS = words_beside(__file__)["steps"]
"""Sentences on steps by action, with fields in braces."""
_ACTIONS = {action.name: action for action in MODEL.actions}
_DOWN = ("restart", "crash", "disk_is_lost", "cluster_loses_power")


def participants(params: Any) -> tuple[str, ...]:
    """The servers."""
    return tuple(map(_server, range(params.servers)))


def tell(state: State, params: Any, action: str, instance: int, after: State) -> Told:
    """The step from `state` to `after` that this action made."""
    before, then = spec_state(state, params), spec_state(after, params)
    was, now = _on_their_way(before), _on_their_way(then)
    notes = tuple(_notes(before, then, panics(state, params), panics(after, params)))
    if action in _DOWN:
        what_failed = WORDS[action].format(one=_server(instance))
        over = participants(params) if action == "cluster_loses_power" else (_server(instance),)
        return Told(what_failed, notes=(Note(over, what_failed), *notes))
    taken = sorted(was - now, key=repr)
    would_send = _ACTIONS[action].apply(state, params, instance, 0)
    lost = sorted(_on_their_way(spec_state(would_send, params)) - now - was, key=repr)
    indices = getattr(_ACTIONS[action].enabled, "unpacked", lambda i: (i,))(instance)
    one, other = (taken[0].mdest, taken[0].msource) if taken else (indices[0], indices[-1])
    if action == "update_term":
        one = next(i for i, term in enumerate(then.currentTerm) if term != before.currentTerm[i])
    return Told(
        WORDS[action].format(one=_server(one), other=_server(other), value=value_name(other)),
        received=tuple(map(_message, taken)),
        sent=tuple(map(_message, sorted(now - was, key=repr))),
        lost=tuple(map(_message, lost)),
        notes=notes,
    )


def verdict(state: State, params: Any, invariant: str) -> str:
    """Returns a sentence on how a state breaks an invariant."""
    s = spec_state(state, params)
    acked = [v for v, is_acked in enumerate(s.acked) if is_acked]
    if invariant == "AckedValuesSurvive":
        held = {entry.value for log in s.log for entry in log}
        return f"{_acknowledged([v for v in acked if v not in held])}, and in no server's log."
    if invariant == "LeaderHasAllAckedValues":
        newest = [i for i, role in enumerate(s.state) if role == spec.LEADER and s.currentTerm[i] == max(s.currentTerm)]
        lacking = {i: [v for v in acked if v not in {entry.value for entry in s.log[i]}] for i in newest}
        leader = next(i for i in newest if lacking[i])
        return f"{_acknowledged(lacking[leader])}, and not in the log of {_server(leader)}, which leads now."
    logs = (f"{_server(i)}: {_log(log)}, committed {s.commitIndex[i]}" for i, log in enumerate(s.log))
    if invariant == "NoLogDivergence":
        return f"Logs differ where both are committed: {'; '.join(logs)}."
    return f"What a leader has committed is not on a majority: {'; '.join(logs)}."


variables = spec_state
"""The specification's variables."""


def _server(i: int) -> str:
    return f"n{i + 1}"


def value_name(v: int) -> str:
    """A value in words."""
    return "ABCDEFGH"[v]


def _acknowledged(values: list[int]) -> str:
    return f"{listed(map(value_name, values))} {'is' if len(values) == 1 else 'are'} acknowledged"


def _log(log: spec.Log) -> str:
    return ", ".join(f"{value_name(entry.value)} (term {entry.term})" for entry in log) or "empty"


def _on_their_way(s: spec.SpecState) -> set[spec.Message]:
    return {m for m, count in s.messages if count}


def _message(m: spec.Message) -> Message:
    return Message(_server(m.msource), _server(m.mdest), _label(m))


def _label(m: spec.Message) -> str:
    match m:
        case spec.RequestVoteRequest():
            log = f"ends at {m.mlastLogIndex} of term {m.mlastLogTerm}" if m.mlastLogIndex else "is empty"
            return f"term {m.mterm}: vote for me, my log {log}"
        case spec.RequestVoteResponse():
            return f"term {m.mterm}: {'my vote' if m.mvoteGranted else 'not my vote'}"
        case spec.AppendEntriesRequest():
            news = f"{_log(m.mentries)} after {m.mprevLogIndex}" if m.mentries else "nothing new"
            return f"term {m.mterm}: {news}, committed {m.mcommitIndex}"
    return f"term {m.mterm}: " + (f"have all up to {m.mmatchIndex}" if m.msuccess else "refused")


def _notes(before: spec.SpecState, then: spec.SpecState, panicked: int, panicking: int) -> Iterator[Note]:
    acknowledged = [v for v, acked in enumerate(then.acked) if acked and not before.acked[v]]
    for i in range(len(then.log)):
        news = list(_news(before, then, i))
        if (panicking & ~panicked) >> i & 1:
            news.append("panics: its leader tells it to commit what it has lost")
        if then.commitIndex[i] > before.commitIndex[i] and then.state[i] == spec.LEADER and acknowledged:
            on_disk = {entry.value for log, end in zip(then.log, then.fsyncIndex, strict=True) for entry in log[:end]}
            where = "" if on_disk.intersection(acknowledged) else ", on no disk yet"
            news.append(f"acknowledges {listed(map(value_name, acknowledged))}{where}")
        yield from (Note((_server(i),), text) for text in news)


def _news(before: spec.SpecState, then: spec.SpecState, i: int) -> Iterator[str]:
    """Yields the changes of a server."""
    was, now = before.log[i], then.log[i]
    if then.currentTerm[i] > before.currentTerm[i]:
        yield f"term {then.currentTerm[i]}"
    if then.state[i] == spec.LEADER != before.state[i]:
        yield f"leads in term {then.currentTerm[i]}"
    gone = was[len(now) :] if now == was[: len(now)] else tuple(entry for entry in was if entry not in now)
    if gone:
        yield f"loses {_log(gone)}" + (", not synced yet" if now == was[: before.fsyncIndex[i]] else "")
    if set(now) - set(was):
        yield f"log: {_log(now)}"
    if then.votesGranted[i] - before.votesGranted[i]:
        yield f"has the votes of {listed(map(_server, sorted(then.votesGranted[i])))}"
    if then.fsyncIndex[i] > before.fsyncIndex[i]:
        yield f"on disk up to {then.fsyncIndex[i]}"
    if i in then.learner - before.learner:
        yield "learns before it votes again"
    if i in before.learner - then.learner:
        yield "is a voter"
