#!/usr/bin/env python3
"""What Spark costs: the demo grid through `quorisk run` and by the engine itself, on a machine with nothing else to do.

.venv/bin/python tests/validation/spark_bench.py
"""

import argparse
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "configs" / "demo.toml"
QUORISK = (sys.executable, "-c", "from quorisk.command.main import main; main()")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}


def overhead(runs: int, repetitions: int) -> None:
    """Prints seconds of both, in turn, each with Python's start, and what `quorisk run` takes more by the best of each:
    to the merged table, which is what the engine alone computes, and with figures and report.
    """
    by_engine, tables, reports = [], [], []
    for _ in range(repetitions):
        start = time.perf_counter()
        simulating_s = _direct_s(runs)
        by_engine.append(time.perf_counter() - start)
        whole_s, log = _run("--set", f"run.runs={runs}", "--master", f"local[{_cores()}]")
        reports.append(whole_s)
        tables.append(whole_s - _between(log, "merged", "finished"))
        print(f"engine {by_engine[-1]:.1f} s, of these simulating {simulating_s:.1f} s; ", end="")
        print(f"quorisk run {tables[-1]:.1f} s, with its report {whole_s:.1f} s", flush=True)
    for name, found in (("table", tables), ("report", reports)):
        print(f"overhead to the {name}: {min(found) / min(by_engine) - 1:.1%} on {_cores()} cores")


def _direct_s(runs: int) -> float:
    program = f"""
import time
from pathlib import Path
from quorisk.analysis.experiment import config
from quorisk.kernels.engines.registry import engine_of
from quorisk.kernels.engines.job import Job
from quorisk.sparkjobs.sweep import work_of
experiment = config.load(Path({str(DEMO)!r}))
work, engine = work_of(experiment), engine_of("numba")
jobs = [Job(point, 0, {runs}) for point in range(len(experiment.points))]
engine.simulate(experiment.model, work.points, [Job(0, 0, 1)], work.run.seed)
start = time.perf_counter()
engine.simulate(experiment.model, work.points, jobs, work.run.seed, {_cores()})
print(time.perf_counter() - start)
"""
    done = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    return float(done.stdout)


def _run(*options: str) -> tuple[float, str]:
    """Seconds of a `quorisk run`, and its log."""
    with TemporaryDirectory() as folder:
        out = Path(folder, "out")
        start = time.perf_counter()
        command = [*QUORISK, "run", str(DEMO), "--out", str(out), *options]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False)
        seconds, log = time.perf_counter() - start, (out / "quorisk.log").read_text()
    if done.returncode:
        raise SystemExit(log)
    return seconds, log


def _between(log: str, first: str, last: str) -> float:
    """Seconds between the first line with each of these words."""
    lines = log.splitlines()
    times = [next(line[:23] for line in lines if words in line) for words in (first, last)]
    start, end = (datetime.strptime(each, "%Y-%m-%d %H:%M:%S,%f") for each in times)
    return (end - start).total_seconds()


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2_500_000, help="of each point")
    parser.add_argument("--repetitions", type=int, default=3)
    given = parser.parse_args()
    overhead(given.runs, given.repetitions)


if __name__ == "__main__":
    main()
