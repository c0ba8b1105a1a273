"""Reference interpreter of Pulsar's topic compaction, written to be read beside compaction.tla.

It favours likeness to the specification over speed and exists to check the fast model in kernels/. Values are what TLA+
has: records (NamedTuples), sequences (tuples), functions (tuples indexed from 1), Nil (None). Only the shape of the
states is taken from `kernels.protocols.compaction.story`.
"""

from collections.abc import Iterator
from itertools import pairwise, product
from typing import NamedTuple

from quorisk.kernels.protocols.compaction.describe import NULL_KEY as NullKey
from quorisk.kernels.protocols.compaction.describe import PHASES, Cursor, Message, PhaseOneResult
from quorisk.kernels.protocols.compaction.describe import SpecState as State

Nil = None

PhaseOne, Write, UpdateContext, UpdateHorizon, PersistCursor, DeleteLedger = PHASES
TypeSafe, CompactedLedgerLeak, CompactionHorizonCorrectness, DuplicateNullKeyMessage = INVARIANTS = (
    "TypeSafe",
    "CompactedLedgerLeak",
    "CompactionHorizonCorrectness",
    "DuplicateNullKeyMessage",
)


class Constants(NamedTuple):
    MessageSentLimit: int
    CompactionTimesLimit: int
    KeySpace: int  # keys 1 to this
    ValueSpace: int
    RetainNullKey: bool
    MaxCrashTimes: int
    ModelProducer: bool
    PublishContextBeforeHorizon: bool = True  # not in the specification; True is what it does
    PersistCursorBeforeDelete: bool = True  # likewise


def phases(constants: Constants) -> dict[str, str]:
    """What the compactor does after each phase."""
    publish = (
        [UpdateContext, UpdateHorizon] if constants.PublishContextBeforeHorizon else [UpdateHorizon, UpdateContext]
    )
    finish = [PersistCursor, DeleteLedger] if constants.PersistCursorBeforeDelete else [DeleteLedger, PersistCursor]
    cycle = [PhaseOne, Write, *publish, *finish, PhaseOne]
    return dict(pairwise(cycle))


def initial_states(constants: Constants) -> Iterator[State]:
    sequences: Iterator[tuple[Message, ...]] = iter([()])
    if not constants.ModelProducer:
        contents = list(product(range(constants.KeySpace + 1), range(constants.ValueSpace + 1)))
        choices = product(contents, repeat=constants.MessageSentLimit)
        sequences = (tuple(Message(i, *content) for i, content in enumerate(choice, 1)) for choice in choices)
    for messages in sequences:
        yield State(messages, (Nil,) * constants.CompactionTimesLimit, Nil, PhaseOne, Nil, 0, 0, 0)


def max_ledger_id(state: State) -> int:
    return max((i for i, ledger in enumerate(state.compactedLedgers, 1) if ledger is not Nil), default=0)


def ledgers_with(state: State, ledger_id: int, ledger: tuple[Message, ...] | None) -> tuple:
    return tuple(ledger if i == ledger_id else old for i, old in enumerate(state.compactedLedgers, 1))


def compact(messages: tuple[Message, ...], result: PhaseOneResult, retain_null_key: bool) -> tuple[Message, ...]:
    latest = dict(result.latestForKey)
    read = messages[: result.readPosition]
    return tuple(m for m in read if (retain_null_key if m.key == NullKey else latest[m.key] == m.id))


def successors(state: State, constants: Constants) -> Iterator[tuple[str, State]]:
    """Next, without the actions that only stutter."""
    yield from producer(state, constants)
    yield from compactor(state, constants)
    if state.crashTimes < constants.MaxCrashTimes:
        horizon, context = state.cursor if state.cursor is not Nil else (0, 0)
        yield (
            "broker_crash",
            state._replace(
                crashTimes=state.crashTimes + 1,
                compactorState=PhaseOne,
                phaseOneResult=Nil,
                compactionHorizon=horizon,
                compactedTopicContext=context,
            ),
        )


def producer(state: State, constants: Constants) -> Iterator[tuple[str, State]]:
    if constants.ModelProducer and len(state.messages) < constants.MessageSentLimit:
        for key, value in product(range(constants.KeySpace + 1), range(constants.ValueSpace + 1)):
            message = Message(len(state.messages) + 1, key, value)
            yield "producer", state._replace(messages=(*state.messages, message))


def compactor(state: State, constants: Constants) -> Iterator[tuple[str, State]]:
    """The six compactor actions, of which the compactor's state allows one."""
    now, result, newest = state.compactorState, state.phaseOneResult, max_ledger_id(state)
    after = state._replace(compactorState=phases(constants)[now])
    if after.compactorState == PhaseOne:
        after = after._replace(phaseOneResult=Nil)
    if now == PhaseOne and result is Nil and state.messages:
        latest = {m.key: m.id for m in state.messages if m.key != NullKey}
        result = PhaseOneResult(len(state.messages), frozenset(latest.items()))
        yield "compactor_phase_one", after._replace(phaseOneResult=result)
    elif now == Write and result is not Nil and newest + 1 <= constants.CompactionTimesLimit:
        ledger = compact(state.messages, result, constants.RetainNullKey)
        ledgers = ledgers_with(state, newest + 1, ledger)
        yield "compactor_phase_two_write", after._replace(compactedLedgers=ledgers)
    elif now == UpdateContext:
        yield "compactor_phase_two_update_context", after._replace(compactedTopicContext=newest)
    elif now == UpdateHorizon:
        assert result is not Nil
        yield "compactor_phase_two_update_horizon", after._replace(compactionHorizon=result.readPosition)
    elif now == PersistCursor:
        cursor = Cursor(state.compactionHorizon, state.compactedTopicContext)
        yield "compactor_phase_two_persist_cusror", after._replace(cursor=cursor)
    elif now == DeleteLedger:
        ledgers = state.compactedLedgers if newest == 1 else ledgers_with(state, newest - 1, Nil)
        yield "compactor_phase_two_delete_ledger", after._replace(compactedLedgers=ledgers)


def context_ledger(state: State) -> tuple[Message, ...]:
    """compactedLedgers[compactedTopicContext]; of one that is not there (an error in TLA+), no message."""
    if state.compactedTopicContext == 0:
        return ()
    return state.compactedLedgers[state.compactedTopicContext - 1] or ()


def is_type_safe(state: State, constants: Constants) -> bool:
    limit = constants.MessageSentLimit

    def is_message(m: Message) -> bool:
        return 1 <= m.id <= limit and 0 <= m.key <= constants.KeySpace and 0 <= m.value <= constants.ValueSpace

    ids = range(1, len(state.messages) + 1)
    result, cursor = state.phaseOneResult, state.cursor
    return (
        all(is_message(m) for m in state.messages)
        and all(is_message(m) for ledger in state.compactedLedgers for m in ledger or ())
        and (result is Nil or (result.readPosition in ids and all(i in ids for _, i in result.latestForKey)))
        and 0 <= state.compactionHorizon <= limit
        and 0 <= state.compactedTopicContext <= constants.CompactionTimesLimit
        and 0 <= state.crashTimes <= constants.MaxCrashTimes
        and (
            cursor is Nil
            or (
                1 <= cursor.compactionHorizon <= limit
                and 1 <= cursor.compactedTopicContext <= constants.CompactionTimesLimit
            )
        )
    )


def broken_invariants(state: State, constants: Constants) -> list[str]:
    """The invariants that do not hold, in the order of the specification."""
    ledger = context_ledger(state)
    before, after = state.messages[: state.compactionHorizon], state.messages[state.compactionHorizon :]
    needed = [m for m in before if m.key != NullKey or constants.RetainNullKey]
    duplicates = any(m.key == NullKey and m in after for m in ledger)
    holds = {
        TypeSafe: is_type_safe(state, constants),
        CompactedLedgerLeak: sum(ledger is not Nil for ledger in state.compactedLedgers) <= 2,
        CompactionHorizonCorrectness: all(any(n.key == m.key and n.id >= m.id for n in ledger) for m in needed),
        DuplicateNullKeyMessage: not (constants.RetainNullKey and state.compactedTopicContext != 0 and duplicates),
    }
    return [name for name in INVARIANTS if not holds[name]]


def is_terminated(state: State, constants: Constants) -> bool:
    """The state that the specification's liveness property asks for."""
    return (
        len(state.messages) == constants.MessageSentLimit
        and state.compactorState == Write
        and max_ledger_id(state) == constants.CompactionTimesLimit
    )


def explore(constants: Constants) -> Iterator[list[State]]:
    """The levels of a breadth-first search, each state once; the first level holds the initial states."""
    level = list(initial_states(constants))
    seen = set(level)
    while level:
        yield level
        following = []
        for state in level:
            for _, successor in successors(state, constants):
                if successor not in seen:
                    seen.add(successor)
                    following.append(successor)
        level = following
