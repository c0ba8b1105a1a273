"""What is counted of faults and exposure, against what follows from two linear equations, on every engine."""

import math

import numpy as np
import pytest

from quorisk.kernels.engines import jax_engine, numba_engine, tally
from quorisk.kernels.engines.job import RECORD, Job
from quorisk.kernels.engines.lanes.switch import Switch
from quorisk.kernels.engines.lanes.traced import Shape
from quorisk.kernels.engines.points import Point, pack
from quorisk.kernels.engines.rerun import rerun
from quorisk.kernels.model import OUTCOMES, fault_kinds
from quorisk.kernels.protocols import registry
from tests.external import two_copies
from tests.external.two_copies import MODEL
from tests.kernels.engines import fuzz

BATCHES, RUNS, SEED = 40, 5000, 9
LOST, MADE, FIRE, LOSS, LIFETIME = 0.5, 2.0, 0.05, 0.2, 10.0
RATES = {"copy_is_lost": LOST, "copy_is_made": MADE, "fire": FIRE}
POINT = Point({"houses": 1}, RATES, LOSS, 10**6, math.inf, LIFETIME)
REFUSED = "refused at first"
POINTS = {
    "lifetime": POINT,
    "horizon": POINT._replace(horizon=3.0),
    "few steps": POINT._replace(max_steps=3, message_loss=1.0),
    REFUSED: POINT._replace(
        rates={"copy_is_lost": 1e-18, "copy_is_made": MADE, "fire": 3e-18}, lifetime=math.inf, max_steps=20
    ),
}


def test_exposure_and_what_losses_met_are_as_computed():
    jobs = [Job(0, RUNS * batch, RUNS) for batch in range(BATCHES)]
    found = [tally.named_tally(MODEL, row) for row in numba_engine.simulate(MODEL, pack(MODEL, [POINT]), jobs, SEED, 2)]
    expected = two_copies.expected(LOST, MADE, FIRE, LOSS, LIFETIME)
    exposed = np.array([sums.exposed_ticks["ThereAreTwoCopies"] * tally.TIME_TICK / RUNS for sums in found])
    assert abs(exposed.mean() - expected.exposed) < 4.5 * exposed.std() / BATCHES**0.5
    runs = BATCHES * RUNS
    assert {met for sums in found for met in sums.losses_by_faults} == set(expected.losses)
    for met, p in expected.losses.items():
        losses = sum(sums.losses_by_faults[met] for sums in found)
        assert abs(losses - runs * p) < 4.5 * (runs * p * (1 - p)) ** 0.5, (met, losses / runs, p)


def test_many_runs_come_to_what_is_refused():
    """Else that point would show nothing."""
    assert fuzz.share_refused(MODEL, POINTS[REFUSED], SEED, 500) > 0.5


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", list(POINTS))
def test_all_engines_count_the_same(name):
    point, job = POINTS[name], Job(0, 2**33, 2000)
    packed = pack(MODEL, [point])
    sums, records = numba_engine.tally_of(MODEL, packed, SEED, job), numba_engine.record(MODEL, packed, job, SEED)
    assert (jax_engine.simulate(MODEL, packed, [job], SEED)[0] == sums).all()
    assert (jax_engine.record(MODEL, packed, job, SEED) == records).all()
    for timed in (True, False):
        if fuzz.supports(point, timed):
            fuzz.compare(MODEL, point, Shape(8, 32), timed, SEED, job.num_runs)
    lasted = [0, 0]
    for i in range(100):
        ran = rerun(MODEL, point, SEED, job.first_run + i)
        assert tuple(records[i].tolist()) == ran.record()
        lasted = [before + part for before, part in zip(lasted, tally.parts(ran.exposed[0]), strict=True)]
    first = tally.first_exposed(MODEL)
    of_100 = numba_engine.tally_of(MODEL, packed, SEED, job._replace(num_runs=100))
    assert of_100[first : first + 2].tolist() == lasted
    assert lasted[1] > 0


def test_a_kernel_that_tells_no_time_leaves_exposed_runs_to_the_generic_engine():
    found = Switch(MODEL, pack(MODEL, [POINT]), 0)
    found.prepare(timed=False, shape=Shape(8, 32))
    assert found.kernel is not None
    sums, _ = found.by_kernel(found.kernel, SEED, Job(0, 0, 1000))
    assert found.num_repeated >= sums[tally.BROKEN] > 500
    found.prepare()
    assert found.kernel.timed  # so many are worth it


def test_a_time_is_two_integers_and_nothing_is_lost_but_what_is_below_a_tick():
    for time in (
        0.0,
        tally.TIME_TICK,
        1.0,
        255.999,
        256.0,
        1 / 3,
        1e5 / 3,
        2.0**46 - 0.5**7,
        86400 * 365.25 * 1e6 + 0.7,
    ):
        high, low = tally.parts(time)
        assert tally.ticks(high, low) == int(time * 2**30)
        assert tally.parts(np.float64(time)) == (high, low)
        assert 0 <= low < 1 << tally.LOW_BITS
        assert tally.time_bin(high, low) == int(time * 2**30).bit_length()
    assert tally.ticks(*tally.parts(1e300)) == tally.ticks(*tally.parts(math.inf)) == tally.MOST_TICKS
    assert tally.time_bin(*tally.parts(1e300)) == tally.TIME_BINS - 1


@pytest.mark.parametrize("name", registry.names())
def test_kinds_of_faults_are_few_and_a_mask_says_which(name):
    model = registry.load(name)
    kinds = fault_kinds(model)
    assert kinds[0] == "lost message"
    assert {action.fault for action in model.actions} - {""} == set(kinds[1:])
    assert len(kinds) <= 12  # each doubles the columns of a tally
    assert tally.kinds_of(model, (1 << len(kinds)) - 1) == frozenset(kinds)
    row = [0] * tally.num_columns(model)
    row[tally.first_met(model) + 1] = row[OUTCOMES.index("lost")] = 7
    assert tally.named_tally(model, row).losses_by_faults == {frozenset({"lost message"}): 7}
    assert tally.num_columns(model) == tally.first_met(model) + 2 ** len(kinds)
    assert RECORD[1:3] == ("broken_mask", "met_mask")
