"""Kills sweeps at random moments and resumes them: the results have to be those of an undisturbed sweep, to the byte.

What is killed is the driver, its Java or one of the Python workers, at a random moment while the sweep plans, runs,
merges or draws, in turn; the driver dies alone, or all that it started with it. On a cluster it is the driver, an
executor or a worker. A sweep that survives, because Spark starts again what was killed, has to have the results at
once. Counted are kills alone: a sweep that had ended before there was anything to kill is made again.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.sparkjobs import standalone
from tests.sparkjobs.listening import family
from tests.support import SMALL_FILE
from tests.validation.page import ROOT, Check

FILE = f"""{SMALL_FILE}
[run]
runs = 150000
[grid]
"rates.broker_crash" = [0.1, 1.0]
"variant.persist_cursor_before_delete" = [true, false]
"""
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


def victim(driver: int, target: str) -> int | None:
    """The process to kill, if there is one yet."""
    if target == "driver":
        return driver
    java = next((pid for pid in family(driver)[1:] if "java" in _name(pid)), None)
    if target == "java" or java is None:
        return java
    _, *workers = family(java)
    return workers[-1] if workers else None


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
        self.url = stack.enter_context(standalone.master(folder)).url
        self.workers = [self._worker(), self._worker()]

    def _worker(self) -> standalone.Part:
        self._number += 1
        return self._stack.enter_context(standalone.worker(self._folder, self._number, self.url, 1))

    def victim(self, target: str, chance: random.Random) -> int | None:
        """The Java of a worker, or of one of its executors, if there is one yet."""
        worker = chance.choice(self.workers).process.pid
        return worker if target == "worker" else next(iter(family(worker)[1:]), None)

    def mend(self) -> None:
        """Starts a worker in the place of one that was killed."""
        for i, worker in enumerate(self.workers):
            if worker.process.poll() is not None:
                standalone.end(worker.process, signal.SIGKILL)
                self.workers[i] = self._worker()


def kills(count: int, seed: int, on_cluster: bool = False) -> Check:
    """Kills so many sweeps on one machine, or on a cluster that is started for it."""
    chance, same_bytes = random.Random(seed), dict[tuple[str, str], Counter[str]]()
    with TemporaryDirectory() as temporary, ExitStack() as stack:
        file, place = Path(temporary, "topic.toml"), Path(temporary)
        file.write_text(FILE)
        machines = Cluster(stack, place) if on_cluster else None
        spark = ["--master", "local[2,4]"]
        if machines:
            spark = ["--master", machines.url, "--conf", "spark.driver.host=127.0.0.1"]
        start(file, place / "whole", spark).wait()
        whole, left, at = (place / "whole" / RESULTS).read_bytes(), products(place / "whole"), times(place / "whole")
        meant = [(who, phase) for who, when in (CLUSTER_VICTIMS if machines else VICTIMS).items() for phase in when]
        chance.shuffle(meant)
        failed = 0
        for number in range(2 * count + 4):
            if sum(each["kills"] for each in same_bytes.values()) == count:
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
            failed += not same
            if kill:
                counts = same_bytes.setdefault((target, kill.phase), Counter())
                counts.update(kills=1, survived=kill.code == 0, same=same)
            became = f"{target} while {kill.phase}: exit {kill.code}" if kill else f"{target} while {phase}: not killed"
            print(f"{number}: {became}, after {after_s:.1f} s; resumed: {same}", flush=True)
            if not same:
                print((place / "output").read_text()[-2000:], file=sys.stderr)
            shutil.rmtree(out, ignore_errors=True)
    return _check(on_cluster, same_bytes, f"of {count:,} kills, seed {seed}: {failed} not resumed", failed, count)


def _check(
    on_cluster: bool, found: Mapping[tuple[str, str], Counter[str]], told: str, failed: int, count: int
) -> Check:
    made = sum(each["kills"] for each in found.values())
    here = (
        "Sweeps on one machine, whose driver, Java process or Python worker is killed (SIGKILL) at a random moment, "
        "while they plan, run, merge or draw. A driver dies alone, or all that it started with it. "
    )
    there = "The same on a Spark cluster of a master and two workers: the driver, an executor or a worker is killed. "
    return Check(
        f"Damage: killed sweeps{' on a cluster' if on_cluster else ''}",
        f"{there if on_cluster else here}With `--resume` they have to give the results of an undisturbed sweep, to the "
        "byte, and the same figures; those that survive, because Spark starts again what was killed, have to have them "
        "at once.",
        ("killed", "while", "kills", "sweeps that survived", "the same bytes"),
        [(*key, its["kills"], its["survived"], its["same"]) for key, its in sorted(found.items())],
        f"{made:,} {told} to the same bytes.",
        failed == 0 and made == count,
    )
