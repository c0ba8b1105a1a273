"""The same two-phase commit with fields packed by hand and guards for all participants at once: what the declared form
is measured against."""

from typing import NamedTuple

from quorisk.kernels.model import COMPLETED, STUCK, action, sends_one
from quorisk.kernels.ops import where
from quorisk.kernels.protocols.rows import EVERY_ROW, ROW, WIDTH, nonempty, rows, spread
from tests import two_phase


class State(NamedTuple):
    """Masks of participants; bit 6p + q of `knows`: p knows that q is prepared."""

    prepared: int
    committed: int
    aborted: int
    forced: int
    knows: int
    crashes: int


def everyone(params):
    return (1 << params.participants) - 1


def initial(params, choice):
    return State(0, 0, 0, 0, 0, 0)


def prepare_enabled(state, params):
    return (everyone(params) & ~(state.prepared | state.committed | state.aborted),)


@action(prepare_enabled)
def prepare(state, params, p, lost):
    """Each participant prepares."""
    return state._replace(prepared=state.prepared | 1 << p, knows=state.knows | 1 << (WIDTH + 1) * p)


def force_enabled(state, params):
    return (state.prepared & ~state.forced,)


@action(force_enabled)
def force(state, params, p, lost):
    """Each participant that is prepared forces that to its disk."""
    return state._replace(forced=state.forced | 1 << p)


def tell_enabled(state, params):
    tellers = (state.prepared | state.committed) & where(params.force_before_telling != 0, state.forced, ROW)
    listeners = rows(everyone(params) & ~state.aborted)
    return ((tellers * EVERY_ROW) & listeners & ~state.knows,)


@action(tell_enabled, sends=sends_one)
def tell(state, params, instance, lost):
    """Each participant that is prepared tells each other."""
    return where(lost != 0, state, state._replace(knows=state.knows | 1 << instance))


def commit_enabled(state, params):
    lacking = nonempty((everyone(params) * EVERY_ROW) & ~state.knows)
    ready = spread(state.prepared) & ~lacking
    return (sum(((ready >> WIDTH * p) & 1) << p for p in range(two_phase.MOST)),)


@action(commit_enabled)
def commit(state, params, p, lost):
    """Each participant that knows that all are prepared commits."""
    return state._replace(prepared=state.prepared & ~(1 << p), committed=state.committed | 1 << p)


def crash_enabled(state, params):
    return (where(state.crashes < params.max_crashes, everyone(params) & ~state.aborted, 0),)


@action(crash_enabled, "crash", bounds=("max_crashes",))
def crash(state, params, p, lost):
    """Each participant crashes."""
    gone = 1 << p & ~state.forced
    return state._replace(
        prepared=state.prepared & ~gone,
        committed=state.committed & ~gone,
        aborted=state.aborted | gone,
        crashes=state.crashes + 1,
    )


def commit_survives(state, params):
    return (state.committed == 0) | (state.aborted == 0)


def outcome(state, params):
    return where(state.committed == everyone(params), COMPLETED, STUCK)


MODEL = two_phase.MODEL._replace(
    name="two_phase_by_bits",
    initial=initial,
    actions=(prepare, force, tell, commit, crash),
    invariants=(two_phase.MODEL.invariants[0]._replace(holds=commit_survives),),
    outcome=outcome,
    widths=State(6, 6, 6, 6, 36, 3),
)
