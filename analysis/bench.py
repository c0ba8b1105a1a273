"""How fast the engines are on this machine."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.config import Experiment
from quorisk.kernels.cores import num_cores
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.lanes.build import every_shape
from quorisk.kernels.engines.lanes.switch import Switch
from quorisk.kernels.engines.points import Point, pack
from quorisk.kernels.engines.registry import Engine, choose
from quorisk.kernels.engines.tally import STEPS
from quorisk.kernels.model import Model
from quorisk.kernels.protocols import registry
from quorisk.kernels.states.search import explore

REPETITIONS = 3
REPETITION_S = 1.0
"""Seconds of a repetition; the best one counts."""
SEARCH_BYTES = 2**30
_FEWEST_RUNS = 1 << 10
_FEWEST_RUNS_PER_LANE = 8
"""So that the end of a benchmark, when lanes fall idle, counts for little."""


class Limits(NamedTuple):
    """What a device can do at most."""

    bytes_per_s: float
    """The bandwidth of its memory."""
    operations_per_s: float
    """Operations on 32-bit integers; one on 64 bits takes two."""


def _nvidia(terabytes_per_s: float, multiprocessors: int, clock_ghz: float) -> Limits:
    """A multiprocessor of compute capability 8.0 or 9.0 starts 64 additions, comparisons or bitwise operations on
    32-bit integers a clock cycle (CUDA Programming Guide, throughput of native arithmetic instructions)."""
    return Limits(terabytes_per_s * 1e12, multiprocessors * 64 * clock_ghz * 1e9)


LIMITS = {
    "NVIDIA H200": _nvidia(4.8, 132, 1.98),
    "NVIDIA H100 80GB HBM3": _nvidia(3.35, 132, 1.98),
    "NVIDIA A100-SXM4-80GB": _nvidia(2.039, 108, 1.41),
    "NVIDIA A100-SXM4-40GB": _nvidia(1.555, 108, 1.41),
}
"""By JAX's name of the device. Bandwidth, multiprocessors and highest clock: NVIDIA's data sheets and architecture
papers of the H200, H100 and A100 (SXM)."""


class Speed(NamedTuple):
    """A row of the benchmark."""

    model: str
    engine: str
    threads: int
    steps_per_s: float
    """Steps of random runs a second; for a search, transitions a second."""
    runs_per_s: float | None
    """Runs a second; None for a search."""
    compile_s: float
    """Seconds of the first call: compilation, or loading from the cache on disk if it was compiled before."""
    device: str | None = None
    """What the runs were stepped on, or how; None for numba. The fields below are None except for jax."""
    bytes_per_step: int | None = None
    """Bytes of device memory moved: a run's state, read and written once."""
    operations_per_step: int | None = None
    """Elementwise operations, counted by XLA; one on 64-bit integers is two."""
    steps_per_s_by_bytes: float | None = None
    """The most that the device's bandwidth allows; None if the device is not in LIMITS."""
    steps_per_s_by_operations: float | None = None
    """The most that its arithmetic allows."""
    to_last: float | None = None
    """`steps_per_s` by that of the last benchmark on this machine; None if there was none."""


def bench(engine: str | None, threads: int, progress: Callable[[str], None] | None = None) -> Iterator[Speed]:
    """Measures an engine, or all if None: random runs of every model on one thread and on `threads`, and searches.

    `progress` is told what comes next.
    """
    parts = {
        "numba": (random_runs, lambda model, point: _by_numba(model, point, sorted({1, threads}))),
        "lanes": (random_runs, _by_kernels),
        "jax": (random_runs, _by_jax),
        "search": (search, _search),
    }
    for name, (experiment_of, measure) in parts.items():
        for protocol in registry.names() if engine in (None, name) else ():
            experiment = experiment_of(protocol)
            if experiment is None:
                continue
            if progress:
                progress(f"{protocol} ({name})")
            yield from measure(experiment.model, experiment.points[0].point)


def random_runs(protocol: str) -> Experiment:
    """Returns what the engines step of a protocol: all else has its default, so all rates are 1."""
    cases = registry.cases(protocol)
    return config.build({"protocol": protocol, **(cases.bench or {"model": cases.small})}, f"bench of {protocol}")


def search(protocol: str) -> Experiment | None:
    """Returns what the exhaustive search visits of a protocol; None if nothing."""
    tables = registry.cases(protocol).bench_search
    return config.build({"protocol": protocol, **tables}, f"bench of {protocol}") if tables else None


def _by_numba(model: Model, point: Point, thread_counts: Sequence[int]) -> Iterator[Speed]:
    for threads in thread_counts:
        yield _random_runs(choose("numba"), model, point, threads, _FEWEST_RUNS)


def _by_kernels(model: Model, point: Point) -> Iterator[Speed]:
    """One thread: runs in lanes of one register and of two, and in queues."""
    points = pack(model, [point])
    for shape in every_shape():
        runs = Switch(model, points, 0)
        compile_s = _timed(partial(runs.prepare, shape=shape))[1]
        how = shape.spelled if runs.kernel else f"as numba: {runs.why_not}"
        yield _measured(model, "lanes", 1, partial(runs.tally_all, 0), _FEWEST_RUNS, compile_s)._replace(device=how)


def _by_jax(model: Model, point: Point) -> Iterator[Speed]:
    """XLA takes all cores of a CPU; a GPU is driven by one thread."""
    engine = choose("jax")
    from quorisk.kernels.engines import jax_engine

    device, num_devices = jax_engine.devices()[0], len(jax_engine.devices())
    threads = num_cores() if device.platform == "cpu" else 1
    lanes = num_devices * jax_engine.num_lanes(model, device)
    speed = _random_runs(engine, model, point, threads, _FEWEST_RUNS_PER_LANE * lanes)
    num_bytes, operations = jax_engine.step_cost(model, pack(model, [point]))
    limits = LIMITS.get(device.device_kind)
    yield speed._replace(
        device=f"{num_devices} x {device.device_kind}",
        bytes_per_step=num_bytes,
        operations_per_step=operations,
        steps_per_s_by_bytes=limits and num_devices * limits.bytes_per_s / num_bytes,
        steps_per_s_by_operations=limits and num_devices * limits.operations_per_s / operations,
    )
    if device.platform == "gpu":
        yield from _by_gpu_kernel(model, point, jax_engine.devices())


def _by_gpu_kernel(model: Model, point: Point, devices: Sequence[Any]) -> Iterator[Speed]:
    """What long points go over to, if they may."""
    from quorisk.kernels.engines.gpu.switch import SIZE, Switch

    runs = Switch(model, pack(model, [point]))
    try:
        prepare_s = _timed(runs.prepare)[1]
        compile_s = prepare_s + _timed(lambda: runs.by_kernel(0, Job(0, 0, 1), devices))[1]
    except Exception as error:  # the engine would do without as well
        warnings.warn(f"{model.name}: no GPU kernel: {error}", RuntimeWarning, stacklevel=2)
        return
    speed = _measured(model, "jax", 1, lambda job: runs.by_kernel(0, job, devices), SIZE.total, compile_s)
    yield speed._replace(device=f"{len(devices)} x {devices[0].device_kind}, a kernel of its own")


def _random_runs(engine: Engine, model: Model, point: Point, threads: int, fewest_runs: int) -> Speed:
    points = pack(model, [point])
    compile_s = _timed(lambda: engine.simulate(model, points, [Job(0, 0, 1)], 0))[1]

    def simulate(job: Job) -> np.ndarray:
        return engine.simulate(model, points, [job], 0, threads)[0]

    return _measured(model, engine.NAME, threads, simulate, fewest_runs, compile_s)


def _measured(
    model: Model, name: str, threads: int, simulate: Callable[[Job], np.ndarray], fewest_runs: int, compile_s: float
) -> Speed:
    """The speed of what gives a job's tally."""

    def measure(num_runs: int) -> tuple[float, float]:
        """Steps and runs a second."""
        tally, seconds = _timed(lambda: simulate(Job(0, 0, num_runs)))
        return float(tally[STEPS]) / seconds, num_runs / seconds

    num_runs = fewest_runs
    while num_runs / (runs_per_s := measure(num_runs)[1]) < REPETITION_S / 8:
        num_runs *= 2
    num_runs = max(fewest_runs, round(runs_per_s * REPETITION_S))
    best = max(measure(num_runs) for _ in range(REPETITIONS))
    return Speed(model.name, name, threads, *best, compile_s)


def _search(model: Model, point: Point) -> Iterator[Speed]:
    params = model.make_params(point.values)
    found, first_s = _timed(lambda: explore(model, params, SEARCH_BYTES))
    best_s = min(_timed(lambda: explore(model, params, SEARCH_BYTES))[1] for _ in range(REPETITIONS))
    yield Speed(model.name, "search", 1, found.generated_states / best_s, None, first_s - best_s)


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start
