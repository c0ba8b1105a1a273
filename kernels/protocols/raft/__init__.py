"""Raft with and without fsync: a group of servers that elect a leader and replicate its log.

Source: RaftFsync.tla (Vanlightly/raft-tlaplus, specifications/raft-and-fsync), with crashes, lost disks, power outages
and learners as tests/data/tla/RAFT.md adds them. Actions stand in the order of Next under their own names. Timeout is
split, so that a timeout in spite of a healthy leader has a rate of its own (`false_timeout`).
"""

from quorisk.kernels.model import Model
from quorisk.kernels.protocols.raft import election, faults, replication
from quorisk.kernels.protocols.raft.forget import forget
from quorisk.kernels.protocols.raft.invariants import INVARIANTS, outcome
from quorisk.kernels.protocols.raft.layout import INITIAL, MAX_SERVERS, WIDTHS
from quorisk.kernels.protocols.raft.margin import MARGIN
from quorisk.kernels.protocols.raft.params import PARAMETERS, PROBABILITIES, make_params
from quorisk.kernels.telling import words_beside


def initial(params, choice):
    """Empty logs, all servers followers in term 1."""
    return INITIAL


MODEL = Model(
    name="raft",
    version=1,
    parameters=PARAMETERS,
    conditions=(),
    make_params=make_params,
    initial=initial,
    actions=(
        faults.restart,
        faults.crash,
        faults.disk_is_lost,
        faults.cluster_loses_power,
        faults.learner_is_promoted,
        election.timeout,
        election.false_timeout,
        election.request_vote,
        election.become_leader,
        replication.client_request,
        replication.advance_commit_index,
        replication.append_entries,
        replication.advance_fsync_index,
        election.update_term,
        election.handle_request_vote_request,
        election.handle_request_vote_response,
        replication.reject_append_entries_request,
        replication.accept_append_entries_request,
        replication.handle_append_entries_response,
    ),
    invariants=INVARIANTS,
    outcome=outcome,
    widths=WIDTHS,
    max_sends=MAX_SERVERS,
    limits=tuple(words_beside(__file__)["limits"]),
    forget=forget,
    margin=MARGIN,
    probabilities=PROBABILITIES,
)
