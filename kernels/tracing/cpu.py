"""LLVM's text of a module made into machine code of this machine's CPU."""

from functools import cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm

_SPEED = 3
"""LLVM's level of optimization."""


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
    of the time and gain a few percent, as expressions come folded."""
    module = _verified(text)
    return _machine().emit_object(module if soon else _optimized(module))


def _verified(text: str) -> Any:
    module = llvm.parse_assembly(text)
    module.verify()
    return module


def _optimized(module: Any) -> Any:
    passes = llvm.create_pass_builder(_machine(), llvm.create_pipeline_tuning_options(speed_level=_SPEED))
    passes.getModulePassManager().run(module, passes)
    return module


def linked(code: bytes, name: str) -> tuple[Any, int]:
    """The owner of the code in memory, and the address of its function."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine, engine.get_function_address(name)
