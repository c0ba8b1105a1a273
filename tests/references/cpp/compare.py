#!/usr/bin/env python3
"""How fast the engines are beside programs written by hand for what `quorisk bench` runs of a protocol.

    python tests/references/cpp/compare.py [--protocol kafka]     compiles what lies here: takes g++ and AVX-512

All make the same runs on one thread. First what they count is compared: everything but times, which the programs do not
tell. Then they take turns, as a busy machine slows all of them down; the best round counts, in thread time, tallies
included.
"""

import argparse
import ctypes
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))

from quorisk.analysis import bench
from quorisk.kernels.engines import numba_engine, tally
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.lanes.build import every_shape
from quorisk.kernels.engines.lanes.switch import Switch
from quorisk.kernels.engines.points import Points, pack
from quorisk.kernels.model import MESSAGE_LOSS, OUTCOMES, Model, loses_messages

SOURCES = Path(__file__).parent
FLAGS = ("-std=c++17", "-O3", "-march=native", "-shared", "-fPIC", "-w")
CHECKED = ((0, 0.1), (2**63 + 12345, 0.5))
"""Seeds of the runs that are compared, and their losses if messages may be lost. The first loss is the benchmark's."""
INVARIANTS = {
    "bookkeeper": (
        "NoDivergenceBetweenClientAndMetaData",
        "AllAckedEntriesAreReadable",
        "AllCommittedEntriesReachAckQuorum",
        "AllCommittedEntriesReachWriteQuorum",
    ),
    "kafka": ("WeakIsr", "StrongIsr", "LeaderInIsr", "CommittedRecordsSurvive"),
    "compaction": ("CompactedLedgerLeak", "CompactionHorizonCorrectness", "DuplicateNullKeyMessage"),
}
"""By protocol, in the program's order."""
SUMS = (*OUTCOMES[:3], "steps", "steps_squared", "messages")

Told = dict[str, Any]
"""What was counted, by name."""


class Way(NamedTuple):
    """One of those that make the runs of a point."""

    name: str
    make: Callable[[int, Job], Any]
    """Makes a job's runs with a seed."""
    told: Callable[[Any], Told]
    """What was counted, of what `make` returns."""


def compiled(protocol: str) -> Callable[..., None]:
    """The program's function, compiled for this machine. Exits where that cannot be."""
    compiler, source = shutil.which("g++"), SOURCES / f"{protocol}_lanes.cpp"
    if compiler is None:
        sys.exit("compare.py: there is no g++ on the path (on Debian, apt-get install g++)")
    with TemporaryDirectory() as folder:
        library = Path(folder) / "lanes.so"
        command = [compiler, *FLAGS, "-o", str(library), str(source)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            why = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr)
            sys.exit(f"compare.py: g++ cannot compile {source.name} here: {why}")
        function = ctypes.CDLL(str(library)).make_runs
    function.argtypes = (*2 * [ctypes.c_uint64], *2 * [ctypes.c_uint32], ctypes.c_void_p)
    function.restype = None
    return function


def told_by_engine(model: Model, row: np.ndarray) -> Told:
    """What a tally says of what the program counts, too."""
    read = tally.named_tally(model, row.tolist())
    found: Told = {name: read.outcomes[name] if name in OUTCOMES else getattr(read, name) for name in SUMS}
    found["step_histogram"] = read.step_histogram
    found |= {name: read.broken[name] for name in INVARIANTS[model.name]}
    return found | {f"first steps of {name}": read.first_steps[name] for name in INVARIANTS[model.name]}


def told_by_program(model: Model, counts: np.ndarray) -> Told:
    """The same of the program's counts, which are as `Counts` in lanes.hpp."""
    values, names = counts.tolist(), INVARIANTS[model.name]
    by_invariant = (*names, *(f"first steps of {name}" for name in names))
    found: Told = dict(zip(SUMS, values, strict=False))
    found["step_histogram"] = values[len(SUMS) : -len(by_invariant)]
    return found | dict(zip(by_invariant, values[-len(by_invariant) :], strict=True))


def by_hand(function: Callable[..., None], model: Model, points: Points, seed: int, job: Job) -> np.ndarray:
    """What the program counts of a job."""
    counts = np.zeros(len(SUMS) + tally.STEP_BINS + 2 * len(INVARIANTS[model.name]), np.int64)
    function(seed, int(points.losses[job.point, 0]), job.first_run, job.num_runs, counts.ctypes.data)
    return counts


def ways_of(function: Callable[..., None], model: Model, points: Points) -> list[Way]:
    """The program, every form of kernels, and the generic engine."""
    ways = [Way("C++", partial(by_hand, function, model, points), partial(told_by_program, model))]
    told = partial(told_by_engine, model)
    for shape in every_shape():
        switch = Switch(model, points, 0)
        switch.prepare(shape=shape)
        if switch.kernel is None:
            sys.exit(f"compare.py: there is no kernel of {shape}: {switch.why_not}")
        ways.append(Way(shape.spelled, switch.tally_all, told))
    return [*ways, Way("generic engine", partial(numba_engine.tally_of, model, points), told)]


def difference(found: Told, expected: Told) -> str:
    """What differs, in words; nothing if all is equal."""
    names = [name for name in expected if found[name] != expected[name]]
    return "; ".join(f"{name}: {found[name]}, not {expected[name]}" for name in names)


def check(ways: Sequence[Way], seed: int, job: Job) -> int:
    """The steps of a job. Exits if any way counts otherwise than the last one."""
    *others, reference = ways
    expected = reference.told(reference.make(seed, job))
    for way in others:
        if why := difference(way.told(way.make(seed, job)), expected):
            sys.exit(f"compare.py: {way.name} counts otherwise than the {reference.name}, seed {seed}: {why}")
    return int(expected["steps"])


def speeds(ways: Sequence[Way], seed: int, job: Job, steps: int, rounds: int) -> list[float]:
    """Times the ways by turns; returns the million steps a second of each."""
    best = [float("inf")] * len(ways)
    for _ in range(rounds):
        for i, way in enumerate(ways):
            start = time.thread_time()
            way.make(seed, job)
            best[i] = min(best[i], time.thread_time() - start)
    return [1e-6 * steps / took for took in best]


def measured(protocol: str, runs: int, rounds: int) -> dict[str, float]:
    """The million steps a second of each way, by name, once all are seen to count the same."""
    function, experiment, job = compiled(protocol), bench.random_runs(protocol), Job(0, 0, runs)
    timed = None
    for seed, loss in CHECKED:
        point = experiment.points[0].point
        if loses_messages(experiment.model):
            point = point.with_p_lost(MESSAGE_LOSS, loss)
        ways = ways_of(function, experiment.model, pack(experiment.model, [point]))
        steps = check(ways, seed, job)
        print(f"{protocol}, {runs:,} runs of seed {seed}: {steps:,} steps, and all counts are equal.")
        timed = timed or (ways, seed, job, steps)
    assert timed is not None
    return dict(zip((way.name for way in timed[0]), speeds(*timed, rounds), strict=True))


def report(found: dict[str, dict[str, float]]) -> None:
    """Prints the speeds of each protocol in a row, and what the fastest kernel has of the C++."""
    names = list(next(iter(found.values())))
    print(f"| | {' | '.join(names)} | the best kernel, of the C++ |\n|{'---|' * (len(names) + 2)}")
    for protocol, by_way in found.items():
        by_hand, *kernels, _ = by_way.values()
        row = " | ".join(f"{speed:.1f}" for speed in by_way.values())
        print(f"| {protocol} | {row} | {max(kernels) / by_hand:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--protocol", nargs="+", choices=INVARIANTS, default=list(INVARIANTS))
    parser.add_argument("--runs", type=int, default=200_000, help="of a round")
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    found = {protocol: measured(protocol, given.runs, given.rounds) for protocol in given.protocol}
    print(f"\n{llvm.get_host_cpu_name()}, one thread, million steps/s:\n")
    report(found)


if __name__ == "__main__":
    main()
