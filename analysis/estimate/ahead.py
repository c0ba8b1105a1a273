"""Compilation for runs from a head's exits in a process of its own, while this one solves the head."""

import pickle
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from quorisk.kernels.compiled import is_ready, once
from quorisk.kernels.cores import num_cores
from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.points import Point
from quorisk.kernels.protocols import registry
from quorisk.kernels.tracing.cpu import child

_EXITS, _BEGUN = "exits", "exits-begun"
"""Marks on a machine (`kernels.compiled.once`): the code is compiled, and a process began to compile it."""


def compile_for_exits(protocol: str, point: Point) -> None:
    """Compiles the engine for runs from exits, unless that was done on this machine before."""
    once(_EXITS, protocol, lambda: numba_engine.compile_for_exits(registry.load(protocol), point))


@contextmanager
def compiling_for_exits(protocol: str, points: Sequence[Point]) -> Iterator[None]:
    """Has another process call `compile_for_exits` during the body, if points are to have heads, a core is free, and
    none has begun to on this machine.

    A process waits for functions that another is compiling (`kernels.keeping.locked`). The other one ends with the
    body. If it fails, or has not compiled everything by then, this one compiles what it needs itself.
    """
    known = protocol in registry.names() and not is_ready(_EXITS, protocol) and not is_ready(_BEGUN, protocol)
    process = None
    if points and known and num_cores() > 1:
        once(_BEGUN, protocol, lambda: None)
        with suppress(OSError):  # it cannot be started
            process = child(__name__)
            assert process.stdin
            with process.stdin:
                pickle.dump((protocol, points[0]), process.stdin)
    try:
        yield
    finally:
        if process:
            process.kill()
            process.wait()


if __name__ == "__main__":
    compile_for_exits(*pickle.load(sys.stdin.buffer))
