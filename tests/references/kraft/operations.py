"""Stalls, rolls and leaders that are cut off: written from tests/data/tla/OPERATIONS.md. Stalls that go
on (`counted_anew`) are the model's own."""

from quorisk.kernels.protocols.kraft.spec import (
    AlterRequest,
    AlterResponse,
    RegisterRequest,
    RegisterResponse,
    SpecState,
)
from tests.references.kraft import leader, metadata
from tests.references.kraft.controller import handle_broker_fenced
from tests.references.kraft.leader import alter_partition_request, leaders_that_may_ask
from tests.references.kraft.lifecycle import drop_fetch_sessions, started, stopped
from tests.references.kraft.state import (
    NO_PENDING,
    Successors,
    Values,
    brokers,
    is_leader,
    md_of,
    pending_alter_partition_response,
    running,
)


def follower_stalls(s: SpecState, v: Values) -> Successors:
    md = s.con_partition_metadata
    if s.aux_ctrs.stall_ctr < v["max_stalls"]:
        for b in md.replicas - s.stalled:
            if running(s, b) and b != md.leader:
                counters = s.aux_ctrs._replace(stall_ctr=s.aux_ctrs.stall_ctr + 1)
                yield s._replace(stalled=s.stalled | {b}, aux_ctrs=counters)


def follower_resumes(s: SpecState, v: Values) -> Successors:
    for b in s.stalled:
        yield counted_anew(s._replace(stalled=s.stalled - {b}), v)


def receive_metadata_update(s: SpecState, v: Values) -> Successors:
    for after in metadata.receive_metadata_update(s, v):
        yield counted_anew(after, v)


def receive_alter_partition_response(s: SpecState, v: Values) -> Successors:
    for after in leader.receive_alter_partition_response(s, v):
        yield counted_anew(after, v)


def knows_the_isr(s: SpecState, v: Values) -> bool:
    """The first leader knows the ISR and waits for nothing, and all are up, heard and told of the partition."""
    md = s.con_partition_metadata
    told = all(md_of(s, b).replicas for b in md.replicas)
    if not told or md.leader_epoch != 1 or not md.leader or md.adding or md.removing:
        return False
    up = all(running(s, b) and b in s.con_unfenced for b in brokers(v))
    alone = [b for b in brokers(v) if is_leader(s, b)] == [md.leader]
    current = md_of(s, md.leader).partition_epoch == md.partition_epoch
    current &= not any(pending_alter_partition_response(s, b) for b in brokers(v))
    return up and alone and current and not any(isinstance(m, RegisterRequest | RegisterResponse) for m in s.messages)


def faults_to_come(s: SpecState, v: Values) -> bool:
    """Whether anything may still happen that takes a log, a leader or a broker away, or moves the partition."""
    counters = s.aux_ctrs
    found = {
        "max_clean_shutdowns": counters.no_data_loss_shutdown_ctr,
        "max_lossy_shutdowns": counters.data_loss_shutdown_ctr,
        "max_tail_losses": counters.tail_loss_ctr,
        "max_fencings": counters.fence_broker_ctr,
        "max_isr_shrinks": counters.leader_shrink_isr_ctr,
        "max_reassignments": counters.reassignment_ctr,
        "max_outages": counters.outage_ctr,
        "max_zone_outages": counters.zone_outage_ctr,
        "max_rolls": counters.roll_ctr,
        "max_isolations": counters.isolation_ctr,
    }
    return bool(s.to_restart) or any(count < v[name] for name, count in found.items())


def counted_anew(s: SpecState, v: Values) -> SpecState:
    """Where stalls go on: the metadata log begins with its last record, whose partition epoch is 1, and of stalls those
    of followers count that are not done with them."""
    if not (v["stalls_go_on"] and knows_the_isr(s, v) and faults_to_come(s, v)):
        return s
    md = s.con_partition_metadata._replace(partition_epoch=1)
    told = [known._replace(partition_epoch=1) if known.replicas else known for known in s.partition_metadata]
    unsettled = s.stalled | (md.replicas - md.isr)
    return s._replace(
        con_partition_metadata=md,
        con_metadata_log=(md,),
        broker_metadata_log=tuple((md,) for _ in brokers(v)),
        partition_metadata=tuple(told),
        partition_pending_ap=tuple(NO_PENDING for _ in brokers(v)),
        messages=frozenset(m for m in s.messages if not isinstance(m, AlterRequest | AlterResponse)),
        aux_ctrs=s.aux_ctrs._replace(stall_ctr=len(unsettled)),
    )


def leader_removes_stalled(s: SpecState, v: Values) -> Successors:
    for b in leaders_that_may_ask(s, v):
        isr = md_of(s, b).isr
        for follower in isr & s.stalled - {b}:
            yield from alter_partition_request(s, b, isr - {follower}, counted=False)


def roll_begins(s: SpecState, v: Values) -> Successors:
    if s.aux_ctrs.roll_ctr < v["max_rolls"] and not s.to_restart and not s.restarting:
        counters = s.aux_ctrs._replace(roll_ctr=s.aux_ctrs.roll_ctr + 1)
        yield s._replace(to_restart=frozenset(brokers(v)), aux_ctrs=counters)


def roll_restarts(s: SpecState, v: Values) -> Successors:
    md = s.con_partition_metadata
    if v["gated_rolls"] and (s.restarting or md.replicas - md.isr):
        return
    for b in sorted(s.to_restart)[:1]:
        if running(s, b):
            after = s._replace(to_restart=s.to_restart - {b}, restarting=s.restarting | {b})
            yield from stopped(after, v, b, True)


def restart_ends(s: SpecState, v: Values) -> Successors:
    for b in s.restarting:
        yield from started(s._replace(restarting=s.restarting - {b}), v, [b])


def leader_is_isolated(s: SpecState, v: Values) -> Successors:
    b = s.con_partition_metadata.leader
    if s.aux_ctrs.isolation_ctr >= v["max_isolations"] or not b or b in s.isolated:
        return
    if running(s, b) and is_leader(s, b):
        counters = s.aux_ctrs._replace(isolation_ctr=s.aux_ctrs.isolation_ctr + 1)
        yield drop_fetch_sessions(s, b)._replace(isolated=s.isolated | {b}, aux_ctrs=counters)


def isolation_ends(s: SpecState, v: Values) -> Successors:
    for b in s.isolated:
        yield s._replace(isolated=s.isolated - {b})


def session_times_out(s: SpecState, v: Values) -> Successors:
    for b in s.isolated & s.con_unfenced:
        yield from handle_broker_fenced(s, v, b)
