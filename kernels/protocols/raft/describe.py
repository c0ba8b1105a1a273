"""A state in the specification's own variables: for traces, and to compare it with other programs' states."""

from collections.abc import Iterator
from typing import Any

from quorisk.kernels.ops import bits
from quorisk.kernels.protocols.raft import spec
from quorisk.kernels.protocols.raft.bags import TAKEN, message
from quorisk.kernels.protocols.raft.layout import (
    ROOM,
    TERM,
    AppendRequest,
    AppendResponse,
    State,
    VoteRequest,
    VoteResponse,
    entry_at,
)

ROLES = (spec.FOLLOWER, spec.CANDIDATE, spec.LEADER)


def spec_state(state: State, params: Any) -> spec.SpecState:
    """The state that the specification would have."""
    servers = range(params.servers)

    def pairs(field: Any) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(field[i, j] for j in servers) for i in servers)

    return spec.SpecState(
        messages=frozenset(messages(state)),
        currentTerm=tuple(state.term[i] for i in servers),
        state=tuple(ROLES[state.role[i]] for i in servers),
        votedFor=tuple(state.voted_for[i] - 1 if state.voted_for[i] else None for i in servers),
        log=tuple(log_of(state, i) for i in servers),
        commitIndex=tuple(state.commit_index[i] for i in servers),
        fsyncIndex=tuple(state.fsync_index[i] for i in servers),
        votesGranted=tuple(frozenset(bits(state.votes_granted[i])) for i in servers),
        nextIndex=pairs(state.next_index),
        matchIndex=pairs(state.match_index),
        acked=tuple(bool(state.acked[v]) if state.requested[v] else None for v in range(params.values)),
        electionCtr=state.elections,
        restartCtr=state.restarts,
        crashCtr=state.crashes,
        lostCtr=state.disk_losses,
        outageCtr=state.outages,
        learner=frozenset(bits(state.learners.words[0])),
    )


def _entry(word: int) -> spec.Entry:
    return spec.Entry(word & TERM, word >> 3)


def log_of(state: State, i: int) -> spec.Log:
    """A server's log."""
    return tuple(_entry(entry_at(state.log[i], index)) for index in range(1, state.length[i] + 1))


def messages(state: State) -> Iterator[tuple[spec.Message, int]]:
    """The bag: each message, and how often it is on its way."""
    for kind, bag in zip(ROOM, state.messages, strict=True):
        for slot in bag.numbers:
            if slot:
                yield spec_message(message(kind, slot)), 0 if slot & TAKEN else 1


def spec_message(m: Any) -> spec.Message:
    """A message as the specification has it."""
    match m:
        case VoteRequest():
            return spec.RequestVoteRequest(m.term, m.last_log_term, m.last_log_index, m.source, m.dest)
        case VoteResponse():
            return spec.RequestVoteResponse(m.term, bool(m.vote_granted), m.source, m.dest)
        case AppendRequest():
            entries = (_entry(m.entry),) if m.entry else ()
            before = (m.term, m.prev_log_index, m.prev_log_term)
            return spec.AppendEntriesRequest(*before, entries, m.commit_index, m.source, m.dest)
        case AppendResponse():
            return spec.AppendEntriesResponse(m.term, bool(m.success), m.match_index, m.source, m.dest)
    raise TypeError(m)
