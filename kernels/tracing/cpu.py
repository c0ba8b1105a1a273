"""LLVM's text of a module made into machine code of this machine's CPU."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm

_SPEED = 3
"""LLVM's level of optimization."""
_LONG = 1 << 17
"""Fewest characters of a text that takes seconds to compile: starting a process takes a fraction of that."""


class Cpu(NamedTuple):
    """The CPU for which code is made."""

    name: str
    features: tuple[str, ...]
    """Features as LLVM takes them: each begins with + or -."""

    @property
    def register_bits(self) -> int:
        """Bits of the widest registers that lanes may fill."""
        if {"+avx512f", "+avx512bw", "+avx512dq", "+avx512vl"} <= set(self.features):
            return 512
        return 256 if "+avx2" in self.features else 128


@cache
def this_cpu() -> Cpu:
    """Returns this machine's CPU."""
    return Cpu(llvm.get_host_cpu_name(), tuple(llvm.get_host_cpu_features().flatten().split(",")))


@cache
def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


def _machine() -> Any:
    name, features = this_cpu()
    return _target().create_target_machine(cpu=name, features=",".join(features), opt=_SPEED, jit=True)


def object_code(text: str, soon: bool = False) -> bytes:
    """The machine code of a module's IR. If it is wanted `soon`, LLVM's passes over the IR are left out: they take half
    of the time and gain a few percent, as expressions come folded.

    One thread at a time may be inside llvmlite, so a process of its own compiles what is long."""
    if len(text) >= _LONG:
        with suppress(OSError), child(__name__, "soon" if soon else "") as process:
            code, _ = process.communicate(text.encode())
            if process.returncode == 0:
                return code
    return _object_code(text, soon)


def child(module: str, *arguments: str) -> "subprocess.Popen[bytes]":
    """Starts a process that runs a module, with pipes to it and from it. Raises OSError."""
    # It imports what this process imports, whatever lies in the current folder.
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}
    pipe, command = subprocess.PIPE, [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=os.environ | path)


def _object_code(text: str, soon: bool) -> bytes:
    return _machine().emit_object(_module(text, soon))


def _module(text: str, soon: bool) -> Any:
    module = llvm.parse_assembly(text)
    module.verify()
    if not soon:
        passes = llvm.create_pass_builder(_machine(), llvm.create_pipeline_tuning_options(speed_level=_SPEED))
        passes.getModulePassManager().run(module, passes)
    return module


def linked(code: bytes, name: str) -> tuple[Any, int]:
    """The owner of the code in memory, and the address of its function."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine, engine.get_function_address(name)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that waits for this
    sys.stdout.buffer.write(_object_code(sys.stdin.read(), soon="soon" in sys.argv))
