"""What the steps of scripts/gpu.py do, each in a process of its own that has JAX. Rehearsed, they are small."""

import gzip
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from quorisk.analysis import bench
from quorisk.kernels.engines import jax_engine, lanes, numba_engine
from quorisk.kernels.engines.gpu.kernel import How, Size
from quorisk.kernels.engines.gpu.switch import LONG_RUNS, SIZE, Switch
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import Points, pack
from quorisk.kernels.engines.tally import STEPS
from quorisk.kernels.model import Model
from quorisk.kernels.protocols import registry
from tests.kernels.engines import fuzz
from tests.support import ROOT, point_of

Way = Callable[[Job], np.ndarray]
"""Makes the runs of a job; their tally."""
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
SWEEP = ROOT / "configs" / "demo.toml"
QUORISK = sys.executable, "-c", "from quorisk.command.main import main; main()"
ASSIGNED = "Spark assigned GPU 0 to a task"
"""What the engine says where JAX does not see that GPU: so Spark did assign it."""


def do(name: str, out: Path, rehearse: bool, seconds: float) -> dict[str, Any]:
    """What a step comes to; it ends in so many seconds. Raises RuntimeError where there is no GPU."""
    what, _, protocol = name.partition("-")
    device = jax_engine.devices()[0]  # loads NVIDIA's plugin, which `count` needs as well
    if what == "count":
        return count(rehearse)
    if not rehearse and device.platform != "gpu":
        raise RuntimeError(f"JAX sees no GPU, but {device.device_kind}")
    if what == "spark":
        return spark(out, rehearse)
    if what == "equal":
        return equal(protocol, rehearse, seconds)
    return {"speed": speed, "profile": partial(profile, out)}[what](protocol, rehearse)


def equal(protocol: str, rehearse: bool, seconds: float) -> dict[str, Any]:
    """Every variant, and random configurations while time is left, by XLA and by the kernel."""
    model, chance, start = registry.load(protocol), random.Random(f"{protocol} gpu"), time.monotonic()
    variants = [point_of(model, **{"max_steps": MOST_STEPS, **given}) for given in registry.cases(protocol).variants]
    drawn = (fuzz.random_point(model, chance) for _ in itertools.count())
    found, number = {name: fuzz.Findings() for name in (fuzz.OF_A_GPU, fuzz.JAX)}, 0
    for point in itertools.chain(variants, drawn):
        share = 0.8 if number < len(variants) else 0.5
        if time.monotonic() - start > share * seconds or (rehearse and number == 2):
            break
        made = fuzz.make_some(model, point, number, 300 if rehearse else fuzz.MOST_RUNS)
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

    def by_lanes(job: Job) -> np.ndarray:
        return lanes.simulate(model, points, [job], 0, CORES, later=1 << 40)[0]

    def by_kernel(job: Job) -> np.ndarray:
        """Whatever share of the runs is to be repeated: of a few runs one may be too many for the engine."""
        switch.kernel = kernel
        return switch.by_kernel(0, job, jax_engine.devices())

    return {
        "numba, two cores": lambda job: numba_engine.simulate(model, points, [job], 0, CORES)[0],
        "lanes, two cores": by_lanes,
        "XLA": by_xla,
        "kernel": by_kernel,
    }


def speed(protocol: str, rehearse: bool) -> dict[str, Any]:
    """All ways by turns, and a job that all of them make."""
    experiment = bench.random_runs(protocol)
    model, points = experiment.model, pack(experiment.model, [experiment.points[0].point])
    by, job = ways(model, points, rehearse), Job(0, 0, 300 if rehearse else _SAME_RUNS)
    sums, first_s = {}, {}
    for name, way in by.items():
        sums[name], first_s[name] = timed(way, job)
        print(f"{name}: {first_s[name]:.1f} s for the first {job.num_runs:,} runs", flush=True)
    switch = lanes.switches.get(model, points, 0)
    deadline = time.monotonic() + (1.0 if rehearse else _WARM_S)
    while switch.kernel is None and switch.why_not is None and time.monotonic() < deadline:
        by["lanes, two cores"](job)
    runs = {name: enough(way, 0.1 if rehearse else TURN_S) for name, way in by.items()}
    found: dict[str, list[float]] = {name: [] for name in by}
    for _ in range(1 if rehearse else TURNS):
        for name, way in by.items():
            tally, seconds = timed(way, Job(0, 0, runs[name]))
            found[name].append(float(tally[STEPS]) / seconds)
            print(f"{name}: {found[name][-1]:.4g} steps/s", flush=True)
    num_bytes, operations = jax_engine.step_cost(model, points)
    devices = jax_engine.devices()
    limits = bench.LIMITS.get(devices[0].device_kind)
    return {
        "same": all(np.array_equal(each, sums["numba, two cores"]) for each in sums.values()),
        "runs": runs,
        "first_s": first_s,
        "steps_per_s": found,
        "lanes": switch.why_not or "a kernel" if switch.kernel is None else str(switch.kernel.shape),
        "most_by_bytes": limits and len(devices) * limits.bytes_per_s / num_bytes,
        "most_by_operations": limits and len(devices) * limits.operations_per_s / operations,
    }


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


def profile(out: Path, protocol: str, rehearse: bool) -> dict[str, Any]:
    """What a device does while XLA and the kernel make runs."""
    experiment = bench.random_runs(protocol)
    model, points = experiment.model, pack(experiment.model, [experiment.points[0].point])
    found = {}
    for name, way in ways(model, points, rehearse).items():
        if name not in ("XLA", "kernel"):
            continue
        job = Job(0, 0, enough(way, 0.05 if rehearse else 1.0))
        folder = out / "profiles" / f"{protocol}-{name}-{os.getpid()}"
        with jax.profiler.trace(str(folder)):
            seconds = timed(way, job)[1]
        [trace] = folder.rglob("*.trace.json.gz")
        events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
        found[name] = {"seconds": seconds, "runs": job.num_runs} | spent(events, seconds)
        print(f"{name}: {found[name]}", flush=True)
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


def count(rehearse: bool) -> dict[str, Any]:
    """What scripts/gpu_kernels.py counts; in a rehearsal, only what Triton is given, since NVIDIA's tools may lack."""
    from scripts import gpu_kernels

    if not rehearse:
        return {"kernels": {name: gpu_kernels.counted(name)._asdict() for name in registry.names()}}
    given = {}
    for name in registry.names():
        experiment = bench.random_runs(name)
        given[name] = len(gpu_kernels.triton_ir(gpu_kernels.prepared(experiment.model, experiment.points[0].point)))
        print(f"{name}: {given[name]:,} bytes for Triton", flush=True)
    return {"bytes": given}


def spark(out: Path, rehearse: bool) -> dict[str, Any]:
    """The same sweep on the CPU and on a GPU that Spark assigns; in a rehearsal, to an engine that leaves it alone.

    Spark's local mode assigns nothing: its tasks would wait for ever.
    """
    import pyarrow.parquet as pq

    runs, script = 2000 if rehearse else 1_000_000, out / "gpus.sh"
    ask = "echo 0" if rehearse else "nvidia-smi --query-gpu=index --format=csv,noheader"
    script.write_text(f'#!/bin/sh\necho "{{\\"name\\": \\"gpu\\", \\"addresses\\": [\\"$({ask} | head -1)\\"]}}"\n')
    script.chmod(0o755)
    master = "local-cluster[1,1,4096]"
    amounts = {"worker.resource.gpu.amount": "1", "executor.resource.gpu.amount": "1", "task.resource.gpu.amount": "1"}
    conf = {"worker.resource.gpu.discoveryScript": str(script.resolve()), "executor.memory": "2g", **amounts}
    given = ["--master", master, *(f"--conf=spark.{key}={value}" for key, value in conf.items())]
    if rehearse and ASSIGNED not in (said := _sweep(out / "asked", "jax", 20, *given)[1]):
        raise RuntimeError(f"Spark assigned no GPU: {said}")
    gpu_s, said = _sweep(out / "on-gpu", "numba" if rehearse else "jax", runs, *given)
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
        [*QUORISK, "run", str(SWEEP), "--out", str(out), *settings, *options],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
    )
    print(f"{engine}: {runs:,} runs of each point, code {done.returncode}", flush=True)
    return time.perf_counter() - start, (done.stderr.strip().splitlines() or [""])[-1]
