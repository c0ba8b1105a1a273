"""What a run is stands in four places: Numba's engine, JAX's, the rerun in plain Python, and the chain. The first three
make the same run of the same draws, bit for bit; the chain's probabilities are in `tests/analysis/exact`."""

import numpy as np
import pytest

from quorisk.kernels.engines import jax_engine, numba_engine, points
from quorisk.kernels.engines.job import RECORD, Job
from quorisk.kernels.engines.rerun import rerun
from quorisk.kernels.engines.tally import TICKS, ticks
from quorisk.kernels.model import HORIZON, OUTCOMES
from quorisk.kernels.protocols.bookkeeper import MODEL as BOOKKEEPER
from quorisk.kernels.protocols.compaction import MODEL as COMPACTION
from quorisk.kernels.protocols.kraft import MODEL as KRAFT
from quorisk.kernels.protocols.raft import MODEL as RAFT
from tests.kernels.engines import fuzz
from tests.support import point_of

SEED = 2**64 - 3
RUNS, BY_JAX, RERUNS = 20_000, 1_000, 60
YEAR_S = 365.25 * 86400
PHYSICAL = {
    "client_creates_ledger": 1e3,
    "client_sends_add_entry_requests": 100.0,
    "client_receives_add_confirmed_response": 4000.0,
    "client_changes_ensemble": 0.2,
    "client_closes_ledger_success": 1 / 3600,
    "client_starts_recovery": 0.01 / YEAR_S,
}
"""Per second, 13 decades apart."""
SELDOM = {"client_starts_recovery": 1e-14, "client_closes_ledger_success": 3e-14}
"""Weights of less than a unit: nearly all that is drawn in the end is refused at first."""
POINTS = {
    "plain": (BOOKKEEPER, point_of(BOOKKEEPER, 0.3)),
    "lifetime": (BOOKKEEPER, point_of(BOOKKEEPER, 0.1, lifetime=2.5)),
    "lifetime and horizon": (COMPACTION, point_of(COMPACTION, lifetime=6.0, horizon=4.0)),
    "physical": (BOOKKEEPER, point_of(BOOKKEEPER, 1e-3, PHYSICAL, lifetime=86400.0)),
    "refused": (BOOKKEEPER, point_of(BOOKKEEPER, 0.1, PHYSICAL | SELDOM)),
    "refused in compaction": (
        COMPACTION,
        point_of(COMPACTION, rates={"compactor_phase_two_delete_ledger": 1e-17, "broker_crash": 1e-17}, max_crashes=2),
    ),
    "six messages": (BOOKKEEPER, point_of(BOOKKEEPER, 0.5, bookies=6, write_quorum=6, ack_quorum=2, clients=2)),
    "the 32nd instance of a word": (KRAFT, point_of(KRAFT, brokers=5, max_reassignments=1, max_steps=40)),
    "rows and pairs": (RAFT, point_of(RAFT, servers=3, max_restarts=1, max_steps=60)),
}

BY_JAX_HERE = "refused in compaction"
"""XLA compiles a model anew for weights that may be refused; `test_jax_engine` has it make runs of the others."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.short] * (model is RAFT)) for name, (model, _) in POINTS.items()]
)
def test_numba_jax_and_the_rerun_make_the_same_runs(name):
    model, point = POINTS[name]
    packed = points.pack(model, [point])
    by_numba = numba_engine.record(model, packed, Job(0, 5, RUNS), SEED)
    if name == BY_JAX_HERE:
        differ = (by_numba[:BY_JAX] != jax_engine.record(model, packed, Job(0, 5, BY_JAX), SEED)).any(1)
        assert not differ.any(), np.flatnonzero(differ)
    for run in range(RERUNS):
        again = rerun(model, point, SEED, 5 + run)
        recorded = dict(zip(RECORD, by_numba[run].tolist(), strict=True))
        assert recorded == dict(zip(RECORD, again.record(), strict=True)), run
    ends = dict(zip(OUTCOMES, np.bincount(by_numba[:, 0], minlength=len(OUTCOMES)).tolist(), strict=True))
    assert (ends["horizon"] > 0) == ("lifetime" in name or name == "physical"), ends


@pytest.mark.parametrize("name", ["refused", "refused in compaction"])
def test_some_runs_come_to_weights_that_are_not_whole(name):
    """Else the points called refused and physical would show nothing."""
    model, point = POINTS[name]
    accepts = points.pack(model, [point]).accepts[0].astype(float) / points.ALWAYS
    assert accepts.min() < 0.1
    assert fuzz.share_refused(model, point, SEED, 2000) > 0.3


def test_a_lifetime_ends_runs_as_if_its_end_were_an_action():
    """Two clients create their ledgers at rate 1 each, in a state of a lifetime of 1/4: two of six runs take a step."""
    records = numba_engine.record(
        BOOKKEEPER, points.pack(BOOKKEEPER, [point_of(BOOKKEEPER, 0.1, lifetime=0.25)]), Job(0, 0, 40_000), SEED
    )
    ended, steps = records[:, 0] == HORIZON, records[:, RECORD.index("steps")]
    at_once = (ended & (steps == 0)).mean()
    assert abs(at_once - 2 / 3) < 4.5 * (2 / 9 / len(records)) ** 0.5
    times = [ticks(*record[-2:]) / TICKS for record in records[steps == 0].tolist()]
    assert abs(np.mean(times) - 1 / 6) < 4.5 / 6 / len(times) ** 0.5
