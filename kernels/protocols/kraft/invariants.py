"""Invariants of a partition, and the outcome of a run.

Data is lost if AckedRecordsSurvive breaks, which is no invariant of the specs. In Kafka's semantics it counts what a
producer was told; in the specs' own it stands for their LeaderCompletenessProperty, NoCommittedRecordLostGlobally and
ConsistentReadProperty, which also count what was committed and never acknowledged, or refused.
"""

from quorisk.kernels.model import AVAILABILITY, COMPLETED, EXPOSURE, STUCK, Invariant
from quorisk.kernels.ops import lowest_bit, popcount, when, where
from quorisk.kernels.protocols.kraft.layout import EVERY_BROKER, MAX_BROKERS, MAX_VALUES, leo_of, values_before
from quorisk.kernels.protocols.rows import EVERY_ROW, ROW, WIDTH, gathered, nonempty, row, rows, union


def running_leader(state):
    """The controller's leader, if it runs."""
    return state.con.leader & state.running


def incomplete_leader(state, leader):
    """1 if this leader's log lacks a committed offset or an acknowledged value."""
    b = lowest_bit(leader)
    needed = state.pos_acked | where(state.true_hwm == 1, state.consumed, 0)
    return where((leo_of(state, b) < state.true_hwm) | (needed & ~row(state.logs, b) != 0), 1, 0)


def lacked(state, leader):
    """The acknowledged values that this leader's log lacks."""
    return state.pos_acked & ~row(state.logs, lowest_bit(leader))


def acked_records_survive(state, params):
    """No acknowledged value is gone: a leader that runs has it, and some log, unless that is asked of leaders alone."""
    leader = running_leader(state)
    gone = when((state.pos_acked != 0) & (leader != 0), lacked, state, leader)
    specs = leader_completeness_property(state, params) & consistent_read_property(state, params)
    somewhere = (params.lost_without_leader == 0) | no_committed_record_lost_globally(state, params)
    return somewhere & where(params.kafka, gone == 0, specs)


def leader_completeness_property(state, params):
    """Once something is committed: a leader that runs has the committed offsets and the acknowledged values."""
    leader = running_leader(state)
    return when((state.consumed != 0) & (leader != 0), incomplete_leader, state, leader) == 0


def no_committed_record_lost_globally(state, params):
    """Every acknowledged value is in some broker's log, that of a broker that is down included."""
    return state.pos_acked & ~union(state.logs) == 0


def short_of_true_hwm(state):
    """The brokers whose log lacks a committed offset; where `true_hwm` stays 1, a committed value."""
    counted = state.true_hwm > 1
    last = row(state.offsets, where(counted, state.true_hwm - 2, 0))
    beyond = ~nonempty(state.logs & (last * EVERY_BROKER)) & EVERY_BROKER
    return gathered(where(counted, beyond, nonempty((state.consumed * EVERY_BROKER) & ~state.logs)))


def acked_records_are_on_disk(state, params):
    """Every acknowledged value is on some broker's disk: if all lost power now, one would be left."""
    return state.pos_acked & ~union(state.logs & ~state.unflushed) == 0


def leader_candidate_completeness_property(state, params):
    """Once something is committed: all of ISR and ELR that run have the committed offsets."""
    pool = (state.con.isr | state.con.elr) & state.running
    return pool & when((state.consumed != 0) & (pool != 0), short_of_true_hwm, state) == 0


def non_stale_leaders(state):
    """IsNonStaleLeader."""
    found = 0
    for b in range(MAX_BROKERS):
        found |= where(row(state.local.leader_epochs, b) == state.con.leader_epoch, 1 << b, 0)
    return found & state.leaders


def replication_quorum_superset_property(state, params):
    """The maximal ISR of the leader covers ISR and ELR of the controller (with KIP-966: if its ISR has MinISR members),
    and is its ISR unless it waits for an AlterPartition response."""
    leaders = when(state.leaders != 0, non_stale_leaders, state)
    local = state.local
    unsettled = (local.maximal_isrs ^ local.isrs) & rows(leaders & ~state.pending)
    uncovered = ((state.con.isr | state.con.elr) * EVERY_BROKER) & ~local.maximal_isrs & rows(leaders)
    large = 0
    for b in range(MAX_BROKERS):
        enough = (params.kip966 == 0) | (popcount(row(local.isrs, b)) >= params.min_isr)
        large |= where(enough, ROW << (WIDTH * b), 0)
    return unsettled | (uncovered & large) == 0


def conflicting(state):
    """Bit 6(o - 1): logs hold different values at offset o, below the high watermarks of both."""
    stable = 0
    for b in range(MAX_BROKERS):
        stable |= row(state.logs, b) & values_before(state, row(state.hwms, b))
    return several(state.offsets & (stable * EVERY_ROW))


def several(matrix):
    """The lowest bit of every row of values that has two bits set or more."""
    one, two = 0, 0
    for v in range(MAX_VALUES):
        bit = (matrix >> v) & EVERY_ROW
        two |= one & bit
        one |= bit
    return two


def log_matching_property(state, params):
    """Any two logs agree below the high watermarks of both."""
    return when(several(state.offsets) != 0, conflicting, state) == 0


def metadata_log_matching_property(state, params):
    """Every broker's metadata log is a prefix of the controller's.

    True by construction: a broker appends what the controller's log has next, and restarts with a prefix of it; so the
    state holds which records it has.
    """
    return state.replicated.low >= 0


def unread(state):
    """Values that consumers read and that a leader of the current epoch lacks."""
    return (state.consumed * EVERY_BROKER) & ~state.logs & rows(non_stale_leaders(state))


def consistent_read_property(state, params):
    """A leader that is not stale has every record that consumers have read, at the offset where they read it."""
    return when((state.consumed != 0) & (state.leaders != 0), unread, state) == 0


def min_isr_recovery_quorum(state, params):
    """KIP-966: with ISR and ELR empty, as many brokers as MinISR are the last known ELR. Kafka keeps one: see
    `last_known_elr`."""
    known = popcount(state.con.last_known_elr) == params.min_isr
    return (params.kip966 == 0) | (params.kafka != 0) | (state.con.isr | state.con.elr != 0) | known


def producers_have_room(state, params):
    """Records that have to be told apart have not used up all values, with continuous writes."""
    return (params.continuous_writes == 0) | (state.sent != params.values)


def outcome(state, params):
    """Nothing is enabled: the run is completed if a leader runs and has committed its whole log, else stuck, most often
    as nobody is left who may lead."""
    leader = running_leader(state)
    b = lowest_bit(leader | 1 << (MAX_BROKERS - 1))
    done = (leader & state.leaders != 0) & (row(state.hwms, b) == leo_of(state, b))
    return where(done, COMPLETED, STUCK)


INVARIANTS = (
    Invariant("AckedRecordsSurvive", acked_records_survive, data_loss=True),
    Invariant("LeaderCompletenessProperty", leader_completeness_property, data_loss=False),
    Invariant("NoCommittedRecordLostGlobally", no_committed_record_lost_globally, data_loss=False),
    Invariant("LeaderCandidateCompletenessProperty", leader_candidate_completeness_property, data_loss=False),
    Invariant("ReplicationQuorumSupersetProperty", replication_quorum_superset_property, data_loss=False),
    Invariant("LogMatchingProperty", log_matching_property, data_loss=False),
    Invariant("MetadataLogMatchingProperty", metadata_log_matching_property, data_loss=False),
    Invariant("ConsistentReadProperty", consistent_read_property, data_loss=False),
    Invariant("MinIsrRecoveryQuorum", min_isr_recovery_quorum, data_loss=False),
    Invariant("AckedRecordsAreOnDisk", acked_records_are_on_disk, data_loss=False, about=EXPOSURE),
    Invariant("ProducersHaveRoom", producers_have_room, data_loss=False, about=AVAILABILITY, room="values"),
)
