"""Invariants of a partition, and the outcome of a run."""

from quorisk.kernels.model import COMPLETED, STUCK, Invariant
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.kafka.layout import MAX_REPLICAS, exposed, presiding, quorum_leader, true_leader
from quorisk.kernels.protocols.rows import EVERY_ROW, ROW, nonempty, row, rows, union


def missing_in_local_isrs(state):
    """Bit 6r + i: replica r lacks record i, which a presumed leader with r in its ISR has below its high watermark."""
    leaders = presiding(state)
    missing = 0
    for leader in range(MAX_REPLICAS):
        in_isr = where(row(leaders, leader) != 0, rows(row(state.isrs, leader)), 0)
        missing |= (row(state.below_hw, leader) * EVERY_ROW) & in_isr & ~state.logs
    return missing


def weak_isr(state, params):
    """All replicas in the ISR that a presumed leader believes in hold its records below its high watermark."""
    in_any_isr = rows(union(state.isrs & (nonempty(presiding(state)) * ROW)))
    suspects = (exposed(state) * EVERY_ROW) & in_any_isr & ~state.logs  # none in most states
    return when(suspects != 0, missing_in_local_isrs, state) == 0


def strong_isr(state, params):
    """All replicas in the quorum's ISR hold the records below the high watermark of every presumed leader."""
    return (exposed(state) * EVERY_ROW) & rows(state.quorum_isr) & ~state.logs == 0


def leader_in_isr(state, params):
    """The quorum's leader, while there is one, is in the quorum's ISR."""
    return quorum_leader(state) & ~state.quorum_isr == 0


def true_leader_log(state):
    """The records of the true leader's log; none without one."""
    return union(state.logs & (nonempty(true_leader(state)) * ROW))


def committed_records_survive(state, params):
    """Once there is a true leader, its log holds every committed record: one that ever was below the high watermark of
    a replica while that replica presumed to lead, so that it may have been read, and was acknowledged to producers.

    StrongIsr is the promise, this the loss. Where StrongIsr fails a member of the ISR lacks a committed record, which
    is lost if that member is elected. Where StrongIsr holds a record may be lost all the same: StrongIsr forgets what
    a leader exposed as soon as that replica follows another.
    """
    missing = (state.committed | exposed(state)) & ~true_leader_log(state)
    return (missing == 0) | (true_leader(state) == 0)


def outcome(state, params):
    """Nothing is enabled, so no epochs are left: the run is completed if there is a true leader that has committed
    its whole log, else stuck, most often because the controller's last request named no leader."""
    leader_rows = nonempty(true_leader(state)) * ROW
    done = (state.logs & leader_rows & ~state.below_hw == 0) & (leader_rows != 0)
    return where(done, COMPLETED, STUCK)


INVARIANTS = (
    Invariant("WeakIsr", weak_isr, data_loss=False),
    Invariant("StrongIsr", strong_isr, data_loss=False),
    Invariant("LeaderInIsr", leader_in_isr, data_loss=False),
    Invariant("CommittedRecordsSurvive", committed_records_survive, data_loss=True),
)
