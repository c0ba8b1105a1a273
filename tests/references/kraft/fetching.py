"""How followers fetch from their leader: requests, answers, and truncation where logs diverge."""

from quorisk.kernels.protocols.kraft.spec import (
    FENCED_LEADER_EPOCH,
    NOT_LEADER,
    UNKNOWN_LEADER_EPOCH,
    EpochOffset,
    Fetcher,
    FetchRequest,
    FetchResponse,
    FetchState,
    PartitionData,
    PeerReplica,
)
from tests.references.kraft.leader import acking_isr, commits_well, get_commit_offset, maybe_advance_high_watermark
from tests.references.kraft.state import (
    Successors,
    brokers,
    discard,
    fetcher_of,
    hwm_of,
    is_leader,
    leo_of,
    log_of,
    md_of,
    peer,
    put,
    put2,
    received,
    reply,
    running,
)


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
                and b not in s.stalled
                and not {b, to} & s.isolated
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
        after = maybe_advance_high_watermark(s, v, b, md.isr, old_hwm, new_hwm, commits_well(s, v, b))
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
