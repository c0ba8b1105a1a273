"""Compilation for heads in a process of its own, while this one compiles and runs something else."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress

from quorisk.analysis.experiment.grid import GridPoint
from quorisk.kernels.compiled import is_ready, once
from quorisk.kernels.cores import num_cores
from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import Point, pack
from quorisk.kernels.model import Model
from quorisk.kernels.protocols import registry
from quorisk.kernels.states.exits import exits_of, from_exits
from quorisk.kernels.states.head import Head

_HEAD, _BEGUN = "head", "head-begun"
"""Marks on a machine (`kernels.compiled.once`): all code for heads is compiled, and a helper began to compile it."""
_MEMORY_BYTES = 1 << 25


def compile_head(protocol: str, point: Point) -> None:
    """Compiles the code that a protocol's heads need, unless that was done on this machine before."""
    once(_HEAD, protocol, lambda: _compile(registry.load(protocol), point))


@contextmanager
def compiling_head(protocol: str, points: Sequence[GridPoint]) -> Iterator[None]:
    """Has another process call `compile_head` during the body, if points are to have heads and a core is free.

    A process waits for functions that another is compiling (`kernels.keeping.locked`). If the other process fails, this
    one compiles what it needs itself, and says what is wrong.
    """
    is_wanted = bool(points) and not is_ready(_HEAD, protocol)
    with _process(compile_head, protocol, points[0].point) if is_wanted else nullcontext():
        yield


@contextmanager
def helping_with_head(model: Model, point: Point) -> Iterator[None]:
    """Has another process compile the functions that the body, which solves a head, needs last, unless one has.

    It ends with the body, even if that did not need all of these functions.
    """
    name = model.name
    is_wanted = name in registry.names() and not is_ready(_HEAD, name) and not is_ready(_BEGUN, name)
    if is_wanted:
        once(_BEGUN, name, lambda: None)  # marks that a machine began: what its helper did not end it does by itself
    with _process(_help, name, point) if is_wanted else nullcontext():
        yield


def _help(protocol: str, point: Point) -> None:
    model = registry.load(protocol)
    _compile(model, point)
    numba_engine.compile_for_exits(model, point)


def _compile(model: Model, point: Point) -> None:
    with suppress(MemoryError):
        head = Head(model, point, _MEMORY_BYTES, by_margin=True)
        head.grow(1)
        if (solved := head.solve()) and (exits := exits_of(head, solved, _MEMORY_BYTES)).places:
            numba_engine.simulate(model, from_exits(pack(model, [point]), exits), [Job(0, 0, 1)], 0)


@contextmanager
def _process(work: Callable[[str, Point], None], protocol: str, point: Point) -> Iterator[None]:
    """Has another process do the work during the body, if a core is free."""
    process = _started(work.__name__, protocol, point) if num_cores() > 1 else None
    try:
        yield
    finally:
        if process:
            process.kill()
            process.wait()


def _started(name: str, protocol: str, point: Point) -> subprocess.Popen[bytes] | None:
    """A process that does the work of this name; None if it cannot be started."""
    # It imports what this process imports, whatever lies in the current folder.
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}
    command, pipe, nowhere = [sys.executable, "-m", __name__], subprocess.PIPE, subprocess.DEVNULL
    try:
        process = subprocess.Popen(command, stdin=pipe, stdout=nowhere, stderr=nowhere, env=os.environ | path)
    except OSError:
        return None
    assert process.stdin
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(pickle.dumps((name, protocol, point)))
    return process


if __name__ == "__main__":
    _name, *_given = pickle.load(sys.stdin.buffer)
    {work.__name__: work for work in (compile_head, _help)}[_name](*_given)
