"""How a broker starts, hears that it is registered, and shuts down."""

from functools import partial

from quorisk.kernels.protocols.kraft.spec import (
    OFFLINE_CLEAN,
    OFFLINE_DIRTY,
    RUNNING,
    STARTING,
    BrokerState,
    Fetcher,
    FetchRequest,
    FetchResponse,
    PartitionData,
    RegisterRequest,
    RegisterResponse,
)
from tests.references.kraft.controller import handle_broker_fenced
from tests.references.kraft.leader import fail_pending_writes
from tests.references.kraft.state import (
    BLANK_FETCHER,
    BLANK_METADATA,
    EMPTY,
    Successors,
    brokers,
    discard,
    hwm_of,
    is_966,
    is_kafka,
    is_leader,
    leo_of,
    offline,
    put,
    received,
    reset_all_follower_state,
    reset_pending_acks,
    reset_pending_alter_partition,
    subsets,
)


def started(s, v, those) -> Successors:
    for b in those:
        if offline(s, b):
            old, incarnation = s.broker_state[b - 1], s.aux_ctrs.incarn_ctr
            epoch = old.broker_epoch if is_966(v) else 0
            yield s._replace(
                broker_state=put(s.broker_state, b, BrokerState(STARTING, epoch, incarnation, False)),
                partition_status=put(s.partition_status, b, None),
                messages=s.messages | {RegisterRequest(b, epoch, incarnation)},
                aux_ctrs=s.aux_ctrs._replace(incarn_ctr=incarnation + 1),
            )


def broker_start(s, v) -> Successors:
    yield from started(s, v, [b for b in brokers(v) if b not in s.restarting])


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


def drop_registration(s, b):
    """What a broker asked the controller dies with its connection: the next start asks anew."""
    messages = frozenset(
        m
        for m in s.messages
        if not (isinstance(m, RegisterRequest) and m.source == b)
        and not (isinstance(m, RegisterResponse) and m.dest == b)
    )
    return s._replace(messages=messages)


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


def shut_down(s, v, b, status, broker_epoch) -> Successors:
    """What all shutdowns share."""
    if is_leader(s, b) and hwm_of(s, b) < leo_of(s, b):
        s = fail_pending_writes(s, b)
    s = reset_pending_acks(reset_pending_alter_partition(reset_all_follower_state(s, b), b), b)
    if is_kafka(v):
        s = drop_registration(s, b)
    s = drop_fetch_sessions(s, b)._replace(
        broker_state=put(s.broker_state, b, BrokerState(status, broker_epoch, 0, False)),
        partition_status=put(s.partition_status, b, None),
        stalled=s.stalled - {b},
        isolated=s.isolated - {b},
    )
    yield from handle_broker_fenced(s, v, b)


def lossy_shutdown(s, v, b) -> Successors:
    for after in shut_down(s, v, b, OFFLINE_DIRTY, 0):
        yield after._replace(
            partition_data=put(s.partition_data, b, EMPTY), partition_leso=put(s.partition_leso, b, None)
        )


def data_loss_shutdown(s, v) -> Successors:
    """v3.5's UncleanShutdown."""
    for b in brokers(v):
        md, count = s.con_partition_metadata, s.aux_ctrs.data_loss_shutdown_ctr
        if count >= v["max_lossy_shutdowns"] or offline(s, b):
            continue
        if not is_966(v) and v["avoid_last_replica_standing"] and md.isr == {b}:
            continue
        counters = s.aux_ctrs._replace(data_loss_shutdown_ctr=count + 1)
        yield from lossy_shutdown(s._replace(aux_ctrs=counters), v, b)


def cut_tail(s, b):
    """The machine of b, which is down, has stopped: what it had not flushed is gone."""
    end, data = s.partition_flushed[b - 1], s.partition_data[b - 1]
    if end == data.leo:
        return s
    return s._replace(
        broker_state=put(s.broker_state, b, s.broker_state[b - 1]._replace(status=OFFLINE_DIRTY)),
        partition_data=put(s.partition_data, b, PartitionData(data.log[: end - 1], min(data.hwm, end), end)),
        partition_leso=put(s.partition_leso, b, None),
    )


def tail_loss_shutdown(s, v) -> Successors:
    """Beyond the specs: a lossy shutdown, but for the part of the log that is on disk."""
    for b in brokers(v):
        last_standing, count = s.con_partition_metadata.isr == {b}, s.aux_ctrs.tail_loss_ctr
        spared = not is_966(v) and v["avoid_last_replica_standing"] and last_standing
        if count < v["max_tail_losses"] and not offline(s, b) and not spared:
            counters = s.aux_ctrs._replace(tail_loss_ctr=count + 1)
            for after in shut_down(s._replace(aux_ctrs=counters), v, b, OFFLINE_CLEAN, 0):
                yield cut_tail(after, b)


def shutdowns_that_keep_the_log(s, v, is_clean) -> Successors:
    for b in brokers(v):
        count = s.aux_ctrs.no_data_loss_shutdown_ctr
        if count >= v["max_clean_shutdowns"] or offline(s, b):
            continue
        yield from stopped(
            s._replace(aux_ctrs=s.aux_ctrs._replace(no_data_loss_shutdown_ctr=count + 1)), v, b, is_clean
        )


def stopped(s, v, b, is_clean) -> Successors:
    epoch = s.broker_state[b - 1].broker_epoch if is_clean and is_966(v) else 0
    flushed = put(s.partition_flushed, b, leo_of(s, b)) if is_clean else s.partition_flushed
    yield from shut_down(s._replace(partition_flushed=flushed), v, b, OFFLINE_CLEAN, epoch)


def no_data_loss_shutdown(s, v) -> Successors:
    """NoDataLossShutdown that is clean; v3.5's CleanShutdown."""
    return shutdowns_that_keep_the_log(s, v, True)


def no_data_loss_unclean_shutdown(s, v) -> Successors:
    """NoDataLossShutdown that is not clean. As of 3.5 it comes to what a clean one does, but for what is flushed, and
    the spec has one for both."""
    return shutdowns_that_keep_the_log(s, v, False)


# ---- power outages, beyond the specs


def power_outages(s, v, members, counters) -> Successors:
    """These brokers go down at one instant, any of them with its log lost; the one that is fenced last may be any. All
    lose what was not flushed, those that were down included."""
    down = [b for b in members if not offline(s, b)]
    for last in down:
        for lost in subsets(down):
            after = s._replace(aux_ctrs=counters)
            for b in [*(b for b in down if b != last), last]:
                kinds = lossy_shutdown(after, v, b) if b in lost else shut_down(after, v, b, OFFLINE_CLEAN, 0)
                after = min(kinds, key=partial(leads_first, last=last))
            for b in set(members) - lost:
                after = cut_tail(after, b)
            yield after


def leads_first(s, last):
    """Orders elections: it is the last broker that is elected if it can be, else the first in the assignment."""
    leader = s.con_partition_metadata.leader
    return leader != last, leader or 0


def cluster_loses_power(s, v) -> Successors:
    count = s.aux_ctrs.outage_ctr
    if count < v["max_outages"]:
        yield from power_outages(s, v, brokers(v), s.aux_ctrs._replace(outage_ctr=count + 1))


def zone_loses_power(s, v) -> Successors:
    count = s.aux_ctrs.zone_outage_ctr
    if count < v["max_zone_outages"]:
        counters = s.aux_ctrs._replace(zone_outage_ctr=count + 1)
        for zone in range(min(v["zones"], v["brokers"])):
            yield from power_outages(s, v, list(brokers(v))[zone :: v["zones"]], counters)
