"""The state of the Raft model: the specification's variables, servers counted from 0.

A log is a word of entries, the first one lowest. An entry is its term and its value, and 0 beyond the log's end. For
messages there are four bags, one for each kind (see `bags`).
"""

from typing import Annotated, NamedTuple

from quorisk.kernels.ops import where
from quorisk.kernels.protocols.fields import blank, total_bits, widths
from quorisk.kernels.protocols.instances import Things
from quorisk.kernels.protocols.packed import Pairs, Rows, Set

MAX_SERVERS, MAX_VALUES, MAX_ELECTIONS = 6, 4, 6
FOLLOWER, CANDIDATE, LEADER = range(3)
SERVERS, VALUES = Things(MAX_SERVERS, "servers"), Things(MAX_VALUES, "values")
ENTRY_BITS = 5
TERM = 0b111
"""Mask of an entry's term; the two bits above it hold the entry's value."""

Server = Term = Index = Counter = Annotated[int, 3]
Entry = Annotated[int, ENTRY_BITS]
Flag = Annotated[int, 1]


class VoteRequest(NamedTuple):
    """RequestVoteRequest."""

    dest: Server
    source: Server
    term: Term
    last_log_term: Term
    last_log_index: Index


class VoteResponse(NamedTuple):
    """RequestVoteResponse."""

    dest: Server
    source: Server
    term: Term
    vote_granted: Flag


class AppendRequest(NamedTuple):
    """AppendEntriesRequest."""

    dest: Server
    source: Server
    term: Term
    prev_log_index: Index
    prev_log_term: Term
    entry: Entry  # mentries: 0 if there is none
    commit_index: Index


class AppendResponse(NamedTuple):
    """AppendEntriesResponse."""

    dest: Server
    source: Server
    term: Term
    success: Flag
    match_index: Index


ROOM = {VoteRequest: 10, VoteResponse: 10, AppendRequest: 20, AppendResponse: 12}
"""Messages of each kind that may be on their way at once, or in the bag if taken ones stay there."""


def _bag(kind: type) -> type:
    """Room for messages of a kind, with a bit for each that says that it was taken."""
    return Rows(ROOM[kind], total_bits(kind) + 1)


def slots(kind: type) -> Things:
    """The places of a kind's bag."""
    return Things(ROOM[kind])


class Bags(NamedTuple):
    """messages."""

    vote_requests: _bag(VoteRequest)
    vote_responses: _bag(VoteResponse)
    append_requests: _bag(AppendRequest)
    append_responses: _bag(AppendResponse)


class State(NamedTuple):
    """The variables."""

    messages: Bags
    term: Rows(MAX_SERVERS, 3)  # currentTerm
    role: Rows(MAX_SERVERS, 2)  # state: FOLLOWER, CANDIDATE or LEADER
    voted_for: Rows(MAX_SERVERS, 3)  # votedFor: 0 if Nil, else one more than the server
    log: Rows(MAX_SERVERS, ENTRY_BITS * MAX_VALUES)
    length: Rows(MAX_SERVERS, 3)  # Len(log)
    commit_index: Rows(MAX_SERVERS, 3)
    fsync_index: Rows(MAX_SERVERS, 3)
    votes_granted: Rows(MAX_SERVERS, MAX_SERVERS)  # masks of servers
    next_index: Pairs(MAX_SERVERS, MAX_SERVERS, 3)  # by leader and follower
    match_index: Pairs(MAX_SERVERS, MAX_SERVERS, 3)
    requested: Set(MAX_VALUES)  # acked[v] is not Nil
    acked: Set(MAX_VALUES)  # acked[v] is TRUE
    learners: Set(MAX_SERVERS)
    elections: Counter  # so far
    restarts: Counter
    crashes: Counter
    disk_losses: Counter
    outages: Counter


WIDTHS, _BLANK = widths(State), blank(State)
INITIAL = _BLANK._replace(term=_BLANK.term.of([1] * MAX_SERVERS), next_index=_BLANK.next_index.of([1] * MAX_SERVERS**2))


def entry_of(term, value):
    """An entry."""
    return term | (value << 3)


def entry_at(log, index):
    """The entry at an index, counted from 1; 0 if the log has none there."""
    return ((log << ENTRY_BITS) >> (ENTRY_BITS * index)) & ((1 << ENTRY_BITS) - 1)


def term_at(log, index):
    """The term of the entry at an index; 0 if there is none."""
    return entry_at(log, index) & TERM


def prefix(log, length):
    """The log's first entries."""
    return log & ((1 << (ENTRY_BITS * length)) - 1)


def last_term(state, i):
    """LastTerm."""
    return term_at(state.log[i], state.length[i])


def minimum(a, b):
    """Min."""
    return where(a < b, a, b)


def values_in(log, length):
    """The values in a log of this length, as a mask."""
    found = 0
    for index in range(1, MAX_VALUES + 1):
        found |= where(index <= length, 1 << (entry_at(log, index) >> 3), 0)
    return found


def all_servers(params):
    """The mask of all servers."""
    return (1 << params.servers) - 1


def is_quorum(params, num):
    """Whether `num` servers are a quorum."""
    return 2 * num > params.servers


def with_role(state, i, role):
    """The state in which server i has another role."""
    return state._replace(role=state.role.put(i, role))
