"""What a leader does: it writes records, advances the high watermark, acknowledges, and proposes another ISR."""

from quorisk.kernels.protocols.kraft.spec import (
    AlterRequest,
    AlterResponse,
    PartitionData,
    PendingAlter,
    Record,
    ReplicaMetadata,
)
from tests.references.kraft.state import (
    NOBODY,
    Successors,
    brokers,
    discard,
    hwm_of,
    is_966,
    is_kafka,
    is_leader,
    leo_of,
    log_of,
    md_of,
    peer,
    pending_alter_partition_response,
    put,
    received,
    reset_pending_alter_partition,
    running,
    subsets,
)

# ---- the high watermark and acknowledgements


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
    held_back = v["min_isr_to_commit"] and (is_966(v) or is_kafka(v))
    return new_hwm > old_hwm and (not held_back or len(isr) >= v["min_isr"])


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


def commits_well(s, v, b):
    """checkEnoughReplicasReachOffset: what is committed with too few in sync is NOT_ENOUGH_REPLICAS_AFTER_APPEND."""
    return not is_kafka(v) or len(md_of(s, b).maximal_isr) >= v["min_isr"]


# ---- actions


def follower_is_caught_up(s, v, b, follower, timed_out_isr):
    if follower in md_of(s, b).isr:
        return follower not in timed_out_isr
    leo = peer(s, b, follower).leo
    return (
        leo is not None
        and follower not in s.stalled
        and (not v["catch_up_to_high_watermark"] or leo >= hwm_of(s, b))
        and (not v["catch_up_to_epoch_start"] or leo >= s.partition_leso[b - 1])
    )


def eligible(s, v, b, follower):
    """isReplicaIsrEligible, by what the controller knows of the follower now."""
    current = s.con_broker_reg[follower - 1].broker_epoch == peer(s, b, follower).broker_epoch
    return follower in s.con_unfenced and (current or not v["check_broker_epochs"])


def proposed_isrs(s, v, b, timed_out_isr):
    """The ISRs that leader b may ask for while these members count as timed out."""
    md = md_of(s, b)
    if not is_kafka(v):
        yield frozenset(b1 for b1 in md.replicas if b1 == b or follower_is_caught_up(s, v, b, b1, timed_out_isr))
    else:  # prepareIsrExpand, for each follower by itself
        for b1 in sorted(md.replicas - md.isr - {b}):
            if follower_is_caught_up(s, v, b, b1, NOBODY) and eligible(s, v, b, b1):
                yield md.isr | {b1}


def alter_partition_requests(s, v, b, timed_out_isr) -> Successors:
    for proposed in proposed_isrs(s, v, b, timed_out_isr):
        yield from alter_partition_request(s, b, proposed)


def alter_partition_request(s, b, proposed, counted=True) -> Successors:
    md = md_of(s, b)
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
    if counted and md.isr - proposed:
        counters = counters._replace(leader_shrink_isr_ctr=counters.leader_shrink_isr_ctr + 1)
    maximal = proposed | md.isr
    yield s._replace(
        messages=s.messages | {request},
        partition_metadata=put(s.partition_metadata, b, md._replace(maximal_isr=maximal)),
        partition_pending_ap=put(s.partition_pending_ap, b, PendingAlter(md.partition_epoch + 1, request)),
        aux_ctrs=counters,
    )


def leaders_that_may_ask(s, v):
    leaders = [b for b in brokers(v) if running(s, b) and is_leader(s, b) and b not in s.isolated]
    return [b for b in leaders if not pending_alter_partition_response(s, b)]


def send_alter_partition_request(s, v) -> Successors:
    """SendAlterPartitionRequest with nobody timed out."""
    for b in leaders_that_may_ask(s, v):
        yield from alter_partition_requests(s, v, b, NOBODY)


def leader_shrink_isr(s, v) -> Successors:
    """SendAlterPartitionRequest with some timed out."""
    for b in leaders_that_may_ask(s, v):
        if not is_kafka(v) and s.aux_ctrs.leader_shrink_isr_ctr < v["max_isr_shrinks"]:
            for timed_out in filter(None, subsets(md_of(s, b).isr - {b})):
                yield from alter_partition_requests(s, v, b, timed_out)


def commit_partition_change(s, v, b, new):
    s = maybe_update_hwm_and_ack_on_partition_change(s, v, b, new)
    return s._replace(partition_metadata=put(s.partition_metadata, b, new))


def receive_alter_partition_response(s, v) -> Successors:
    for m in received(s, AlterResponse):
        b = m.dest
        md = md_of(s, b)
        if not (running(s, b) and is_leader(s, b) and pending_alter_partition_response(s, b)) or b in s.isolated:
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


def write_record_to_leader(s, v) -> Successors:
    for b in brokers(v):
        md = md_of(s, b)
        asked = md.isr if is_kafka(v) else md.maximal_isr
        enough = len(asked) >= v["min_isr"] or (is_kafka(v) and v["acks"] == "1")
        if not (running(s, b) and is_leader(s, b) and enough):
            continue
        for value in range(v["values"]):
            if value in s.inv_sent:
                continue
            leo, data = leo_of(s, b), s.partition_data[b - 1]
            log = (*data.log, Record(md.leader_epoch, leo, value))
            written = s._replace(partition_data=put(s.partition_data, b, PartitionData(log, data.hwm, leo + 1)))
            had = written if is_kafka(v) else s
            commit = get_commit_offset(had, b, acking_isr(s, v, b), leo + 1, s.partition_replica_state[b - 1])
            new_hwm = commit + 1 if can_advance_hwm(v, md.isr, data.hwm, commit + 1) else data.hwm
            flo = leo if s.aux_flo[b - 1] is None else s.aux_flo[b - 1]
            after = written._replace(inv_sent=s.inv_sent | {value}, aux_flo=put(s.aux_flo, b, flo))
            if v["acks"] == "1":
                after = after._replace(inv_pos_acked=after.inv_pos_acked | {value})
            if new_hwm > data.hwm:
                after = update_hwm_invariant_vars(after, b, data.hwm, new_hwm, commits_well(s, v, b))
                after = after._replace(partition_data=put(s.partition_data, b, PartitionData(log, new_hwm, leo + 1)))
            yield after
