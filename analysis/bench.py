"""How fast the engines are on this machine."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from analysis import config
from kernels.engines import Job
from kernels.model import Model
from kernels.numba_engine import simulate
from kernels.points import Point, pack
from kernels.search import explore
from kernels.tally import STEPS

RANDOM_RUNS: dict[str, dict[str, Any]] = {
    "bookkeeper": {
        "model": {"bookies": 3, "clients": 2, "write_quorum": 3, "ack_quorum": 2, "entries": 1, "inflight": 1},
        "faults": {"message_loss": 0.1},
    },
    "kafka": {
        "model": {"replicas": 3, "log_size": 4, "max_records": 4, "max_leader_epoch": 3},
    },
    "compaction": {
        "model": {"messages": 6, "compactions": 4, "keys": 3, "values": 2, "max_crashes": 3},
    },
}
"""What the engines step, by model: all else as an experiment file has it by default, so all rates are 1."""
SEARCHES: dict[str, dict[str, Any]] = {
    "bookkeeper": {
        "model": {"bookies": 2, "clients": 2, "write_quorum": 2, "ack_quorum": 1, "entries": 1, "inflight": 1},
        "variant": {"semantics": "literal"},
    },
}
"""What the exhaustive search visits, by model."""
REPETITIONS = 3
REPETITION_S = 1.0
"""Seconds of a repetition; the best one counts."""
SEARCH_BYTES = 2**30
_FIRST_RUNS = 1 << 10


class Speed(NamedTuple):
    """A row of the benchmark."""

    model: str
    engine: str
    threads: int
    steps_per_s: float
    """Steps of random runs; transitions of a search."""
    runs_per_s: float | None
    """None for a search."""
    compile_s: float
    """Seconds of the first call: compilation, or loading from the cache on disk if it was compiled before."""


def bench(engine: str | None, threads: int, progress: Callable[[str], None] | None = None) -> Iterator[Speed]:
    """Measures an engine, or all if None: random runs of every model on one thread and on `threads`, and searches.

    `progress` is told what comes next.
    """
    parts = {
        "numba": (RANDOM_RUNS, lambda model, point: _random_runs(model, point, sorted({1, threads}))),
        "search": (SEARCHES, _search),
    }
    for name, (documents, measure) in parts.items():
        for protocol, document in documents.items() if engine in (None, name) else ():
            if progress:
                progress(f"{protocol} ({name})")
            experiment = config.build({"protocol": protocol, **document}, "analysis/bench.py")
            yield from measure(experiment.model, experiment.points[0].point)


def _random_runs(model: Model, point: Point, thread_counts: Sequence[int]) -> Iterator[Speed]:
    points = pack(model, [point])
    compile_s = _timed(lambda: simulate(model, points, [Job(0, 0, 1)], 0))[1]

    def measure(num_runs: int, threads: int) -> tuple[float, float]:
        """Steps and runs a second."""
        tallies, seconds = _timed(lambda: simulate(model, points, [Job(0, 0, num_runs)], 0, threads))
        return float(tallies[0, STEPS]) / seconds, num_runs / seconds

    for threads in thread_counts:
        num_runs = _FIRST_RUNS
        while num_runs / (runs_per_s := measure(num_runs, threads)[1]) < REPETITION_S / 8:
            num_runs *= 2
        num_runs = round(runs_per_s * REPETITION_S)
        best = max(measure(num_runs, threads) for _ in range(REPETITIONS))
        yield Speed(model.name, "numba", threads, *best, compile_s)


def _search(model: Model, point: Point) -> Iterator[Speed]:
    params = model.make_params(point.values)
    found, first_s = _timed(lambda: explore(model, params, SEARCH_BYTES))
    best_s = min(_timed(lambda: explore(model, params, SEARCH_BYTES))[1] for _ in range(REPETITIONS))
    yield Speed(model.name, "search", 1, found.generated_states / best_s, None, first_s - best_s)


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start
