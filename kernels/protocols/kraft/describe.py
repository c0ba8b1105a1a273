"""A state in the spec's own variables: for traces, and to compare it with other programs' states."""

from functools import cache, lru_cache
from typing import Any

from quorisk.kernels.ops import lowest_bit, popcount
from quorisk.kernels.protocols.kraft import layout, spec
from quorisk.kernels.protocols.kraft.layout import (
    ACCEPTED,
    BODY_BITS,
    FENCED_EPOCH,
    HEAD_BITS,
    INELIGIBLE,
    MAX_STARTS,
    MAX_VALUES,
    NOT_LEADER,
    REQUESTED,
    UNKNOWN_EPOCH,
    leader_epoch_of,
    leo_of,
    peer_epoch,
    place_of,
    wide_row,
)
from quorisk.kernels.protocols.rows import WIDTH, row

_FETCH_ERRORS = {
    UNKNOWN_EPOCH: spec.UNKNOWN_LEADER_EPOCH,
    FENCED_EPOCH: spec.FENCED_LEADER_EPOCH,
    NOT_LEADER: spec.NOT_LEADER,
}


def spec_state(state: layout.State, params: Any) -> spec.SpecState:
    """The state that the spec would have."""
    brokers = range(params.brokers)
    log = metadata_log(state.log, state.con.partition_epoch, params)
    replicated = [wide_row(state.replicated, record.partition_epoch - 1) for record in log]
    alters = alter_messages(state)
    return spec.SpecState(
        con_unfenced=_brokers(state.unfenced),
        con_broker_reg=tuple(
            spec.Registration(
                spec.UNFENCED if state.unfenced >> b & 1 else spec.FENCED,
                row(state.reg_epochs, b),
                row(state.reg_incarnations, b),
            )
            for b in brokers
        ),
        con_partition_metadata=log[-1],
        con_metadata_log=log,
        broker_state=tuple(_broker_state(state, b) for b in brokers),
        broker_fetchers=tuple(tuple(_fetcher(state, b, t) for t in brokers) for b in brokers),
        broker_metadata_log=tuple(
            tuple(record for record, by in zip(log, replicated, strict=True) if by >> b & 1) for b in brokers
        ),
        partition_status=tuple(_status(state, b) for b in brokers),
        partition_metadata=tuple(_local(state, b) for b in brokers),
        partition_data=tuple(
            spec.PartitionData(records(state, row(state.logs, b)), row(state.hwms, b), leo_of(state, b))
            for b in brokers
        ),
        partition_flushed=tuple(popcount(row(state.logs & ~state.unflushed, b)) + 1 for b in brokers),
        partition_leso=tuple(row(state.lesos, b) or None for b in brokers),
        partition_replica_state=tuple(tuple(_peer(state.peers[b], b, p) for p in brokers) for b in brokers),
        partition_pending_ap=tuple(_pending(state, b, alters) for b in brokers),
        messages=frozenset(
            [*_register_messages(state, params), *alters.values(), *_fetch_messages(state, params.brokers)]
        ),
        aux_broker_epoch=params.brokers + state.registrations,
        aux_ctrs=spec.Counters(
            params.brokers + 1 + state.starts,
            state.clean_shutdowns,
            state.lossy_shutdowns,
            state.fencings,
            state.isr_shrinks,
            state.reassignments,
            state.outages,
            state.zone_outages,
            state.tail_losses,
            state.stalls,
            state.rolls,
            state.isolations,
        ),
        aux_flo=tuple(row(state.flos, b) or None for b in brokers),
        inv_sent=_values(state.sent),
        inv_pos_acked=_values(state.pos_acked),
        inv_neg_acked=_values(state.neg_acked),
        inv_true_hwm=state.true_hwm,
        inv_consumed=records(state, state.consumed),
        stalled=_brokers(state.stalled),
        to_restart=_brokers(state.to_restart),
        restarting=_brokers(state.restarting),
        isolated=_brokers(state.isolated),
    )


@cache
def _brokers(mask: int) -> spec.Brokers:
    return frozenset(b + 1 for b in range(mask.bit_length()) if mask >> b & 1)


@cache
def _values(mask: int) -> frozenset[int]:
    return frozenset(v for v in range(MAX_VALUES) if mask >> v & 1)


def _leader(mask: int) -> int | None:
    return lowest_bit(mask) + 1 if mask else None


def records(state: layout.State, values: int) -> tuple[spec.Record, ...]:
    """A set of values as records, by offset."""
    found = [
        spec.Record(row(state.value_epochs, v), offset + 1, v)
        for offset in range(MAX_VALUES)
        for v in _values(values & row(state.offsets, offset))
    ]
    return tuple(found)


@lru_cache(1 << 12)  # what few steps add to
def metadata_log(log: layout.MetadataLog, partition_epoch: int, params: Any) -> tuple[spec.PartitionMetadata, ...]:
    """con_metadata_log; `last_known_elr` is made of the other fields again, as ApplyPartitionChange does."""
    found: list[spec.PartitionMetadata] = []
    for i in range(int(params.init_isr < params.replication_factor), partition_epoch):
        sets = (_brokers(wide_row(w, i)) for w in (log.replicas, log.isrs, log.elrs, log.adding, log.removing))
        replicas, isr, elr, adding, removing = sets
        known: spec.Brokers = frozenset()
        leader = _leader(wide_row(log.leaders, i))
        if params.kafka:
            if params.last_known_leader and leader is None:
                known = frozenset({found[-1].leader}) if found[-1].leader else found[-1].last_known_elr
        elif params.kip966 and found and len(isr) < params.min_isr:
            known = found[-1].last_known_elr | replicas & (found[-1].elr - elr)
        epoch = leader_epoch_of(log, i)
        found.append(spec.PartitionMetadata(replicas, isr, elr, known, leader, epoch, i + 1, adding, removing))
    return tuple(found)


def _broker_state(state: layout.State, b: int) -> spec.BrokerState:
    status = spec.OFFLINE_DIRTY if state.dirty >> b & 1 else spec.OFFLINE_CLEAN
    status = spec.STARTING if state.starting >> b & 1 else status
    runs = bool(state.running >> b & 1)
    status = spec.RUNNING if runs else status
    return spec.BrokerState(status, row(state.broker_epochs, b), row(state.incarnations, b), runs)


def _status(state: layout.State, b: int) -> str | None:
    if state.leaders >> b & 1:
        return spec.LEADER
    return spec.FOLLOWER if state.followers >> b & 1 else None


def _fetcher(state: layout.State, b: int, t: int) -> spec.Fetcher:
    place = WIDTH * b + t
    partition = None
    if state.fetchers >> place & 1:
        epoch = layout.last_epoch(state, row(state.logs, b))
        partition = spec.FetchState(leo_of(state, b), epoch, bool(state.delayed >> b & 1))
    return spec.Fetcher(partition, bool((state.fetch_requests | state.fetch_responses) >> place & 1))


def _local(state: layout.State, b: int) -> spec.ReplicaMetadata:
    local = state.local
    return spec.ReplicaMetadata(
        _brokers(row(local.replicas, b)),
        _brokers(row(local.isrs, b)),
        _brokers(row(local.maximal_isrs, b)),
        _leader(row(local.leaders, b)),
        row(local.leader_epochs, b),
        row(local.partition_epochs, b),
    )


@lru_cache(1 << 14)  # what happens elsewhere leaves a broker's word as it is
def _peer(word: int, b: int, p: int) -> spec.PeerReplica:
    leo = sum(row(word, offset) >> p & 1 for offset in range(MAX_VALUES + 1))
    return spec.PeerReplica(leo or None, 0 if p == b else peer_epoch(word, b, p))


def alter_messages(state: layout.State) -> dict[int, spec.AlterRequest | spec.AlterResponse]:
    """AlterPartition requests and responses, by the partition epoch that the request was made in."""
    log = state.log
    found: dict[int, spec.AlterRequest | spec.AlterResponse] = {}
    for i in range(state.con.partition_epoch):
        kind = wide_row(state.alters.kinds, i)
        if not kind:
            continue
        source = wide_row(log.leaders, i).bit_length()
        isr = _brokers(wide_row(state.alters.isrs, i))
        epochs = state.alters.epochs[i]
        named = {b: epochs >> 4 * (b - 1) & 15 for b in sorted(isr)}
        request = spec.AlterRequest(isr, tuple(named.items()), leader_epoch_of(log, i), i + 1, named[source], source)
        found[i + 1] = request
        if kind == ACCEPTED:
            sets = _brokers(wide_row(log.replicas, i + 1)), _brokers(wide_row(log.isrs, i + 1))
            leader = _leader(wide_row(log.leaders, i + 1))
            found[i + 1] = spec.AlterResponse(None, request, source, *sets, leader, leader_epoch_of(log, i + 1), i + 2)
        elif kind != REQUESTED:
            error = spec.INELIGIBLE_REPLICA if kind == INELIGIBLE else spec.FENCED_LEADER_EPOCH
            found[i + 1] = spec.AlterResponse(error, request, source)
    return found


def _pending(state: layout.State, b: int, sent: dict[int, spec.AlterRequest | spec.AlterResponse]) -> spec.PendingAlter:
    if not state.pending >> b & 1:
        return spec.PendingAlter(0, None)
    epoch = row(state.local.partition_epochs, b)
    message = sent[epoch]
    return spec.PendingAlter(epoch + 1, message if isinstance(message, spec.AlterRequest) else message.request)


def _register_messages(state: layout.State, params: Any) -> list[spec.RegisterRequest | spec.RegisterResponse]:
    virtual = int(params.init_isr < params.replication_factor)
    found: list[spec.RegisterRequest | spec.RegisterResponse] = []
    for k in range(MAX_STARTS):
        incarnation, epoch = params.brokers + 1 + k, row(state.register_epochs, k)
        offset = row(state.register_records, k) - virtual
        found += [spec.RegisterRequest(b, epoch, incarnation) for b in _brokers(row(state.register_requests, k))]
        found += [
            spec.RegisterResponse(b, epoch, incarnation, offset) for b in _brokers(row(state.register_responses, k))
        ]
    return found


def _fetch_messages(state: layout.State, brokers: int) -> list[spec.FetchRequest | spec.FetchResponse]:
    found: list[spec.FetchRequest | spec.FetchResponse] = []
    for f in range(brokers):
        for t in range(brokers):
            if not (state.fetch_requests | state.fetch_responses) >> WIDTH * f + t & 1:
                continue
            head = state.fetch_heads[f] >> HEAD_BITS * place_of(f, t)
            body = state.fetch_bodies[f] >> BODY_BITS * place_of(f, t)
            epoch, offset, end_epoch, end = head & 15, head >> 4 & 7, body >> MAX_VALUES & 15, body & layout.ALL_VALUES
            if state.fetch_requests >> WIDTH * f + t & 1:
                own = row(state.broker_epochs, f)
                found.append(spec.FetchRequest(own, epoch, offset, end_epoch, t + 1, f + 1))
            else:
                diverging = spec.EpochOffset(end_epoch, end) if end_epoch else None
                error = _FETCH_ERRORS.get(head >> 10 & 3)
                record = () if end_epoch else records(state, body & layout.ALL_VALUES)
                found.append(spec.FetchResponse(error, epoch, offset, diverging, head >> 7 & 7, record, f + 1, t + 1))
    return found
