#!/usr/bin/env python3
"""Kills sweeps at random moments and resumes them: the results have to be those of an undisturbed sweep, to the byte.

    scripts/robustness/kill_sweeps.py --count 100 --seed 1
    scripts/robustness/kill_sweeps.py --count 20 --seed 1 --cluster
    scripts/robustness/kill_sweeps.py --count 20 --seed 1 --heads

What is killed is the driver, its Java or one of the Python workers, at a random moment while the sweep plans, runs,
merges or draws, in turn; the driver dies alone, or all that it started with it. With --cluster it is the driver, an
executor or a worker of a cluster on this machine. A sweep that survives, because Spark starts again what was killed,
has to have the results at once. Counted are kills alone: a sweep that had ended before there was anything to kill is
made again. SIGINT ends it after the kill that is under way.
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
from typing import NamedTuple

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
runs = 150000
[grid]
"rates.broker_crash" = [0.1, 1.0]
"variant.persist_cursor_before_delete" = [true, false]
"""
HEADS = """
protocol = "compaction"
[model]
messages = 4
compactions = 4
keys = 2
values = 2
max_crashes = 2
[variant]
persist_cursor_before_delete = false
[run]
runs = 1000000
method = "head"
precision = 2e-5
[grid]
"rates.broker_crash" = [1e-3, 1e-5]
"""
"""Heads that runs leave, and so many looks at those runs that they come in several rounds."""
PLANNING, RUNNING, MERGING, DRAWING = "planning", "running", "merging", "drawing"
PHASES = {PLANNING: "started", RUNNING: "to run: ", MERGING: "computed", DRAWING: "merged", "": "finished"}
"""What a sweep does after which word of its log."""
EVERY = (PLANNING, RUNNING, MERGING, DRAWING)
RESULTS = "results.parquet"
VICTIMS = {"driver": EVERY, "java": EVERY[:3], "python": (RUNNING, MERGING)}
CLUSTER_VICTIMS = {"driver": EVERY, "executor": (RUNNING, MERGING), "worker": EVERY}
"""What there is to kill, and when."""


class Kill(NamedTuple):
    """What a kill hit."""

    phase: str
    """When it did: later than was meant where there was nothing to kill at first."""
    code: int
    """How the sweep exited."""


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


def current(out: Path) -> str | None:
    """The phase that a sweep is in, by its log."""
    with suppress(OSError):
        text = (out / "quorisk.log").read_text()
        return next((phase for phase, word in reversed(PHASES.items()) if word in text), None)
    return None


def products(out: Path) -> set[str]:
    """The files that a sweep leaves behind. How many tasks share a file depends on how fast they are."""
    return {str(path.relative_to(out)) for path in out.rglob("*") if path.parent.name != "tasks"}


def killed(
    file: Path,
    out: Path,
    spark: Sequence[str],
    phase: str,
    after_s: float,
    find: Callable[[int], int | None],
    group: bool,
) -> Kill | None:
    """Runs a sweep and kills a part of it so many seconds after a phase began, if it has not ended by then."""
    process, order = start(file, out, spark), list(PHASES)
    while process.poll() is None and ((now := current(out)) is None or order.index(now) < order.index(phase)):
        time.sleep(0.01)
    time.sleep(after_s)
    found = None
    while process.poll() is None and (found := find(process.pid)) is None:
        time.sleep(0.01)  # it is yet to start
    now = current(out)
    if process.poll() is not None or found is None or not now:
        process.wait()
        return None
    with suppress(ProcessLookupError):
        os.kill(found, signal.SIGKILL)
    if group:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return Kill(now, process.wait())


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
    parser.add_argument(
        "--heads", action="store_true", help="with losses too rare to count, and runs from heads' exits"
    )
    given = parser.parse_args()
    chance, kills, failed, stops = random.Random(given.seed), 0, 0, list[int]()
    signal.signal(signal.SIGINT, lambda number, frame: stops.append(number))
    with TemporaryDirectory() as temporary, ExitStack() as stack:
        file, place = Path(temporary, "topic.toml"), Path(temporary)
        file.write_text(HEADS if given.heads else FILE)
        machines = Cluster(stack, place) if given.cluster else None
        spark = ["--master", "local[2,4]"]
        if machines:
            spark = ["--master", machines.url, "--conf", "spark.driver.host=127.0.0.1"]
        start(file, place / "whole", spark).wait()
        whole, left, at = (place / "whole" / RESULTS).read_bytes(), products(place / "whole"), times(place / "whole")
        meant = [(who, phase) for who, when in (CLUSTER_VICTIMS if machines else VICTIMS).items() for phase in when]
        chance.shuffle(meant)
        for number in range(2 * given.count + 4):
            if kills == given.count or stops:
                break
            out, (target, phase) = place / f"out{number}", meant[number % len(meant)]
            after_s = chance.uniform(0.0, at[list(PHASES)[1 + EVERY.index(phase)]] - at[phase])

            def found(driver: int, target: str = target) -> int | None:
                return machines.victim(target, chance) if machines and target != "driver" else victim(driver, target)

            kill = killed(file, out, spark, phase, after_s, found, target == "driver" and chance.random() < 0.5)
            if machines:
                machines.mend()
            if not kill and current(out) == "":  # the first sweep may have compiled what the others find compiled
                at = times(out)
            same = kill is None or kill.code != 0 or (out / RESULTS).read_bytes() == whole
            code = start(file, out, spark, "--resume").wait()
            same = same and code == 0 and (out / RESULTS).read_bytes() == whole and products(out) == left
            failed, kills = failed + (not same), kills + (kill is not None)
            became = f"{target} while {kill.phase}: exit {kill.code}" if kill else f"{target} while {phase}: not killed"
            print(f"{number}: {became}, after {after_s:.1f} s; resumed: {same}", flush=True)
            if not same:
                print((place / "output").read_text()[-2000:], file=sys.stderr)
            shutil.rmtree(out, ignore_errors=True)
    made = f"{kills:,} kills" if kills == given.count else f"{kills:,} of {given.count:,} kills"
    print(f"{made}, seed {given.seed}: {failed} not resumed to the same bytes")
    sys.exit(failed > 0 or kills < (1 if stops else given.count))


if __name__ == "__main__":
    main()
