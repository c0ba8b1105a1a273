"""Kernels compiled for one configuration on this machine's CPU, and kept on disk for others on this machine to load."""

import contextlib
import ctypes
import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite

from quorisk.kernels import keeping
from quorisk.kernels.compiled import code_folder
from quorisk.kernels.engines.lanes.plan import NAME, Limits, columns_of, limits_of, shared, weights_of
from quorisk.kernels.engines.lanes.queued.queued_kernel import QueuedKernel
from quorisk.kernels.engines.lanes.queued.records import DWORD, RUNS
from quorisk.kernels.engines.lanes.traced import Shape, Unsupported, look, traced_for
from quorisk.kernels.engines.lanes.vector.vector_kernel import VectorKernel
from quorisk.kernels.engines.points import Points, params_at
from quorisk.kernels.model import Model
from quorisk.kernels.tracing import cpu
from quorisk.kernels.tracing.cpu import linked, object_code
from quorisk.kernels.tracing.demand import in_order
from quorisk.kernels.tracing.trace import NARROWEST

QUEUED = Shape(RUNS, DWORD, queued=True)
"""Shape of the kernels of `queued`."""
_EMITTING = threading.Lock()
"""Lock of the threads that compile: one makes expressions at a time, as kernels of several share some of them."""
_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_void_p, *2 * [ctypes.c_int64], *2 * [ctypes.c_void_p])


class Configuration(NamedTuple):
    """A configuration: one point of a model."""

    model: Model
    points: Points
    point: int


class Kernel(NamedTuple):
    """Machine code for one configuration."""

    run: Callable[[int, int, int, int, int, int], None]
    """See `plan.NAME`; the second and the last two are addresses."""
    shape: Shape
    row_words: int
    columns: tuple[int, ...]
    """Columns of the first steps and the times in a row; see `plan.columns_of`."""
    scratch_words: int
    operations: int
    """Operations of a step, as traced."""
    timed: bool
    """Whether its rows have the time."""


def shapes() -> tuple[Shape, Shape]:
    """Returns the shapes that fill a register of this machine's CPU, with lanes of 32 and of 16 bits."""
    size = cpu.this_cpu().register_bits
    return Shape(size // 32, 32), Shape(size // NARROWEST, NARROWEST)


def every_shape() -> tuple[Shape, ...]:
    """`shapes`, the same in two registers, and queues."""
    return *shapes(), *(each.twice() for each in shapes()), QUEUED


def build(of: Configuration, timed: bool, shape: Shape) -> Kernel:
    """The kernel of a configuration in that shape: loaded, or compiled and kept. Raises Unsupported.

    The rows of one that is not `timed` lack the time, which a run needs if it loses data or if there is a horizon.
    """
    if not timed and of.points.horizons[of.point] != float("inf"):
        raise Unsupported("a run with a horizon needs the time")
    path = _path(of, timed, shape)
    kept = _load(path)
    if kept is None:
        with keeping.locked(path):  # the processes of a sweep come to a point at the same time
            kept = _load(path)
            if kept is None:
                kept = _compile(of, timed, shape)
                _keep(path, *kept)
    description, code = kept
    engine, address = linked(code, NAME)
    function = _PROTOTYPE(address)
    function.engine = engine  # type: ignore[attr-defined]  # which owns the code
    columns = tuple(description.pop("columns"))
    return Kernel(function, shape, **description, columns=columns, timed=timed)


def is_kept(of: Configuration, timed: bool, shape: Shape) -> bool:
    """Whether the kernel was compiled before, so that `build` takes no time."""
    return _path(of, timed, shape).exists()


def discard(of: Configuration, timed: bool, shape: Shape) -> None:
    """Deletes the kernel's code, so that the next `build` compiles it anew."""
    _path(of, timed, shape).unlink(missing_ok=True)


def _compile(of: Configuration, timed: bool, shape: Shape) -> tuple[dict[str, Any], bytes]:
    _check_wanted()
    if shape.assumes:
        look(of.model, *_constants(of, timed), shape)
    with _EMITTING:
        _check_wanted()
        kernel = _emitted(of, timed, shape)
        text = kernel.text()
    _check_wanted()
    seen, words = kernel.traced.now, kernel.traced.words
    step = in_order([*seen.masks, *seen.broken, seen.unbounded, *(leaf for word in words for leaf in word.after or ())])
    description = {
        "row_words": kernel.row_words,
        "columns": columns_of(of.model, kernel.watched, kernel.exposed),
        "scratch_words": kernel.scratch_words,
        "operations": sum(node.op != "leaf" for node in step),
    }
    return description, object_code(text, shape.soon)


def _check_wanted() -> None:
    """Raises Unsupported once the main thread has ended: Python waits for all others, and nobody for their kernels."""
    if not threading.main_thread().is_alive():
        raise Unsupported("the program ends")


def _constants(of: Configuration, timed: bool) -> tuple[Any, tuple[int, ...], Limits]:
    """The parameters, weights and limits that code is made for."""
    limits = shared(limits_of(of.points, of.point, timed))
    return params_at(*of), weights_of(of.points, of.point), limits


def _emitted(of: Configuration, timed: bool, shape: Shape) -> Any:
    params, weights, limits = _constants(of, timed)
    traced = traced_for(of.model, params, weights, limits, shape)
    try:
        if shape.queued:
            return QueuedKernel(of.model, traced, limits)
        return VectorKernel(of.model, traced, limits, shape.lanes, shape.narrowest, shape.listed)
    except RecursionError as error:
        raise Unsupported(f"{of.model.name} cannot be compiled: {error}") from error


def folder(protocol: str) -> Path:
    """Returns the folder of all code of a protocol that was compiled from these sources; its path has their hash."""
    return code_folder(protocol) / "lanes"


def num_kept(model: Model) -> int:
    """Returns the number of configurations that have a kernel on disk which assumes nothing of runs."""
    there = _folder_of(model, assumes=False)
    return sum(not path.suffix for path in there.iterdir()) if there.is_dir() else 0


def _folder_of(model: Model, assumes: bool) -> Path:
    return folder(model.name) if assumes else folder(model.name) / "first" / model.name


def _path(of: Configuration, timed: bool, shape: Shape) -> Path:
    """Returns the path of the code."""
    key = repr((of.model.name, _constants(of, timed), shape, cpu.this_cpu(), llvmlite.__version__))
    return _folder_of(of.model, shape.assumes) / hashlib.sha256(key.encode()).hexdigest()[:32]


def _keep(path: Path, description: dict[str, Any], code: bytes) -> None:
    """Writes the file whole or not at all; a disk that has no room is no reason to stop."""
    with contextlib.suppress(OSError):
        keeping.write(path, json.dumps(description).encode() + b"\n" + code)


def _load(path: Path) -> tuple[dict[str, Any], bytes] | None:
    """Returns what `_keep` wrote; None if the file is missing or damaged."""
    content = keeping.read(path)
    if content is None:
        return None
    description, _, code = content.partition(b"\n")
    return json.loads(description), code
