"""The invariants of Kafka's replication protocol once more, from the spec's text; see `tests.references.kafka`."""

from quorisk.kernels.protocols.kafka.describe import NIL, SpecState
from tests.references.kafka import all_replicas, is_true_leader, presumes, record_at


def _same_below(s: SpecState, r1: int, isr: frozenset[int]) -> bool:
    offsets = range(s.replicaState[r1].hw)
    return all(
        record_at(s, r1, o) is not None and record_at(s, r1, o) == record_at(s, r2, o) for r2 in isr for o in offsets
    )


def weak_isr(s: SpecState) -> bool:
    return all(_same_below(s, r, s.replicaState[r].isr) for r in all_replicas(s) if presumes(s, r))


def strong_isr(s: SpecState) -> bool:
    return all(_same_below(s, r, s.quorumState.isr) for r in all_replicas(s) if presumes(s, r))


def leader_in_isr(s: SpecState) -> bool:
    return s.quorumState.leader == NIL or s.quorumState.leader in s.quorumState.isr


def committed_now(s: SpecState) -> frozenset[int]:
    """Records that a presumed leader has below its high watermark."""
    return frozenset(
        record.id for r in all_replicas(s) if presumes(s, r) for record in s.replicaLog[r][: s.replicaState[r].hw]
    )


def committed_records_survive(s: SpecState, committed: frozenset[int]) -> bool:
    leaders = [r for r in all_replicas(s) if is_true_leader(s, r)]
    return all(committed <= {record.id for record in s.replicaLog[r]} for r in leaders)
