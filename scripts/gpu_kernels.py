#!/usr/bin/env python3
"""What a GPU's compiler makes of the kernels of `quorisk bench`'s models, on a machine without a GPU. For docs/gpus.md.

    pip install -e '.[cuda]' nvidia-cuda-nvdisasm
    JAX_PLATFORMS=cpu python scripts/gpu_kernels.py

JAX's own Triton makes PTX of each kernel, NVIDIA's assembler machine code for a GPU of compute capability 9.0 (H100,
H200), of which the instructions are counted. XLA compiles the same kernel and the sums of its runs for an H200 that is
described to it. Nothing is run. One function of JAX 0.10's that is called here is not public.
"""

import argparse
import os
import re
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(Path(__file__).parent.parent))

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

from quorisk.analysis import bench
from quorisk.kernels.engines import jax_engine, numba_engine
from quorisk.kernels.engines.gpu.kernel import WARP, How, found, rows
from quorisk.kernels.engines.gpu.switch import SIZE, Switch
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import Point, pack
from quorisk.kernels.engines.tally import STEPS
from quorisk.kernels.model import Model
from quorisk.kernels.protocols import registry

CAPABILITY, ARCHITECTURE, DEVICE = "9.0", "sm_90a", "NVIDIA H200"
_REGISTERS, _MOST_PROGRAMS = 1 << 16, 32
"""Of a multiprocessor."""
_TRIAL_RUNS = 1 << 12
_H200 = """
gpu_device_info {
  name: "NVIDIA H200" cuda_compute_capability { major: 9 } core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98
  threads_per_warp: 32 threads_per_block_limit: 1024 threads_per_core_limit: 2048
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  shared_memory_per_block: 49152 shared_memory_per_block_optin: 232448 shared_memory_per_core: 233472
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  memory_bandwidth: 4800000000000 l2_cache_size: 52428800 device_memory_size: 151397597184
}
platform_name: "CUDA" device_description_str: "NVIDIA H200" dnn_version_info { major: 9 minor: 10 }
"""
"""What XLA has to know of the device, as text of its GpuTargetConfigProto; figures of NVIDIA's."""


class Turn(NamedTuple):
    """Instructions of the loop that steps runs."""

    always: int
    refill: int
    """Where a run has ended in one of the lanes: its row is written and another begins."""
    seldom: int
    """Where the bits drawn leave something open."""


def prepared(model: Model, point: Point) -> Switch:
    """The point's runs, as the jax engine would make them."""
    runs = Switch(model, pack(model, [point]))
    runs.prepare()
    return runs


def temporary_bytes(runs: Switch) -> int:
    """Compiles all of a call, the sums of its runs included; returns the memory that it takes meanwhile."""
    given = {"platform": "cuda", "topology_name": "H200", "topology": "1x1x1", "target_config": _H200}
    [device] = topologies.get_topology_desc(**given).devices
    kinds = np.uint64, np.float64, np.int64, np.int64
    like = [jax.ShapeDtypeStruct((), kind, sharding=SingleDeviceSharding(device)) for kind in kinds]
    compiled = jax.jit(partial(found, runs.stepper, SIZE, How())).lower(*like).compile()
    used: Any = compiled.memory_analysis()
    return int(used.temp_size_in_bytes)


def triton_ir(runs: Switch) -> bytes:
    """The kernel as JAX gives it to Triton."""
    made = jax.jit(lambda *given: rows(runs.stepper, SIZE, *given)).trace(np.uint64(0), np.int64(0), np.int64(1))
    todo: list[Any] = [made.lower(lowering_platforms=("cuda",)).compiler_ir().operation]
    while todo:
        operation = todo.pop()
        given = operation.attributes
        if "call_target_name" in given and "triton" in str(given["call_target_name"]):
            config = given["mhlo.backend_config" if "mhlo.backend_config" in given else "backend_config"]
            text: bytes = config["ir"].value_bytes
            return text
        todo.extend(
            each.operation for region in operation.regions for block in region.blocks for each in block.operations
        )
    raise LookupError("no kernel of Triton's")


def ptx(ir: bytes) -> tuple[str, int]:
    """PTX, and the bytes of shared memory that it asks for."""
    from jax._src.lib import triton

    made = triton.compile("CUDA", ir, CAPABILITY, num_warps=1, num_ctas=1, num_stages=1)
    return made.asm if isinstance(made.asm, str) else made.asm.decode(), made.smem_bytes


def assembled(text: str) -> tuple[str, str]:
    """What the assembler says of PTX, and its machine code as text."""
    tools = Path(next(iter(import_module("nvidia.cu13").__path__))) / "bin"
    with TemporaryDirectory() as folder:
        source, code = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(text)
        command = [str(tools / "ptxas"), "-v", f"-arch={ARCHITECTURE}", str(source), "-o", str(code)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        listing = subprocess.run([tools / "nvdisasm", "-c", code], capture_output=True, text=True, check=True).stdout
    return said, listing


def turn_of(listing: str) -> Turn:
    """The instructions of the longest loop of a listing, without the subroutines that it may call."""
    labels: dict[str, int] = {}
    code: list[str] = []
    for line in listing.splitlines():
        if label := re.match(r"\s*(\.L\w+):", line):
            labels[label[1]] = len(code)
        elif instruction := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line):
            code.append(instruction[1])
    jumps = [(i, labels[to[1]]) for i, each in enumerate(code) if (to := re.search(r"\bBRA .*\((\.L\w+)\)", each))]
    first, last = max(((to, i) for i, to in jumps if to < i), key=lambda loop: loop[1] - loop[0])
    skipped = [(i + 1, to) for i, to in jumps if first <= i < to <= last and code[i].startswith("@")]
    inside = [code[begin:end] for begin, end in skipped]
    refill = sum(len(part) for part in inside if any(" STG" in f" {each}" for each in part))
    seldom = sum(map(len, inside)) - refill
    return Turn(last + 1 - first - refill - seldom, refill, seldom)


class Counted(NamedTuple):
    """What is known of a kernel before it runs."""

    registers: int
    spilled_bytes: int
    shared_bytes: int
    warps: int
    """Of a multiprocessor."""
    turn: Turn
    ending: float
    """How often a run ends in a turn."""
    instructions: float
    """Of a turn, on average: of a step of each of its lanes."""
    most_steps_per_s: float
    temporary_bytes: int
    """Memory that a call takes."""


def counted(name: str) -> Counted:
    """Compiles the kernel of a protocol's benchmark and counts. Raises ImportError without NVIDIA's tools."""
    experiment = bench.random_runs(name)
    model, point = experiment.model, experiment.points[0].point
    runs = prepared(model, point)
    text, shared = ptx(triton_ir(runs))
    said, listing = assembled(text)
    numbers = re.findall(r"(\d+) (registers|bytes spill \w+)", said)
    registers = next(int(number) for number, of in numbers if of == "registers")
    spilled = sum(int(number) for number, of in numbers if of != "registers")
    turn = turn_of(listing)
    tally = numba_engine.tally_of(model, pack(model, [point]), 0, Job(0, 0, _TRIAL_RUNS))
    ending = 1 - (1 - _TRIAL_RUNS / tally[STEPS]) ** WARP
    instructions = turn.always + ending * turn.refill
    warps = min(_MOST_PROGRAMS, _REGISTERS // (WARP * -(-registers // 8) * 8))
    most = bench.LIMITS[DEVICE].operations_per_s / instructions
    return Counted(
        registers, spilled, shared, warps, turn, float(ending), float(instructions), float(most), temporary_bytes(runs)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--protocol", action="append", choices=registry.names(), help="only this one")
    given = parser.parse_args()
    jax_engine.devices()  # loads the plugin
    for name in given.protocol or registry.names():
        its = counted(name)
        print(
            f"{name}: {its.registers} registers, {its.spilled_bytes} bytes spilled, {its.shared_bytes} of shared "
            f"memory; {its.warps} warps a multiprocessor; a turn of the loop has {its.turn.always} instructions, "
            f"{its.turn.refill} more if a run ends in it ({its.ending:.0%}), {its.turn.seldom} more seldom; "
            f"{its.instructions:.0f} on average: at most {its.most_steps_per_s:.3g} steps/s; "
            f"a call takes {its.temporary_bytes / 2**20:.0f} MiB"
        )


if __name__ == "__main__":
    main()
