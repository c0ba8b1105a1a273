"""Actions of the model: the producer sends, the compactor takes its steps, the broker crashes."""

from quorisk.kernels.model import action
from quorisk.kernels.ops import popcount, where
from quorisk.kernels.protocols.compaction.layout import (
    EVERY_ROW,
    IN_PHASE_ONE,
    IN_PHASE_TWO_DELETE_LEDGER,
    IN_PHASE_TWO_PERSIST_CURSOR,
    IN_PHASE_TWO_UPDATE_CONTEXT,
    IN_PHASE_TWO_UPDATE_HORIZON,
    IN_PHASE_TWO_WRITE,
    ROW,
    max_compacted_ledger_id,
    up_to,
    up_to_latest,
)


def compact_messages(state, params):
    """CompactMessages: the row of the latest message of each key read in phase one, and of those without a key."""
    rows = state.keys & (up_to(state.read_position) * EVERY_ROW)
    places = up_to_latest(rows & ~ROW)
    latest = places & ~((places >> 1) & (0x7F * EVERY_ROW))
    latest |= latest >> 32
    latest |= latest >> 16
    latest |= latest >> 8
    return (latest | where(params.retain_null_key != 0, rows, 0)) & ROW


def producer_enabled(state, params):
    # without a modelled producer the topic is full from the start
    return (where(popcount(state.keys) < params.messages, params.producible, 0),)


@action(producer_enabled)
def producer(state, params, instance, lost):
    """Each key and value that the producer may send next is sent: the more there are, the sooner it sends."""
    place = popcount(state.keys)
    return state._replace(
        keys=state.keys | (1 << ((instance & 0b111000) + place)),
        values=state.values | (1 << (8 * (instance & 7) + place)),
    )


def compactor_phase_one_enabled(state, params):
    return (where((state.compactor_state == IN_PHASE_ONE) & (state.keys != 0), 1, 0),)


@action(compactor_phase_one_enabled)
def compactor_phase_one(state, params, instance, lost):
    """The compactor reads the topic to its end."""
    return state._replace(read_position=popcount(state.keys), compactor_state=IN_PHASE_TWO_WRITE)


def compactor_phase_two_write_enabled(state, params):
    room = max_compacted_ledger_id(state) < params.compactions
    return (where((state.compactor_state == IN_PHASE_TWO_WRITE) & room, 1, 0),)


@action(compactor_phase_two_write_enabled)
def compactor_phase_two_write(state, params, instance, lost):
    """The compactor writes the compacted ledger."""
    place = max_compacted_ledger_id(state)
    context_first = params.publish_context_before_horizon != 0
    return state._replace(
        ledgers=state.ledgers | (compact_messages(state, params) << (8 * place)),
        existing=state.existing | (1 << place),
        compactor_state=where(context_first, IN_PHASE_TWO_UPDATE_CONTEXT, IN_PHASE_TWO_UPDATE_HORIZON),
    )


def compactor_phase_two_update_context_enabled(state, params):
    return (where(state.compactor_state == IN_PHASE_TWO_UPDATE_CONTEXT, 1, 0),)


@action(compactor_phase_two_update_context_enabled)
def compactor_phase_two_update_context(state, params, instance, lost):
    """The compactor publishes the compacted ledger to readers."""
    published = after_publishing(params)
    context_first = params.publish_context_before_horizon != 0
    return state._replace(
        compacted_topic_context=max_compacted_ledger_id(state),
        compactor_state=where(context_first, IN_PHASE_TWO_UPDATE_HORIZON, published),
    )


def compactor_phase_two_update_horizon_enabled(state, params):
    return (where(state.compactor_state == IN_PHASE_TWO_UPDATE_HORIZON, 1, 0),)


@action(compactor_phase_two_update_horizon_enabled)
def compactor_phase_two_update_horizon(state, params, instance, lost):
    """The compactor publishes the horizon of the compaction to readers."""
    published = after_publishing(params)
    context_first = params.publish_context_before_horizon != 0
    return state._replace(
        compaction_horizon=state.read_position,
        compactor_state=where(context_first, published, IN_PHASE_TWO_UPDATE_CONTEXT),
    )


def after_publishing(params):
    """The compactor's state once context and horizon are published."""
    persist_first = params.persist_cursor_before_delete != 0
    return where(persist_first, IN_PHASE_TWO_PERSIST_CURSOR, IN_PHASE_TWO_DELETE_LEDGER)


def with_compactor(state, more, next_state):
    """The compactor in `next_state` if it has more to do, else back in phase one, its result dropped."""
    return state._replace(
        compactor_state=where(more, next_state, IN_PHASE_ONE), read_position=where(more, state.read_position, 0)
    )


def compactor_phase_two_persist_cusror_enabled(state, params):
    return (where(state.compactor_state == IN_PHASE_TWO_PERSIST_CURSOR, 1, 0),)


@action(compactor_phase_two_persist_cusror_enabled)
def compactor_phase_two_persist_cusror(state, params, instance, lost):
    """The compactor stores ledger and horizon in its cursor."""
    state = state._replace(cursor_horizon=state.compaction_horizon, cursor_context=state.compacted_topic_context)
    return with_compactor(state, params.persist_cursor_before_delete != 0, IN_PHASE_TWO_DELETE_LEDGER)


def compactor_phase_two_delete_ledger_enabled(state, params):
    return (where(state.compactor_state == IN_PHASE_TWO_DELETE_LEDGER, 1, 0),)


@action(compactor_phase_two_delete_ledger_enabled)
def compactor_phase_two_delete_ledger(state, params, instance, lost):
    """The compactor deletes the last ledger but one."""
    # it is deleted even while it is used; with one ledger only, there is none to delete
    newest = max_compacted_ledger_id(state)
    state = state._replace(
        ledgers=state.ledgers & ~(ROW << ((8 * newest - 16) & 63)), existing=state.existing & ~((1 << newest) >> 2)
    )
    return with_compactor(state, params.persist_cursor_before_delete == 0, IN_PHASE_TWO_PERSIST_CURSOR)


def broker_crash_enabled(state, params):
    return (where(state.crash_times < params.max_crashes, 1, 0),)


@action(broker_crash_enabled, bounds=("max_crashes",))
def broker_crash(state, params, instance, lost):
    """The broker in which the compactor runs crashes and is back at once."""
    # what was in memory is lost; context and horizon are read back from the cursor (both 0 if it is Nil)
    return state._replace(
        compactor_state=IN_PHASE_ONE,
        read_position=0,
        compaction_horizon=state.cursor_horizon,
        compacted_topic_context=state.cursor_context,
        crash_times=state.crash_times + 1,
    )
