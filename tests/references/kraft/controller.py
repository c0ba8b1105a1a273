"""What the controller does: it registers and fences brokers, elects leaders, and changes ISR, ELR and replicas."""

from quorisk.kernels.protocols.kraft.spec import (
    FENCED,
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    UNFENCED,
    AlterRequest,
    AlterResponse,
    PartitionMetadata,
    RegisterRequest,
    RegisterResponse,
    Registration,
)
from tests.references.kraft.state import (
    NOBODY,
    Successors,
    brokers,
    elects_last_known_leader,
    is_966,
    is_kafka,
    put,
    reassignment_in_progress,
    received,
    reply,
    running,
    subsets,
)

# ---- key functions


def apply_partition_change(s, v, replicas, leader, isr, elr, leader_epoch, part_epoch, adding, removing):
    md = s.con_partition_metadata
    last_known = NOBODY
    if is_kafka(v):
        if elects_last_known_leader(v) and leader is None:  # maybeUpdateLastKnownLeader
            last_known = frozenset({md.leader}) if md.leader else md.last_known_elr
    elif is_966(v) and len(isr) < v["min_isr"]:
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

    # beyond the specs: the last known leader, or any replica
    unclean = frozenset(md.replicas & unfenced) if v["unclean_leader_election"] else NOBODY
    if elects_last_known_leader(v) and not isr and not elr:
        unclean = md.last_known_elr & unfenced or unclean
    if is_966(v):
        no_leader_change = (md.leader is None and not isr and not elr & unfenced and not unclean) or md.leader in isr
    else:
        no_leader_change = (md.leader is None and not isr & unfenced and not unclean) or (
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
    elif unclean:
        for candidate in unclean:
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


def unfence_broker(s, v) -> Successors:
    for b in brokers(v):
        if s.con_broker_reg[b - 1].status == FENCED and running(s, b) and b not in s.isolated:
            yield from handle_broker_unfenced(s, v, b)


def fence_broker(s, v) -> Successors:
    for b in brokers(v):
        if s.aux_ctrs.fence_broker_ctr < v["max_fencings"] and s.con_broker_reg[b - 1].status == UNFENCED:
            counters = s.aux_ctrs._replace(fence_broker_ctr=s.aux_ctrs.fence_broker_ctr + 1)
            yield from handle_broker_fenced(s._replace(aux_ctrs=counters), v, b)


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
