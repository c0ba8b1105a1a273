"""The part of a log on disk, and restarts that lose the rest: tests/data/tla/FLUSH.md. Instances: the replica."""

from quorisk.kernels.model import action
from quorisk.kernels.ops import where
from quorisk.kernels.protocols.cluster_settings import LOG_FLUSH_INTERVAL_MS
from quorisk.kernels.protocols.kafka.layout import presiding, quorum_leader, truncate
from quorisk.kernels.protocols.kafka.replication import controller_shrink_isr
from quorisk.kernels.protocols.rows import gathered, nonempty, row, with_row


def replica_flushes_enabled(state, params):
    return (gathered(nonempty(state.unflushed)),)


@action(replica_flushes_enabled, interval_ms=LOG_FLUSH_INTERVAL_MS, needs=("flush_every_message",))
def replica_flushes(state, params, replica, lost):
    """Each replica with records that are not on disk flushes them."""
    return state._replace(unflushed=with_row(state.unflushed, replica, 0))


def replica_restarts_unclean_enabled(state, params):
    """The controller sees that a leader or a member of the ISR is gone, for which it needs an epoch."""
    seen = where(state.next_epoch < params.epochs, 0, state.quorum_isr | quorum_leader(state))
    everyone = (1 << params.replicas) - 1
    return (where(state.unclean_restarts < params.max_unclean_restarts, everyone & ~seen, 0),)


@action(replica_restarts_unclean_enabled, "unclean restart", needs=("max_unclean_restarts",))
def replica_restarts_unclean(state, params, replica, lost):
    """Each replica restarts without what it had not flushed, and the controller notices."""
    broker = 1 << replica
    deposed = state.deposed | (gathered(nonempty(presiding(state))) & broker)
    in_sync = ((state.quorum_isr | quorum_leader(state)) & broker) != 0
    state = where(in_sync, controller_shrink_isr.apply(state, params, replica, lost), state)
    kept = row(state.logs & ~state.unflushed, replica)
    return truncate(state, replica, kept)._replace(deposed=deposed, unclean_restarts=state.unclean_restarts + 1)
