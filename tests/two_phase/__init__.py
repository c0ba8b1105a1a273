"""Two-phase commit without a coordinator, in the declared form: each participant tells each other that it is prepared,
and commits once it knows that of all. One that crashes forgets what it has not forced to disk, and aborts."""

from typing import NamedTuple

from quorisk.kernels.model import COMPLETED, STUCK, Invariant, Model, Parameter, action, sends_one, switch
from quorisk.kernels.ops import where
from quorisk.kernels.protocols.fields import blank, widths
from quorisk.kernels.protocols.instances import Things, each
from quorisk.kernels.protocols.packed import Pairs, Rows, Set

MOST = 6
WORKING, PREPARED, COMMITTED, ABORTED = range(4)
PARTICIPANTS = Things(MOST, "participants")


class State(NamedTuple):
    """What each participant is, has on disk, and knows."""

    status: Rows(MOST, 2)
    forced: Set(MOST)
    knows: Pairs(MOST, MOST, 1)  # [p, q]: p knows that q is prepared
    crashes: Rows(1, 3)


class Params(NamedTuple):
    """Sizes and switches."""

    participants: int
    max_crashes: int
    force_before_telling: int


def initial(params, choice):
    """Nobody is prepared."""
    return blank(State)


@each(PARTICIPANTS)
def prepare_enabled(state, params, p):
    return state.status[p] == WORKING


@action(prepare_enabled)
def prepare(state, params, p, lost):
    """Each participant prepares."""
    return state._replace(status=state.status.put(p, PREPARED), knows=state.knows.put((p, p), 1))


@each(PARTICIPANTS)
def force_enabled(state, params, p):
    return (state.status[p] == PREPARED) & (state.forced[p] == 0)


@action(force_enabled)
def force(state, params, p, lost):
    """Each participant that is prepared forces that to its disk."""
    return state._replace(forced=state.forced.put(p, 1))


@each(PARTICIPANTS, PARTICIPANTS)
def tell_enabled(state, params, p, q):
    may = (params.force_before_telling == 0) | (state.forced[p] != 0)
    is_prepared = (state.status[p] == PREPARED) | (state.status[p] == COMMITTED)
    return is_prepared & may & (state.knows[q, p] == 0) & (state.status[q] != ABORTED)


@action(tell_enabled, sends=sends_one)
def tell(state, params, p, q, lost):
    """Each participant that is prepared tells each other."""
    return where(lost != 0, state, state._replace(knows=state.knows.put((q, p), 1)))


@each(PARTICIPANTS)
def commit_enabled(state, params, p):
    knows_all = state.status[p] == PREPARED
    for q in range(MOST):
        knows_all &= (q >= params.participants) | (state.knows[p, q] != 0)
    return knows_all


@action(commit_enabled)
def commit(state, params, p, lost):
    """Each participant that knows that all are prepared commits."""
    return state._replace(status=state.status.put(p, COMMITTED))


@each(PARTICIPANTS)
def crash_enabled(state, params, p):
    return (state.crashes[0] < params.max_crashes) & (state.status[p] != ABORTED)


@action(crash_enabled, "crash", bounds=("max_crashes",))
def crash(state, params, p, lost):
    """Each participant crashes."""
    status = where(state.forced[p] != 0, state.status[p], ABORTED)
    return state._replace(status=state.status.put(p, status), crashes=state.crashes.put(0, state.crashes[0] + 1))


def commit_survives(state, params):
    """Nobody has aborted what another one has committed."""
    committed, aborted = False, False
    for p in range(MOST):
        committed |= state.status[p] == COMMITTED
        aborted |= state.status[p] == ABORTED
    return (committed & aborted) == 0


def outcome(state, params):
    """Completed once all have committed."""
    done = True
    for p in range(MOST):
        done &= (p >= params.participants) | (state.status[p] == COMMITTED)
    return where(done, COMPLETED, STUCK)


MODEL = Model(
    name="two_phase",
    version=1,
    parameters=(
        Parameter("participants", "model", (1, MOST), "participants of the transaction"),
        Parameter("max_crashes", "faults", (0, 7), "times that a participant crashes"),
        switch("force_before_telling", "a participant forces to disk that it is prepared before it tells anybody"),
    ),
    conditions=(),
    make_params=lambda values: Params(**{name: int(values[name]) for name in Params._fields}),
    initial=initial,
    actions=(prepare, force, tell, commit, crash),
    invariants=(Invariant("CommitSurvives", commit_survives, data_loss=True),),
    outcome=outcome,
    widths=widths(State),
    max_sends=1,
    limits=("A participant that has aborted stays so.",),
)
