"""Starts and stops of brokers.

Instances: of a start, the broker; of a registration response, row k + broker; of a shutdown, row of the broker + the
new leader that the controller chooses (see `controller`).
"""

from quorisk.kernels.model import action
from quorisk.kernels.ops import popcount, when, where
from quorisk.kernels.protocols.cluster_settings import LOG_FLUSH_INTERVAL_MS
from quorisk.kernels.protocols.kraft.controller import fence_instances, handle_broker_fenced
from quorisk.kernels.protocols.kraft.layout import (
    BODY_BITS,
    EVERY_BROKER,
    EVERY_LOW,
    EVERY_START,
    HEAD_BITS,
    MAX_BROKERS,
    Wide,
    forget,
    leo_of,
    rows_before,
    with_local,
    without_peers,
    without_words,
)
from quorisk.kernels.protocols.kraft.watermark import ackable
from quorisk.kernels.protocols.rows import ROW, WIDTH, gathered, nonempty, row, rows, spread, with_row


def broker_start_enabled(state, params):
    return (((1 << params.brokers) - 1) & ~(state.running | state.starting | state.restarting),)


@action(broker_start_enabled)
def broker_start(state, params, b, lost):
    """Each broker that is down starts, unless a roll is to start it."""
    k = state.starts
    return state._replace(
        starting=state.starting | (1 << b),
        dirty=state.dirty & ~(1 << b),
        restarting=state.restarting & ~(1 << b),
        incarnations=with_row(state.incarnations, b, params.brokers + 1 + k),
        register_requests=state.register_requests | (1 << (WIDTH * k + b)),
        register_epochs=with_row(state.register_epochs, k, row(state.broker_epochs, b)),
        starts=k + 1,
    )


def registering(state, params):
    """Registration responses to brokers whose incarnation is still the one that registered."""
    current = 0
    for b in range(MAX_BROKERS):
        k = row(state.incarnations, b) - params.brokers - 1
        started = ((state.starting >> b) & 1) != 0
        current |= where(started, 1 << (WIDTH * where(started, k, 0) + b), 0)
    return state.register_responses & current


def receive_broker_reg_response_enabled(state, params):
    return (when((state.register_responses != 0) & (state.starting != 0), registering, state, params),)


@action(receive_broker_reg_response_enabled)
def receive_broker_reg_response(state, params, instance, lost):
    """Each answer to a registration arrives at the broker that starts."""
    k = instance // WIDTH
    b = instance - WIDTH * k
    broker = 1 << b
    # __CatchUpBarOne: all records before the last one at the time of registration
    caught_up = rows_before(row(state.register_records, k) - 1)
    column = broker * EVERY_LOW
    return state._replace(
        running=state.running | broker,
        starting=state.starting & ~broker,
        broker_epochs=with_row(state.broker_epochs, b, row(state.register_epochs, k)),
        register_responses=state.register_responses & ~(1 << instance),
        register_epochs=with_row(state.register_epochs, k, 0),
        register_records=with_row(state.register_records, k, 0),
        replicated=Wide(
            (state.replicated.low & ~column) | (caught_up.low & column),
            (state.replicated.high & ~column) | (caught_up.high & column),
        ),
        local=with_local(state.local, b, 0, 0, 0, 0, 0),
    )


def drop_fetch_sessions(state, brokers):
    """DropFetchSessions of each of these brokers."""
    columns = brokers * EVERY_BROKER
    dropped = rows(brokers) | columns
    failed = (state.fetch_requests | state.fetch_responses) & state.fetchers & columns
    return state._replace(
        fetchers=state.fetchers & ~rows(brokers),
        delayed=(state.delayed | gathered(nonempty(failed))) & ~brokers,
        fetch_requests=state.fetch_requests & ~dropped,
        fetch_responses=state.fetch_responses & ~dropped,
        fetch_heads=without_peers(without_words(state.fetch_heads, brokers), brokers, HEAD_BITS),
        fetch_bodies=without_peers(without_words(state.fetch_bodies, brokers), brokers, BODY_BITS),
    )


def drop_registrations(state, params, brokers):
    """The state without these brokers' registrations on their way: in Kafka they die with the connection."""
    messages = (state.register_requests | state.register_responses) & (where(params.kafka, brokers, 0) * EVERY_START)
    asked = messages
    for b in range(1, MAX_BROKERS):
        asked |= messages >> b
    starts = (asked & EVERY_START) * ROW
    return state._replace(
        register_requests=state.register_requests & ~messages,
        register_responses=state.register_responses & ~messages,
        register_epochs=state.register_epochs & ~starts,
        register_records=state.register_records & ~starts,
    )


def go_down(state, params, brokers, refused):
    """The common part of all shutdowns of brokers, once the controller has fenced them; `refused`: the records that
    they cannot acknowledge any more. They keep their logs, and come back as from a crash."""
    state = drop_fetch_sessions(drop_registrations(state, params, brokers), brokers)
    return state._replace(
        running=state.running & ~brokers,
        starting=state.starting & ~brokers,
        broker_epochs=state.broker_epochs & ~rows(brokers),
        incarnations=state.incarnations & ~rows(brokers),
        leaders=state.leaders & ~brokers,
        followers=state.followers & ~brokers,
        peers=without_words(state.peers, brokers),
        pending=state.pending & ~brokers,
        neg_acked=state.neg_acked | refused,
        flos=state.flos & ~rows(brokers),
        stalled=state.stalled & ~brokers,
        isolated=state.isolated & ~brokers,
    )


def lose_logs(state, brokers):
    """These brokers, which are down, have lost their logs."""
    every = rows(brokers)
    return state._replace(
        dirty=state.dirty | brokers,
        logs=state.logs & ~every,
        unflushed=state.unflushed & ~every,
        hwms=(state.hwms & ~every) | spread(brokers),
        lesos=state.lesos & ~every,
    )


def lose_tails(state, brokers):
    """The machines of these brokers, which are down, have lost their unflushed records."""
    every = rows(brokers)
    cut = gathered(nonempty(state.unflushed & every))
    logs, hwms = state.logs & ~(state.unflushed & every), state.hwms
    for b in range(MAX_BROKERS):
        end = popcount(row(logs, b)) + 1
        beyond = ((cut >> b) & 1 != 0) & (row(hwms, b) > end)
        hwms = where(beyond, with_row(hwms, b, end), hwms)
    return state._replace(
        dirty=state.dirty | cut,
        logs=logs,
        unflushed=state.unflushed & ~every,
        hwms=hwms,
        lesos=state.lesos & ~rows(cut),
    )


def unacknowledged(state, b):
    """The records that broker b leaves without an answer to their producers, if it leads."""
    failed = ackable(state, b, row(state.hwms, b), leo_of(state, b))
    return where(state.leaders & (1 << b) != 0, failed, 0)


def shut_down(state, params, instance):
    """One broker goes down, and keeps its log; the controller fences it at once."""
    b = instance // WIDTH
    refused = unacknowledged(state, b)
    fenced = handle_broker_fenced(state, params, b, 1 << (instance - WIDTH * b))
    return go_down(fenced, params, 1 << b, refused)


def shut_down_cleanly(state, params, instance):
    """One broker flushes its log and goes down; with KIP-966 it keeps its epoch."""
    b = instance // WIDTH
    epoch = where(params.kip966, row(state.broker_epochs, b), 0)
    state = forget(shut_down(state, params, instance))
    return state._replace(
        broker_epochs=with_row(state.broker_epochs, b, epoch), unflushed=with_row(state.unflushed, b, 0)
    )


def may_lose(state, params):
    """The brokers that are up, but for the last replica standing where that is never the one."""
    up = state.running | state.starting
    spared = (params.avoid_last_replica_standing != 0) & (state.con.isr & (state.con.isr - 1) == 0)
    return where(spared, up & ~state.con.isr, up)


def data_loss_shutdown_enabled(state, params):
    wanted = where(state.lossy_shutdowns < params.max_lossy_shutdowns, may_lose(state, params), 0)
    return (when(wanted != 0, fence_instances, state, params, wanted),)


@action(data_loss_shutdown_enabled, "lost log", shared=WIDTH, bounds=("max_lossy_shutdowns",))
def data_loss_shutdown(state, params, instance, lost):
    """Each broker that is up goes down and loses its log, whoever leads next."""
    state = lose_logs(shut_down(state, params, instance), 1 << (instance // WIDTH))
    return forget(state._replace(lossy_shutdowns=state.lossy_shutdowns + 1))


def tail_loss_shutdown_enabled(state, params):
    wanted = where(state.tail_losses < params.max_tail_losses, may_lose(state, params), 0)
    return (when(wanted != 0, fence_instances, state, params, wanted),)


@action(tail_loss_shutdown_enabled, "lost tail", shared=WIDTH, needs=("max_tail_losses",))
def tail_loss_shutdown(state, params, instance, lost):
    """Each broker that is up loses power, and with it what it has not flushed, whoever leads next."""
    state = lose_tails(shut_down(state, params, instance), 1 << (instance // WIDTH))
    return forget(state._replace(tail_losses=state.tail_losses + 1))


def broker_flushes_enabled(state, params):
    """Any broker, up or down: the page cache outlives the process, and faults that take it leave nothing unflushed."""
    return (gathered(nonempty(state.unflushed)),)


@action(broker_flushes_enabled, interval_ms=LOG_FLUSH_INTERVAL_MS, needs=("flush_every_message",))
def broker_flushes(state, params, b, lost):
    """Each broker with records that are not on disk, up or not, flushes them."""
    return state._replace(unflushed=with_row(state.unflushed, b, 0))


def no_data_loss_shutdown_enabled(state, params):
    """The guard of a clean shutdown, and of a crash that loses nothing. In 3.5 they only differ in what they flush, and
    the spec has one of them."""
    wanted = where(state.clean_shutdowns < params.max_clean_shutdowns, state.running | state.starting, 0)
    return (when(wanted != 0, fence_instances, state, params, wanted),)


@action(no_data_loss_shutdown_enabled, "crash", shared=WIDTH, bounds=("max_clean_shutdowns",))
def no_data_loss_unclean_shutdown(state, params, instance, lost):
    """Each broker that is up crashes without losing anything, whoever leads next."""
    state = shut_down(state, params, instance)
    return forget(state._replace(clean_shutdowns=state.clean_shutdowns + 1))


@action(no_data_loss_shutdown_enabled, "clean shutdown", shared=WIDTH, bounds=("max_clean_shutdowns",))
def no_data_loss_shutdown(state, params, instance, lost):
    """Each broker that is up shuts down cleanly, whoever leads next."""
    return shut_down_cleanly(state, params, instance)._replace(clean_shutdowns=state.clean_shutdowns + 1)
