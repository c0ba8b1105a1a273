"""The specification's own variables, as `describe` makes them of a state. Servers and values are counted from 0."""

from typing import NamedTuple

FOLLOWER, CANDIDATE, LEADER = "Follower", "Candidate", "Leader"


class Entry(NamedTuple):
    """An entry of a log."""

    term: int
    value: int


Log = tuple[Entry, ...]


class RequestVoteRequest(NamedTuple):
    """RequestVoteRequest."""

    mterm: int
    mlastLogTerm: int
    mlastLogIndex: int
    msource: int
    mdest: int
    mtype: str = "RequestVoteRequest"


class RequestVoteResponse(NamedTuple):
    """RequestVoteResponse."""

    mterm: int
    mvoteGranted: bool
    msource: int
    mdest: int
    mtype: str = "RequestVoteResponse"


class AppendEntriesRequest(NamedTuple):
    """AppendEntriesRequest."""

    mterm: int
    mprevLogIndex: int
    mprevLogTerm: int
    mentries: Log
    mcommitIndex: int
    msource: int
    mdest: int
    mtype: str = "AppendEntriesRequest"


class AppendEntriesResponse(NamedTuple):
    """AppendEntriesResponse."""

    mterm: int
    msuccess: bool
    mmatchIndex: int
    msource: int
    mdest: int
    mtype: str = "AppendEntriesResponse"


Message = RequestVoteRequest | RequestVoteResponse | AppendEntriesRequest | AppendEntriesResponse


class SpecState(NamedTuple):
    """The variables of RaftFaults.tla; functions of servers are tuples."""

    messages: frozenset[tuple[Message, int]]  # the bag: each message with how often it is on its way, 0 or 1
    currentTerm: tuple[int, ...]
    state: tuple[str, ...]
    votedFor: tuple[int | None, ...]
    log: tuple[Log, ...]
    commitIndex: tuple[int, ...]
    fsyncIndex: tuple[int, ...]
    votesGranted: tuple[frozenset[int], ...]
    nextIndex: tuple[tuple[int, ...], ...]
    matchIndex: tuple[tuple[int, ...], ...]
    acked: tuple[bool | None, ...]
    electionCtr: int
    restartCtr: int
    crashCtr: int
    lostCtr: int
    outageCtr: int
    learner: frozenset[int]
