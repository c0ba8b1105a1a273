#!/usr/bin/env python3
"""Kills sweeps at random moments and resumes them: the results have to be those of an undisturbed sweep, to the byte.

    scripts/robustness/kill_sweeps.py --count 100 --seed 1
    scripts/robustness/kill_sweeps.py --count 20 --seed 1 --cluster

What is killed is the driver, its Java or one of the Python workers, in turn, at a random moment while it plans, runs,
merges or draws, in turn. With --cluster it is the driver, an executor or a worker of a cluster on this machine. A
sweep that survives (Spark starts again what was killed) is compared as it is.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from scripts import cluster  # noqa: E402

FILE = """
protocol = "compaction"
[model]
messages = 3
compactions = 3
keys = 1
values = 1
max_crashes = 2
[run]
runs = 200000
[grid]
"rates.broker_crash" = [0.1, 0.5, 1.0]
"variant.persist_cursor_before_delete" = [true, false]
"""
TARGETS, CLUSTER_TARGETS = ("driver", "java", "python"), ("driver", "executor", "worker")
PHASES = {"planning": "started", "running": "points go on", "merging": "computed", "drawing": "merged", "": "finished"}
"""What a sweep does after which word of its log."""


def start(file: Path, out: Path, spark: Sequence[str], *options: str) -> "subprocess.Popen[bytes]":
    """A sweep in a process group of its own."""
    command = [sys.executable, "-m", "quorisk", "run", str(file), "--out", str(out), *spark, *options]
    with (out.parent / "output").open("ab") as output:
        return subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output, start_new_session=True)


def children(pid: int) -> list[int]:
    """A process's children, by Linux's own list."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def victim(driver: int, target: str) -> int | None:
    """The process to kill, if there is one yet."""
    if target == "driver":
        return driver
    javas = [pid for pid in children(driver) if "java" in _name(pid)]
    if target == "java" or not javas:
        return javas[0] if javas else None
    workers = [worker for thread in _threads(javas[0]) for daemon in thread for worker in [daemon, *children(daemon)]]
    return workers[-1] if workers else None


def _threads(pid: int) -> list[list[int]]:
    with suppress(OSError):
        return [
            [int(w) for w in (task / "children").read_text().split()] for task in Path(f"/proc/{pid}/task").iterdir()
        ]
    return []


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text()
    return ""


def times(out: Path) -> dict[str, float]:
    """When a sweep began what it did, in seconds since it started."""
    lines = (out / "quorisk.log").read_text().splitlines()
    began = {what: next(line for line in lines if word in line)[:23] for what, word in PHASES.items()}
    at = {what: datetime.strptime(text, "%Y-%m-%d %H:%M:%S,%f") for what, text in began.items()}
    return {what: (moment - at["planning"]).total_seconds() for what, moment in at.items()}


def has_begun(out: Path, word: str) -> bool:
    """Whether a sweep's log has the word."""
    with suppress(OSError):
        return word in (out / "quorisk.log").read_text()
    return False


def killed(
    file: Path,
    out: Path,
    spark: Sequence[str],
    phase: str,
    after_s: float,
    find: Callable[[int], int | None],
    group: bool,
) -> str:
    """Runs a sweep and kills a part of it so many seconds after a phase began; says what became of it."""
    process = start(file, out, spark)
    while process.poll() is None and not has_begun(out, PHASES[phase]):
        time.sleep(0.01)
    time.sleep(after_s)
    found = None
    while process.poll() is None and (found := find(process.pid)) is None:
        time.sleep(0.01)  # it is yet to start
    if process.poll() is not None or found is None:
        process.wait()
        return "ended before"
    with suppress(ProcessLookupError):
        os.kill(found, signal.SIGKILL)
    if group:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return f"exit {process.wait()}"


class Cluster:
    """A master and two workers on this machine."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack, self._folder, self._number = stack, folder, 0
        self.url = stack.enter_context(cluster.master(folder)).url
        self.workers = [self._worker(), self._worker()]

    def _worker(self) -> cluster.Part:
        self._number += 1
        return self._stack.enter_context(cluster.worker(self._folder, self._number, self.url, 1))

    def victim(self, target: str, chance: random.Random) -> int | None:
        """The Java of a worker, or of one of its executors, if there is one yet."""
        worker = chance.choice(self.workers).process.pid
        executors = [child for thread in _threads(worker) for child in thread]
        return worker if target == "worker" else next(iter(executors), None)

    def mend(self) -> None:
        """Starts a worker in the place of one that was killed."""
        for i, worker in enumerate(self.workers):
            if worker.process.poll() is not None:
                cluster.end(worker.process, signal.SIGKILL)
                self.workers[i] = self._worker()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cluster", action="store_true", help="on a standalone cluster, started for it")
    given = parser.parse_args()
    chance, failed = random.Random(given.seed), 0
    with TemporaryDirectory() as temporary, ExitStack() as stack:
        file, place = Path(temporary, "topic.toml"), Path(temporary)
        file.write_text(FILE)
        machines = Cluster(stack, place) if given.cluster else None
        spark = ["--master", "local[2,4]"]
        if machines:
            spark = ["--master", machines.url, "--conf", "spark.driver.host=127.0.0.1"]
        start(file, place / "whole", spark).wait()
        whole, at = (place / "whole" / "results.parquet").read_bytes(), list(times(place / "whole").items())
        targets = CLUSTER_TARGETS if machines else TARGETS
        for number in range(given.count):
            out, target = place / f"out{number}", targets[number % len(targets)]
            which = number % (len(PHASES) - 1)
            (phase, began), (_, ended) = at[which], at[which + 1]
            after_s = chance.uniform(0.0, ended - began)

            def found(driver: int, target: str = target) -> int | None:
                return machines.victim(target, chance) if machines and target != "driver" else victim(driver, target)

            became = killed(file, out, spark, phase, after_s, found, target == "driver")
            if machines:
                machines.mend()
            code = start(file, out, spark, "--resume").wait()
            same = code == 0 and (out / "results.parquet").read_bytes() == whole
            failed += not same
            print(f"{number}: {target} while {phase}, after {after_s:.1f} s: {became}; resumed: {same}", flush=True)
            shutil.rmtree(out, ignore_errors=True)
    print(f"{given.count} kills, seed {given.seed}: {given.count - failed} of {given.count} resumed to the same bytes")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
