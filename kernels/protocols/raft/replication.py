"""Replication of the log: from ClientRequest to HandleAppendEntriesResponse, of RaftFsync.tla."""

from quorisk.kernels.model import action
from quorisk.kernels.ops import popcount, when, where
from quorisk.kernels.protocols.fields import joined
from quorisk.kernels.protocols.instances import each
from quorisk.kernels.protocols.raft.bags import has_room, is_pair, is_received, message, pairs_of, with_sent, without
from quorisk.kernels.protocols.raft.election import answers_now, one_message, panics
from quorisk.kernels.protocols.raft.layout import (
    CANDIDATE,
    ENTRY_BITS,
    FOLLOWER,
    LEADER,
    MAX_SERVERS,
    MAX_VALUES,
    SERVERS,
    TERM,
    VALUES,
    AppendRequest,
    AppendResponse,
    entry_at,
    entry_of,
    is_quorum,
    minimum,
    prefix,
    slots,
    term_at,
    values_in,
    with_role,
)


@each(SERVERS, VALUES)
def client_request_enabled(state, params, i, value):
    return (state.role[i] == LEADER) & (state.requested[value] == 0)


@action(client_request_enabled)
def client_request(state, params, i, value, lost):
    """A client sends each value to each leader, until one has it."""
    entry, length = entry_of(state.term[i], value), state.length[i]
    return state._replace(
        log=state.log.put(i, state.log[i] | (entry << (ENTRY_BITS * length))),
        length=state.length.put(i, length + 1),
        requested=state.requested.put(value, 1),
    )


def agree(state, params, i, index):
    """Agree: the servers, a mask, that leader i knows to have this entry."""
    having = 0
    for k in range(MAX_SERVERS):
        having |= where(state.match_index[i, k] >= index, 1 << k, 0)
    waits = (params.leader_fsync_before_include_in_quorum != 0) & (index > state.fsync_index[i])
    return where(waits, having, having | (1 << i)) & ~_mask(state.learners)


def _mask(members):
    """A set as a mask."""
    return members.words[0]


def new_commit_index(state, params, i):
    """The last entry that a quorum has, if it is of the leader's term."""
    agreed = 0
    for index in range(1, MAX_VALUES + 1):
        reached = (index <= state.length[i]) & is_quorum(params, popcount(agree(state, params, i, index)))
        agreed = where(reached, index, agreed)
    of_term = (agreed > 0) & (term_at(state.log[i], agreed) == state.term[i])
    return where(of_term, agreed, state.commit_index[i])


@each(SERVERS)
def advance_commit_index_enabled(state, params, i):
    return when(state.role[i] == LEADER, lambda: state.commit_index[i] < new_commit_index(state, params, i))


@action(advance_commit_index_enabled)
def advance_commit_index(state, params, i, lost):
    """Each leader commits what a quorum has, and acknowledges it."""
    index = new_commit_index(state, params, i)
    now = values_in(state.log[i], index) & ~values_in(state.log[i], state.commit_index[i])
    return state._replace(
        commit_index=state.commit_index.put(i, index), acked=type(state.acked)(_mask(state.acked) | now)
    )


def last_entry(state, i, j):
    """lastEntry: up to one entry is sent."""
    return minimum(state.length[i], state.next_index[i, j])


def append_request(state, i, j):
    """The request that leader i sends to j."""
    previous, last = state.next_index[i, j] - 1, last_entry(state, i, j)
    return AppendRequest(
        dest=j,
        source=i,
        term=state.term[i],
        prev_log_index=previous,
        prev_log_term=term_at(state.log[i], previous),
        entry=entry_at(state.log[i], previous + 1),
        commit_index=minimum(state.commit_index[i], last),
    )


def is_news(state, i, j):
    """Whether leader i has anything to tell j."""
    lags = (state.match_index[i, j] < state.length[i]) | (state.commit_index[j] < state.commit_index[i])
    return lags | (state.term[j] < state.term[i]) | (state.role[j] == CANDIDATE)


def already_sent(state, params):
    """The pairs in which the first server has sent the second the request that it would send it now."""
    bag = state.messages.append_requests
    return pairs_of(bag, AppendRequest, lambda m: joined(m) == joined(append_request(state, m.source, m.dest)))


@each(SERVERS, SERVERS, given=already_sent)
def append_entries_enabled(state, params, i, j, known):
    return when((state.role[i] == LEADER) & (i != j), _may_tell, state, params, i, j, known)


def _may_tell(state, params, i, j, known):
    synced = (params.leader_fsync_before_append_entries == 0) | (state.fsync_index[i] >= last_entry(state, i, j))
    may = has_room(state.messages.append_requests) & (is_pair(known, i, j) == 0)
    wanted = (params.heartbeats != 0) | is_news(state, i, j)
    return wanted & synced & may


@action(append_entries_enabled, sends=one_message)
def append_entries(state, params, i, j, lost):
    """Each leader sends each follower the next entry, or its commit index."""
    bag = with_sent(state.messages.append_requests, append_request(state, i, j))
    return where(lost != 0, state, state._replace(messages=state.messages._replace(append_requests=bag)))


@each(SERVERS)
def advance_fsync_index_enabled(state, params, i):
    return state.fsync_index[i] < state.length[i]


@action(advance_fsync_index_enabled)
def advance_fsync_index(state, params, i, lost):
    """Each server syncs its next entry."""
    return state._replace(fsync_index=state.fsync_index.put(i, state.fsync_index[i] + 1))


def log_ok(state, request):
    """LogOk."""
    i, previous = request.dest, request.prev_log_index
    there = (previous <= state.length[i]) & (request.prev_log_term == term_at(state.log[i], previous))
    return (previous == 0) | there


def replied(state, params, k, request, success, lost):
    """Reply: the request is taken, and its answer is on its way."""
    messages = state.messages
    sent = with_sent(messages.append_responses, append_response(state, request, success))
    return messages._replace(
        append_requests=without(messages.append_requests, k, params),
        append_responses=where(lost != 0, messages.append_responses, sent),
    )


def append_response(state, request, success):
    """The answer to a request."""
    reached = request.prev_log_index + where(request.entry != 0, 1, 0)
    term = state.term[request.dest]
    return AppendResponse(request.source, request.dest, term, success, where(success, reached, 0))


def replied_now(state, params):
    """The pairs in which the first server refused the second in its present term, then those in which it accepted, by
    match index; the servers that panic."""

    def pairs(success, index):
        return pairs_of(
            state.messages.append_responses,
            AppendResponse,
            lambda m: answers_now(state, m) & (m.success == success) & (m.match_index == index),
        )

    return [pairs(0, 0), *(pairs(1, index) for index in range(MAX_VALUES + 1)), panics(state, params)]


def may_reply(state, response, known):
    """Reply's guard: no such response is in the bag, of those that `replied_now` knows, and there is room."""
    same = known[0]
    for index in range(MAX_VALUES + 1):
        same = where((response.success != 0) & (response.match_index == index), known[1 + index], same)
    return has_room(state.messages.append_responses) & (is_pair(same, response.source, response.dest) == 0)


@each(slots(AppendRequest), given=replied_now)
def reject_append_entries_request_enabled(state, params, k, known):
    slot = state.messages.append_requests[k]
    return when(is_received(slot, known[-1]), _refuses, state, message(AppendRequest, slot), known)


def _refuses(state, request, known):
    i = request.dest
    mismatch = (request.term == state.term[i]) & (state.role[i] == FOLLOWER) & (log_ok(state, request) == 0)
    may = may_reply(state, append_response(state, request, 0), known)
    return ((request.term < state.term[i]) | mismatch) & may


@action(reject_append_entries_request_enabled, sends=one_message)
def reject_append_entries_request(state, params, k, lost):
    """Each request that is stale, or does not fit the log, is refused."""
    request = message(AppendRequest, state.messages.append_requests[k])
    return state._replace(messages=replied(state, params, k, request, 0, lost))


@each(slots(AppendRequest), given=replied_now)
def accept_append_entries_request_enabled(state, params, k, known):
    slot = state.messages.append_requests[k]
    return when(is_received(slot, known[-1]), _accepts, state, message(AppendRequest, slot), known)


def _accepts(state, request, known):
    i = request.dest
    takes = (request.term == state.term[i]) & (state.role[i] != LEADER) & log_ok(state, request)
    return takes & may_reply(state, append_response(state, request, 1), known)


@action(accept_append_entries_request_enabled, sends=one_message)
def accept_append_entries_request(state, params, k, lost):
    """Each request that fits the log is followed."""
    request = message(AppendRequest, state.messages.append_requests[k])
    i, kept = request.dest, request.prev_log_index
    log, length = state.log[i], state.length[i]
    there = entry_at(log, kept + 1)
    differs = (there & TERM) != (request.entry & TERM)  # as it does where the log has no entry there
    puts = (request.entry != 0) & differs
    log = where(puts, prefix(log, kept) | (request.entry << (ENTRY_BITS * kept)), log)
    length = where(puts, kept + 1, length)
    after = with_role(state, i, FOLLOWER)
    return after._replace(
        log=state.log.put(i, log),
        length=state.length.put(i, length),
        commit_index=state.commit_index.put(i, request.commit_index),
        fsync_index=where(params.follower_fsync_before_reply != 0, state.fsync_index.put(i, length), state.fsync_index),
        messages=replied(state, params, k, request, 1, lost),
    )


@each(slots(AppendResponse), given=panics)
def handle_append_entries_response_enabled(state, params, k, panicked):
    slot = state.messages.append_responses[k]
    response = message(AppendResponse, slot)
    return is_received(slot, panicked) & (response.term == state.term[response.dest])


@action(handle_append_entries_response_enabled)
def handle_append_entries_response(state, params, k, lost):
    """Each answer tells the leader how far a follower is."""
    response = message(AppendResponse, state.messages.append_responses[k])
    pair, success = (response.dest, response.source), response.success != 0
    following = state.next_index[pair]
    back = where(following > 1, following - 1, 1)
    matched = state.match_index.put(pair, response.match_index)
    return state._replace(
        next_index=state.next_index.put(pair, where(success, response.match_index + 1, back)),
        match_index=where(success, matched, state.match_index),
        messages=state.messages._replace(append_responses=without(state.messages.append_responses, k, params)),
    )
