"""Raft with and without fsync: a group of servers that elect a leader and replicate its log.

Source: RaftFsync.tla (Vanlightly/raft-tlaplus, specifications/raft-and-fsync), with crashes, lost disks, power outages
and learners as tests/data/tla/RAFT.md adds them. Actions stand in the order of Next under their own names. Timeout is
split, so that a timeout in spite of a healthy leader has a rate of its own (`false_timeout`).
"""

from quorisk.kernels.model import Model
from quorisk.kernels.protocols.raft import election, faults, replication
from quorisk.kernels.protocols.raft.forget import forget
from quorisk.kernels.protocols.raft.invariants import INVARIANTS, outcome
from quorisk.kernels.protocols.raft.layout import INITIAL, MAX_SERVERS, ROOM, WIDTHS, AppendRequest, VoteRequest
from quorisk.kernels.protocols.raft.margin import MARGIN
from quorisk.kernels.protocols.raft.params import PARAMETERS, PROBABILITIES, make_params


def initial(params, choice):
    """Empty logs, all servers followers in term 1."""
    return INITIAL


LIMITS = (
    "Elections and faults are few: runs that get stuck have used up their elections, which is the model's limit and no "
    "cluster's.",
    "Term and vote are on disk before a server answers; a server that restarts is back at once.",
    "With `panic_on_lost_log` a follower that lost what it acknowledged stops at once, where etcd's stops at its next "
    "heartbeat; nobody replaces it.",
    "The members of the group stay the same, but for a server with an empty disk, which may learn before it votes.",
    f"At most {ROOM[AppendRequest]} requests to append entries, and {ROOM[VoteRequest]} for votes, are on their way at "
    "once; others wait until there is room.",
    "Entries are sent one by one, and nobody takes snapshots; clients do not retry.",
    "P is that of losing one of `model.values` values, not any of a log that is written to all the time: entries are "
    "sent and synced one by one, so neighbours do not fare alike (docs/concepts.md).",
)
"""Limits of the model, one sentence each."""

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
    limits=LIMITS,
    forget=forget,
    margin=MARGIN,
    probabilities=PROBABILITIES,
)
