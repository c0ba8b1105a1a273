"""What a run is stands in four places that share no language: three say the same here, and JAX does in
`engines/test_jax_engine`, where each protocol is compiled once."""

import math

import numpy as np
import pytest

from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment.config import build_experiment
from quorisk.kernels.engines import numba_engine, points
from quorisk.kernels.engines.job import RECORD, Job
from quorisk.kernels.engines.rerun import rerun
from quorisk.kernels.model import OUTCOMES, loses_messages
from quorisk.kernels.protocols import registry
from tests.support import EACH_PROTOCOL, point_of, tables_of

RUNS, AGAIN, SEED = 40_000, 60, 11


@pytest.mark.parametrize("name", EACH_PROTOCOL)
def test_a_run_means_the_same_wherever_it_is_made(name):
    """Numba and plain Python on the same draws, run by run; the Markov chain by its probabilities."""
    model = registry.load(name)
    point, loss = point_of(model), 0.1 if loses_messages(model) else 0.0
    packed = points.pack(model, [point])
    records = numba_engine.record(model, packed, Job(0, 0, RUNS), SEED)
    for run in range(AGAIN):
        ran, record = rerun(model, point, SEED, run), dict(zip(RECORD, records[run].tolist(), strict=True))
        assert record == dict(zip(RECORD, ran.record(), strict=True))

    tables = tables_of(model, registry.cases(name).small)
    tables["faults"]["message_loss"] = loss
    solved = exact(build_experiment({"protocol": name, **tables}, name), 4 << 30)
    counts = np.bincount(records[:, RECORD.index("outcome")], minlength=len(OUTCOMES))
    for outcome, count in zip(OUTCOMES, counts.tolist(), strict=True):
        p = min(solved.outcomes.get(outcome, 0.0), 1.0)
        assert abs(count - RUNS * p) <= 5 * math.sqrt(RUNS * p * (1 - p)) + 1, (outcome, count / RUNS, p)
    mean = records[:, RECORD.index("steps")].mean()
    assert solved.expected_steps is not None
    assert mean == pytest.approx(solved.expected_steps, rel=0.03)
