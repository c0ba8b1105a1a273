#!/usr/bin/env python3
"""Kills sweeps at random moments and resumes them: the results have to be those of an undisturbed sweep, to the byte.

    scripts/robustness/kill_sweeps.py --count 100 --seed 1

What is killed is the driver, its Java or one of the Python workers, whenever in the sweep's life: while it plans, runs,
merges or draws. A sweep that survives (Spark starts workers anew) is compared as it is.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
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
TARGETS = ("driver", "java", "worker")


def start(file: Path, out: Path, *options: str) -> "subprocess.Popen[bytes]":
    """A sweep in a process group of its own."""
    command = [sys.executable, "-m", "quorisk", "run", str(file), "--out", str(out), "--master", "local[2,4]", *options]
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


def killed(file: Path, out: Path, target: str, after_s: float) -> str:
    """Runs a sweep and kills a part of it; says what became of it."""
    process = start(file, out)
    time.sleep(after_s)
    found = victim(process.pid, target)
    if process.poll() is not None or found is None:
        process.wait()
        return "ended before"
    with suppress(ProcessLookupError):
        os.kill(found, signal.SIGKILL)
    if target == "driver":
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return f"exit {process.wait()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance, failed = random.Random(given.seed), 0
    with TemporaryDirectory() as temporary:
        file = Path(temporary, "topic.toml")
        file.write_text(FILE)
        started = time.monotonic()
        start(file, Path(temporary, "whole")).wait()
        took_s = time.monotonic() - started
        whole = (Path(temporary, "whole") / "results.parquet").read_bytes()
        for number in range(given.count):
            out = Path(temporary, f"out{number}")
            target, after_s = TARGETS[number % len(TARGETS)], chance.uniform(0.0, took_s)
            became = killed(file, out, target, after_s)
            code = start(file, out, "--resume").wait()
            same = code == 0 and (out / "results.parquet").read_bytes() == whole
            failed += not same
            print(f"{number}: {target} after {after_s:.1f} s of {took_s:.1f}: {became}; resumed: {same}", flush=True)
            shutil.rmtree(out, ignore_errors=True)
    print(f"{given.count} kills, seed {given.seed}: {given.count - failed} of {given.count} resumed to the same bytes")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
