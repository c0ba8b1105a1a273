"""Raft's invariants once more, from the spec's text; see `tests.references.raft`."""

from quorisk.kernels.protocols.raft.spec import (
    LEADER,
    Log,
    SpecState,
)
from tests.references.raft import servers


def no_log_divergence(s: SpecState) -> bool:
    def agree(a: int, b: int) -> bool:
        common = min(s.commitIndex[a], s.commitIndex[b])
        return s.log[a][:common] == s.log[b][:common]

    return all(agree(a, b) for a in servers(s) for b in servers(s))


def holds(log: Log, value: int) -> bool:
    return any(entry.value == value for entry in log)


def leader_has_all_acked_values(s: SpecState) -> bool:
    newest = [
        i
        for i in servers(s)
        if s.state[i] == LEADER and not any(s.currentTerm[k] > s.currentTerm[i] for k in servers(s) if k != i)
    ]
    return all(holds(s.log[i], value) for value, acked in enumerate(s.acked) if acked for i in newest)


def committed_entries_reach_majority(s: SpecState) -> bool:
    leaders = [i for i in servers(s) if s.state[i] == LEADER and s.commitIndex[i] > 0]

    def reaches(i: int) -> bool:
        at = s.commitIndex[i]
        having = [j for j in servers(s) if len(s.log[j]) >= at and s.log[j][at - 1] == s.log[i][at - 1]]
        return i in having and len(having) >= len(s.log) // 2 + 1

    return not leaders or any(map(reaches, leaders))


def acked_values_survive(s: SpecState) -> bool:
    return all(any(holds(log, value) for log in s.log) for value, acked in enumerate(s.acked) if acked)


INVARIANTS = {
    "NoLogDivergence": no_log_divergence,
    "LeaderHasAllAckedValues": leader_has_all_acked_values,
    "CommittedEntriesReachMajority": committed_entries_reach_majority,
    "AckedValuesSurvive": acked_values_survive,
}
