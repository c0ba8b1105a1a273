"""Compilation for heads in a process of its own, while this one compiles and runs something else."""

import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from quorisk.kernels.compiled import is_ready, once
from quorisk.kernels.cores import num_cores
from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.points import Point
from quorisk.kernels.model import Model
from quorisk.kernels.protocols import registry
from quorisk.kernels.states.exits import exits_of
from quorisk.kernels.states.head import Head
from quorisk.kernels.tracing.cpu import child

_HEAD, _BEGUN = "head", "head-begun"
"""Marks on a machine (`kernels.compiled.once`): all code for heads is compiled, and a process began to."""
_MEMORY_BYTES = 1 << 25


def compile_head(protocol: str, point: Point) -> None:
    """Compiles the code that a protocol's heads need, unless that was done on this machine before."""
    once(_HEAD, protocol, lambda: _compile(registry.load(protocol), point))


@contextmanager
def compiling_head(protocol: str, points: Sequence[Point]) -> Iterator[None]:
    """Has another process call `compile_head` during the body, if points are to have heads, a core is free, and none
    has begun to on this machine.

    A process waits for functions that another is compiling (`kernels.keeping.locked`). The other one ends with the
    body. If it fails, or has not compiled everything by then, this one compiles what it needs itself.
    """
    known = protocol in registry.names() and not is_ready(_HEAD, protocol) and not is_ready(_BEGUN, protocol)
    process = None
    if points and known and num_cores() > 1:
        once(_BEGUN, protocol, lambda: None)
        process = _started(protocol, points[0])
    try:
        yield
    finally:
        if process:
            process.kill()
            process.wait()


def _compile(model: Model, point: Point) -> None:
    with suppress(MemoryError):
        head = Head(model, point, _MEMORY_BYTES, by_margin=True)
        head.grow(1)
        if solved := head.solve():
            exits_of(head, solved, _MEMORY_BYTES)
        numba_engine.compile_for_exits(model, point)


def _started(protocol: str, point: Point) -> subprocess.Popen[bytes] | None:
    """A process that calls `compile_head`; None if it cannot be started."""
    try:
        process = child(__name__)
    except OSError:
        return None
    assert process.stdin
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(pickle.dumps((protocol, point)))
    return process


if __name__ == "__main__":
    compile_head(*pickle.load(sys.stdin.buffer))
