"""What should hold in every state, by name."""

from collections.abc import Callable

from quorisk.kernels.protocols.kraft.spec import SpecState
from tests.references.kraft.state import (
    Values,
    brokers,
    is_966,
    is_kafka,
    is_leader,
    leo_of,
    log_of,
    md_of,
    pending_alter_partition_response,
    running,
)


def non_stale_leader(s, b):
    return is_leader(s, b) and md_of(s, b).leader_epoch == s.con_partition_metadata.leader_epoch


def replication_quorum_superset_property(s, v):
    md = s.con_partition_metadata
    for b in filter(lambda b: non_stale_leader(s, b), brokers(v)):
        own = md_of(s, b)
        if not pending_alter_partition_response(s, b) and own.maximal_isr != own.isr:
            return False
        if not is_966(v):
            if not md.isr <= own.maximal_isr:
                return False
        elif len(own.isr) >= v["min_isr"] and not md.isr | md.elr <= own.maximal_isr:
            return False
    return True


def leader_candidate_completeness_property(s, v):
    md = s.con_partition_metadata
    return s.inv_true_hwm == 1 or not any(leo_of(s, b) < s.inv_true_hwm and running(s, b) for b in md.isr | md.elr)


def leader_completeness_property(s, v):
    leader = s.con_partition_metadata.leader
    if s.inv_true_hwm == 1 or leader is None or not running(s, leader):
        return True
    return leo_of(s, leader) >= s.inv_true_hwm and s.inv_pos_acked <= {r.value for r in log_of(s, leader)}


def log_matching_property(s, v):
    for offset in range(1, v["values"] + 1):
        values = {d.log[offset - 1].value for d in s.partition_data if d.leo > offset and d.hwm > offset}
        if len(values) > 1:
            return False
    return True


def metadata_log_matching_property(s, v):
    return all(log == s.con_metadata_log[: len(log)] for log in s.broker_metadata_log)


def no_committed_record_lost_globally(s, v):
    return s.inv_pos_acked <= {r.value for d in s.partition_data for r in d.log}


def acked_records_are_on_disk(s, v):
    """Every acknowledged record is on the disk of some broker."""
    ends = zip(s.partition_data, s.partition_flushed, strict=True)
    return s.inv_pos_acked <= {record.value for data, end in ends for record in data.log[: end - 1]}


def consistent_read_property(s, v):
    n = len(s.inv_consumed)
    return all(log_of(s, b)[:n] == s.inv_consumed for b in brokers(v) if non_stale_leader(s, b))


def acked_records_survive(s, v):
    """A leader that runs has each acknowledged record, and so has some log, unless that is asked of leaders alone."""
    if v["lost_without_leader"] and not no_committed_record_lost_globally(s, v):
        return False
    if not is_kafka(v):
        return leader_completeness_property(s, v) and consistent_read_property(s, v)
    leader = s.con_partition_metadata.leader
    return leader is None or not running(s, leader) or s.inv_pos_acked <= {r.value for r in log_of(s, leader)}


def min_isr_recovery_quorum(s, v):
    md = s.con_partition_metadata
    return not is_966(v) or is_kafka(v) or bool(md.isr or md.elr) or len(md.last_known_elr) == v["min_isr"]


PROPERTIES: dict[str, Callable[[SpecState, Values], bool]] = {
    "AckedRecordsSurvive": acked_records_survive,
    "LeaderCompletenessProperty": leader_completeness_property,
    "NoCommittedRecordLostGlobally": no_committed_record_lost_globally,
    "LeaderCandidateCompletenessProperty": leader_candidate_completeness_property,
    "ReplicationQuorumSupersetProperty": replication_quorum_superset_property,
    "LogMatchingProperty": log_matching_property,
    "MetadataLogMatchingProperty": metadata_log_matching_property,
    "ConsistentReadProperty": consistent_read_property,
    "MinIsrRecoveryQuorum": min_isr_recovery_quorum,
    "AckedRecordsAreOnDisk": acked_records_are_on_disk,
    "ProducersHaveRoom": lambda s, v: True,  # producers have no more records, and wait for nothing
}
