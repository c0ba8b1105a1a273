"""Benchmark of the engines on this machine."""

import time
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
from quorisk.kernels.engines.registry import Engine, engine_of
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
"""Fewest runs for each lane: the end of a benchmark, when lanes fall idle, counts for little then."""


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
    """Device or kind of kernel that stepped the runs; None for numba."""


def bench(engine: str | None, threads: int, progress: Callable[[str], None] | None = None) -> Iterator[Speed]:
    """Measures an engine, or all if None: random runs of every model on one thread and on `threads`, and searches.

    `progress` is called with the name of the next measurement.
    """
    parts = {
        "numba": (random_runs, lambda model, point: _by_numba(model, point, sorted({1, threads}))),
        "lanes": (random_runs, _by_kernels),
        "jax": (random_runs, _by_jax),
        "search": (searched_experiment, _search),
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
    """Returns the experiment of a protocol that the engines step; all else has its default, so all rates are 1."""
    cases = registry.cases(protocol)
    return config.build_experiment(
        {"protocol": protocol, **(cases.bench or {"model": cases.small})}, f"bench of {protocol}"
    )


def searched_experiment(protocol: str) -> Experiment | None:
    """Returns the experiment of a protocol that the exhaustive search visits; None if it has none."""
    tables = registry.cases(protocol).bench_search
    return config.build_experiment({"protocol": protocol, **tables}, f"bench of {protocol}") if tables else None


def _by_numba(model: Model, point: Point, thread_counts: Sequence[int]) -> Iterator[Speed]:
    for threads in thread_counts:
        yield _random_runs(engine_of("numba"), model, point, threads, _FEWEST_RUNS)


def _by_kernels(model: Model, point: Point) -> Iterator[Speed]:
    """Speeds on one thread, with runs in lanes of one register, of two registers, and in queues."""
    points = pack(model, [point])
    for shape in every_shape():
        runs = Switch(model, points, 0)
        compile_s = _timed(partial(runs.prepare, shape=shape))[1]
        how = shape.spelled if runs.kernel else f"as numba: {runs.why_not}"
        yield _measured(model, "lanes", 1, partial(runs.tally_all, 0), _FEWEST_RUNS, compile_s)._replace(device=how)


def _by_jax(model: Model, point: Point) -> Iterator[Speed]:
    """XLA takes all cores of a CPU; a GPU is driven by one thread."""
    engine = engine_of("jax")
    from quorisk.kernels.engines import jax_engine

    device = jax_engine.device()
    threads = num_cores() if device.platform == "cpu" else 1
    speed = _random_runs(engine, model, point, threads, _FEWEST_RUNS_PER_LANE * jax_engine.num_lanes())
    yield speed._replace(device=device.device_kind)


def _random_runs(engine: Engine, model: Model, point: Point, threads: int, fewest_runs: int) -> Speed:
    points = pack(model, [point])
    compile_s = _timed(lambda: engine.simulate(model, points, [Job(0, 0, 1)], 0))[1]

    def simulate(job: Job) -> np.ndarray:
        return engine.simulate(model, points, [job], 0, threads)[0]

    return _measured(model, engine.NAME, threads, simulate, fewest_runs, compile_s)


def _measured(
    model: Model, name: str, threads: int, simulate: Callable[[Job], np.ndarray], fewest_runs: int, compile_s: float
) -> Speed:
    """The speed of `simulate`, which returns a job's tally."""

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
