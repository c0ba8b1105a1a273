#!/usr/bin/env python3
"""Where a step's time goes in a compiled kernel: instructions, cycles, and what parts of it cost. For docs/peak.md.

    python scripts/peak.py                     the benchmarks' bookkeeper, kafka and compaction
    python scripts/peak.py --mca llvm-mca-19   adds what LLVM's model of a processor says of the loop

Instructions are counted in the assembly of the loop that steps runs; times are measured, and cycles are times by the
clock that a chain of multiplications of known latency shows. A part's cost is what the kernel takes less without it:
such a kernel makes other runs, so only its cost a step means something.
"""

import argparse
import ctypes
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest import mock

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

sys.path.insert(0, str(Path(__file__).parent.parent))

from quorisk.analysis import bench
from quorisk.kernels.engines import numba_engine, philox
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.lanes import build
from quorisk.kernels.engines.lanes.parts import choice
from quorisk.kernels.engines.lanes.runs import BATCH_RUNS
from quorisk.kernels.engines.lanes.switch import Switch
from quorisk.kernels.engines.lanes.vector import kernel as vector
from quorisk.kernels.engines.points import Point, pack, params_at
from quorisk.kernels.engines.specialized.plan import FIXED_COLUMNS
from quorisk.kernels.engines.specialized.traced import Shape
from quorisk.kernels.model import Model
from quorisk.kernels.ops import as_int64
from quorisk.kernels.tracing.machine import Value

STEPS = FIXED_COLUMNS.index("steps")
RUNS = 1 << 14
REPETITIONS = 12
SELDOM = ("drawn", "settle", "doubt", "pass", "row", "choose", "entry", "done")
"""Blocks that are not part of every step of every lane."""
WIDTH = 8
"""Instructions that the processor can begin a cycle: AMD's Zen 5. Its vector units begin 4."""
VECTOR_WIDTH = 4
_MULTIPLICATIONS = 100_000


class Part(NamedTuple):
    """What can be left out of a kernel."""

    name: str
    without: Callable[[], Any]
    """A context in which kernels are made without it."""
    timed: bool = True
    loss: bool = True


def _cheap(run: Any, step: Any, other: int, *_: Any) -> tuple[Any, ...]:
    mixed = (run + (step + other) * np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xD6E8FEB86659FD93)
    low = np.uint64(0xFFFFFFFF)
    return mixed >> 32, mixed & low, mixed >> 16 & low, mixed >> 24 & low


@contextmanager
def _no_philox() -> Iterator[None]:
    with mock.patch.object(philox, "philox", lambda c0, c1, c2, c3, k0, k1: _cheap(c0, c2, 1)):
        yield


@contextmanager
def _no_logarithm() -> Iterator[None]:
    with mock.patch.object(philox, "minus_log2", lambda uniform: as_int64(uniform >> np.uint64(31))):
        yield


@contextmanager
def _no_search_for_a_bit() -> Iterator[None]:
    """The lowest instance that is enabled is taken."""

    def lowest(builder: Any, live: Any, mask: Any, rest: Any, weight: Any) -> tuple[Any, Any]:
        value = Value(builder, mask)
        return (value & (0 - value)).value, ir.Constant(rest.type, [0] * rest.type.count)

    with mock.patch.object(choice, "draw_bit", lowest):
        yield


@contextmanager
def _short_rows() -> Iterator[None]:
    """A row has the number of steps alone: LLVM leaves out whatever only the others ask for."""
    with mock.patch.object(vector.VectorKernel, "_columns", lambda _, row: [row["step"]]):
        yield


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


PARTS = (
    Part("nothing", _as_it_is),
    Part("Philox", _no_philox),
    Part("the logarithm of the wait", _no_logarithm),
    Part("time: the wait, its logarithm, its division", _as_it_is, timed=False),
    Part("finding the bit of the instance drawn", _no_search_for_a_bit),
    Part("rows but for one column, and what only they ask for", _short_rows),
    Part("losses of messages", _as_it_is, loss=False),
)


class Kernel(NamedTuple):
    """A kernel to be measured."""

    run: Callable[[], float]
    """Makes RUNS runs; the number of their steps."""
    assembly: str


def made(model: Model, point: Point, shape: Shape, part: Part) -> Kernel:
    """The kernel of a point without a part."""
    if not part.loss:
        point = point._replace(message_loss=0.0)
    points = pack(model, [point])
    params = params_at(model, points, 0)
    with TemporaryDirectory() as folder, ExitStack() as stack:
        stack.enter_context(mock.patch.object(build, "folder", return_value=Path(folder)))
        stack.enter_context(part.without())
        kernel = build.build(model, points, 0, params, part.timed, shape)
        assembly = build.assembly(model, points, 0, params, part.timed, shape)
    width = 1 if part.without is _short_rows else kernel.row_words
    scratch, rows = np.empty(kernel.scratch_words, np.int64), np.empty((BATCH_RUNS, width), np.int64)

    def run() -> float:
        steps = 0
        for first_run in range(0, RUNS, BATCH_RUNS):
            losses = points.losses.ctypes.data
            kernel.run(0, losses, first_run, BATCH_RUNS, scratch.ctypes.data, rows.ctypes.data)
            steps += int(rows[:, 0 if width == 1 else STEPS].sum())
        return float(steps)

    return Kernel(run, assembly)


def chain() -> Callable[[int], None]:
    """A function that makes `_MULTIPLICATIONS` times 3 multiplications, each of which waits 3 cycles for the last."""
    llvm.initialize_native_asmparser()
    asm = "\\0A".join(["imulq $$3, $0, $0"] * 3)
    text = f"""define void @chain(i64 %n) {{
    entry:
      br label %loop
    loop:
      %i = phi i64 [0, %entry], [%j, %loop]
      %x = phi i64 [1, %entry], [%y, %loop]
      %y = call i64 asm sideeffect "{asm}", "=r,0"(i64 %x)
      %j = add i64 %i, 1
      %more = icmp ult i64 %j, %n
      br i1 %more, label %loop, label %done
    done:
      ret void
    }}"""
    engine, address = build.linked(build.object_code(text), "chain")
    function = ctypes.CFUNCTYPE(None, ctypes.c_int64)(address)
    function.engine = engine  # type: ignore[attr-defined]  # which owns the code
    return function


def seconds(work: Callable[[], object]) -> tuple[Any, float]:
    start = time.thread_time()
    result = work()
    return result, time.thread_time() - start


def blocks(assembly: str) -> dict[str, list[str]]:
    """The instructions of each block of a kernel's assembly; what has no name belongs to its loop."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in assembly.splitlines():
        if label := re.match(r"(?:\.LBB\d+_\d+:|# %bb\.\d+:)\s*(?:# %(\S+))?", line):
            name = (label[1] or "loop").split(".")[0]
        elif re.match(r"\t[a-z]", line):
            found.setdefault(name, []).append(line.split("#")[0].strip())
    return found


def kind(instruction: str) -> str:
    """What an instruction is counted as."""
    name, _, operands = instruction.partition("\t")
    if re.search(r"[xyz]mm", operands) or name.startswith("k"):
        if "(%rsp" in operands and name.startswith("vmov"):
            return "registers spilled to the stack, and back"
        if re.match(r"vpmul|vpmadd", name):
            return "vector multiplications"
        if re.match(r"vp?(cmp|test|blend)|k", name):
            return "vector comparisons, selections and masks"
        if re.match(r"vp?s[lr]|vprol|vpror|vps[lr]", name):
            return "vector shifts"
        if re.match(r"v(p?and|p?or|p?xor|pternlog)", name):
            return "vector logic"
        if re.match(r"vp?(add|sub)", name):
            return "vector additions"
        return "other vector instructions"
    return "scalar instructions"


def count(kernel: Kernel, lanes: int, mean_steps: float) -> tuple[float, Counter[str]]:
    """Instructions of one turn of the loop, on average, and of what kind those are that every turn has."""
    by_block = blocks(kernel.assembly)
    always = [each for name, some in by_block.items() if name and name not in SELDOM for each in some]
    rows = len(by_block.get("row", [])) * lanes / mean_steps
    return len(always) + rows, Counter(map(kind, always))


def by_model(kernel: Kernel, mca: str, cpu: str) -> str:
    """What llvm-mca's model says of the loop's instructions, one after another: cycles, micro-operations."""
    text = "\n".join(
        each for name, some in blocks(kernel.assembly).items() if name and name not in SELDOM for each in some
    )
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("j", "ret", "call")))
    command = [mca, f"-mcpu={cpu}", "-iterations=20"]
    told = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    values = dict(re.findall(r"^([A-Za-z ]+):\s+([\d.]+)$", told, re.MULTILINE))
    cycles, uops = float(values["Total Cycles"]) / 20, float(values["Total uOps"]) / 20
    return f"{cycles:.0f} cycles a turn, {uops:.0f} micro-operations, {float(values['IPC']):.2f} instructions a cycle"


def measure(model: Model, point: Point, shape: Shape, mca: str | None, cpu: str) -> None:
    """Prints what a kernel's step costs, and its parts."""
    parts = [part for part in PARTS if part.loss or point.message_loss > 0.0]
    kernels = [made(model, point, shape, part) for part in parts]
    multiply, best, steps, cycle_s = chain(), [float("inf")] * len(parts), [0.0] * len(parts), float("inf")
    for _ in range(REPETITIONS + 1):
        cycle_s = min(cycle_s, seconds(lambda: multiply(_MULTIPLICATIONS))[1] / (9 * _MULTIPLICATIONS))
        for k, kernel in enumerate(kernels):
            steps[k], took = seconds(kernel.run)
            best[k] = min(best[k], took / steps[k])
    mean_steps = steps[0] / RUNS
    lanes = shape.lanes
    turn, kinds = count(kernels[0], lanes, mean_steps)
    cycles = best[0] / cycle_s * lanes
    vector_ones = sum(number for name, number in kinds.items() if "vector" in name)
    told = (
        f"{1e-6 / best[0]:.0f} million steps/s, {1e9 * best[0]:.1f} ns a step, {mean_steps:.1f} steps a run; "
        f"{1e-9 / cycle_s:.2f} GHz.",
        f"A turn of the loop steps {lanes} runs: {turn:.0f} instructions ({turn / lanes:.0f} a step) in {cycles:.0f} "
        f"cycles ({cycles / lanes:.0f} a step),",
        f"{turn / cycles:.2f} a cycle: {turn / cycles / WIDTH:.0%} of the {WIDTH} that can begin. Its vector "
        f"instructions take {vector_ones / cycles / VECTOR_WIDTH:.0%} of the {VECTOR_WIDTH} vector units.",
    )
    print(f"\n### {model.name}, {lanes} lanes of {shape.narrowest} bits\n", *told, sep="\n")
    if mca:
        print(f"LLVM's model of {cpu}: {by_model(kernels[0], mca, cpu)}.")
    print("\n| instructions of every turn | number |\n|---|---|")
    for name, number in kinds.most_common():
        print(f"| {name} | {number} |")
    print("\n| without | ns a step | share | instructions a turn |\n|---|---|---|---|")
    for k, part in enumerate(parts):
        less = count(kernels[k], lanes, steps[k] / RUNS)[0]
        share = f"{1 - best[k] / best[0]:.0%}" if k else ""
        print(f"| {part.name} | {1e9 * best[k]:.1f} | {share} | {less:.0f} |")
    whole(model, point, shape, best[0])


def whole(model: Model, point: Point, shape: Shape, kernel_s: float) -> None:
    """Prints what a step takes with tallies and runs made again, and on the generic engine."""
    points, job = pack(model, [point]), Job(0, 0, RUNS)
    switch = Switch(model, points, 0)
    switch.prepare(timed=True, shape=shape)
    assert switch.kernel is not None
    ours = theirs = float("inf")
    for _ in range(REPETITIONS + 1):
        tally, took = seconds(lambda: switch.tally_all(0, job))
        ours = min(ours, took / float(tally[bench.STEPS]))
        tally, took = seconds(lambda: numba_engine.tally_of(model, points, 0, job))
        theirs = min(theirs, took / float(tally[bench.STEPS]))
    redone = switch.num_repeated / (REPETITIONS + 1) / RUNS
    told = f"With tallies, and {redone:.2%} of runs made again by the generic engine: {1e9 * ours:.1f} ns a step, "
    print(
        f"\n{told}of which the kernel is {kernel_s / ours:.0%}. The generic engine: {1e9 * theirs:.1f} ns.", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--protocol", action="append", help="only this one")
    parser.add_argument("--lanes", type=int, action="append", help="only this many")
    parser.add_argument("--mca", help="LLVM's machine code analyser; of version 16 or later")
    parser.add_argument("--cpu", default="znver4", help="the processor of its model")
    given = parser.parse_args()
    print(f"{llvm.get_host_cpu_name()}, LLVM {'.'.join(map(str, llvm.llvm_version_info))}")
    for name in given.protocol or ("bookkeeper", "kafka", "compaction"):
        experiment = bench.random_runs(name)
        for shape in build.every_shape():
            if not shape.queued and shape.lanes in (given.lanes or (shape.lanes,)):
                measure(experiment.model, experiment.points[0].point, shape, given.mca, given.cpu)


if __name__ == "__main__":
    main()
