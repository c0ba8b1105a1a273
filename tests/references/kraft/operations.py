"""Stalls, rolls and leaders that are cut off: written from tests/data/tla/OPERATIONS.md."""

from quorisk.kernels.protocols.kraft.spec import SpecState
from tests.references.kraft.controller import handle_broker_fenced
from tests.references.kraft.leader import alter_partition_request, leaders_that_may_ask
from tests.references.kraft.lifecycle import drop_fetch_sessions, started, stopped
from tests.references.kraft.state import Successors, Values, brokers, is_leader, md_of, running


def follower_stalls(s: SpecState, v: Values) -> Successors:
    md = s.con_partition_metadata
    if s.aux_ctrs.stall_ctr < v["max_stalls"]:
        for b in md.replicas - s.stalled:
            if running(s, b) and b != md.leader:
                counters = s.aux_ctrs._replace(stall_ctr=s.aux_ctrs.stall_ctr + 1)
                yield s._replace(stalled=s.stalled | {b}, aux_ctrs=counters)


def follower_resumes(s: SpecState, v: Values) -> Successors:
    for b in s.stalled:
        yield s._replace(stalled=s.stalled - {b})


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
