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

from quorisk.kernels.model import Model
from quorisk.kernels.ops import popcount, where
from quorisk.kernels.protocols.compaction import actions
from quorisk.kernels.protocols.compaction.invariants import INVARIANTS, outcome
from quorisk.kernels.protocols.compaction.layout import IN_PHASE_ONE, MAX_MESSAGES, WIDTHS, State
from quorisk.kernels.protocols.compaction.params import PARAMETERS, make_params
from quorisk.kernels.telling import words_beside


def initial_choices(params):
    """One empty topic, or every sequence of messages."""
    return params.sequences


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


MODEL = Model(
    name="compaction",
    version=2,
    parameters=PARAMETERS,
    conditions=(),
    make_params=make_params,
    initial_choices=initial_choices,
    initial=initial,
    actions=(
        actions.producer,
        actions.compactor_phase_one,
        actions.compactor_phase_two_write,
        actions.compactor_phase_two_update_context,
        actions.compactor_phase_two_update_horizon,
        actions.compactor_phase_two_persist_cusror,
        actions.compactor_phase_two_delete_ledger,
        actions.broker_crash,
    ),
    invariants=INVARIANTS,
    outcome=outcome,
    widths=WIDTHS,
    max_sends=0,
    limits=tuple(words_beside(__file__)["limits"]),
)
