"""Kafka's KRaft replication once more, from the specs' text: slow, with sets and tuples, sharing no rule with
`kernels.protocols.kraft`. Only the shape of the states is taken from `kernels.protocols.kraft.spec`."""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

from quorisk.kernels.protocols.kraft.spec import (
    FENCED,
    FENCED_LEADER_EPOCH,
    FOLLOWER,
    INELIGIBLE_REPLICA,
    LEADER,
    NOT_LEADER,
    OFFLINE_CLEAN,
    OFFLINE_DIRTY,
    RUNNING,
    STARTING,
    UNFENCED,
    UNKNOWN_LEADER_EPOCH,
    AlterRequest,
    AlterResponse,
    BrokerState,
    Counters,
    EpochOffset,
    Fetcher,
    FetchRequest,
    FetchResponse,
    FetchState,
    PartitionData,
    PartitionMetadata,
    PeerReplica,
    PendingAlter,
    Record,
    RegisterRequest,
    RegisterResponse,
    Registration,
    ReplicaMetadata,
    SpecState,
)

Values = dict[str, Any]
Successors = Iterator[SpecState]

NOBODY: frozenset[int] = frozenset()
BLANK_FETCHER = Fetcher(None, False)
BLANK_PEER = PeerReplica(None, 0)
BLANK_METADATA = ReplicaMetadata(NOBODY, NOBODY, NOBODY, None, 0, 0)
NO_PENDING = PendingAlter(0, None)
EMPTY = PartitionData((), 1, 1)


def is_966(v: Values) -> bool:
    return v["version"] == "kip966"


def brokers(v: Values) -> range:
    return range(1, v["brokers"] + 1)


def subsets(items) -> Iterator[frozenset[int]]:
    items = sorted(items)
    return (frozenset(chosen) for n in range(len(items) + 1) for chosen in combinations(items, n))


def put(items: tuple, b: int, item: Any) -> tuple:
    return items[: b - 1] + (item,) + items[b:]


def put2(rows: tuple, b: int, c: int, item: Any) -> tuple:
    return put(rows, b, put(rows[b - 1], c, item))


def initial(v: Values) -> SpecState:
    everyone = brokers(v)
    replicas = frozenset(range(1, v["replication_factor"] + 1))
    isr = frozenset(range(1, v["init_isr"] + 1))
    part_epoch = 1 if v["init_isr"] == v["replication_factor"] else 2
    md = PartitionMetadata(replicas, isr, NOBODY, NOBODY, 1, 1, part_epoch, NOBODY, NOBODY)
    unfenced = frozenset(everyone) - (replicas - isr)

    def local(b: int) -> ReplicaMetadata:
        if b not in replicas:
            return BLANK_METADATA
        if b in isr:
            return ReplicaMetadata(replicas, isr, isr, 1, 1, part_epoch)
        return ReplicaMetadata(replicas, replicas, replicas, 1, 1, 1)

    def fetcher(b: int, b1: int) -> Fetcher:
        return Fetcher(FetchState(1, 0, False), False) if b != 1 and b1 == 1 else BLANK_FETCHER

    return SpecState(
        con_unfenced=unfenced,
        con_broker_reg=tuple(Registration(UNFENCED if b in unfenced else FENCED, b, b) for b in everyone),
        con_partition_metadata=md,
        con_metadata_log=(md,),
        broker_state=tuple(BrokerState(RUNNING, b, b, True) for b in everyone),
        broker_fetchers=tuple(tuple(fetcher(b, b1) for b1 in everyone) for b in everyone),
        broker_metadata_log=tuple((md,) if b in unfenced else () for b in everyone),
        partition_status=tuple(LEADER if b == 1 else FOLLOWER if b in replicas else None for b in everyone),
        partition_metadata=tuple(map(local, everyone)),
        partition_data=(EMPTY,) * len(everyone),
        partition_leso=tuple(1 if b == 1 else None for b in everyone),
        partition_replica_state=((BLANK_PEER,) * len(everyone),) * len(everyone),
        partition_pending_ap=(NO_PENDING,) * len(everyone),
        messages=frozenset(),
        aux_broker_epoch=len(everyone),
        aux_ctrs=Counters(len(everyone) + 1, 0, 0, 0, 0, 0),
        aux_flo=(None,) * len(everyone),
        inv_sent=frozenset(),
        inv_pos_acked=frozenset(),
        inv_neg_acked=frozenset(),
        inv_true_hwm=1,
        inv_consumed=(),
    )


# ---- helpers


def log_of(s, b):
    return s.partition_data[b - 1].log


def leo_of(s, b):
    return s.partition_data[b - 1].leo


def hwm_of(s, b):
    return s.partition_data[b - 1].hwm


def md_of(s, b) -> ReplicaMetadata:
    return s.partition_metadata[b - 1]


def fetcher_of(s, b, b1) -> Fetcher:
    return s.broker_fetchers[b - 1][b1 - 1]


def peer(s, b, b1) -> PeerReplica:
    return s.partition_replica_state[b - 1][b1 - 1]


def running(s, b):
    return s.broker_state[b - 1].status == RUNNING


def is_leader(s, b):
    return s.partition_status[b - 1] == LEADER


def offline(s, b):
    return s.broker_state[b - 1].status in (OFFLINE_CLEAN, OFFLINE_DIRTY)


def received(s, kind):
    return sorted((m for m in s.messages if isinstance(m, kind)), key=repr)


def reply(s, m, answer):
    return s._replace(messages=s.messages - {m} | {answer})


def discard(s, m):
    return s._replace(messages=s.messages - {m})


def reset_all_follower_state(s, b):
    row = (BLANK_PEER,) * len(s.broker_state)
    return s._replace(partition_replica_state=put(s.partition_replica_state, b, row))


def reset_pending_alter_partition(s, b):
    return s._replace(partition_pending_ap=put(s.partition_pending_ap, b, NO_PENDING))


def reset_pending_acks(s, b):
    return s._replace(aux_flo=put(s.aux_flo, b, None))


def pending_alter_partition_response(s, b):
    return s.partition_pending_ap[b - 1].epoch > md_of(s, b).partition_epoch


def reassignment_in_progress(s):
    return bool(s.con_partition_metadata.adding or s.con_partition_metadata.removing)


# ---- key functions


def partition_needs_action(s, b, offset):
    record = s.con_metadata_log[offset - 1]
    replicas = md_of(s, b).replicas
    return (
        is_leader(s, b)
        or (b in replicas and record.leader_epoch > md_of(s, b).leader_epoch)
        or (b not in replicas and b in record.replicas)
    )


def get_commit_offset(s, b, maximal_isr, leo, peers):
    if leo_of(s, b) == 1:
        return 0

    def committed(offset):
        return all(b == b1 or (peers[b1 - 1].leo is not None and peers[b1 - 1].leo > offset) for b1 in maximal_isr)

    return max((o for o in range(1, leo) if committed(o)), default=0)


def acking_isr(s, v, b):
    """What a high watermark waits for."""
    md = md_of(s, b)
    return md.maximal_isr if v["maximal_isr"] else md.isr


def can_advance_hwm(v, isr, old_hwm, new_hwm):
    safe = not is_966(v) or not v["min_isr_to_commit"] or len(isr) >= v["min_isr"]
    return new_hwm > old_hwm and safe


def send_acks_for(s, b, lower, higher, ack_type):
    flo = s.aux_flo[b - 1]
    values = {
        r.value for r in log_of(s, b) if lower <= r.offset <= higher and flo is not None and r.offset >= flo
    } & s.inv_sent - s.inv_pos_acked - s.inv_neg_acked
    if higher >= lower:
        assert lower >= 1
        assert higher <= len(log_of(s, b))
    if ack_type:
        return s._replace(inv_pos_acked=s.inv_pos_acked | values)
    return s._replace(inv_neg_acked=s.inv_neg_acked | values)


def update_hwm_invariant_vars(s, b, old_hwm, new_hwm, ack_type):
    after = send_acks_for(s, b, old_hwm, (new_hwm if ack_type else leo_of(s, b)) - 1, ack_type)
    if new_hwm > s.inv_true_hwm:
        more = log_of(s, b)[s.inv_true_hwm - 1 : new_hwm - 1]
        assert len(more) == new_hwm - s.inv_true_hwm
        after = after._replace(inv_true_hwm=new_hwm, inv_consumed=s.inv_consumed + more)
    return after


def maybe_advance_high_watermark(s, v, b, isr, old_hwm, new_hwm, ack_type):
    if not can_advance_hwm(v, isr, old_hwm, new_hwm):
        return s
    s = s._replace(partition_data=put(s.partition_data, b, s.partition_data[b - 1]._replace(hwm=new_hwm)))
    return update_hwm_invariant_vars(s, b, old_hwm, new_hwm, ack_type)


def fail_pending_writes(s, b):
    return send_acks_for(s, b, hwm_of(s, b), leo_of(s, b) - 1, False)


def maybe_fail_pending_writes(s, v, b, new):
    if hwm_of(s, b) < leo_of(s, b) and (len(new.isr) < v["min_isr"] or b != new.leader):
        return fail_pending_writes(s, b)
    return s


def maybe_update_hwm_and_ack_on_partition_change(s, v, b, new):
    new_hwm = get_commit_offset(s, b, new.maximal_isr, leo_of(s, b), s.partition_replica_state[b - 1]) + 1
    return maybe_advance_high_watermark(s, v, b, new.isr, hwm_of(s, b), new_hwm, len(new.maximal_isr) >= v["min_isr"])


def apply_partition_change(s, v, replicas, leader, isr, elr, leader_epoch, part_epoch, adding, removing):
    md = s.con_partition_metadata
    last_known = NOBODY
    if is_966(v) and len(isr) < v["min_isr"]:
        last_known = md.last_known_elr | (replicas & (md.elr - elr))
    new = PartitionMetadata(replicas, isr, elr, last_known, leader, leader_epoch, part_epoch, adding, removing)
    return s._replace(con_partition_metadata=new, con_metadata_log=(*s.con_metadata_log, new))


def update_elr(s, v, proposed_isr, replicas):
    """UpdateElrOnIsrOrReplicaChange."""
    md = s.con_partition_metadata
    if not is_966(v) or len(proposed_isr) >= v["min_isr"]:
        return NOBODY
    return (md.elr & replicas) | ((md.isr & replicas) - proposed_isr)


def maybe_update_partition_on_broker_change(s, v, isr, elr, unfenced) -> Successors:
    md = s.con_partition_metadata

    def change(leader, isr, elr, bump):
        return apply_partition_change(
            s,
            v,
            md.replicas,
            leader,
            isr,
            elr,
            md.leader_epoch + bump,
            md.partition_epoch + 1,
            md.adding,
            md.removing,
        )

    unclean = v["unclean_leader_election"]
    if is_966(v):
        no_leader_change = (
            md.leader is None and not isr and not elr & unfenced and not (unclean and md.replicas & unfenced)
        ) or md.leader in isr
    else:
        no_leader_change = (md.leader is None and not isr & unfenced and not (unclean and md.replicas & unfenced)) or (
            md.leader in isr and md.leader in unfenced
        )
    if no_leader_change and isr == md.isr and elr == md.elr:
        yield s
    elif no_leader_change:
        yield change(md.leader, isr, elr, 0)
    elif is_966(v) and isr:
        for candidate in isr:
            yield change(candidate, isr, elr, 1)
    elif is_966(v) and elr & unfenced:
        for candidate in elr & unfenced:
            yield change(candidate, isr | {candidate}, elr - {candidate}, 1)
    elif not is_966(v) and isr & unfenced:
        for candidate in isr & unfenced:
            yield change(candidate, isr, elr, 1)
    elif unclean and md.replicas & unfenced:  # beyond the specs
        for candidate in md.replicas & unfenced:
            yield change(candidate, frozenset({candidate}), NOBODY, 1)
    else:
        yield change(None, isr, elr, 1)


def with_unfenced(s, b, unfenced):
    reg = s.con_broker_reg[b - 1]._replace(status=UNFENCED if unfenced else FENCED)
    members = s.con_unfenced | {b} if unfenced else s.con_unfenced - {b}
    return s._replace(con_unfenced=members, con_broker_reg=put(s.con_broker_reg, b, reg))


def handle_broker_fenced(s, v, b) -> Successors:
    md = s.con_partition_metadata
    isr = md.isr - {b}
    if not is_966(v) and len(md.isr) == 1:
        isr = md.isr
    elr = update_elr(s, v, isr, md.replicas)
    for after in maybe_update_partition_on_broker_change(s, v, isr, elr, s.con_unfenced - {b}):
        yield with_unfenced(after, b, False)


def handle_broker_unfenced(s, v, b) -> Successors:
    md = s.con_partition_metadata
    if md.leader is not None:
        yield with_unfenced(s, b, True)
        return
    for after in maybe_update_partition_on_broker_change(s, v, md.isr, md.elr, s.con_unfenced | {b}):
        yield with_unfenced(after, b, True)


def process_unclean_broker(s, v, b) -> Successors:
    md = s.con_partition_metadata
    for after in maybe_update_partition_on_broker_change(s, v, md.isr - {b}, md.elr - {b}, s.con_unfenced | {b}):
        yield with_unfenced(after, b, True)


def last_offset_for_epoch(s, b, epoch, leader):
    log = log_of(s, b)
    if not log or log[-1].epoch == epoch or (leader and md_of(s, b).leader_epoch == epoch):
        return EpochOffset(epoch, leo_of(s, b))
    higher = [r.offset for r in log if r.epoch > epoch]
    if higher:
        end = min(higher)
    else:
        assert leader
        assert md_of(s, b).leader_epoch > epoch
        end = leo_of(s, b)
    lower = [r.epoch for r in log if r.epoch <= epoch]
    return EpochOffset(max(lower, default=epoch), end)


def drop_fetch_sessions(s, b):
    messages = frozenset(
        m for m in s.messages if not (isinstance(m, FetchRequest | FetchResponse) and b in (m.dest, m.source))
    )

    def after(b1, row):
        if b == b1:
            return (BLANK_FETCHER,) * len(row)
        fetcher = row[b - 1]
        if not fetcher.pending_response:
            return row
        partition = fetcher.partition
        return put(row, b, Fetcher(partition and partition._replace(delayed=True), False))

    fetchers = tuple(after(b1, row) for b1, row in enumerate(s.broker_fetchers, 1))
    return s._replace(messages=messages, broker_fetchers=fetchers)


def validate_alter_partition_request(s, v, b, m):
    md, reg = s.con_partition_metadata, s.con_broker_reg
    checks = v["check_broker_epochs"]
    if (
        b == md.leader
        and (not checks or m.broker_epoch == reg[b - 1].broker_epoch)
        and m.partition_epoch == md.partition_epoch
    ):
        eligible = all(
            reg[b1 - 1].status == UNFENCED and (not checks or epoch == 0 or reg[b1 - 1].broker_epoch == epoch)
            for b1, epoch in m.isr_and_epochs
        )
        return None if eligible else INELIGIBLE_REPLICA
    return FENCED_LEADER_EPOCH


# ---- actions


def broker_start(s, v) -> Successors:
    for b in brokers(v):
        if offline(s, b):
            old, incarnation = s.broker_state[b - 1], s.aux_ctrs.incarn_ctr
            epoch = old.broker_epoch if is_966(v) else 0
            yield s._replace(
                broker_state=put(s.broker_state, b, BrokerState(STARTING, epoch, incarnation, False)),
                partition_status=put(s.partition_status, b, None),
                messages=s.messages | {RegisterRequest(b, epoch, incarnation)},
                aux_ctrs=s.aux_ctrs._replace(incarn_ctr=incarnation + 1),
            )


def receive_broker_reg_request(s, v) -> Successors:
    for m in received(s, RegisterRequest):
        b = m.source
        reg = s.con_broker_reg[b - 1]
        if reg.status == FENCED or reg.incarnation_id == m.incarnation_id:
            epoch = s.aux_broker_epoch + 1
            unclean = is_966(v) and v["exclude_unclean_brokers"] and m.broker_epoch == 0
            for after in (process_unclean_broker if unclean else handle_broker_unfenced)(s, v, b):
                answer = RegisterResponse(b, epoch, m.incarnation_id, len(s.con_metadata_log))
                new = Registration(UNFENCED, epoch, m.incarnation_id)
                yield reply(after, m, answer)._replace(
                    con_broker_reg=put(after.con_broker_reg, b, new), aux_broker_epoch=epoch
                )


def receive_broker_reg_response(s, v) -> Successors:
    for m in received(s, RegisterResponse):
        b = m.dest
        old = s.broker_state[b - 1]
        if old.status == STARTING and not old.registered and old.incarnation_id == m.incarnation_id:
            log = s.con_metadata_log[: max(m.metadata_offset - 1, 0)]
            yield discard(s, m)._replace(
                broker_state=put(s.broker_state, b, BrokerState(RUNNING, m.broker_epoch, old.incarnation_id, True)),
                broker_metadata_log=put(s.broker_metadata_log, b, log),
                partition_metadata=put(s.partition_metadata, b, BLANK_METADATA),
            )


def unfence_broker(s, v) -> Successors:
    for b in brokers(v):
        if s.con_broker_reg[b - 1].status == FENCED and running(s, b):
            yield from handle_broker_unfenced(s, v, b)


def fence_broker(s, v) -> Successors:
    for b in brokers(v):
        if s.aux_ctrs.fence_broker_ctr < v["max_fencings"] and s.con_broker_reg[b - 1].status == UNFENCED:
            counters = s.aux_ctrs._replace(fence_broker_ctr=s.aux_ctrs.fence_broker_ctr + 1)
            yield from handle_broker_fenced(s._replace(aux_ctrs=counters), v, b)


def add_partition_to_fetcher(s, b, leader, leader_epoch):
    if leader_epoch > md_of(s, b).leader_epoch or fetcher_of(s, b, leader).partition is None:
        log = log_of(s, b)
        added = FetchState(leo_of(s, b), log[-1].epoch if log else 0, False)
        row = tuple(
            f._replace(partition=added if b1 == leader else None) for b1, f in enumerate(s.broker_fetchers[b - 1], 1)
        )
        return s._replace(broker_fetchers=put(s.broker_fetchers, b, row))
    return s


def remove_partition_from_fetchers(s, b):
    row = tuple(f._replace(partition=None) for f in s.broker_fetchers[b - 1])
    return s._replace(broker_fetchers=put(s.broker_fetchers, b, row))


def ensure_leadership_renounced(s, v, b, new):
    s = maybe_fail_pending_writes(s, v, b, new)
    return reset_pending_acks(reset_pending_alter_partition(reset_all_follower_state(s, b), b), b)


def with_status(s, b, status, leso):
    return s._replace(
        partition_status=put(s.partition_status, b, status), partition_leso=put(s.partition_leso, b, leso)
    )


def remain_leader(s, v, b, new):
    s = maybe_update_hwm_and_ack_on_partition_change(s, v, b, new)
    if new.partition_epoch >= s.partition_pending_ap[b - 1].epoch:
        return reset_pending_alter_partition(s, b)
    return s


def become_leader_in_new_epoch(s, v, b, new, is_new_leader):
    s = maybe_update_hwm_and_ack_on_partition_change(s, v, b, new)
    s = with_status(s, b, LEADER, leo_of(s, b))
    if is_new_leader:
        s = reset_all_follower_state(s, b)
    else:
        row = tuple(p if b1 in new.isr else BLANK_PEER for b1, p in enumerate(s.partition_replica_state[b - 1], 1))
        s = s._replace(partition_replica_state=put(s.partition_replica_state, b, row))
    return remove_partition_from_fetchers(reset_pending_alter_partition(s, b), b)


def become_follower_in_new_epoch(s, v, b, new):
    s = add_partition_to_fetcher(s, b, new.leader, new.leader_epoch)
    return with_status(ensure_leadership_renounced(s, v, b, new), b, FOLLOWER, None)


def wait_for_leader_change(s, v, b, new):
    s = remove_partition_from_fetchers(s, b)
    return with_status(ensure_leadership_renounced(s, v, b, new), b, None, None)


def delete_partition(s, v, b, new):
    s = with_status(ensure_leadership_renounced(remove_partition_from_fetchers(s, b), v, b, new), b, None, None)
    return s._replace(partition_data=put(s.partition_data, b, EMPTY))


def partition_change(s, v, b, new):
    """ReceiveMetadataUpdate's CASE; `s` still has the old partition_metadata."""
    old = md_of(s, b)
    if b in old.replicas and b not in new.replicas:
        return delete_partition(s, v, b, new)
    is_new_leader = not is_leader(s, b) and new.leader == b
    if old.leader == b and new.leader == b:
        if old.leader_epoch == new.leader_epoch:
            return remain_leader(s, v, b, new)
        return become_leader_in_new_epoch(s, v, b, new, is_new_leader)
    if new.leader == b:
        return become_leader_in_new_epoch(s, v, b, new, is_new_leader)
    if b in new.replicas and new.leader is not None:
        if new.leader_epoch == old.leader_epoch and old.leader != b:
            return s
        return become_follower_in_new_epoch(s, v, b, new)
    assert b in new.replicas
    return wait_for_leader_change(s, v, b, new)


def receive_metadata_update(s, v) -> Successors:
    for b in brokers(v):
        if offline(s, b) or not s.broker_state[b - 1].registered:
            continue
        for offset in range(len(s.broker_metadata_log[b - 1]) + 1, len(s.con_metadata_log) + 1):
            if not partition_needs_action(s, b, offset):
                continue
            record = s.con_metadata_log[offset - 1]
            new = ReplicaMetadata(
                record.replicas, record.isr, record.isr, record.leader, record.leader_epoch, record.partition_epoch
            )
            after = s._replace(broker_metadata_log=put(s.broker_metadata_log, b, s.con_metadata_log[:offset]))
            if new.partition_epoch > md_of(s, b).partition_epoch:
                after = partition_change(after, v, b, new)
                md = new if b in new.replicas else BLANK_METADATA
                after = after._replace(partition_metadata=put(s.partition_metadata, b, md))
            yield after


def follower_is_caught_up(s, v, b, follower, timed_out_isr):
    if follower in md_of(s, b).isr:
        return follower not in timed_out_isr
    leo = peer(s, b, follower).leo
    return (
        leo is not None
        and (not v["catch_up_to_high_watermark"] or leo >= hwm_of(s, b))
        and (not v["catch_up_to_epoch_start"] or leo >= s.partition_leso[b - 1])
    )


def alter_partition_requests(s, v, b, timed_out_isr) -> Successors:
    md = md_of(s, b)
    proposed = frozenset(b1 for b1 in md.replicas if b1 == b or follower_is_caught_up(s, v, b, b1, timed_out_isr))
    if proposed == md.isr:
        return

    def epoch(b1):
        if b1 == b:
            return s.broker_state[b - 1].broker_epoch
        return 0 if b1 in md.isr else peer(s, b, b1).broker_epoch

    request = AlterRequest(
        proposed,
        tuple((b1, epoch(b1)) for b1 in sorted(proposed)),
        md.leader_epoch,
        md.partition_epoch,
        s.broker_state[b - 1].broker_epoch,
        b,
    )
    counters = s.aux_ctrs
    if md.isr - proposed:
        counters = counters._replace(leader_shrink_isr_ctr=counters.leader_shrink_isr_ctr + 1)
    maximal = proposed | md.isr
    yield s._replace(
        messages=s.messages | {request},
        partition_metadata=put(s.partition_metadata, b, md._replace(maximal_isr=maximal)),
        partition_pending_ap=put(s.partition_pending_ap, b, PendingAlter(md.partition_epoch + 1, request)),
        aux_ctrs=counters,
    )


def send_alter_partition_request(s, v) -> Successors:
    for b in brokers(v):
        if running(s, b) and not pending_alter_partition_response(s, b) and is_leader(s, b):
            if s.aux_ctrs.leader_shrink_isr_ctr < v["max_isr_shrinks"]:
                for timed_out in subsets(md_of(s, b).isr - {b}):
                    yield from alter_partition_requests(s, v, b, timed_out)
            else:
                yield from alter_partition_requests(s, v, b, NOBODY)


def receive_alter_partition_request(s, v) -> Successors:
    md = s.con_partition_metadata
    for m in received(s, AlterRequest):
        b = m.source
        error = validate_alter_partition_request(s, v, b, m)
        if error:
            yield reply(s, m, AlterResponse(error, m, b))
            continue
        final_isr, final_replicas = m.isr - md.removing, md.replicas - md.removing
        complete = reassignment_in_progress(s) and md.adding <= final_isr and len(final_isr) >= v["min_isr"]
        isr = final_isr if complete else m.isr
        replicas = final_replicas if complete else md.replicas
        elr = update_elr(s, v, isr, replicas)
        adding, removing = (NOBODY, NOBODY) if complete else (md.adding, md.removing)
        epoch = md.leader_epoch + complete
        for leader in [md.leader] if md.leader in isr else sorted(isr):
            after = apply_partition_change(
                s, v, replicas, leader, isr, elr, epoch, md.partition_epoch + 1, adding, removing
            )
            yield reply(after, m, AlterResponse(None, m, b, replicas, isr, leader, epoch, md.partition_epoch + 1))


def commit_partition_change(s, v, b, new):
    s = maybe_update_hwm_and_ack_on_partition_change(s, v, b, new)
    return s._replace(partition_metadata=put(s.partition_metadata, b, new))


def receive_alter_partition_response(s, v) -> Successors:
    for m in received(s, AlterResponse):
        b = m.dest
        md = md_of(s, b)
        if not (running(s, b) and is_leader(s, b) and pending_alter_partition_response(s, b)):
            continue
        if s.partition_pending_ap[b - 1].request != m.request:
            continue
        if m.error is None:
            if not (m.partition_epoch > md.partition_epoch and m.leader_epoch == md.leader_epoch):
                continue
            new = ReplicaMetadata(m.replicas, m.isr, m.isr, m.leader, m.leader_epoch, m.partition_epoch)
        else:
            new = md._replace(maximal_isr=md.isr)
        yield discard(reset_pending_alter_partition(commit_partition_change(s, v, b, new), b), m)


def perform_partition_reassignment(s, v) -> Successors:
    md = s.con_partition_metadata
    if s.aux_ctrs.reassignment_ctr >= v["max_reassignments"] or reassignment_in_progress(s):
        return
    for adding in subsets(frozenset(brokers(v)) - md.replicas):
        for removing in subsets(md.replicas):
            if not (adding or removing) or len(md.replicas) + len(adding) - len(removing) < v["min_isr"]:
                continue
            grown = md.replicas | adding
            final_replicas, final_isr = grown - removing, md.isr - removing
            complete = adding <= final_isr and len(final_isr) >= v["min_isr"] and len(final_replicas) > 0
            if complete:
                elr = update_elr(s, v, final_isr, final_replicas)
                change = final_replicas, final_isr, elr, md.leader_epoch + 1, NOBODY, NOBODY
            else:
                change = grown, md.isr, md.elr, md.leader_epoch, adding, removing
            replicas, isr, elr, epoch, adds, removes = change
            for leader in [md.leader] if md.leader in isr else sorted(isr):
                after = apply_partition_change(
                    s, v, replicas, leader, isr, elr, epoch, md.partition_epoch + 1, adds, removes
                )
                counters = s.aux_ctrs._replace(reassignment_ctr=s.aux_ctrs.reassignment_ctr + 1)
                yield after._replace(aux_ctrs=counters)


def converged(s, leader, follower):
    mine, theirs, known = s.partition_data[leader - 1], s.partition_data[follower - 1], peer(s, leader, follower)
    return (
        mine.leo == theirs.leo
        and mine.hwm == theirs.hwm
        and known.leo == theirs.leo
        and known.broker_epoch == s.broker_state[follower - 1].broker_epoch
    )


def send_fetch_request(s, v) -> Successors:
    for b in brokers(v):
        for to in brokers(v):
            fetcher = fetcher_of(s, b, to)
            if (
                b != to
                and running(s, b)
                and fetcher.partition is not None
                and not fetcher.pending_response
                and md_of(s, b).leader == to
                and not converged(s, to, b)
            ):
                state = fetcher.partition
                m = FetchRequest(
                    s.broker_state[b - 1].broker_epoch,
                    md_of(s, b).leader_epoch,
                    state.fetch_offset,
                    state.last_fetched_epoch,
                    to,
                    b,
                )
                new = Fetcher(state._replace(delayed=False), True)
                yield s._replace(messages=s.messages | {m}, broker_fetchers=put2(s.broker_fetchers, b, to, new))


def receive_fetch_request(s, v) -> Successors:
    for m in received(s, FetchRequest):
        b, f = m.dest, m.source
        md = md_of(s, b)
        if not running(s, b):
            continue
        answer = FetchResponse(None, md.leader_epoch, m.fetch_offset, None, hwm_of(s, b), (), f, b)
        fenced = v["fence_fetches"] and md.leader_epoch != m.leader_epoch
        if not is_leader(s, b) or fenced:
            error = NOT_LEADER
            if md.leader_epoch < m.leader_epoch:
                error = UNKNOWN_LEADER_EPOCH
            elif md.leader_epoch > m.leader_epoch:
                error = FENCED_LEADER_EPOCH
            yield reply(s, m, answer._replace(error=error))
            continue
        if v["truncate_on_divergence"]:
            last = last_offset_for_epoch(s, b, m.last_fetched_epoch, True)
            if last.epoch < m.last_fetched_epoch or last.offset < m.fetch_offset:
                yield reply(s, m, answer._replace(diverging_epoch=last))
                continue
        peers = put(s.partition_replica_state[b - 1], f, PeerReplica(m.fetch_offset, m.broker_epoch))
        old_hwm = hwm_of(s, b)
        new_hwm = get_commit_offset(s, b, acking_isr(s, v, b), leo_of(s, b), peers) + 1
        after = maybe_advance_high_watermark(s, v, b, md.isr, old_hwm, new_hwm, True)
        records = log_of(s, b)[m.fetch_offset - 1 : m.fetch_offset]
        after = after._replace(partition_replica_state=put(s.partition_replica_state, b, peers))
        yield reply(after, m, answer._replace(hwm=hwm_of(after, b), records=records))


def truncate_to_safe_point(s, b, diverging):
    local = last_offset_for_epoch(s, b, diverging.epoch, False)
    to = local.offset if local.epoch != diverging.epoch else min(local.offset, diverging.offset)
    if to > 1:
        assert to - 1 <= len(log_of(s, b))
        return PartitionData(log_of(s, b)[: to - 1], hwm_of(s, b), to)
    return PartitionData((), hwm_of(s, b), 1)


def receive_fetch_response(s, v) -> Successors:
    for m in received(s, FetchResponse):
        b, leader = m.dest, m.source
        fetcher = fetcher_of(s, b, leader)
        if not (running(s, b) and fetcher.pending_response):
            continue
        state, data = fetcher.partition, s.partition_data[b - 1]
        if state is None or state.fetch_offset != m.fetch_offset or md_of(s, b).leader_epoch != m.leader_epoch:
            pass
        elif m.error is not None:
            state = state._replace(delayed=True)
        elif m.diverging_epoch is not None:
            data = truncate_to_safe_point(s, b, m.diverging_epoch)
            state = FetchState(data.leo, data.log[-1].epoch if data.log else 0, False)
        else:
            leo = len(data.log) + len(m.records) + 1
            epoch = m.records[-1].epoch if m.records else state.last_fetched_epoch
            data = PartitionData(data.log + m.records, m.hwm if m.hwm <= leo else data.hwm, leo)
            state = FetchState(leo, epoch, False)
        yield discard(s, m)._replace(
            partition_data=put(s.partition_data, b, data),
            broker_fetchers=put2(s.broker_fetchers, b, leader, Fetcher(state, False)),
        )


def write_record_to_leader(s, v) -> Successors:
    for b in brokers(v):
        md = md_of(s, b)
        if not (running(s, b) and is_leader(s, b) and len(md.maximal_isr) >= v["min_isr"]):
            continue
        for value in range(v["values"]):
            if value in s.inv_sent:
                continue
            leo, data = leo_of(s, b), s.partition_data[b - 1]
            log = (*data.log, Record(md.leader_epoch, leo, value))
            commit = get_commit_offset(s, b, acking_isr(s, v, b), leo + 1, s.partition_replica_state[b - 1])
            new_hwm = commit + 1 if can_advance_hwm(v, md.isr, data.hwm, commit + 1) else data.hwm
            flo = leo if s.aux_flo[b - 1] is None else s.aux_flo[b - 1]
            after = s._replace(
                partition_data=put(s.partition_data, b, PartitionData(log, data.hwm, leo + 1)),
                inv_sent=s.inv_sent | {value},
                aux_flo=put(s.aux_flo, b, flo),
            )
            if v["acks"] == "1":
                after = after._replace(inv_pos_acked=after.inv_pos_acked | {value})
            if new_hwm > data.hwm:
                after = update_hwm_invariant_vars(after, b, data.hwm, new_hwm, True)
                after = after._replace(partition_data=put(s.partition_data, b, PartitionData(log, new_hwm, leo + 1)))
            yield after


def shut_down(s, v, b, status, broker_epoch, counters) -> Successors:
    """What the two shutdowns share."""
    s = s._replace(aux_ctrs=counters)
    if is_leader(s, b) and hwm_of(s, b) < leo_of(s, b):
        s = fail_pending_writes(s, b)
    s = reset_pending_acks(reset_pending_alter_partition(reset_all_follower_state(s, b), b), b)
    s = drop_fetch_sessions(s, b)._replace(
        broker_state=put(s.broker_state, b, BrokerState(status, broker_epoch, 0, False)),
        partition_status=put(s.partition_status, b, None),
    )
    yield from handle_broker_fenced(s, v, b)


def data_loss_shutdown(s, v) -> Successors:
    """v3.5's UncleanShutdown."""
    for b in brokers(v):
        md, count = s.con_partition_metadata, s.aux_ctrs.data_loss_shutdown_ctr
        if count >= v["max_lossy_shutdowns"] or offline(s, b):
            continue
        if not is_966(v) and v["avoid_last_replica_standing"] and md.isr == {b}:
            continue
        counters = s.aux_ctrs._replace(data_loss_shutdown_ctr=count + 1)
        for after in shut_down(s, v, b, OFFLINE_DIRTY, 0, counters):
            yield after._replace(
                partition_data=put(s.partition_data, b, EMPTY), partition_leso=put(s.partition_leso, b, None)
            )


def no_data_loss_shutdown(s, v) -> Successors:
    """v3.5's CleanShutdown."""
    for b in brokers(v):
        count = s.aux_ctrs.no_data_loss_shutdown_ctr
        if count >= v["max_clean_shutdowns"] or offline(s, b):
            continue
        counters = s.aux_ctrs._replace(no_data_loss_shutdown_ctr=count + 1)
        epoch = s.broker_state[b - 1].broker_epoch
        for kept in [epoch, 0] if is_966(v) else [0]:
            yield from shut_down(s, v, b, OFFLINE_CLEAN, kept, counters)


ACTIONS: dict[str, Callable[[SpecState, Values], Successors]] = {
    f.__name__: f
    for f in (
        broker_start,
        receive_broker_reg_response,
        receive_metadata_update,
        send_alter_partition_request,
        receive_alter_partition_response,
        send_fetch_request,
        receive_fetch_request,
        receive_fetch_response,
        write_record_to_leader,
        data_loss_shutdown,
        no_data_loss_shutdown,
        receive_broker_reg_request,
        receive_alter_partition_request,
        fence_broker,
        unfence_broker,
        perform_partition_reassignment,
    )
}


# ---- properties


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


def consistent_read_property(s, v):
    n = len(s.inv_consumed)
    return all(log_of(s, b)[:n] == s.inv_consumed for b in brokers(v) if non_stale_leader(s, b))


def min_isr_recovery_quorum(s, v):
    md = s.con_partition_metadata
    return not is_966(v) or bool(md.isr or md.elr) or len(md.last_known_elr) == v["min_isr"]


PROPERTIES: dict[str, Callable[[SpecState, Values], bool]] = {
    "LeaderCompletenessProperty": leader_completeness_property,
    "NoCommittedRecordLostGlobally": no_committed_record_lost_globally,
    "LeaderCandidateCompletenessProperty": leader_candidate_completeness_property,
    "ReplicationQuorumSupersetProperty": replication_quorum_superset_property,
    "LogMatchingProperty": log_matching_property,
    "MetadataLogMatchingProperty": metadata_log_matching_property,
    "ConsistentReadProperty": consistent_read_property,
    "MinIsrRecoveryQuorum": min_isr_recovery_quorum,
}
