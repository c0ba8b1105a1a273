"""A state in the spec's own variables: for traces, and to compare it with other programs' states."""

from functools import cache, lru_cache
from typing import Any, NamedTuple

from quorisk.kernels.protocols.kafka.layout import (
    MAX_REPLICAS,
    State,
    end_offset,
    high_watermark,
    last_records,
    leader_epoch,
)
from quorisk.kernels.protocols.rows import EVERY_ROW, row, row_of

NIL = -1


class Record(NamedTuple):
    """LogRecords."""

    id: int
    epoch: int


class QuorumState(NamedTuple):
    """QuorumState, of the quorum or of a LeaderAndIsr request; NIL stands for None too."""

    leaderEpoch: int
    leader: int
    isr: frozenset[int]


class ReplicaState(NamedTuple):
    """ReplicaState."""

    hw: int
    leaderEpoch: int
    leader: int
    isr: frozenset[int]


class SpecState(NamedTuple):
    """The spec's variables; a log is the tuple of its records."""

    replicaLog: tuple[tuple[Record, ...], ...]
    replicaState: tuple[ReplicaState, ...]
    nextRecordId: int
    nextLeaderEpoch: int
    leaderAndIsrRequests: frozenset[QuorumState]
    quorumState: QuorumState
    flushed: tuple[int, ...]  # beyond the spec: the offset up to which a log is on disk, that one left out
    uncleanRestarts: int
    outages: int
    zoneOutages: int


@cache
def _members(mask: int) -> frozenset[int]:
    return frozenset(i for i in range(mask.bit_length()) if mask >> i & 1)


def _log(state: State, replica: int) -> tuple[Record, ...]:
    ends = range(1, end_offset(state, replica) + 1)
    ids = [row(state.logs, replica) & last_records(state, end) for end in ends]
    return tuple(Record(i.bit_length() - 1, row_of(state.epochs & (i * EVERY_ROW))) for i in ids)


@lru_cache(1 << 14)
def _leader(leads: int, epoch: int) -> int:
    leaders = [r for r in range(MAX_REPLICAS) if row(leads, r) >> epoch & 1] if epoch >= 0 else []
    return leaders[0] if leaders else NIL


def spec_state(state: State, params: Any) -> SpecState:
    """The state that the spec would have."""
    epochs = range(state.next_epoch)
    requests = [QuorumState(e, _leader(state.leads, e), _members(row(state.request_isrs, e))) for e in epochs]
    replicas, last = range(params.replicas), state.next_epoch - 1
    return SpecState(
        replicaLog=tuple(_log(state, r) for r in replicas),
        replicaState=tuple(
            ReplicaState(
                hw=high_watermark(state, r),
                leaderEpoch=leader_epoch(state, r),
                leader=NIL if state.deposed >> r & 1 else _leader(state.leads, leader_epoch(state, r)),
                isr=_members(row(state.isrs, r)),
            )
            for r in replicas
        ),
        nextRecordId=state.next_record,
        nextLeaderEpoch=state.next_epoch,
        leaderAndIsrRequests=frozenset(requests),
        quorumState=QuorumState(last, _leader(state.leads, last), _members(state.quorum_isr)),
        flushed=tuple(row(state.logs & ~state.unflushed, r).bit_count() for r in replicas),
        uncleanRestarts=state.unclean_restarts,
        outages=state.outages,
        zoneOutages=state.zone_outages,
    )
