"""Invariants of a topic, and the outcome of a run."""

from quorisk.kernels.model import COMPLETED, STUCK, Invariant
from quorisk.kernels.ops import popcount, where
from quorisk.kernels.protocols.compaction.layout import (
    EVERY_ROW,
    IN_PHASE_TWO_WRITE,
    ROW,
    context_messages,
    max_compacted_ledger_id,
    up_to,
    up_to_latest,
)


def compacted_ledger_leak(state, params):
    """At most two ledgers exist: the current one and the one that is being written or deleted."""
    return popcount(state.existing) <= 2


def compaction_horizon_correctness(state, params):
    """Every message up to the horizon is represented in the ledger that readers read: by itself or a later one of its
    key. Messages without a key count only if compaction keeps them. An absent ledger represents none (TLC, asked for
    the messages of Nil, would stop with an error; with both orderings on it never is)."""
    needed = state.keys & (up_to(state.compaction_horizon) * EVERY_ROW)
    needed &= where(params.retain_null_key != 0, -1, ~ROW)
    return needed & ~up_to_latest(state.keys & (context_messages(state) * EVERY_ROW)) == 0


def duplicate_null_key_message(state, params):
    """No message without a key is both in the ledger that readers read and beyond the horizon, where they read on in
    the topic: they would get it twice."""
    twice = context_messages(state) & state.keys & ~up_to(state.compaction_horizon)
    return (twice & where(params.retain_null_key != 0, ROW, 0)) == 0


def outcome(state, params):
    """Nothing is enabled: the run is completed if all is sent and all ledgers are used up (Termination), else stuck."""
    sent = popcount(state.keys) == params.messages
    waiting = state.compactor_state == IN_PHASE_TWO_WRITE
    return where(sent & waiting & (max_compacted_ledger_id(state) == params.compactions), COMPLETED, STUCK)


INVARIANTS = (
    Invariant("CompactedLedgerLeak", compacted_ledger_leak, data_loss=False),
    Invariant("CompactionHorizonCorrectness", compaction_horizon_correctness, data_loss=True),
    Invariant("DuplicateNullKeyMessage", duplicate_null_key_message, data_loss=False),
)
