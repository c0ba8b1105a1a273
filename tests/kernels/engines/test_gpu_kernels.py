"""Kernels for GPUs, in Pallas's interpreter: they make the generic engine's runs, bit for bit. Whether a GPU's own
compiler takes them is told by what they lower to."""

from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from quorisk.kernels.engines import jax_engine, numba_engine
from quorisk.kernels.engines.gpu import lane, switch
from quorisk.kernels.engines.gpu.kernel import Found, How, Size, rows
from quorisk.kernels.engines.gpu.switch import Switch
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import Point, pack
from quorisk.kernels.engines.specialized import traced
from quorisk.kernels.engines.specialized.plan import REDO
from quorisk.kernels.model import HORIZON, LOST, OUTCOMES, UNFINISHED, Model
from quorisk.kernels.protocols import registry
from tests.kernels.engines.test_agreement import PHYSICAL
from tests.support import point_of

SEED, FIRST_RUN = 2**64 - 3, 2**32 - 250
SIZE = Size(programs=4, runs=128)
NUM_MORE = 188
"""Runs of a second call, in which the last programs have nothing to do."""
CPU = jax.devices("cpu")


def prepared(model: Model, point: Point) -> Switch:
    found = Switch(model, pack(model, [point]), SIZE, How(recording=True, interpret=True))
    found.prepare()
    return found


def compared(runs: Switch, first_run: int = FIRST_RUN, device: jax.Device = CPU[0]) -> np.ndarray:
    """The records of a call, of which all are the generic engine's, but those of outcome -1, which are left to it."""
    num_runs = runs.size.total
    want = numba_engine.record(runs.model, runs.points, Job(0, first_run, num_runs), SEED)
    call = runs.call(SEED, first_run, num_runs, device)
    redo, have = np.asarray(call.redo), np.asarray(call.records)
    differ = np.flatnonzero((have != want).any(1) & ~redo)
    assert not len(differ), f"{len(differ)} runs, first {want[differ[0]]}, not {have[differ[0]]}"
    job = Job(0, first_run, num_runs + NUM_MORE)
    tally = numba_engine.tally_of(runs.model, runs.points, SEED, job)
    assert np.array_equal(runs.by_kernel(SEED, job, [device]), tally)
    want[redo, 0] = -1
    return want


def ends(records: np.ndarray) -> np.ndarray:
    """How many runs ended so, by outcome; last those that are to be made again."""
    return np.array([(records[:, 0] == outcome).sum() for outcome in (*range(len(OUTCOMES)), -1)])


RATES = PHYSICAL | {
    "client_closes_ledger_success": 0.1,
    "client_starts_recovery": 1e-14,
    "bookie_is_lost": 0.02,
    "bookie_restarts_empty": 0.01,
    "bookie_is_replaced": 0.05,
    "auditor_replicates_fragment": 0.1,
}
"""Sixteen decades apart: what is left in the end is mostly refused."""


def test_losses_of_messages_exposures_refused_instances_and_a_lifetime():
    """Of run 100, the leading bits of a message's fate are those of the probability, and the low ones lose it."""
    model = registry.load("bookkeeper")
    given: dict[str, Any] = {**registry.cases("bookkeeper").variants[9], "rates": RATES, "write_quorum": 3}
    runs = prepared(model, point_of(model, 0.300015, **given | {"lifetime": 4e12, "max_steps": 100}))
    found = ends(compared(runs, 2**40 + 21079))
    assert runs.stepper.plan.exposed
    assert runs.stepper.plan.share_bits == 64
    assert all(found[[LOST, HORIZON, UNFINISHED]] > SIZE.total / 20)
    assert found[-1] < SIZE.total * 3 / 4  # refused


def test_runs_that_lose_data_or_not_as_they_start_in_one_state_or_another():
    model = registry.load("compaction")
    switches: dict[str, Any] = dict.fromkeys(
        ("publish_context_before_horizon", "retain_null_key", "model_producer"), False
    )
    runs = prepared(model, point_of(model, **switches, horizon=6.0))
    found = ends(compared(runs))
    assert runs.stepper.traced.num_choices > 1
    assert found[LOST] > SIZE.total / 50
    assert found[HORIZON] > SIZE.total / 50


def test_masks_of_64_bits_and_runs_of_so_many_steps_at_most():
    model = registry.load("kraft")
    small = registry.cases("kraft").small
    runs = prepared(model, point_of(model, rates={"unfence_broker": 3.0}, max_steps=15, **small))
    assert runs.stepper.plan.mask_bits == 64
    assert 0 < ends(compared(runs))[UNFINISHED] < SIZE.total


def test_runs_that_leave_the_bounds_are_made_again(monkeypatch):
    """Eight runs are observed for eight steps."""
    model = registry.load("kafka")
    monkeypatch.setattr("quorisk.kernels.tracing.observe.MAX_ROUNDS", 8)
    monkeypatch.setattr("quorisk.kernels.tracing.observe.NUM_RUNS", 8)
    monkeypatch.setattr(traced, "_traced", traced._traced.__wrapped__)
    runs = prepared(model, point_of(model, rates={"become_leader": 0.25}, lifetime=2.0))
    assert 0.05 < ends(compared(runs))[-1] / SIZE.total < 0.95
    assert runs.num_repeated > 0.05 * SIZE.total
    assert runs.why_not == "too many runs are not as the ones observed"
    assert runs.kernel is None


def test_a_choice_that_the_bits_drawn_leave_open_is_left_to_the_generic_engine(monkeypatch):
    """A third of 2**32, rounded down, may be the last of the first of three instances, or the second."""
    model = registry.load("compaction")
    runs = Switch(model, pack(model, [point_of(model)]), SIZE)
    runs.prepare()
    seed, first_run = np.uint64(0), np.int64(0)
    run = runs.stepper.fresh(seed, first_run, np.int32(0))._replace(masks=(np.int32(0b10101),))
    for choose, is_open in ((2**32 // 3, True), (2**32 // 3 - 1, False)):
        monkeypatch.setattr(lane, "first_draws", lambda source, word=choose: (np.uint64(word), 1, 0))
        step = jax.jit(lambda run: runs.stepper.step(seed, first_run, np.True_, run))
        assert (int(step(run)[1].outcome) == REDO) == is_open


@pytest.mark.skipif(jax_engine.devices()[0].platform != "gpu", reason="no GPU here")
@pytest.mark.parametrize("name", registry.names())
def test_every_variant_on_a_gpu(name):
    model = registry.load(name)
    for given in registry.cases(name).variants:
        runs = Switch(model, pack(model, [point_of(model, **given)]), Size(programs=64, runs=128), How(recording=True))
        runs.prepare()
        compared(runs, device=jax_engine.devices()[0])


@pytest.mark.parametrize("name", registry.names())
def test_the_gpus_backend_has_every_operation(name):
    model = registry.load(name)
    point = point_of(model, 1.0 if model.max_sends else 0.0, lifetime=3.0, **registry.cases(name).variants[0])
    runs = Switch(model, pack(model, [point]))
    runs.prepare()
    lowered = jax.jit(lambda *given: rows(runs.stepper, SIZE, *given)).trace(np.uint64(1), np.int64(0), np.int64(9))
    assert "triton" in lowered.lower(lowering_platforms=("cuda",)).as_text()


class Engines:
    """Both ways to make runs, in place of a GPU's, and a clock by which each takes its time."""

    def __init__(self, monkeypatch, wrong: int = 0, kernel_s: float = 1.0) -> None:
        self.model = registry.load("compaction")
        self.points = pack(self.model, [point_of(self.model)])
        self.wrong, self.kernel_s, self.now = wrong, kernel_s, 0.0
        self.by_kernel, self.by_batch = list[int](), list[int]()
        self.told = list[int]()
        self.runs = Switch(self.model, self.points, SIZE)
        monkeypatch.setattr(switch, "time", SimpleNamespace(perf_counter=lambda: self.now))
        monkeypatch.setattr(self.runs, "prepare", lambda: setattr(self.runs, "kernel", self.kernel))

    def kernel(self, seed, time_unit, first_run, num_runs) -> Found:
        self.by_kernel.append(int(first_run))
        self.now += self.kernel_s
        tally = numba_engine.tally_of(self.model, self.points, int(seed), Job(0, int(first_run), int(num_runs)))
        return Found(tally + self.wrong, np.zeros(SIZE.total, bool), None)

    def batch(self, job: Job) -> np.ndarray:
        self.by_batch.append(job.first_run)
        self.now += 0.6 * switch.WORTH_S
        return numba_engine.tally_of(self.model, self.points, SEED, job)

    def tally(self, first_run: int) -> None:
        """Has a job run, and compares what comes of it."""
        job = Job(0, first_run, SIZE.total)
        have = self.runs.tally(SEED, job, CPU, self.batch, self.told.append)
        assert np.array_equal(have, numba_engine.tally_of(self.model, self.points, SEED, job))


def test_a_kernel_takes_over_once_the_batch_took_long_if_the_same_runs_come_to_the_same(monkeypatch):
    engines = Engines(monkeypatch)
    for first_run in (0, 1000, 2000, 3000):
        engines.tally(first_run)
    assert engines.by_batch == [0, 1000]
    assert engines.by_kernel == [1000, 1000, 2000, 3000]  # once more to see how long it takes without compiling
    assert engines.told == [SIZE.total] * 2


def test_a_kernel_that_differs_is_told_of_and_never_used(monkeypatch):
    engines = Engines(monkeypatch, wrong=1)
    engines.tally(0)
    told = r"compaction: the XLA batch goes on without a GPU kernel: its results differ .* runs 1000 to 1511 of seed"
    with pytest.warns(RuntimeWarning, match=told):
        engines.tally(1000)
    engines.tally(2000)
    assert engines.by_batch == [0, 1000, 2000]


def test_a_kernel_that_is_slower_than_the_batch_is_not_used(monkeypatch):
    engines = Engines(monkeypatch, kernel_s=switch.WORTH_S)
    for first_run in (0, 1000, 2000):
        engines.tally(first_run)
    assert engines.by_batch == [0, 1000, 2000]
    assert engines.runs.why_not == "it is slower than the XLA batch"


@pytest.mark.parametrize("fails_at", [1000, 2000])
def test_the_batch_goes_on_where_the_kernel_cannot(monkeypatch, fails_at):
    """At first, as if it could not be compiled, or later, as if memory ran out."""
    engines = Engines(monkeypatch)
    made = engines.kernel

    def kernel(seed, time_unit, first_run, num_runs):
        if first_run == fails_at:
            raise jax.errors.JaxRuntimeError("INTERNAL: a register is missing\nstack")
        return made(seed, time_unit, first_run, num_runs)

    monkeypatch.setattr(engines, "kernel", kernel)
    for first_run in range(0, fails_at, 1000):
        engines.tally(first_run)
    with pytest.warns(RuntimeWarning, match=r"it failed: JaxRuntimeError: INTERNAL: a register is missing$"):
        engines.tally(fails_at)
    engines.tally(3000)
    assert engines.by_batch[-2:] == [fails_at, 3000]


def test_long_jobs_of_the_jax_engine_go_to_their_points_switch(monkeypatch):
    model = registry.load("compaction")
    points = pack(model, [point_of(model), point_of(model, rates={"broker_crash": 0.5})])
    asked = list[tuple[Job, int]]()

    def tally(self, seed, job, devices, by_batch, progress):
        asked.append((job, int(self.points.weights[0].max())))
        return by_batch(job)

    def by_batch(model, points, jobs, seed, progress):
        return numba_engine.simulate(model, points, jobs, seed, 1, progress)

    monkeypatch.setattr(Switch, "tally", tally)
    monkeypatch.setattr(jax_engine, "_by_batch", by_batch)
    monkeypatch.setattr(jax_engine, "LONG_RUNS", 1000)
    jobs, told = [Job(0, 0, 1000), Job(1, 0, 999), Job(1, 999, 2000)], list[int]()
    want = numba_engine.simulate(model, points, jobs, SEED)
    assert np.array_equal(jax_engine.simulate(model, points, jobs, SEED), want)
    assert not asked  # no GPU
    monkeypatch.setattr(jax_engine, "_takes_kernels", lambda points: True)
    assert np.array_equal(jax_engine.simulate(model, points, jobs, SEED, progress=told.append), want)
    assert asked == [(jobs[0], int(points.weights[0].max())), (jobs[2], int(points.weights[1].max()))]
    assert sum(told) == sum(job.num_runs for job in jobs)
