"""A state in the spec's own variables: for traces, and to compare it with other programs' states."""

from typing import Any, NamedTuple

from quorisk.kernels.protocols.compaction.layout import MAX_COMPACTIONS, State

NIL = "Nil"
NULL_KEY = NULL_VALUE = 0
PHASES = (
    "Compactor_In_PhaseOne",
    "Compactor_In_PhaseTwoWrite",
    "Compactor_In_PhaseTwoUpdateContext",
    "Compactor_In_PhaseTwoUpdateHorizon",
    "Compactor_In_PhaseTwoPersistCusror",  # the spec's spelling
    "Compactor_In_PhaseTwoDeleteLedger",
)
"""The spec's names of the values of `compactor_state`."""


class Message(NamedTuple):
    """A message of the topic."""

    id: int
    key: int
    value: int


class PhaseOneResult(NamedTuple):
    """phaseOneResult; latestForKey as pairs of a key and a message id."""

    readPosition: int
    latestForKey: frozenset[tuple[int, int]]


class Cursor(NamedTuple):
    """cursor."""

    compactionHorizon: int
    compactedTopicContext: int


class SpecState(NamedTuple):
    """The spec's variables; None is Nil."""

    messages: tuple[Message, ...]
    compactedLedgers: tuple[tuple[Message, ...] | None, ...]
    cursor: Cursor | None
    compactorState: str
    phaseOneResult: PhaseOneResult | None
    compactionHorizon: int
    compactedTopicContext: int
    crashTimes: int


def _row_of(rows: int, place: int) -> int:
    """The row that holds the message at that place."""
    (row,) = (i for i in range(7) if rows >> (8 * i + place) & 1)
    return row


def spec_state(state: State, params: Any) -> SpecState:
    """The state that the spec would have."""
    count = state.keys.bit_count()
    messages = tuple(Message(i + 1, _row_of(state.keys, i), _row_of(state.values, i)) for i in range(count))
    ledgers = [tuple(m for m in messages if state.ledgers >> (8 * i + m.id - 1) & 1) for i in range(MAX_COMPACTIONS)]
    read = state.read_position
    latest = frozenset({m.key: m.id for m in messages[:read] if m.key != NULL_KEY}.items())
    return SpecState(
        messages=messages,
        compactedLedgers=tuple(ledgers[i] if state.existing >> i & 1 else None for i in range(params.compactions)),
        cursor=Cursor(state.cursor_horizon, state.cursor_context) if state.cursor_context else None,
        compactorState=PHASES[state.compactor_state],
        phaseOneResult=PhaseOneResult(read, latest) if read else None,
        compactionHorizon=state.compaction_horizon,
        compactedTopicContext=state.compacted_topic_context,
        crashTimes=state.crash_times,
    )
