"""The XLA engine gives what the Numba engine gives, run by run and bit for bit, however its batches are cut."""

import logging
import os
import subprocess
import sys
from functools import cache

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

from quorisk.kernels.engines import jax_batch, jax_engine, numba_engine, points, tally
from quorisk.kernels.engines.job import RECORD, Job
from quorisk.kernels.errors import EngineError
from quorisk.kernels.model import OUTCOMES
from quorisk.kernels.protocols import registry
from quorisk.kernels.protocols.compaction import MODEL as TOPIC
from tests.support import point_of

RUNS, BY_JAX = 6_000, 600
"""Of each variant, and how many of them JAX makes again."""
SEED = 2**64 - 1
MOST_STEPS = 120
"""Some runs of some variants never end, and the others of a batch wait for them."""
FIRST_RUN = 2**32 - BY_JAX // 2
"""Half of the runs' indices need more than 32 bits, and nearly all of those that JAX does not make."""
CRASHES = [point_of(TOPIC, rates={"broker_crash": rate}, max_crashes=2) for rate in (0.01, 0.5, 1.0)]
JOBS = [Job(0, 0, 9000), Job(2, 2**40, 1), Job(1, 5, 0), Job(1, FIRST_RUN, 4000), Job(0, 9000, 300)]


@pytest.mark.parametrize("name", registry.names())
def test_every_run_of_every_variant_is_numbas_run(name):
    model, variants = registry.load(name), registry.cases(name).variants
    packed = points.pack(model, [point_of(model, **{"max_steps": MOST_STEPS, **given}) for given in variants])
    seen = np.zeros(len(OUTCOMES), np.int64)
    for point, given in enumerate(variants):
        want = numba_engine.record(model, packed, Job(point, FIRST_RUN, RUNS), SEED)
        have = jax_engine.record(model, packed, Job(point, FIRST_RUN, BY_JAX), SEED)
        assert have.dtype == want.dtype
        differing = np.flatnonzero((have != want[:BY_JAX]).any(1))
        assert not len(differing), (
            f"{given}: {len(differing)} runs, first {want[differing[0]]}, not {have[differing[0]]}"
        )
        seen += np.bincount(want[:, 0], minlength=len(OUTCOMES))
    assert all(seen > 0), dict(zip(OUTCOMES, seen, strict=True))
    switches = model_switches(model)
    assert {key: {str(given[key]) for given in variants if key in given} for key in switches} == switches


def model_switches(model):
    """What the variants have to set each switch and choice to: everything that is not the default."""
    choices = {p: p.allowed or (True, False) for p in model.parameters if not is_size(p)}
    return {p.name: {str(value) for value in found if value != p.default_value} for p, found in choices.items()}


def is_size(parameter):
    return parameter.allowed is not None and isinstance(parameter.allowed[0], int)


def by_numba(jobs, seed=SEED, given=CRASHES):
    return numba_engine.simulate(TOPIC, points.pack(TOPIC, given), jobs, seed)


def by_jax(jobs, seed=SEED, given=CRASHES, progress=None):
    return jax_engine.simulate(TOPIC, points.pack(TOPIC, given), jobs, seed, progress=progress)


@pytest.mark.parametrize("name", registry.names())
def test_tallies_are_numbas_tallies(name):
    """The walks of the contract's test are among them, with the largest sizes."""
    model, cases = registry.load(name), registry.cases(name)
    made = [*cases.variants, *cases.walks]
    packed = points.pack(model, [point_of(model, **{"max_steps": MOST_STEPS, **given}) for given in made])
    jobs = [Job(point, 7 * point, max(6_000 // (1 + point), 200)) for point in range(len(made))]
    want, have = (engine.simulate(model, packed, jobs, 3) for engine in (numba_engine, jax_engine))
    assert (have == want).all(), np.argwhere(have != want)
    assert want[:, tally.TIME_HISTOGRAM : tally.BROKEN].sum() > 0
    assert (want[:, tally.BROKEN :] > 0).any()


@pytest.mark.parametrize("seed", [0, 2**32, 2**63 + 1, 2**64 - 1])
def test_jobs_seeds_and_run_indices_of_any_size(seed):
    assert (by_jax(JOBS, seed) == by_numba(JOBS, seed)).all()


def test_more_jobs_than_the_queue_holds():
    jobs = [Job(i % 3, 3 * i, i % 4) for i in range(jax_batch.MAX_JOBS + 500)]
    seen: list[int] = []
    have = by_jax(jobs, progress=seen.append)
    assert have.shape == (len(jobs), tally.num_columns(TOPIC))
    assert (have == by_numba(jobs)).all()
    assert sum(seen) == sum(job.num_runs for job in jobs)


def test_more_records_than_a_batch_keeps(monkeypatch):
    job = Job(1, FIRST_RUN, jax_batch.MAX_RECORDS + 20)
    packed = points.pack(TOPIC, CRASHES)
    want, have = (engine.record(TOPIC, packed, job, SEED) for engine in (numba_engine, jax_engine))
    assert (have == want).all()
    assert jax_engine.record(TOPIC, packed, Job(0, 0, 0), SEED).shape == (0, len(RECORD))


@pytest.fixture
def advance(monkeypatch):
    """`jax_batch.advance` that has compiled nothing yet; other tests keep the programs that they have."""
    found = cache(jax_batch.advance.__wrapped__)
    monkeypatch.setattr(jax_engine, "advance", found)
    return found


@pytest.mark.parametrize(("lanes", "steps"), [(256, 3), (1 << 15, 8)])
def test_results_do_not_depend_on_the_size_of_batches_and_rounds(advance, monkeypatch, lanes, steps):
    """From 2**15 lanes on, there are several copies of the sums."""
    monkeypatch.setattr(jax_engine, "num_lanes", lambda model, device: lanes)
    monkeypatch.setattr(jax_batch, "STEPS", steps)  # a part of the compiled program
    assert (by_jax(JOBS) == by_numba(JOBS)).all()
    assert (by_jax(JOBS[::-1]) == by_numba(JOBS[::-1])).all()


def test_a_few_long_runs_are_left_to_ever_smaller_batches(monkeypatch):
    """Of 600 runs, 60 crash on and on."""
    long = point_of(TOPIC, rates={"broker_crash": 50.0}, max_crashes=31, messages=8, compactions=7)
    jobs = [Job(0, 0, 540), Job(1, 0, 60)]
    monkeypatch.setattr(jax_engine, "_PATIENCE_S", -1.0)
    monkeypatch.setattr(jax_engine, "_FEWEST_LANES", 16)
    narrowed: list[int] = []

    def narrow(mesh, lanes):
        narrowed.append(lanes)
        return jax_batch.narrow(mesh, lanes)

    monkeypatch.setattr(jax_engine, "narrow", narrow)
    given = [CRASHES[0], long]
    assert (by_jax(jobs, given=given) == by_numba(jobs, given=given)).all()
    assert narrowed[0] == jax_engine.num_lanes(TOPIC, jax_engine.devices()[0]) // 16
    assert len(narrowed) > 1


def test_one_compiled_program_serves_every_queue(advance, caplog):
    by_jax(JOBS)
    assert advance(TOPIC, Mesh(np.array(jax_engine.devices()), ("devices",)))._cache_size() == 1
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        by_jax([Job(0, 0, 50)] * 40, 1, CRASHES[:1])
        by_jax([Job(2, 2**50, 20_000)], 7, [*CRASHES, point_of(TOPIC, keys=3, messages=5, max_steps=9, horizon=2.0)])
        jax_engine.record(TOPIC, points.pack(TOPIC, CRASHES), JOBS[0], 5)
        assert not [record.message for record in caplog.records if "ompil" in record.message]
        jax.jit(lambda x: x + len(caplog.records))(1.0)
        assert [record.message for record in caplog.records if "ompil" in record.message]


TWO_DEVICES = """
import jax
from tests.kernels.engines.test_jax_engine import CRASHES, JOBS, SEED, TOPIC
from tests.kernels.engines.test_jax_engine import by_jax, by_numba, jax_engine, numba_engine, points
assert len(jax_engine.devices()) == 2
assert (by_jax(JOBS) == by_numba(JOBS)).all()
packed = points.pack(TOPIC, CRASHES)
want, have = (engine.record(TOPIC, packed, JOBS[0], SEED) for engine in (numba_engine, jax_engine))
assert (want == have).all()
with jax_engine.on(jax.local_devices()[1:]):
    assert len(jax_engine.devices()) == 1
    assert (by_jax(JOBS[1:]) == by_numba(JOBS[1:])).all()
print("agree")
"""


def test_several_devices_share_the_runs():
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    told = subprocess.run(
        [sys.executable, "-c", TWO_DEVICES], env=environment, capture_output=True, text=True, check=False
    )
    assert told.stdout == "agree\n", told.stderr


class Device:
    """A GPU with so much memory."""

    platform, device_kind = "gpu", "NVIDIA Abacus"

    def __init__(self, free):
        self.free = free

    def memory_stats(self):
        return {"bytes_limit": self.free + 10**6, "bytes_in_use": 10**6}


def test_a_batch_fits_the_devices_memory():
    roomy, small = (jax_engine.num_lanes(TOPIC, Device(free)) for free in (10**12, 10**9))
    assert roomy == 2**20 > small >= 2**14
    assert 10**9 / 32 < jax_batch.batch_bytes(TOPIC, small) <= 10**9 / 8
    with pytest.raises(
        EngineError, match=r"^NVIDIA Abacus: 1,000 bytes of memory are free, which is too little for a batch$"
    ):
        jax_engine.num_lanes(TOPIC, Device(1000))


def test_a_device_that_runs_out_of_memory_is_told_in_a_line(monkeypatch):
    def full(*_):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7 bytes.\nstack")

    monkeypatch.setattr(jax_engine, "fresh", full)
    with pytest.raises(EngineError, match=r"^the device's memory ran out: RESOURCE_EXHAUSTED: Out of .* 7 bytes\.$"):
        by_jax(JOBS)


def test_operations_on_64_bits_are_counted_apart():
    program = """
      %a = s64[1]{0} parameter(0)
      %b = s32[1]{0} parameter(1)
      %c = s64[1]{0} add(%a, %a)
      %d = u64[1]{0} shift-left(%c, %a)
      %e = s32[1]{0} and(%b, %b)
      %f = pred[1]{0} compare(%c, %a), direction=LT
      ROOT %g = pred[1]{0} compare(%b, %e), direction=LT"""
    assert jax_batch._num_wide(program) == 3
