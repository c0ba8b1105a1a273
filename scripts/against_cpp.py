#!/usr/bin/env python3
"""How fast the engines are beside a program written by hand for the small BookKeeper of `quorisk bench`.

    python scripts/against_cpp.py     compiles scripts/reference/bookkeeper_lanes.cpp: takes g++ and AVX-512

All make the same runs on one thread. First what they count is compared: everything but times, which the program does
not tell. Then they take turns, as a busy machine slows all of them down; the best round counts, in thread time, tallies
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

sys.path.insert(0, str(Path(__file__).parent.parent))

from quorisk.analysis import bench
from quorisk.kernels.engines import numba_engine, tally
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.lanes.build import shapes
from quorisk.kernels.engines.lanes.switch import Switch
from quorisk.kernels.engines.points import Points, pack
from quorisk.kernels.model import Model

SOURCE = Path(__file__).parent / "reference" / "bookkeeper_lanes.cpp"
FLAGS = ("-std=c++17", "-O3", "-march=native", "-shared", "-fPIC", "-w")
CHECKED = ((0, 0.1), (2**63 + 12345, 0.5))
"""Seeds and message losses of the runs that are compared. The first loss is the benchmark's."""
BELOW = ("AllCommittedEntriesReachWriteQuorum", "AllCommittedEntriesReachAckQuorum")
LOST = ("AllAckedEntriesAreReadable", "NoDivergenceBetweenClientAndMetaData")

Told = dict[str, Any]
"""What was counted, by name."""


class Counts(ctypes.Structure):
    """What the program fills."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("completed", "stuck", "lost", "steps", "steps_squared", "messages")),
        ("step_histogram", ctypes.c_int64 * tally.STEP_BINS),
        ("below", ctypes.c_int64 * len(BELOW)),
        ("first_steps", ctypes.c_int64 * len(BELOW)),
        ("lost_by", ctypes.c_int64 * len(LOST)),
    ]

    def told(self) -> Told:
        """What was counted."""
        found = {name: getattr(self, name) for name, _ in Counts._fields_[:6]}
        found["step_histogram"] = list(self.step_histogram)
        found |= zip(BELOW + LOST, [*self.below, *self.lost_by], strict=True)
        return found | {f"first steps of {name}": steps for name, steps in zip(BELOW, self.first_steps, strict=True)}


class Way(NamedTuple):
    """One of those that make the runs of a point."""

    name: str
    make: Callable[[int, Job], Any]
    """Makes a job's runs with a seed."""
    told: Callable[[Any], Told]
    """What was counted, of what `make` returns."""


def compiled() -> Callable[..., None]:
    """The program's function, compiled for this machine. Exits where that cannot be."""
    compiler = shutil.which("g++")
    if compiler is None:
        sys.exit("against_cpp.py: there is no g++ on the path (on Debian, apt-get install g++)")
    with TemporaryDirectory() as folder:
        library = Path(folder) / "lanes.so"
        command = [compiler, *FLAGS, "-o", library, SOURCE]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            why = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr)
            sys.exit(f"against_cpp.py: g++ cannot compile {SOURCE.name} here: {why}")
        function = ctypes.CDLL(str(library)).bookkeeper
    function.argtypes = (*2 * [ctypes.c_uint64], *2 * [ctypes.c_uint32], ctypes.POINTER(Counts))
    function.restype = None
    return function  # type: ignore[no-any-return]


def told_of(model: Model, row: np.ndarray) -> Told:
    """What a tally says of what the program counts, too."""
    read = tally.read(model, row.tolist())
    found: Told = {name: read.outcomes[name] for name in ("completed", "stuck", "lost")}
    found |= {name: getattr(read, name) for name in ("steps", "steps_squared", "messages", "step_histogram")}
    found |= {name: read.broken[name] for name in BELOW + LOST}
    return found | {f"first steps of {name}": read.first_steps[name] for name in BELOW}


def by_hand(function: Callable[..., None], points: Points, seed: int, job: Job) -> Counts:
    """What the program counts of a job."""
    counts = Counts()
    function(seed, int(points.losses[job.point, 0]), job.first_run, job.num_runs, counts)
    return counts


def ways_of(function: Callable[..., None], model: Model, points: Points) -> list[Way]:
    """The program, lanes of one register, and the generic engine."""
    ways, told = [Way("C++", partial(by_hand, function, points), Counts.told)], partial(told_of, model)
    for shape in shapes():
        switch = Switch(model, points, 0)
        switch.prepare(shape=shape)
        if switch.kernel is None:
            sys.exit(f"against_cpp.py: there is no kernel of {shape}: {switch.why_not}")
        ways.append(Way(f"lanes, {shape.lanes} of {shape.narrowest} bits", switch.tally_all, told))
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
            sys.exit(f"against_cpp.py: {way.name} counts otherwise than the {reference.name}, seed {seed}: {why}")
    return int(expected["steps"])


def report(ways: Sequence[Way], seed: int, job: Job, steps: int, rounds: int) -> None:
    """Times the ways by turns, and prints their speeds."""
    best = [float("inf")] * len(ways)
    for _ in range(rounds):
        for i, way in enumerate(ways):
            start = time.thread_time()
            way.make(seed, job)
            best[i] = min(best[i], time.thread_time() - start)
    print(f"\n{llvm.get_host_cpu_name()}, one thread, the best of {rounds} rounds of {job.num_runs:,} runs:\n")
    print("| | million steps/s | of the C++ |\n|---|---|---|")
    for way, took in zip(ways, best, strict=True):
        print(f"| {way.name} | {1e-6 * steps / took:.1f} | {best[0] / took:.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200_000, help="of a round")
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    function, experiment, job = compiled(), bench.random_runs("bookkeeper"), Job(0, 0, given.runs)
    checked = []
    for seed, loss in CHECKED:
        point = experiment.points[0].point.with_p_lost("message_loss", loss)
        ways = ways_of(function, experiment.model, pack(experiment.model, [point]))
        steps = check(ways, seed, job)
        print(f"{job.num_runs:,} runs of seed {seed}, message loss {loss}: {steps:,} steps, and all counts are equal.")
        checked.append((ways, seed, job, steps))
    report(*checked[0], given.rounds)


if __name__ == "__main__":
    main()
