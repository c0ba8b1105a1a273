"""Servers that fail: Restart of RaftFsync.tla, and Crash, DiskIsLost, ClusterLosesPower and LearnerIsPromoted."""

from quorisk.kernels.model import action
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.instances import each
from quorisk.kernels.protocols.raft.bags import emptied, without_all
from quorisk.kernels.protocols.raft.layout import (
    FOLLOWER,
    LEADER,
    MAX_SERVERS,
    SERVERS,
    Bags,
    all_servers,
    minimum,
    prefix,
    with_role,
)

POWER = "power loss"


def forget_volatile(state, i):
    """The state once server i has lost its memory; its log is as it was."""
    after = with_role(state, i, FOLLOWER)._replace(
        votes_granted=state.votes_granted.put(i, 0), commit_index=state.commit_index.put(i, 0)
    )
    for j in range(MAX_SERVERS):
        after = forget_follower(after, i, j)
    return after


def forget_follower(state, i, j):
    """Leader i no longer knows how far j is."""
    return state._replace(next_index=state.next_index.put((i, j), 1), match_index=state.match_index.put((i, j), 0))


def cut(state, i, length):
    """The log of i without its last entries."""
    length = minimum(length, state.length[i])
    return state._replace(log=state.log.put(i, prefix(state.log[i], length)), length=state.length.put(i, length))


@each(SERVERS)
def restart_enabled(state, params, i):
    return state.restarts < params.max_restarts


@action(restart_enabled, POWER, bounds=("max_restarts",))
def restart(state, params, i, lost):
    """Each server loses power, and its unsynced entries."""
    return cut(forget_volatile(state, i), i, state.fsync_index[i])._replace(restarts=state.restarts + 1)


@each(SERVERS)
def crash_enabled(state, params, i):
    return state.crashes < params.max_crashes


@action(crash_enabled, "crash", bounds=("max_crashes",))
def crash(state, params, i, lost):
    """Each server's process dies and starts again."""
    return forget_volatile(state, i)._replace(crashes=state.crashes + 1)


def empty(state, params, i):
    """GoDown of a server whose disk is lost: an empty one is in its place."""
    after = cut(forget_volatile(state, i), i, 0)
    after = after._replace(
        fsync_index=after.fsync_index.put(i, 0), term=after.term.put(i, 1), voted_for=after.voted_for.put(i, 0)
    )
    new = after
    for leader in range(MAX_SERVERS):
        new = forget_follower(new, leader, i)
    return where(params.rejoin_as_new != 0, new._replace(learners=new.learners.put(i, 1)), after)


@each(SERVERS)
def disk_is_lost_enabled(state, params, i):
    return state.disk_losses < params.max_disk_losses


@action(disk_is_lost_enabled, "lost disk", bounds=("max_disk_losses",))
def disk_is_lost(state, params, i, lost):
    """Each server is replaced by an empty one."""
    after = empty(state, params, i)
    gone = where(params.rejoin_as_new != 0, 1 << i, 0)
    messages = Bags(*(without_all(bag, gone, params) for bag in state.messages))
    return after._replace(messages=messages, disk_losses=state.disk_losses + 1)


def cluster_loses_power_enabled(state, params):
    return (where(state.outages < params.max_outages, 1, 0),)


def servers_that_lose_power(state, params, instance):
    return all_servers(params)


@action(
    cluster_loses_power_enabled,
    "power outage",
    sends=servers_that_lose_power,
    lost_with="p_lost_in_outage",
    bounds=("max_outages",),
)
def cluster_loses_power(state, params, instance, lost):
    """The cluster loses power: all servers at once."""
    after = state
    for i in range(MAX_SERVERS):
        kept = cut(forget_volatile(after, i), i, state.fsync_index[i])
        down = where((lost >> i) & 1 != 0, empty(after, params, i), kept)
        after = where(i < params.servers, down, after)
    messages = Bags(*(emptied(bag, params) for bag in state.messages))
    return after._replace(messages=messages, outages=state.outages + 1)


def newest_leader(state, i):
    """Whether i leads, and nobody is in a later term."""
    return when(state.role[i] == LEADER, _in_last_term, state, i) != 0


def _in_last_term(state, i):
    last = True
    for k in range(MAX_SERVERS):
        last &= state.term[k] <= state.term[i]
    return last


@each(SERVERS, SERVERS)
def learner_is_promoted_enabled(state, params, leader, i):
    return when(state.learners[i] != 0, _has_all, state, leader, i)


def _has_all(state, leader, i):
    may = (state.learners[leader] == 0) & (state.role[i] == FOLLOWER)
    follows = (state.term[i] == state.term[leader]) & (state.match_index[leader, i] == state.length[leader])
    return may & follows & newest_leader(state, leader) & (state.log[i] == state.log[leader])


@action(learner_is_promoted_enabled, bounds=("rejoin_as_new",))
def learner_is_promoted(state, params, leader, i, lost):
    """Each learner that has all of its leader's log is made a voter."""
    return state._replace(learners=state.learners.put(i, 0), voted_for=state.voted_for.put(i, leader + 1))
