#!/usr/bin/env python3
"""Measures the XLA engine on a GPU, for docs/gpus.md: whether its runs are the others', and how fast it is.

    pip install -e '.[cuda,dev]' -c constraints.txt
    python tests/validation/gpu.py                    every protocol, about ten minutes each
    python tests/validation/gpu.py kafka --minutes 2  one of them, in less

Prints two tables in Markdown. Every variant that tests know, then random configurations, are compared run by run with
the generic engine's. XLA and the CPU's lanes then make runs of the model of `quorisk bench` by turns.
"""

import argparse
import itertools
import os
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import jax
import numpy as np

from quorisk.analysis import bench
from quorisk.kernels.cores import num_cores
from quorisk.kernels.engines import jax_engine, lanes
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import pack
from quorisk.kernels.engines.tally import STEPS
from quorisk.kernels.protocols import registry
from tests.kernels.engines import fuzz
from tests.support import point_of
from tests.validation.page import commit, line

MOST_STEPS = 200
"""Steps of a variant's run: some never end, and the others of a batch wait for them."""
TURNS = 3
_SAME_RUNS = 1 << 20
"""Runs that both engines make."""


def equal(protocol: str, seconds: float) -> tuple[str, ...]:
    """Compares runs for so long; the row of the protocol."""
    model, chance, until = registry.load(protocol), random.Random(f"{protocol} gpu"), time.monotonic() + seconds
    variants = [point_of(model, **{"max_steps": MOST_STEPS, **given}) for given in registry.cases(protocol).variants]
    drawn = (fuzz.random_point(model, chance) for _ in itertools.count())
    found, number = fuzz.Findings(), 0
    for point in itertools.chain(variants, drawn):
        if time.monotonic() > until:
            break
        number += 1
        if made := fuzz.make_some(model, point, number, fuzz.MOST_RUNS):
            found.look(lambda made, timed: fuzz.by_jax(made), made, True)
    counts = found.configurations, found.runs, found.lost, len(found.differ)
    told = f"{min(number, len(variants))} of {len(variants)}"
    return protocol, told, *(f"{each:,}" for each in counts), *(f"**{each}**" for each in found.differ[:1])


def speed(protocol: str, seconds: float) -> tuple[str, ...]:
    """Both engines by turns, for so long together; the row of the protocol."""
    experiment = bench.random_runs(protocol)
    model, points = experiment.model, pack(experiment.model, [experiment.points[0].point])
    ways = {
        "XLA": partial(jax_engine.simulate, model, points, seed=0),
        "lanes": partial(lanes.simulate, model, points, seed=0, threads=num_cores(), later=1 << 40),
    }
    sums = [way([Job(0, 0, _SAME_RUNS)]) for way in ways.values()]
    best = {name: max(_steps_per_s(way, seconds / 2 / TURNS) for _ in range(TURNS)) for name, way in ways.items()}
    same = "yes" if np.array_equal(sums[0], sums[1]) else "**no**"
    return protocol, *(f"{each:.3g}" for each in best.values()), f"{best['XLA'] / best['lanes']:.3g}", same


def _steps_per_s(way: Callable[[list[Job]], np.ndarray], seconds: float) -> float:
    """Steps a second of a job that takes about so long."""
    runs, took_s = 1 << 8, 0.0
    while took_s < seconds / 2:
        runs *= 2
        start = time.perf_counter()
        tally = way([Job(0, 0, runs)])[0]
        took_s = time.perf_counter() - start
    return float(tally[STEPS]) / took_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help="all unless given")
    parser.add_argument("--minutes", type=float, default=10.0, help="for each protocol")
    given = parser.parse_args()
    chosen = given.protocols or registry.names()
    if unknown := sorted({*chosen} - {*registry.names()}):
        parser.error(f"{unknown[0]}: one of {', '.join(registry.names())}")
    print(f"{jax_engine.device().device_kind}, JAX {jax.__version__}, {os.cpu_count()} CPUs; {commit()}")
    for measure, heads in (
        (equal, ("protocol", "variants", "all configurations", "runs", "of them lost data", "differ")),
        (speed, ("protocol", "XLA, steps/s", f"lanes on {num_cores()} cores, steps/s", "XLA/lanes", "the same sums")),
    ):
        print("", line(heads), line(["---"] * len(heads)), sep="\n")
        for protocol in chosen:
            print(line(measure(protocol, 30 * given.minutes)), flush=True)


if __name__ == "__main__":
    main()
