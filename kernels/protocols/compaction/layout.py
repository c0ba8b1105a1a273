"""The state of a topic and its compactor, packed into integers, and functions of rows of messages."""

from typing import Annotated, NamedTuple

from quorisk.kernels.ops import popcount
from quorisk.kernels.protocols.fields import widths

MAX_MESSAGES, MAX_COMPACTIONS, MAX_KEYS, MAX_VALUES, MAX_CRASHES = 8, 7, 6, 6, 31

ROW = 0xFF
"""All messages: the message with id i is bit i - 1 of a row of eight bits."""
EVERY_ROW = 0x01010101010101
"""The factor that copies a row seven times, for the keys (values) 0 to 6 or the ledgers 1 to 7."""

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

    keys: Annotated[int, 56]  # messages by key: row k holds those with key k; row 0 = NullKey
    values: Annotated[int, 56]  # messages by value, likewise; nothing ever looks at them
    ledgers: Annotated[
        int, 56
    ]  # compactedLedgers: row i - 1 holds the messages in ledger i (in the order of their ids)
    existing: Annotated[int, 7]  # bit i - 1: ledger i is not Nil (it may be empty)
    compactor_state: Annotated[int, 3]  # IN_PHASE_*
    read_position: Annotated[
        int, 4
    ]  # phaseOneResult.readPosition; 0 = Nil. It settles latestForKey: messages only grow
    compaction_horizon: Annotated[int, 4]  # id of the last message that readers take from the compacted ledger
    compacted_topic_context: Annotated[int, 3]  # id of the ledger that they read; 0 = none
    cursor_horizon: Annotated[int, 4]  # cursor.compactionHorizon
    cursor_context: Annotated[int, 3]  # cursor.compactedTopicContext; 0 = the cursor is Nil
    crash_times: Annotated[int, 5]  # crashes so far


WIDTHS = widths(State)


def up_to(position):
    """The row of the messages 1 to `position`."""
    return (1 << position) - 1


def up_to_latest(rows):
    """The rows with, in each, its latest message and all places before that."""
    rows |= (rows >> 1) & (0x7F * EVERY_ROW)
    rows |= (rows >> 2) & (0x3F * EVERY_ROW)
    return rows | ((rows >> 4) & (0x0F * EVERY_ROW))


def max_compacted_ledger_id(state):
    """MaxCompactedLedgerId: 0 if there is no ledger."""
    return popcount(up_to_latest(state.existing))


def context_messages(state):
    """The row of the messages in the ledger that readers read: none if it was deleted, or if there is none yet."""
    return (state.ledgers >> ((8 * state.compacted_topic_context - 8) & 63)) & ROW  # context 0: row 7, always empty
