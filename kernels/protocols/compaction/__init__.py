"""Pulsar's topic compaction: a producer, the two-phase compactor, and crashes of the broker that the compactor runs in.

Source: compaction.tla (thetumbled/pulsar-tlaplus). Actions stand in the order of its Next under its own names. Its
consumer and Terminating change no state and are left out. Nothing is sent that could be lost: `message_loss` must be 0.

The compactor's correctness hangs on two orderings, each with a switch. Off, the two steps change places; they stay two
steps, so a crash can still fall between them, and what the cycle's last step drops (the result of phase one) is dropped
by whichever step is last. Off, both lose data: CompactionHorizonCorrectness breaks.

What a run's outcome means. Nothing can happen any more once every message is sent, every ledger id used up and every
crash spent; the compactor then waits in phase two, unable to write another ledger. That is `completed`, the spec's
Termination: the model's budget is spent, even if a crash cut the last compaction short. With all rates positive every
run that loses nothing ends so. `stuck` is any other end: a rate of 0 switched off what was to happen next.

Findings in the spec as it stands (it calls both unfixed). CompactedLedgerLeak: only the last ledger but one is ever
deleted, so a crash after the writing of a ledger and before the deletion of its predecessor leaves the latter for good.
DuplicateNullKeyMessage: needs no crash, only that the context is published and the horizon is not yet.
"""

from typing import NamedTuple

from quorisk.kernels.model import COMPLETED, STUCK, Action, Invariant, Model, Parameter, sends_nothing
from quorisk.kernels.ops import jitable, popcount, where

MAX_MESSAGES, MAX_COMPACTIONS, MAX_KEYS, MAX_VALUES, MAX_CRASHES = 8, 7, 6, 6, 31

ROW = 0xFF
"""All messages: the message with id i is bit i - 1 of a row of eight bits."""
EVERY_ROW = 0x01010101010101
"""Times a row: that row seven times, for the keys (values) 0 to 6 or the ledgers 1 to 7."""

(
    IN_PHASE_ONE,
    IN_PHASE_TWO_WRITE,
    IN_PHASE_TWO_UPDATE_CONTEXT,
    IN_PHASE_TWO_UPDATE_HORIZON,
    IN_PHASE_TWO_PERSIST_CURSOR,
    IN_PHASE_TWO_DELETE_LEDGER,
) = range(6)


class State(NamedTuple):
    """Every variable of the spec."""

    keys: int  # messages by key: row k holds those with key k; row 0 = NullKey
    values: int  # messages by value, likewise; nothing ever looks at them
    ledgers: int  # compactedLedgers: row i - 1 holds the messages in ledger i (in the order of their ids)
    existing: int  # bit i - 1: ledger i is not Nil (it may be empty)
    compactor_state: int  # IN_PHASE_*
    read_position: int  # phaseOneResult.readPosition; 0 = Nil. It settles latestForKey: messages only grow
    compaction_horizon: int  # id of the last message that readers take from the compacted ledger
    compacted_topic_context: int  # id of the ledger that they read; 0 = none
    cursor_horizon: int  # cursor.compactionHorizon
    cursor_context: int  # cursor.compactedTopicContext; 0 = the cursor is Nil
    crash_times: int  # crashes so far


WIDTHS = State(56, 56, 56, 7, 3, 4, 4, 3, 4, 3, 5)


class Params(NamedTuple):
    """The spec's constants and the variant, as integers (switches: 0 or 1)."""

    messages: int  # MessageSentLimit
    compactions: int  # CompactionTimesLimit
    values: int  # size of ValueSet, NullValue included
    max_crashes: int  # MaxCrashTimes
    producible: int  # the producer's instances, bit 8 key + value
    initial_messages: int  # messages there are at the start: all if the producer is not modelled, else none
    sequences: int  # number of sequences of that many messages
    retain_null_key: int
    publish_context_before_horizon: int
    persist_cursor_before_delete: int


PARAMETERS = (
    Parameter("messages", "model", (1, MAX_MESSAGES), "messages in the topic"),
    Parameter("compactions", "model", (1, MAX_COMPACTIONS), "compacted ledgers that may be written"),
    Parameter("keys", "model", (1, MAX_KEYS), "keys of messages, besides the null key"),
    Parameter("values", "model", (1, MAX_VALUES), "values of messages, besides the null value"),
    Parameter("max_crashes", "model", (0, MAX_CRASHES), "broker crashes"),
    Parameter("retain_null_key", "variant", None, "compaction keeps messages that have no key"),
    Parameter(
        "model_producer",
        "variant",
        None,
        "messages are sent as the run goes (off: all are there at the start, every sequence of them equally likely)",
    ),
    Parameter(
        "publish_context_before_horizon",
        "variant",
        None,
        "readers get the new ledger before the new horizon (off: horizon first, then ledger)",
    ),
    Parameter(
        "persist_cursor_before_delete",
        "variant",
        None,
        "the cursor is persisted before the old ledger is deleted (off: delete first, then persist)",
    ),
)


def make_params(values) -> Params:
    """`Params` from checked values of PARAMETERS."""
    keys, value_set = values["keys"] + 1, values["values"] + 1
    initial_messages = 0 if values["model_producer"] else values["messages"]
    derived = {
        "values": value_set,
        "producible": sum(1 << (8 * key + value) for key in range(keys) for value in range(value_set)),
        "initial_messages": initial_messages,
        "sequences": (keys * value_set) ** initial_messages,
    }
    return Params(**{name: int((values | derived)[name]) for name in Params._fields})


@jitable
def initial_choices(params):
    """One empty topic, or every sequence of messages."""
    return params.sequences


@jitable
def initial(params, choice):
    """Nothing happened yet. `choice` spells the messages, the first one as its lowest digit: key x values + value."""
    base = popcount(params.producible)
    keys = 0
    values = 0
    for i in range(MAX_MESSAGES):
        message = choice % base
        choice = choice // base
        key = message // params.values
        there = where(i < params.initial_messages, 1 << i, 0)
        keys |= there << (8 * key)
        values |= there << (8 * (message - key * params.values))
    return State(keys, values, 0, 0, IN_PHASE_ONE, 0, 0, 0, 0, 0, 0)


@jitable
def up_to(position):
    """The row of the messages 1 to `position`."""
    return (1 << position) - 1


@jitable
def up_to_latest(rows):
    """In each row the latest message there and all places before it."""
    rows |= (rows >> 1) & (0x7F * EVERY_ROW)
    rows |= (rows >> 2) & (0x3F * EVERY_ROW)
    return rows | ((rows >> 4) & (0x0F * EVERY_ROW))


@jitable
def compact_messages(state, params):
    """CompactMessages: the row of the latest message of each key read in phase one, and of those without a key."""
    rows = state.keys & (up_to(state.read_position) * EVERY_ROW)
    places = up_to_latest(rows & ~ROW)
    latest = places & ~((places >> 1) & (0x7F * EVERY_ROW))
    latest |= latest >> 32
    latest |= latest >> 16
    latest |= latest >> 8
    return (latest | where(params.retain_null_key != 0, rows, 0)) & ROW


@jitable
def max_compacted_ledger_id(state):
    """MaxCompactedLedgerId: 0 if there is no ledger."""
    return popcount(up_to_latest(state.existing))


@jitable
def context_messages(state):
    """The row of the messages in the ledger that readers read: none if it was deleted, or if there is none yet."""
    return (state.ledgers >> ((8 * state.compacted_topic_context - 8) & 63)) & ROW  # context 0: row 7, always empty


@jitable
def producer_enabled(state, params):
    # without a modelled producer the topic is full from the start
    return (where(popcount(state.keys) < params.messages, params.producible, 0),)


@jitable
def producer(state, params, instance, lost):
    place = popcount(state.keys)
    return state._replace(
        keys=state.keys | (1 << ((instance & 0b111000) + place)),
        values=state.values | (1 << (8 * (instance & 7) + place)),
    )


@jitable
def compactor_phase_one_enabled(state, params):
    return (where((state.compactor_state == IN_PHASE_ONE) & (state.keys != 0), 1, 0),)


@jitable
def compactor_phase_one(state, params, instance, lost):
    return state._replace(read_position=popcount(state.keys), compactor_state=IN_PHASE_TWO_WRITE)


@jitable
def compactor_phase_two_write_enabled(state, params):
    room = max_compacted_ledger_id(state) < params.compactions
    return (where((state.compactor_state == IN_PHASE_TWO_WRITE) & room, 1, 0),)


@jitable
def compactor_phase_two_write(state, params, instance, lost):
    place = max_compacted_ledger_id(state)
    context_first = params.publish_context_before_horizon != 0
    return state._replace(
        ledgers=state.ledgers | (compact_messages(state, params) << (8 * place)),
        existing=state.existing | (1 << place),
        compactor_state=where(context_first, IN_PHASE_TWO_UPDATE_CONTEXT, IN_PHASE_TWO_UPDATE_HORIZON),
    )


@jitable
def compactor_phase_two_update_context_enabled(state, params):
    return (where(state.compactor_state == IN_PHASE_TWO_UPDATE_CONTEXT, 1, 0),)


@jitable
def compactor_phase_two_update_context(state, params, instance, lost):
    published = after_publishing(params)
    context_first = params.publish_context_before_horizon != 0
    return state._replace(
        compacted_topic_context=max_compacted_ledger_id(state),
        compactor_state=where(context_first, IN_PHASE_TWO_UPDATE_HORIZON, published),
    )


@jitable
def compactor_phase_two_update_horizon_enabled(state, params):
    return (where(state.compactor_state == IN_PHASE_TWO_UPDATE_HORIZON, 1, 0),)


@jitable
def compactor_phase_two_update_horizon(state, params, instance, lost):
    published = after_publishing(params)
    context_first = params.publish_context_before_horizon != 0
    return state._replace(
        compaction_horizon=state.read_position,
        compactor_state=where(context_first, published, IN_PHASE_TWO_UPDATE_CONTEXT),
    )


@jitable
def after_publishing(params):
    """The compactor's state once context and horizon are published."""
    persist_first = params.persist_cursor_before_delete != 0
    return where(persist_first, IN_PHASE_TWO_PERSIST_CURSOR, IN_PHASE_TWO_DELETE_LEDGER)


@jitable
def with_compactor(state, more, next_state):
    """The compactor in `next_state` if it has more to do, else back in phase one, its result dropped."""
    return state._replace(
        compactor_state=where(more, next_state, IN_PHASE_ONE),
        read_position=where(more, state.read_position, 0),
    )


@jitable
def compactor_phase_two_persist_cusror_enabled(state, params):
    return (where(state.compactor_state == IN_PHASE_TWO_PERSIST_CURSOR, 1, 0),)


@jitable
def compactor_phase_two_persist_cusror(state, params, instance, lost):
    state = state._replace(
        cursor_horizon=state.compaction_horizon,
        cursor_context=state.compacted_topic_context,
    )
    return with_compactor(state, params.persist_cursor_before_delete != 0, IN_PHASE_TWO_DELETE_LEDGER)


@jitable
def compactor_phase_two_delete_ledger_enabled(state, params):
    return (where(state.compactor_state == IN_PHASE_TWO_DELETE_LEDGER, 1, 0),)


@jitable
def compactor_phase_two_delete_ledger(state, params, instance, lost):
    # the last ledger but one goes, whoever uses it; if there is one ledger only, nothing is there to go
    newest = max_compacted_ledger_id(state)
    state = state._replace(
        ledgers=state.ledgers & ~(ROW << ((8 * newest - 16) & 63)),
        existing=state.existing & ~((1 << newest) >> 2),
    )
    return with_compactor(state, params.persist_cursor_before_delete == 0, IN_PHASE_TWO_PERSIST_CURSOR)


@jitable
def broker_crash_enabled(state, params):
    return (where(state.crash_times < params.max_crashes, 1, 0),)


@jitable
def broker_crash(state, params, instance, lost):
    """What was in memory is lost; context and horizon are read back from the cursor (both 0 if it is Nil)."""
    return state._replace(
        compactor_state=IN_PHASE_ONE,
        read_position=0,
        compaction_horizon=state.cursor_horizon,
        compacted_topic_context=state.cursor_context,
        crash_times=state.crash_times + 1,
    )


@jitable
def compacted_ledger_leak(state, params):
    """At most two ledgers exist: the current one and the one that is being written or deleted."""
    return popcount(state.existing) <= 2


@jitable
def compaction_horizon_correctness(state, params):
    """Every message up to the horizon is represented in the ledger that readers read: by itself or a later one of its
    key. Messages without a key count only if compaction keeps them. An absent ledger represents none (TLC, asked for
    the messages of Nil, would stop with an error; with both orderings on it never is)."""
    needed = state.keys & (up_to(state.compaction_horizon) * EVERY_ROW)
    needed &= where(params.retain_null_key != 0, -1, ~ROW)
    return needed & ~up_to_latest(state.keys & (context_messages(state) * EVERY_ROW)) == 0


@jitable
def duplicate_null_key_message(state, params):
    """No message without a key is both in the ledger that readers read and beyond the horizon, where they read on in
    the topic: they would get it twice."""
    twice = context_messages(state) & state.keys & ~up_to(state.compaction_horizon)
    return (twice & where(params.retain_null_key != 0, ROW, 0)) == 0


@jitable
def outcome(state, params):
    """Nothing is enabled: the run is completed if all is sent and all ledgers are used up (Termination), else stuck."""
    sent = popcount(state.keys) == params.messages
    waiting = state.compactor_state == IN_PHASE_TWO_WRITE
    return where(sent & waiting & (max_compacted_ledger_id(state) == params.compactions), COMPLETED, STUCK)


ACTIONS = (
    Action("producer", producer_enabled, sends_nothing, producer),
    Action("compactor_phase_one", compactor_phase_one_enabled, sends_nothing, compactor_phase_one),
    Action("compactor_phase_two_write", compactor_phase_two_write_enabled, sends_nothing, compactor_phase_two_write),
    Action(
        "compactor_phase_two_update_context",
        compactor_phase_two_update_context_enabled,
        sends_nothing,
        compactor_phase_two_update_context,
    ),
    Action(
        "compactor_phase_two_update_horizon",
        compactor_phase_two_update_horizon_enabled,
        sends_nothing,
        compactor_phase_two_update_horizon,
    ),
    Action(
        "compactor_phase_two_persist_cusror",  # the spec's spelling
        compactor_phase_two_persist_cusror_enabled,
        sends_nothing,
        compactor_phase_two_persist_cusror,
    ),
    Action(
        "compactor_phase_two_delete_ledger",
        compactor_phase_two_delete_ledger_enabled,
        sends_nothing,
        compactor_phase_two_delete_ledger,
    ),
    Action("broker_crash", broker_crash_enabled, sends_nothing, broker_crash),
)
INVARIANTS = (
    Invariant("CompactedLedgerLeak", compacted_ledger_leak, data_loss=False),
    Invariant("CompactionHorizonCorrectness", compaction_horizon_correctness, data_loss=True),
    Invariant("DuplicateNullKeyMessage", duplicate_null_key_message, data_loss=False),
)
MODEL = Model(
    name="compaction",
    version=1,
    parameters=PARAMETERS,
    conditions=(),
    make_params=make_params,
    initial_choices=initial_choices,
    initial=initial,
    actions=ACTIONS,
    invariants=INVARIANTS,
    outcome=outcome,
    widths=WIDTHS,
    max_sends=0,
)
