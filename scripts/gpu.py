#!/usr/bin/env python3
"""Everything that takes a machine with a GPU: step by step, and what came of it as a section of docs/gpus.md.

    pip install -e '.[cuda,dev]' -c constraints.txt
    python scripts/gpu.py                      the steps not done yet, then the section
    python scripts/gpu.py --minutes 9          as many of them as fit; call it again until none is left
    python scripts/gpu.py equal-kafka spark    these, done or not
    python scripts/gpu.py --list               what there is
    python scripts/gpu.py --rehearse           all of it on a CPU: small, the kernel interpreted; no page is written

A step is a process of its own that has to end within its minutes. It leaves a file in `--out` when it is done, or one
that says why it failed; one that was killed leaves nothing, and is begun again.
"""

import argparse
import gzip
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

import jax
import numpy as np

from quorisk.analysis import bench, files
from quorisk.kernels.engines import jax_engine, lanes, numba_engine
from quorisk.kernels.engines.gpu.kernel import How, Size
from quorisk.kernels.engines.gpu.switch import LONG_RUNS, SIZE, Switch
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import Points, pack
from quorisk.kernels.engines.tally import STEPS
from quorisk.kernels.model import Model
from quorisk.kernels.protocols import registry
from scripts import gpu_page
from scripts.validation.page import commit
from tests.kernels.engines import fuzz
from tests.support import ROOT, point_of

Way = Callable[[Job], np.ndarray]
"""Makes the runs of a job; their tally."""
PAGE, SWEEP = ROOT / "docs" / "gpus.md", ROOT / "configs" / "demo.toml"
LEAST_S = 60.0
"""Seconds that have to be left for a step to be begun."""
CORES = 2
MOST_STEPS = 200
"""Of a run of a variant: some never end, and the others of a batch wait for them."""
TURNS, TURN_S = 3, 5.0
"""How often each way has its turn, and for how long."""
_INTERPRETED = Size(programs=4, runs=128)
_SAME_RUNS = 1 << 20
"""Of the job that all ways make."""
_WARM_S = 60.0
"""Seconds in which lanes have got code of their own, or do without."""
_MOST_NAMES, _NAME_LENGTH = 6, 40
"""Of a profile."""
ASSIGNED = "Spark assigned GPU 0 to a task"
"""What the engine says where JAX does not see that GPU: so Spark did assign it."""


class Here(NamedTuple):
    """Where a step is done, and how."""

    out: Path
    rehearse: bool
    seconds: float = float("inf")
    """Until it has to have ended."""


class Step(NamedTuple):
    """Something to be done in one go."""

    name: str
    """What it does and, after a dash, the protocol that it does it with."""
    does: str
    minutes: float
    """At most."""


def equal(here: Here, protocol: str) -> dict[str, Any]:
    """Every variant, and random configurations while time is left, by XLA and by the kernel."""
    model, chance, start = registry.load(protocol), random.Random(f"{protocol} gpu"), time.monotonic()
    variants = [point_of(model, **{"max_steps": MOST_STEPS, **given}) for given in registry.cases(protocol).variants]
    drawn = (fuzz.random_point(model, chance) for _ in itertools.count())
    found, number = {name: fuzz.Findings() for name in (fuzz.OF_A_GPU, fuzz.JAX)}, 0
    for point in itertools.chain(variants, drawn):
        share = 0.8 if number < len(variants) else 0.5
        if time.monotonic() - start > share * here.seconds or (here.rehearse and number == 2):
            break
        made = fuzz.make_some(model, point, number, 300 if here.rehearse else fuzz.MOST_RUNS)
        for name, its in found.items() if made else ():
            its.look(fuzz.engines()[name], made, True)
        number += 1
        told = ", ".join(f"{name}: {len(its.differ)} differ" for name, its in found.items())
        print(f"configuration {number}, of {len(variants)} variants and then at random; {told}", flush=True)
    made_of = {"variants": min(number, len(variants)), "of_variants": len(variants)}
    return made_of | {"engines": {name: vars(its) for name, its in found.items()}}


def ways(model: Model, points: Points, rehearse: bool) -> dict[str, Way]:
    """How runs are made, ready to run."""
    size, how = (_INTERPRETED, How(interpret=True)) if rehearse else (SIZE, How())
    switch = Switch(model, points, size, how)
    switch.prepare()
    kernel = switch.kernel

    def by_xla(job: Job) -> np.ndarray:
        """In jobs so short that none goes over to the kernel."""
        starts = range(job.first_run, job.first_run + job.num_runs, LONG_RUNS // 2)
        jobs = [Job(0, start, min(LONG_RUNS // 2, job.first_run + job.num_runs - start)) for start in starts]
        return jax_engine.simulate(model, points, jobs, 0).sum(0)

    def by_kernel(job: Job) -> np.ndarray:
        """Whatever share of the runs is to be repeated: of a few runs one may be too many for the engine."""
        switch.kernel = kernel
        return switch.by_kernel(0, job, jax_engine.devices())

    return {
        "numba, two cores": lambda job: numba_engine.simulate(model, points, [job], 0, CORES)[0],
        "lanes, two cores": lambda job: lanes.simulate(model, points, [job], 0, CORES, later=1 << 40)[0],
        "XLA": by_xla,
        "kernel": by_kernel,
    }


def speed(here: Here, protocol: str) -> dict[str, Any]:
    """All ways by turns, and a job that all of them make."""
    model, points = _benchmark(protocol)
    by, job = ways(model, points, here.rehearse), Job(0, 0, 300 if here.rehearse else _SAME_RUNS)
    sums = {name: way(job) for name, way in by.items()}
    switch = lanes.switches.get(model, points, 0)
    deadline = time.monotonic() + (1.0 if here.rehearse else _WARM_S)
    while switch.kernel is None and switch.why_not is None and time.monotonic() < deadline:
        by["lanes, two cores"](job)
    runs = {name: enough(way, 0.1 if here.rehearse else TURN_S) for name, way in by.items()}
    found: dict[str, list[float]] = {name: [] for name in by}
    for _ in range(1 if here.rehearse else TURNS):
        for name, way in by.items():
            tally, seconds = timed(way, Job(0, 0, runs[name]))
            found[name].append(float(tally[STEPS]) / seconds)
            print(f"{name}: {found[name][-1]:.4g} steps/s", flush=True)
    devices, operations = jax_engine.devices(), jax_engine.step_cost(model, points)[1]
    limits = bench.LIMITS.get(devices[0].device_kind)
    return {
        "same": all(np.array_equal(each, sums["numba, two cores"]) for each in sums.values()),
        "steps_per_s": found,
        "most_by_operations": limits and len(devices) * limits.operations_per_s / operations,
    }


def _benchmark(protocol: str) -> tuple[Model, Points]:
    experiment = bench.random_runs(protocol)
    return experiment.model, pack(experiment.model, [experiment.points[0].point])


def enough(way: Way, seconds: float) -> int:
    """How many runs take about so long, once all is compiled."""
    way(Job(0, 0, 1))
    runs = 1 << 8
    while (took_s := timed(way, Job(0, 0, runs))[1]) < seconds / 4:
        runs *= 2
    return max(1, round(runs * seconds / took_s))


def timed(way: Way, job: Job) -> tuple[np.ndarray, float]:
    start = time.perf_counter()
    return way(job), time.perf_counter() - start


def profile(here: Here, protocol: str) -> dict[str, Any]:
    """What a device does while XLA and the kernel make runs."""
    found, by = {}, ways(*_benchmark(protocol), here.rehearse)
    for name in ("XLA", "kernel"):
        job = Job(0, 0, enough(by[name], 0.05 if here.rehearse else 1.0))
        folder = here.out / "profiles" / f"{protocol}-{name}-{os.getpid()}"
        with jax.profiler.trace(str(folder)):
            seconds = timed(by[name], job)[1]
        [trace] = folder.rglob("*.trace.json.gz")
        found[name] = spent(json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"], seconds)
    return {"ways": found}


def spent(events: Sequence[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """For which share of the time GPUs were busy, and the names that took most of that, with their shares.

    Where a trace has no GPU, all of its threads count, but for what Python did.
    """
    meta = [each for each in events if each.get("ph") == "M"]
    gpus = {each["pid"] for each in meta if each["name"] == "process_name" and "GPU" in each["args"]["name"]}
    threads = {
        (each["pid"], each["tid"]): each["args"]["name"]
        for each in meta
        if each["name"] == "thread_name" and (not gpus or each["pid"] in gpus)
    }
    streams = {place for place, name in threads.items() if "Stream" in name} or threads.keys()
    took = Counter[str]()
    for each in events:
        if each.get("ph") == "X" and (each["pid"], each["tid"]) in streams and not each["name"].startswith("$"):
            took[each["name"][:_NAME_LENGTH]] += each["dur"] / 1e6
    total = took.total()
    if not total:
        raise RuntimeError("the profile has no events: can JAX find CUPTI?")
    top = [(name, part / total) for name, part in took.most_common(_MOST_NAMES)]
    return {"busy": total / seconds / max(1, len(gpus)), "top": top}


def spark(here: Here, _: str) -> dict[str, Any]:
    """The same sweep on the CPU and on a GPU that Spark assigns; in a rehearsal, to an engine that leaves it alone.

    Spark's local mode assigns nothing: its tasks would wait for ever.
    """
    import pyarrow.parquet as pq

    out, runs, script = here.out, 2000 if here.rehearse else 1_000_000, here.out / "gpus.sh"
    ask = "echo 0" if here.rehearse else "nvidia-smi --query-gpu=index --format=csv,noheader"
    script.write_text(f'#!/bin/sh\necho "{{\\"name\\": \\"gpu\\", \\"addresses\\": [\\"$({ask} | head -1)\\"]}}"\n')
    script.chmod(0o755)
    master = "local-cluster[1,1,4096]"
    amounts = {"worker.resource.gpu.amount": "1", "executor.resource.gpu.amount": "1", "task.resource.gpu.amount": "1"}
    conf = {"worker.resource.gpu.discoveryScript": str(script.resolve()), "executor.memory": "2g", **amounts}
    given = ["--master", master, *(f"--conf=spark.{key}={value}" for key, value in conf.items())]
    if here.rehearse and ASSIGNED not in (said := _sweep(out / "asked", "jax", 20, *given)[1]):
        raise RuntimeError(f"Spark assigned no GPU: {said}")
    gpu_s, said = _sweep(out / "on-gpu", "numba" if here.rehearse else "jax", runs, *given)
    cpu_s, said_too = _sweep(out / "on-cpu", "lanes", runs)
    tables = [out / name / "results.parquet" for name in ("on-gpu", "on-cpu")]
    if not all(table.exists() for table in tables):
        raise RuntimeError(f"no results: {said}; {said_too}")
    on_gpu, on_cpu = (pq.read_table(table).drop_columns(["engines"]) for table in tables)
    points = len(bench.config.load(SWEEP).points)
    told = {"master": master, "gpus": "0", "runs": runs, "points": points, "gpu_s": gpu_s, "cpu_s": cpu_s}
    return told | {"same": on_gpu.equals(on_cpu)}


def _sweep(out: Path, engine: str, runs: int, *options: str) -> tuple[float, str]:
    """Seconds of a sweep, and the last line that it said."""
    settings = [f"--set=run.runs={runs}", f"--set=run.engine={engine}"]
    start = time.perf_counter()
    shutil.rmtree(out, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, "-m", "quorisk", "run", str(SWEEP), "--out", str(out), *settings, *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
    )
    return time.perf_counter() - start, (done.stderr.strip().splitlines() or [""])[-1]


WORK: dict[str, tuple[Callable[[Here, str], dict[str, Any]], str, float]] = {
    "equal": (equal, "the XLA engine and the kernel make the generic engine's runs", 9),
    "speed": (speed, "XLA, the kernel and two CPU cores, by turns", 9),
    "profile": (profile, "what the GPU's time goes to", 6),
    "spark": (spark, "a sweep on Spark, which assigns a GPU to its tasks, and one on the CPU", 9),
}
EVERY = [
    Step(f"{what}-{name}" if name else what, does, minutes)
    for what, (_, does, minutes) in WORK.items()
    for name in (registry.names() if what != "spark" else [""])
]


def left(out: Path, steps: Sequence[Step]) -> list[Step]:
    """The steps that are not done; those that failed come last."""
    found = {step: gpu_page.read(out, step.name) for step in steps}
    again = [step for step, its in found.items() if "failed" in its]
    return [step for step, its in found.items() if not its] + again


def do(name: str, here: Here) -> dict[str, Any]:
    """What a step comes to, in this process."""
    what, _, protocol = name.partition("-")
    devices = jax_engine.devices()
    if not here.rehearse and devices[0].platform != "gpu":
        raise RuntimeError(f"JAX sees no GPU, but {devices[0].device_kind}")
    machine = f"{len(devices)} × {devices[0].device_kind}, JAX {jax.__version__}, {os.cpu_count()} cores"
    return {"machine": machine, "rehearsed": here.rehearse} | WORK[what][0](here, protocol)


def keep(out: Path, name: str, found: Mapping[str, Any]) -> None:
    """Leaves what a step came to."""
    about = {"step": name, "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", "commit": commit()}
    files.write(out / f"{name}.json", json.dumps(about | dict(found), indent=1).encode(), "out")


def apart(command: Sequence[str], seconds: float) -> str:
    """Runs a process, which leaves none of its own behind; why it failed, or nothing."""
    with subprocess.Popen(command, process_group=0) as running:
        try:
            code = running.wait(seconds)
        except subprocess.TimeoutExpired:
            return f"it took longer than {seconds:.0f} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    return f"it ended with code {code}" if code else ""


def worked(name: str, here: Here) -> None:
    """Does a step and leaves what it came to, or why it failed; raises SystemExit if it did."""
    try:
        keep(here.out, name, do(name, here))
    except Exception as error:
        traceback.print_exc()
        said = str(error).splitlines()[:1] or [""]
        keep(here.out, name, {"failed": f"{type(error).__name__}: {said[0]}", "rehearsed": here.rehearse})
        raise SystemExit(1) from None


def work(steps: Sequence[Step], here: Here, until: float, command: Sequence[str]) -> list[str]:
    """Does steps one after another, each by the command with its name and seconds, until `time.monotonic()` is `until`.
    Returns a line for each that failed."""
    failed = []
    for step in steps:
        seconds = min(60 * step.minutes, until - time.monotonic())
        if seconds < LEAST_S:
            break
        print(f"{step.name}: {step.does}; {seconds:.0f} s at most", flush=True)
        (here.out / f"{step.name}.json").unlink(missing_ok=True)
        if why := apart([*command, step.name, "--work", str(0.9 * seconds)], seconds):
            if not gpu_page.read(here.out, step.name):
                keep(here.out, step.name, {"failed": why, "rehearsed": here.rehearse})
            failed.append(f"{step.name}: {gpu_page.read(here.out, step.name)['failed']}")
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help="these, done or not")
    parser.add_argument("--out", type=Path, help="where results are (results/gpu; results/gpu-rehearsal)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no step, and end all, by then")
    parser.add_argument("--rehearse", action="store_true", help="small, on the CPU")
    parser.add_argument("--list", action="store_true", help="say what is done, and what is left")
    parser.add_argument("--work", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := sorted({*given.steps} - {step.name for step in EVERY}):
        parser.error(f"{unknown[0]}: one of {', '.join(step.name for step in EVERY)}")
    out: Path = given.out or ROOT / "results" / ("gpu-rehearsal" if given.rehearse else "gpu")
    out.mkdir(parents=True, exist_ok=True)
    here = Here(out, given.rehearse, given.work or float("inf"))
    if given.rehearse:
        os.environ["JAX_PLATFORMS"] = "cpu"
    if given.work:
        return worked(given.steps[0], here)
    if given.list:
        for step in EVERY:
            print(f"{step.name:20} {'left' if step in left(out, EVERY) else 'done'}  {step.does}")
        return None
    command = [sys.executable, __file__, "--out", str(out), *(["--rehearse"] if given.rehearse else [])]
    chosen = [step for step in EVERY if step.name in given.steps] or left(out, EVERY)
    failed = work(chosen, here, time.monotonic() + 60 * given.minutes, command)
    results = {step.name: gpu_page.read(out, step.name) for step in EVERY}
    section = gpu_page.section(results)
    if given.rehearse:
        print(section)
    else:
        files.write(PAGE, gpu_page.placed(PAGE.read_text("utf-8"), section).encode(), "docs")
    waiting = [step.name for step in left(out, EVERY)]
    print(f"Left: {', '.join(waiting)}" if waiting else "All steps are done.", *failed, sep="\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
