"""Elections: Timeout, RequestVote, BecomeLeader, UpdateTerm and the handling of votes, of RaftFsync.tla."""

from itertools import product

from quorisk.kernels.model import action
from quorisk.kernels.ops import popcount, when, where
from quorisk.kernels.protocols.fields import joined
from quorisk.kernels.protocols.instances import Things, each
from quorisk.kernels.protocols.raft.bags import (
    has_room,
    is_pair,
    is_received,
    message,
    pairs_of,
    slot_of,
    with_sent,
    without,
)
from quorisk.kernels.protocols.raft.layout import (
    CANDIDATE,
    FOLLOWER,
    LEADER,
    MAX_SERVERS,
    ROOM,
    SERVERS,
    VoteRequest,
    VoteResponse,
    is_quorum,
    last_term,
    minimum,
    slots,
    with_role,
)


def one_message(state, params, *indices):
    """The message that an instance sends; it may be lost."""
    return params.lossy_network


def panics(state, params):
    """Panicking followers, a mask: their leader has them commit entries that they acknowledged and have lost."""
    return when(params.panic_on_lost_log != 0, _panics, state)


def _panics(state):
    found = 0
    for leader, i in product(range(MAX_SERVERS), range(MAX_SERVERS)):
        leads = (state.role[leader] == LEADER) & (state.term[leader] >= state.term[i])
        committed = minimum(state.match_index[leader, i], state.commit_index[leader])
        has_lost = (state.role[i] == FOLLOWER) & (committed > state.length[i])
        found |= where(leads & has_lost, 1 << i, 0)
    return found


def may_time_out(state, params, i, panicked):
    """Timeout's guard."""
    may = (state.elections < params.max_elections) & (state.role[i] != LEADER) & (state.learners[i] == 0)
    return may & ((panicked >> i) & 1 == 0)


def has_leader(state, i):
    """Whether another server leads in the term of i or a later one."""
    found = False
    for leader in range(MAX_SERVERS):
        leads = (state.role[leader] == LEADER) & (state.term[leader] >= state.term[i])
        found |= leads & (leader != i)
    return found


def start_election(state, i):
    """Timeout's effect."""
    return with_role(state, i, CANDIDATE)._replace(
        term=state.term.put(i, state.term[i] + 1),
        voted_for=state.voted_for.put(i, i + 1),
        votes_granted=state.votes_granted.put(i, 1 << i),
        elections=state.elections + 1,
    )


@each(SERVERS, given=panics)
def timeout_enabled(state, params, i, panicked):
    return may_time_out(state, params, i, panicked) & (has_leader(state, i) == 0)


@action(timeout_enabled, bounds=("max_elections",))
def timeout(state, params, i, lost):
    """Each server that nobody leads in its term or a later one starts an election."""
    return start_election(state, i)


@each(SERVERS, given=panics)
def false_timeout_enabled(state, params, i, panicked):
    return may_time_out(state, params, i, panicked) & has_leader(state, i)


@action(false_timeout_enabled, "false timeout", rate_of="timeout", bounds=("max_elections",))
def false_timeout(state, params, i, lost):
    """Each server with a healthy leader takes it for dead, and starts an election."""
    return start_election(state, i)


def vote_request(state, i, j):
    """The request that candidate i sends to j."""
    return VoteRequest(j, i, state.term[i], last_term(state, i), state.length[i])


def asked(state, params):
    """Pairs with a vote request from the first server to the second, equal to the one it would send now."""
    bag = state.messages.vote_requests
    return pairs_of(bag, VoteRequest, lambda m: joined(m) == joined(vote_request(state, m.source, m.dest)))


@each(SERVERS, SERVERS, given=asked)
def request_vote_enabled(state, params, i, j, known):
    may = has_room(state.messages.vote_requests) & (is_pair(known, i, j) == 0)
    return (state.role[i] == CANDIDATE) & (i != j) & may


@action(request_vote_enabled, sends=one_message)
def request_vote(state, params, i, j, lost):
    """Each candidate asks each other server for its vote."""
    bag = with_sent(state.messages.vote_requests, vote_request(state, i, j))
    return where(lost != 0, state, state._replace(messages=state.messages._replace(vote_requests=bag)))


@each(SERVERS)
def become_leader_enabled(state, params, i):
    return (state.role[i] == CANDIDATE) & is_quorum(params, popcount(state.votes_granted[i]))


@action(become_leader_enabled)
def become_leader(state, params, i, lost):
    """Each candidate with a quorum of votes becomes the leader."""
    after, following = with_role(state, i, LEADER), state.length[i] + 1
    for j in range(MAX_SERVERS):
        led = after._replace(
            next_index=after.next_index.put((i, j), following), match_index=after.match_index.put((i, j), 0)
        )
        after = where(j < params.servers, led, after)
    return after


@each(Things(len(ROOM)), Things(max(ROOM.values())), given=panics)
def update_term_enabled(state, params, kind, k, panicked):
    slot = slot_of(state.messages, kind, k)
    sent = message(VoteRequest, slot)  # the first three fields are those of every kind
    return when(slot != 0, lambda: (sent.term > state.term[sent.dest]) & ((panicked >> sent.dest) & 1 == 0))


@action(update_term_enabled)
def update_term(state, params, kind, k, lost):
    """Each message of a later term has its receiver enter that term."""
    dest, _, term, *_ = message(VoteRequest, slot_of(state.messages, kind, k))
    return with_role(state, dest, FOLLOWER)._replace(
        term=state.term.put(dest, term), voted_for=state.voted_for.put(dest, 0)
    )


def grants(state, request):
    """Whether the receiver votes for who asks."""
    i, last = request.dest, last_term(state, request.dest)
    longer = (request.last_log_term == last) & (request.last_log_index >= state.length[i])
    log_ok = (request.last_log_term > last) | longer
    free = (state.voted_for[i] == 0) | (state.voted_for[i] == request.source + 1)
    return (request.term == state.term[i]) & log_ok & free & (state.learners[i] == 0)


def vote_response(state, request):
    """The answer to a request."""
    return VoteResponse(request.source, request.dest, state.term[request.dest], where(grants(state, request), 1, 0))


def answers_now(state, response):
    """Whether the sender of a response would put its present term in one."""
    return response.term == state.term[response.source]


def answered(state, params):
    """Pairs in which the first refused, or granted, its vote to the second in its present term; who panics."""
    bag = state.messages.vote_responses
    pairs = [
        pairs_of(bag, VoteResponse, lambda m, granted=granted: answers_now(state, m) & (m.vote_granted == granted))
        for granted in (0, 1)
    ]
    return [*pairs, panics(state, params)]


@each(slots(VoteRequest), given=answered)
def handle_request_vote_request_enabled(state, params, k, known):
    slot = state.messages.vote_requests[k]
    return when(is_received(slot, known[-1]), _may_answer, state, message(VoteRequest, slot), known)


def _may_answer(state, request, known):
    same = is_pair(where(grants(state, request), known[1], known[0]), request.dest, request.source)
    may = has_room(state.messages.vote_responses) & (same == 0)
    return (request.term <= state.term[request.dest]) & may


@action(handle_request_vote_request_enabled, sends=one_message)
def handle_request_vote_request(state, params, k, lost):
    """Each request for a vote is answered."""
    messages = state.messages
    request = message(VoteRequest, messages.vote_requests[k])
    response = vote_response(state, request)
    sent = with_sent(messages.vote_responses, response)
    return state._replace(
        voted_for=where(
            response.vote_granted != 0, state.voted_for.put(request.dest, request.source + 1), state.voted_for
        ),
        messages=messages._replace(
            vote_requests=without(messages.vote_requests, k, params),
            vote_responses=where(lost != 0, messages.vote_responses, sent),
        ),
    )


@each(slots(VoteResponse), given=panics)
def handle_request_vote_response_enabled(state, params, k, panicked):
    slot = state.messages.vote_responses[k]
    response = message(VoteResponse, slot)
    return is_received(slot, panicked) & (response.term == state.term[response.dest])


@action(handle_request_vote_response_enabled)
def handle_request_vote_response(state, params, k, lost):
    """Each vote, or refusal, is counted."""
    response = message(VoteResponse, state.messages.vote_responses[k])
    i = response.dest
    votes = state.votes_granted[i] | (response.vote_granted << response.source)
    bag = without(state.messages.vote_responses, k, params)
    return state._replace(
        votes_granted=state.votes_granted.put(i, votes), messages=state.messages._replace(vote_responses=bag)
    )
