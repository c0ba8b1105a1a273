"""Raft with fsync and faults once more, from the text of RaftFaults.tla: slow, with sets and tuples, sharing no rule
with `kernels.protocols.raft`. Only the shape of the states is taken from there."""

from collections.abc import Iterator
from itertools import chain, combinations
from typing import Any

from quorisk.kernels.protocols.raft.spec import (
    CANDIDATE,
    FOLLOWER,
    LEADER,
    AppendEntriesRequest,
    AppendEntriesResponse,
    Entry,
    Log,
    Message,
    RequestVoteRequest,
    RequestVoteResponse,
    SpecState,
)

Values = dict[str, Any]
Successors = Iterator[SpecState]
Bag = dict[Message, int]


def initial(v: Values) -> SpecState:
    n = v["servers"]
    return SpecState(
        messages=frozenset(),
        currentTerm=(1,) * n,
        state=(FOLLOWER,) * n,
        votedFor=(None,) * n,
        log=((),) * n,
        commitIndex=(0,) * n,
        fsyncIndex=(0,) * n,
        votesGranted=(frozenset(),) * n,
        nextIndex=((1,) * n,) * n,
        matchIndex=((0,) * n,) * n,
        acked=(None,) * v["values"],
        electionCtr=0,
        restartCtr=0,
        crashCtr=0,
        lostCtr=0,
        outageCtr=0,
        learner=frozenset(),
    )


def put(items: tuple, i: int, item: Any) -> tuple:
    return items[:i] + (item,) + items[i + 1 :]


def put2(rows: tuple, i: int, j: int, item: Any) -> tuple:
    return put(rows, i, put(rows[i], j, item))


def servers(s: SpecState) -> range:
    return range(len(s.log))


def is_quorum(s: SpecState, members: Any) -> bool:
    return len(members) * 2 > len(s.log)


def last_term(log: Log) -> int:
    return log[-1].term if log else 0


def without(ms: Bag, m: Message, v: Values) -> Bag:
    assert ms[m] > 0
    left = dict(ms)
    if v["resend"]:
        del left[m]
    else:
        left[m] -= 1
    return left


def frozen(ms: Bag) -> frozenset:
    return frozenset(ms.items())


def send(s: SpecState, m: Message, **changes: Any) -> Successors:
    ms = dict(s.messages)
    if m not in ms:
        yield s._replace(messages=frozen(ms | {m: 1}), **changes)


def reply(s: SpecState, v: Values, response: Message, request: Message, **changes: Any) -> Successors:
    ms = dict(s.messages)
    if response not in ms:
        yield s._replace(messages=frozen({response: 1} | without(ms, request, v)), **changes)


def discard(s: SpecState, v: Values, m: Message, **changes: Any) -> SpecState:
    return s._replace(messages=frozen(without(dict(s.messages), m, v)), **changes)


def panics(s: SpecState, v: Values, i: int) -> bool:
    """Whether a leader's heartbeat tells i to commit what i acknowledged and has lost."""
    leaders = [k for k in servers(s) if s.state[k] == LEADER and s.currentTerm[k] >= s.currentTerm[i]]
    committed = max((min(s.matchIndex[k][i], s.commitIndex[k]) for k in leaders), default=0)
    return v["panic_on_lost_log"] and s.state[i] == FOLLOWER and committed > len(s.log[i])


def receivable(s: SpecState, v: Values, kind: type, equal_term: bool) -> Iterator[Any]:
    for m, count in s.messages:
        term = s.currentTerm[m.mdest]
        if (
            count > 0
            and isinstance(m, kind)
            and not panics(s, v, m.mdest)
            and (m.mterm == term if equal_term else m.mterm <= term)
        ):
            yield m


def _volatile_lost(s: SpecState, i: int) -> dict[str, Any]:
    n = len(s.log)
    return {
        "state": put(s.state, i, FOLLOWER),
        "votesGranted": put(s.votesGranted, i, frozenset()),
        "nextIndex": put(s.nextIndex, i, (1,) * n),
        "matchIndex": put(s.matchIndex, i, (0,) * n),
        "commitIndex": put(s.commitIndex, i, 0),
    }


def restart(s: SpecState, v: Values) -> Successors:
    if s.restartCtr < v["max_restarts"]:
        for i in servers(s):
            log = put(s.log, i, s.log[i][: s.fsyncIndex[i]])
            yield s._replace(**_volatile_lost(s, i), restartCtr=s.restartCtr + 1, log=log)


def crash(s: SpecState, v: Values) -> Successors:
    if s.crashCtr < v["max_crashes"]:
        for i in servers(s):
            yield s._replace(**_volatile_lost(s, i), crashCtr=s.crashCtr + 1)


def go_down(s: SpecState, v: Values, down: set[int], lost: set[int], broken: bool) -> SpecState:
    n, new = len(s.log), v["rejoin_as_new"]

    def of_each(keep: tuple, gone: set[int], blank: Any) -> tuple:
        return tuple(blank if i in gone else keep[i] for i in range(n))

    def of_pairs(keep: tuple, blank: int) -> tuple:
        return tuple(
            tuple(blank if i in down or (new and j in lost) else keep[i][j] for j in range(n)) for i in range(n)
        )

    def cut(i: int) -> Log:
        if i in lost:
            return ()
        return s.log[i][: min(s.fsyncIndex[i], len(s.log[i]))] if i in down else s.log[i]

    gone = {m for m, _ in s.messages if broken or (new and (m.msource in lost or m.mdest in lost))}
    kept = {(m, count) for m, count in s.messages if m not in gone}
    return s._replace(
        state=of_each(s.state, down, FOLLOWER),
        votesGranted=of_each(s.votesGranted, down, frozenset()),
        commitIndex=of_each(s.commitIndex, down, 0),
        nextIndex=of_pairs(s.nextIndex, 1),
        matchIndex=of_pairs(s.matchIndex, 0),
        log=tuple(map(cut, range(n))),
        fsyncIndex=of_each(s.fsyncIndex, lost, 0),
        currentTerm=of_each(s.currentTerm, lost, 1),
        votedFor=of_each(s.votedFor, lost, None),
        learner=s.learner | lost if new else s.learner,
        messages=frozenset(kept if v["resend"] else kept | {(m, 0) for m in gone}),
    )


def disk_is_lost(s: SpecState, v: Values) -> Successors:
    if s.lostCtr < v["max_disk_losses"]:
        for i in servers(s):
            yield go_down(s, v, {i}, {i}, broken=False)._replace(lostCtr=s.lostCtr + 1)


def cluster_loses_power(s: SpecState, v: Values) -> Successors:
    if s.outageCtr < v["max_outages"]:
        everyone = servers(s)
        for lost in chain.from_iterable(combinations(everyone, size) for size in range(len(everyone) + 1)):
            yield go_down(s, v, set(everyone), set(lost), broken=True)._replace(outageCtr=s.outageCtr + 1)


def learner_is_promoted(s: SpecState, v: Values) -> Successors:
    for leader in servers(s):
        for i in s.learner:
            if (
                leader not in s.learner
                and s.state[leader] == LEADER
                and max(s.currentTerm) <= s.currentTerm[leader]
                and s.currentTerm[i] == s.currentTerm[leader]
                and s.state[i] == FOLLOWER
                and s.matchIndex[leader][i] == len(s.log[leader])
                and s.log[i] == s.log[leader]
            ):
                yield s._replace(learner=s.learner - {i}, votedFor=put(s.votedFor, i, leader))


def timeout(s: SpecState, v: Values) -> Successors:
    for i in servers(s):
        may = s.electionCtr < v["max_elections"] and not panics(s, v, i)
        if may and s.state[i] in (FOLLOWER, CANDIDATE) and i not in s.learner:
            yield s._replace(
                state=put(s.state, i, CANDIDATE),
                currentTerm=put(s.currentTerm, i, s.currentTerm[i] + 1),
                votedFor=put(s.votedFor, i, i),
                votesGranted=put(s.votesGranted, i, frozenset({i})),
                electionCtr=s.electionCtr + 1,
            )


def request_vote(s: SpecState, v: Values) -> Successors:
    for i in servers(s):
        for j in servers(s):
            if s.state[i] == CANDIDATE and i != j:
                yield from send(s, RequestVoteRequest(s.currentTerm[i], last_term(s.log[i]), len(s.log[i]), i, j))


def become_leader(s: SpecState, v: Values) -> Successors:
    n = len(s.log)
    for i in servers(s):
        if s.state[i] == CANDIDATE and is_quorum(s, s.votesGranted[i]):
            yield s._replace(
                state=put(s.state, i, LEADER),
                nextIndex=put(s.nextIndex, i, (len(s.log[i]) + 1,) * n),
                matchIndex=put(s.matchIndex, i, (0,) * n),
            )


def client_request(s: SpecState, v: Values) -> Successors:
    for i in servers(s):
        for value, acked in enumerate(s.acked):
            if s.state[i] == LEADER and acked is None:
                log = s.log[i] + (Entry(s.currentTerm[i], value),)
                yield s._replace(log=put(s.log, i, log), acked=put(s.acked, value, False))


def advance_commit_index(s: SpecState, v: Values) -> Successors:
    for i in servers(s):
        if s.state[i] != LEADER:
            continue
        log, commit = s.log[i], s.commitIndex[i]

        def agree(index: int, i: int = i) -> set[int]:
            matching = {k for k in servers(s) if s.matchIndex[i][k] >= index}
            if v["leader_fsync_before_include_in_quorum"] and index > s.fsyncIndex[i]:
                return matching - s.learner
            return (matching | {i}) - s.learner

        agreed = [index for index in range(1, len(log) + 1) if is_quorum(s, agree(index))]
        if agreed and log[max(agreed) - 1].term == s.currentTerm[i] and commit < max(agreed):
            now = {log[index - 1].value for index in range(commit + 1, max(agreed) + 1)}
            acked = tuple(value in now if is_acked is False else is_acked for value, is_acked in enumerate(s.acked))
            yield s._replace(commitIndex=put(s.commitIndex, i, max(agreed)), acked=acked)


def append_entries(s: SpecState, v: Values) -> Successors:
    for i in servers(s):
        for j in servers(s):
            if i == j or s.state[i] != LEADER:
                continue
            is_news = (
                s.matchIndex[i][j] < len(s.log[i])
                or s.commitIndex[j] < s.commitIndex[i]
                or s.currentTerm[j] < s.currentTerm[i]
                or s.state[j] == CANDIDATE
            )
            if not (v["heartbeats"] or is_news):
                continue
            following = s.nextIndex[i][j]
            last = min(len(s.log[i]), following)
            if v["leader_fsync_before_append_entries"] and s.fsyncIndex[i] < last:
                continue
            previous = s.log[i][following - 2 : following - 1] if following > 1 else ()
            yield from send(
                s,
                AppendEntriesRequest(
                    mterm=s.currentTerm[i],
                    mprevLogIndex=following - 1,
                    mprevLogTerm=last_term(previous),  # 0 as well where TLC gives up: one term's second leader
                    mentries=s.log[i][following - 1 : last],
                    mcommitIndex=min(s.commitIndex[i], last),
                    msource=i,
                    mdest=j,
                ),
            )


def advance_fsync_index(s: SpecState, v: Values) -> Successors:
    for i in servers(s):
        if s.fsyncIndex[i] < len(s.log[i]):
            yield s._replace(fsyncIndex=put(s.fsyncIndex, i, s.fsyncIndex[i] + 1))


def update_term(s: SpecState, v: Values) -> Successors:
    for m, _ in s.messages:
        if m.mterm > s.currentTerm[m.mdest] and not panics(s, v, m.mdest):
            yield s._replace(
                currentTerm=put(s.currentTerm, m.mdest, m.mterm),
                state=put(s.state, m.mdest, FOLLOWER),
                votedFor=put(s.votedFor, m.mdest, None),
            )


def handle_request_vote_request(s: SpecState, v: Values) -> Successors:
    for m in receivable(s, v, RequestVoteRequest, equal_term=False):
        i, j = m.mdest, m.msource
        log_ok = m.mlastLogTerm > last_term(s.log[i]) or (
            m.mlastLogTerm == last_term(s.log[i]) and m.mlastLogIndex >= len(s.log[i])
        )
        grant = m.mterm == s.currentTerm[i] and log_ok and s.votedFor[i] in (None, j) and i not in s.learner
        voted = {"votedFor": put(s.votedFor, i, j)} if grant else {}
        yield from reply(s, v, RequestVoteResponse(s.currentTerm[i], grant, i, j), m, **voted)


def handle_request_vote_response(s: SpecState, v: Values) -> Successors:
    for m in receivable(s, v, RequestVoteResponse, equal_term=True):
        i = m.mdest
        granted = s.votesGranted[i] | ({m.msource} if m.mvoteGranted else set())
        yield discard(s, v, m, votesGranted=put(s.votesGranted, i, granted))


def is_log_ok(s: SpecState, i: int, m: AppendEntriesRequest) -> bool:
    previous = m.mprevLogIndex
    return previous == 0 or (previous <= len(s.log[i]) and m.mprevLogTerm == s.log[i][previous - 1].term)


def reject_append_entries_request(s: SpecState, v: Values) -> Successors:
    for m in receivable(s, v, AppendEntriesRequest, equal_term=False):
        i, term = m.mdest, s.currentTerm[m.mdest]
        if m.mterm < term or (m.mterm == term and s.state[i] == FOLLOWER and not is_log_ok(s, i, m)):
            yield from reply(s, v, AppendEntriesResponse(term, False, 0, i, m.msource), m)


def accept_append_entries_request(s: SpecState, v: Values) -> Successors:
    for m in receivable(s, v, AppendEntriesRequest, equal_term=True):
        i, log = m.mdest, s.log[m.mdest]
        if s.state[i] not in (FOLLOWER, CANDIDATE) or not is_log_ok(s, i, m):
            continue
        index = m.mprevLogIndex + 1
        if m.mentries and len(log) == m.mprevLogIndex:
            log = log + m.mentries
        elif m.mentries and len(log) >= index and log[index - 1].term != m.mentries[0].term:
            log = log[: m.mprevLogIndex] + m.mentries
        fsync = len(log) if v["follower_fsync_before_reply"] else s.fsyncIndex[i]
        yield from reply(
            s,
            v,
            AppendEntriesResponse(s.currentTerm[i], True, m.mprevLogIndex + len(m.mentries), i, m.msource),
            m,
            state=put(s.state, i, FOLLOWER),
            commitIndex=put(s.commitIndex, i, m.mcommitIndex),
            fsyncIndex=put(s.fsyncIndex, i, fsync),
            log=put(s.log, i, log),
        )


def handle_append_entries_response(s: SpecState, v: Values) -> Successors:
    for m in receivable(s, v, AppendEntriesResponse, equal_term=True):
        i, j = m.mdest, m.msource
        if m.msuccess:
            following = put2(s.nextIndex, i, j, m.mmatchIndex + 1)
            yield discard(s, v, m, nextIndex=following, matchIndex=put2(s.matchIndex, i, j, m.mmatchIndex))
        else:
            yield discard(s, v, m, nextIndex=put2(s.nextIndex, i, j, max(s.nextIndex[i][j] - 1, 1)))


ACTIONS = {
    action.__name__: action
    for action in (
        restart,
        crash,
        disk_is_lost,
        cluster_loses_power,
        learner_is_promoted,
        timeout,
        request_vote,
        become_leader,
        client_request,
        advance_commit_index,
        append_entries,
        advance_fsync_index,
        update_term,
        handle_request_vote_request,
        handle_request_vote_response,
        reject_append_entries_request,
        accept_append_entries_request,
        handle_append_entries_response,
    )
}
"""In the order of Next."""


def successors(s: SpecState, v: Values) -> Successors:
    for action in ACTIONS.values():
        yield from action(s, v)
