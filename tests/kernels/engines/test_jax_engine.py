"""The XLA engine gives what the Numba engine gives, run by run and bit for bit, however its batches are cut."""

import logging
from functools import cache

import jax
import numpy as np
import pytest

from quorisk.kernels.engines import jax_batch, jax_engine, numba_engine, points, tally
from quorisk.kernels.engines.job import RECORD, Job
from quorisk.kernels.errors import EngineError
from quorisk.kernels.model import OUTCOMES
from quorisk.kernels.protocols import registry
from quorisk.kernels.protocols.compaction import MODEL as TOPIC
from tests.analysis.exact.test_outages import OUTAGES, stored
from tests.kernels.engines import test_agreement
from tests.support import EACH_PROTOCOL, point_of

RUNS, BY_JAX = 6_000, 600
"""Of each variant, and how many of each point JAX makes again."""
SEED = 2**64 - 1
MOST_STEPS = 120
"""Some runs of some variants never end, and the others of a batch wait for them."""
FIRST_RUN = 2**32 - BY_JAX // 2
"""Half of the runs' indices need more than 32 bits, and nearly all of those that JAX does not make."""
CRASHES = [point_of(TOPIC, rates={"broker_crash": rate}, max_crashes=2) for rate in (0.01, 0.5, 1.0)]
JOBS = [Job(0, 0, 9000), Job(2, 2**40, 1), Job(1, 5, 0), Job(1, FIRST_RUN, 4000), Job(0, 9000, 300)]
ALSO = {
    "bookkeeper": [
        *(test_agreement.POINTS[name][1] for name in ("plain", "lifetime", "six messages")),
        *(stored(*outage).points[0].point for outage in OUTAGES),
    ],
    "compaction": [test_agreement.POINTS["lifetime and horizon"][1]],
    "kraft": [test_agreement.POINTS["the 32nd instance of a word"][1]],
}
"""Points that other tests compare with the rerun or with the chain."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.exhaustive] * (name != "compaction")) for name in registry.names()],
)
def test_every_run_of_every_variant_is_numbas_run(name):
    """The walks of the contract's test are among them, with the largest sizes, and what the rerun and the chain are
    compared on. All of them share a queue, so that a protocol is compiled once and lanes are busy. The short tests have
    XLA compile the smallest protocol, and each operation in random expressions (`tracing/test_emit`)."""
    model, cases = registry.load(name), registry.cases(name)
    given = [{"max_steps": MOST_STEPS, **each} for each in (*cases.variants, *cases.walks)]
    made = [*(point_of(model, **each) for each in given), point_of(model), *ALSO.get(name, ())]
    packed, jobs = points.pack(model, made), [Job(point, FIRST_RUN, BY_JAX) for point in range(len(made))]
    queue = jax_engine._queue(model, packed, jobs, SEED, recording=True)
    done = jax_engine._work_off(model, queue, len(jobs) * BY_JAX)
    records = np.asarray(done.records).reshape(-1, jax_batch.MAX_RECORDS, len(RECORD)).sum(0)
    for job, have in zip(jobs, records[: len(jobs) * BY_JAX].reshape(len(jobs), BY_JAX, -1), strict=True):
        want = numba_engine.record(model, packed, job, SEED)
        assert have.dtype == want.dtype
        differing = np.flatnonzero((have != want).any(1))
        assert not len(differing), (
            f"{made[job.point]}: {len(differing)} runs, first {want[differing[0]]}, not {have[differing[0]]}"
        )
    tallies = numba_engine.simulate(model, packed, jobs, SEED)
    summed = np.asarray(done.tallies).reshape(-1, jax_batch.MAX_JOBS, tallies.shape[1]).sum(0)[: len(jobs)]
    assert (summed == tallies).all(), np.argwhere(summed != tallies)
    assert tallies[:, tally.TIME_HISTOGRAM : tally.BROKEN].sum() > 0
    assert (tallies[:, tally.BROKEN :] > 0).any()


@pytest.mark.parametrize("name", EACH_PROTOCOL)
def test_runs_of_the_variants_end_in_all_ways_and_with_every_switch(name):
    model, variants = registry.load(name), registry.cases(name).variants
    packed = points.pack(model, [point_of(model, **{"max_steps": MOST_STEPS, **given}) for given in variants])
    jobs = [Job(point, FIRST_RUN, RUNS) for point in range(len(variants))]
    seen = numba_engine.simulate(model, packed, jobs, SEED)[:, : len(OUTCOMES)].sum(0)
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


@pytest.mark.exhaustive
def test_results_do_not_depend_on_the_size_of_batches_and_rounds(advance, monkeypatch):
    """Nor on how many copies of the sums there are, one for so many lanes."""
    monkeypatch.setattr(jax_engine, "num_lanes", lambda: 256)
    monkeypatch.setattr(jax_batch, "STEPS", 3)  # these two are a part of the compiled program
    monkeypatch.setattr(jax_batch, "_LANES_PER_TALLY", 64)
    assert (by_jax(JOBS) == by_numba(JOBS)).all()
    assert (by_jax(JOBS[::-1]) == by_numba(JOBS[::-1])).all()


def test_one_compiled_program_serves_every_queue(advance, caplog):
    by_jax(JOBS)
    assert advance(TOPIC)._cache_size() == 1
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        by_jax([Job(0, 0, 50)] * 40, 1, CRASHES[:1])
        by_jax([Job(2, 2**50, 20_000)], 7, [*CRASHES, point_of(TOPIC, keys=3, messages=5, max_steps=9, horizon=2.0)])
        jax_engine.record(TOPIC, points.pack(TOPIC, CRASHES), JOBS[0], 5)
        assert not [record.message for record in caplog.records if "ompil" in record.message]
        jax.jit(lambda x: x + len(caplog.records))(1.0)
        assert [record.message for record in caplog.records if "ompil" in record.message]


def test_a_device_that_runs_out_of_memory_is_told_in_a_line(monkeypatch):
    def full(*_):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7 bytes.\nstack")

    monkeypatch.setattr(jax_engine, "fresh", full)
    with pytest.raises(EngineError, match=r"^the device's memory ran out: RESOURCE_EXHAUSTED: Out of .* 7 bytes\.$"):
        by_jax(JOBS)
