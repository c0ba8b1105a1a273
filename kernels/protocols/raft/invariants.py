"""Invariants of a Raft group, and the outcome of a run."""

from quorisk.kernels.model import COMPLETED, EXPOSURE, STUCK, Invariant
from quorisk.kernels.ops import popcount, when, where
from quorisk.kernels.protocols.raft.faults import newest_leader
from quorisk.kernels.protocols.raft.layout import LEADER, MAX_SERVERS, entry_at, is_quorum, minimum, prefix, values_in


def no_log_divergence(state, params):
    """Logs agree up to the smaller commit index of each two servers."""
    differs = 0
    for a in range(MAX_SERVERS):
        differs |= when(state.commit_index[a] != 0, _differs, state, a)
    return differs == 0


def _differs(state, a):
    differs = False
    for b in range(a):
        common = minimum(state.commit_index[a], state.commit_index[b])
        differs |= prefix(state.log[a], common) != prefix(state.log[b], common)
    return differs


def leader_has_all_acked_values(state, params):
    """A leader that is not stale has every acknowledged value."""
    missing = 0
    for i in range(MAX_SERVERS):
        missing |= when(newest_leader(state, i), lambda i=i: ~values_in(state.log[i], state.length[i]))
    return state.acked.words[0] & missing == 0


def committed_entries_reach_majority(state, params):
    """A majority has the last entry that one of the leaders has committed, if any of them has committed one."""
    any_commits, reached = False, 0
    for i in range(MAX_SERVERS):
        commits = (state.role[i] == LEADER) & (state.commit_index[i] > 0)
        any_commits |= commits
        reached |= when(commits, _reaches_majority, state, params, i)
    return (any_commits == 0) | (reached != 0)


def _reaches_majority(state, params, i):
    at, having = state.commit_index[i], 0
    for j in range(MAX_SERVERS):
        same = (state.length[j] >= at) & (entry_at(state.log[j], at) == entry_at(state.log[i], at))
        having |= where(same, 1 << j, 0)
    return is_quorum(params, popcount(having))


def acked_values_survive(state, params):
    """Every acknowledged value is in the log of some server."""
    found = 0
    for i in range(MAX_SERVERS):
        found |= when(state.length[i] != 0, values_in, state.log[i], state.length[i])
    return state.acked.words[0] & ~found == 0


def outcome(state, params):
    """Nothing is enabled: the run is completed if every value is acknowledged, else stuck, most often because no
    election is left, which is the model's limit and no cluster's."""
    return where(state.acked.words[0] == (1 << params.values) - 1, COMPLETED, STUCK)


INVARIANTS = (
    Invariant("NoLogDivergence", no_log_divergence, data_loss=False),
    Invariant("LeaderHasAllAckedValues", leader_has_all_acked_values, data_loss=True),
    Invariant("CommittedEntriesReachMajority", committed_entries_reach_majority, data_loss=False, about=EXPOSURE),
    Invariant("AckedValuesSurvive", acked_values_survive, data_loss=True),
)
