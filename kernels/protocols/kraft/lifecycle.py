"""How brokers start and stop.

Instances: of a start, the broker; of a registration response, row k + broker; of a shutdown, row of the broker + the
new leader that the controller chooses (see `controller`).
"""

from quorisk.kernels.model import Action, sends_nothing
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.kraft.controller import fence_instances, handle_broker_fenced
from quorisk.kernels.protocols.kraft.layout import (
    BODY_BITS,
    EVERY_LOW,
    EVERY_START,
    HEAD_BITS,
    MAX_BROKERS,
    ByBroker,
    Wide,
    forget,
    leo_of,
    rows_before,
    with_word,
)
from quorisk.kernels.protocols.kraft.watermark import ackable
from quorisk.kernels.protocols.rows import EVERY_REPLICA, ROW, WIDTH, gathered, nonempty, row, with_row


def broker_start_enabled(state, params):
    return (((1 << params.brokers) - 1) & ~(state.running | state.starting),)


def broker_start(state, params, b, lost):
    k = state.starts
    return state._replace(
        starting=state.starting | (1 << b),
        dirty=state.dirty & ~(1 << b),
        incarnations=with_row(state.incarnations, b, params.brokers + 1 + k),
        register_requests=state.register_requests | (1 << (WIDTH * k + b)),
        register_epochs=with_row(state.register_epochs, k, row(state.broker_epochs, b)),
        starts=k + 1,
    )


def registering(state, params):
    """Registration responses to brokers that still are the incarnation that asked."""
    current = 0
    for b in range(MAX_BROKERS):
        k = row(state.incarnations, b) - params.brokers - 1
        started = ((state.starting >> b) & 1) != 0
        current |= where(started, 1 << (WIDTH * where(started, k, 0) + b), 0)
    return state.register_responses & current


def receive_broker_reg_response_enabled(state, params):
    return (when((state.register_responses != 0) & (state.starting != 0), registering, state, params),)


def receive_broker_reg_response(state, params, instance, lost):
    k = instance // WIDTH
    b = instance - WIDTH * k
    broker = 1 << b
    local = state.local
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
        local=local._replace(
            replicas=with_row(local.replicas, b, 0),
            isrs=with_row(local.isrs, b, 0),
            maximal_isrs=with_row(local.maximal_isrs, b, 0),
            leaders=with_row(local.leaders, b, 0),
            leader_epochs=with_row(local.leader_epochs, b, 0),
            partition_epochs=with_row(local.partition_epochs, b, 0),
        ),
    )


def drop_fetch_sessions(state, b):
    """DropFetchSessions."""
    broker = 1 << b
    column = broker * EVERY_REPLICA
    dropped = (ROW << (WIDTH * b)) | column
    failed = (state.fetch_requests | state.fetch_responses) & state.fetchers & column
    heads, bodies = with_word(state.fetch_heads, b, 0), with_word(state.fetch_bodies, b, 0)
    head = ~(((1 << HEAD_BITS) - 1) << (HEAD_BITS * b))
    body = ~(((1 << BODY_BITS) - 1) << (BODY_BITS * b))
    return state._replace(
        fetchers=with_row(state.fetchers, b, 0),
        delayed=(state.delayed | gathered(nonempty(failed))) & ~broker,
        fetch_requests=state.fetch_requests & ~dropped,
        fetch_responses=state.fetch_responses & ~dropped,
        fetch_heads=ByBroker(heads.b0 & head, heads.b1 & head, heads.b2 & head, heads.b3 & head, heads.b4 & head),
        fetch_bodies=ByBroker(bodies.b0 & body, bodies.b1 & body, bodies.b2 & body, bodies.b3 & body, bodies.b4 & body),
    )


def drop_registration(state, params, b):
    """As Kafka has it, what a broker asked the controller dies with its connection: its next start asks anew."""
    broker = where(params.kafka, 1 << b, 0)
    gone = (state.register_requests | state.register_responses) & (broker * EVERY_START)
    starts = (gone >> b) * ROW
    return state._replace(
        register_requests=state.register_requests & ~gone,
        register_responses=state.register_responses & ~gone,
        register_epochs=state.register_epochs & ~starts,
        register_records=state.register_records & ~starts,
    )


def shut_down(state, params, instance):
    """What all shutdowns share; the controller fences the broker at once."""
    b = instance // WIDTH
    broker = 1 << b
    leads = state.leaders & broker != 0
    failed = ackable(state, b, row(state.hwms, b), leo_of(state, b))
    state = handle_broker_fenced(state, params, instance)
    state = drop_fetch_sessions(drop_registration(state, params, b), b)
    return state._replace(
        running=state.running & ~broker,
        starting=state.starting & ~broker,
        incarnations=with_row(state.incarnations, b, 0),
        leaders=state.leaders & ~broker,
        followers=state.followers & ~broker,
        peers=with_word(state.peers, b, 0),
        pending=state.pending & ~broker,
        neg_acked=state.neg_acked | where(leads, failed, 0),
        flos=with_row(state.flos, b, 0),
    )


def data_loss_shutdown_enabled(state, params):
    up = state.running | state.starting
    # the last replica standing is never the one
    spared = (params.avoid_last_replica_standing != 0) & (state.con.isr & (state.con.isr - 1) == 0)
    up = where(spared, up & ~state.con.isr, up)
    wanted = where(state.lossy_shutdowns < params.max_lossy_shutdowns, up, 0)
    return (when(wanted != 0, fence_instances, state, params, wanted),)


def data_loss_shutdown(state, params, instance, lost):
    b = instance // WIDTH
    state = shut_down(state, params, instance)
    return forget(
        state._replace(
            dirty=state.dirty | (1 << b),
            broker_epochs=with_row(state.broker_epochs, b, 0),
            logs=with_row(state.logs, b, 0),
            hwms=with_row(state.hwms, b, 1),
            lesos=with_row(state.lesos, b, 0),
            lossy_shutdowns=state.lossy_shutdowns + 1,
        )
    )


def no_data_loss_shutdown_enabled(state, params):
    wanted = where(state.clean_shutdowns < params.max_clean_shutdowns, state.running | state.starting, 0)
    return (when(wanted != 0, fence_instances, state, params, wanted),)


def no_data_loss_shutdown(state, params, instance, lost):
    b = instance // WIDTH
    state = shut_down(state, params, instance)
    epoch = where(params.kip966, row(state.broker_epochs, b), 0)
    return forget(
        state._replace(broker_epochs=with_row(state.broker_epochs, b, epoch), clean_shutdowns=state.clean_shutdowns + 1)
    )


def no_data_loss_unclean_shutdown_enabled(state, params):
    # as of 3.5 a crash is no different from a clean shutdown, and the spec has one action for both
    allowed = (params.kip966 | params.kafka != 0) & (state.clean_shutdowns < params.max_clean_shutdowns)
    wanted = where(allowed, state.running | state.starting, 0)
    return (when(wanted != 0, fence_instances, state, params, wanted),)


def no_data_loss_unclean_shutdown(state, params, instance, lost):
    state = no_data_loss_shutdown(state, params, instance, lost)
    return state._replace(broker_epochs=with_row(state.broker_epochs, instance // WIDTH, 0))


BROKER_START = Action(
    "broker_start", broker_start_enabled, sends_nothing, broker_start, counts="Each broker that is down starts."
)
RECEIVE_BROKER_REG_RESPONSE = Action(
    "receive_broker_reg_response",
    receive_broker_reg_response_enabled,
    sends_nothing,
    receive_broker_reg_response,
    counts="Each answer to a registration arrives at the broker that starts.",
)
DATA_LOSS_SHUTDOWN = Action(
    "data_loss_shutdown",
    data_loss_shutdown_enabled,
    sends_nothing,
    data_loss_shutdown,
    "lost log",
    counts="Each broker that is up goes down and loses its log, whoever leads next.",
    shared=WIDTH,
)
NO_DATA_LOSS_SHUTDOWN = Action(
    "no_data_loss_shutdown",
    no_data_loss_shutdown_enabled,
    sends_nothing,
    no_data_loss_shutdown,
    "clean shutdown",
    counts="Each broker that is up shuts down cleanly, whoever leads next.",
    shared=WIDTH,
)
NO_DATA_LOSS_UNCLEAN_SHUTDOWN = Action(
    "no_data_loss_unclean_shutdown",
    no_data_loss_unclean_shutdown_enabled,
    sends_nothing,
    no_data_loss_unclean_shutdown,
    "crash",
    counts="Each broker that is up crashes without losing anything, whoever leads next.",
    shared=WIDTH,
)
