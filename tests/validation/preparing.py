"""Processor seconds of what comes before a kernel's machine code: tracing, and observing runs for bounds and habits.

    python tests/validation/preparing.py raft configs/starters/kraft.toml

A protocol stands for the model that `quorisk bench` has of it, a file for the scenarios of its first design. The hash
tells whether two versions of Quorisk observe the same.
"""

import hashlib
import sys
import time
from pathlib import Path

from quorisk.analysis.bench import random_runs
from quorisk.analysis.experiment import config
from quorisk.kernels.engines.lanes import build, traced
from quorisk.kernels.engines.points import pack


def main(names: list[str]) -> None:
    """Prints a line for each configuration."""
    for name in names:
        experiment = config.load(Path(name)) if name.endswith(".toml") else random_runs(name)
        for point in (each for each in experiment.points if each.design == experiment.points[0].design):
            of = build.Configuration(experiment.model, pack(experiment.model, [point.point]), 0)
            params, weights, limits = build._constants(of, timed=True)
            start = time.thread_time()
            model, habits = traced._traced(experiment.model, params, weights, traced._losses(limits))
            seconds = time.thread_time() - start
            bounds = [sorted(part) if isinstance(part, frozenset) else part for part in model.bounds]
            seen = hashlib.sha256(repr((bounds, habits)).encode()).hexdigest()[:10]
            print(f"{point.scenario or name}: {seconds:.2f} s, {seen}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["raft", "configs/starters/kraft.toml"])
