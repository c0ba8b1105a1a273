"""Expressions computed for many values of their leaves at once.

One loop of machine code runs all programs, each of their steps on a row of values. NumPy, called for every step, takes
twenty times as long for a few dozen values.
"""

import ctypes
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils

from quorisk.kernels import keeping
from quorisk.kernels.tracing.cpu import linked, object_code, this_cpu
from quorisk.kernels.tracing.emit import Emitter
from quorisk.kernels.tracing.expressions import HIGHEST, LOWEST, WORD
from quorisk.kernels.tracing.folding import make, new_graph
from quorisk.kernels.tracing.machine import I64, POINTER, lanes_of
from quorisk.kernels.tracing.program import ARGUMENTS, FIELDS, OPERATIONS, Program, in_few_rows, simplified

_SIZE, _LANES = 128, 8
"""Number of values in a row, and of those computed by one instruction."""
_WORTH_COMPILING = 1 << 18
"""Number of values after which a program is compiled. Compiling takes about as long as interpreting it for a million
values, and later processes have the code as well."""
_COMPUTED = Counter[str]()
"""Number of values that this process has computed with each program, by the name of its code on disk."""


class Columns(NamedTuple):
    """Values of some leaves or outputs, by leaf or output and place."""

    array: np.ndarray
    """int64 or uint64, of any strides."""
    places: np.ndarray | None = None
    """int64, the places of the values in it, if these are not all of them in order."""

    def numbers(self, which: "_Part", first: int = 0) -> tuple[int, ...]:
        """The number of those that are used, the address of their numbers, counted from `first`, that of the value of
        number 0, the distances of two leaves or outputs and of two places, in values, and the address of `places`."""
        assert self.array.itemsize == 8
        assert self.places is None or self.places.dtype == np.int64
        apart, step = self.array.strides
        places = 0 if self.places is None else self.places.ctypes.data
        return *which, self.array.ctypes.data - first * apart, apart // 8, step // 8, places


class _Numbers:
    """Numbers of leaves or outputs, in order, as machine code takes them."""

    def __init__(self, numbers: np.ndarray) -> None:
        self.array, self._parted = numbers, dict[int, tuple[_Part, _Part]]()

    def parted(self, at: int) -> "tuple[_Part, _Part]":
        """Number of those below `at`, and the address of the first; and the same of those from there on."""
        if at not in self._parted:
            below, address = int(np.searchsorted(self.array, at)), self.array.ctypes.data
            others = len(self.array) - below, address + below * self.array.itemsize
            self._parted[at] = (below, address), others
        return self._parted[at]


_Part = tuple[int, int]
_NOTHING = Columns(np.empty((0, 0), np.int64))


class Evaluation:
    """Outputs of a program that can be computed any number of times, by one thread at a time.

    Once it has computed many values, the program is compiled.
    """

    def __init__(self, whole: Program, num_updated: int = 0) -> None:
        """The first `num_updated` outputs are updates of the leaves of the same numbers: where they equal these, they
        are not written."""
        self.num_outputs = len(whole.results)
        self._program, leaves = in_few_rows(whole)
        self._leaves = _Numbers(leaves)
        self._rows = _rows_of(self._program)
        self._place = _place_of(self._program)
        self._run = _compiled(self._program) if self._place.exists() else _interpreter()
        numbers = np.arange(self.num_outputs)
        self._outputs = _Numbers(np.flatnonzero((self._program.results != numbers) | (numbers >= num_updated)))
        self._pointers = _pointers(self._program, self._rows)

    def __call__(self, leaves: np.ndarray) -> np.ndarray:
        """The values of the outputs where the leaves have these, int64 by leaf and place: int64 by output and place."""
        found = np.empty((self.num_outputs, leaves.shape[1]), np.int64)
        self.write(leaves.shape[1], Columns(leaves), _NOTHING, Columns(found))
        return found

    def write(
        self, count: int, leaves: Columns, more_leaves: Columns, outputs: Columns, more_outputs: Columns = _NOTHING
    ) -> None:
        """Writes `count` values of all outputs, for as many of the first leaves as are given."""
        assert len(outputs.array) + len(more_outputs.array) == self.num_outputs
        numbers = list[int]()
        for which, first, more in ((self._leaves, leaves, more_leaves), (self._outputs, outputs, more_outputs)):
            below, others = which.parted(len(first.array))
            numbers += [*first.numbers(below), *more.numbers(others, len(first.array))]
        self._run(*self._pointers, count, *numbers)
        if self._run is _interpreter():
            _COMPUTED[self._place.name] += count
            if _COMPUTED[self._place.name] > _WORTH_COMPILING:
                self._run = _compiled(self._program)


def specialized(whole: Program, fixed: Mapping[int, int]) -> Program:
    """The program where leaves, the last ones, have fixed values, by their numbers: these are none of its leaves."""
    rows = _rows_of(whole)
    for number, value in fixed.items():
        rows[number] = value
    _interpreter()(*_pointers(whole, rows), 1, *4 * _NOTHING.numbers((0, 0)))
    return simplified(whole, min(fixed, default=whole.num_leaves), rows[:, 0])


def _rows_of(program: Program) -> np.ndarray:
    """Rows of a program's values, with the constants in theirs."""
    rows = np.zeros((program.num_values, _SIZE), np.int64)
    rows[program.num_leaves :][: len(program.constants)] = program.constants[:, None]
    return rows


def _pointers(program: Program, rows: np.ndarray) -> tuple[int, ...]:
    return len(program.steps), program.steps.ctypes.data, rows.ctypes.data, program.results.ctypes.data


@cache
def _interpreter() -> Any:
    """Compiles `run(num_steps, steps, rows, results, count, ...)`, with the numbers of four `Columns`: the leaves, more
    of them, outputs, and more of them."""

    def interpret(builder: Any, given: Sequence[Any], size: Any) -> None:
        num_steps, steps, rows, _ = given
        with cgutils.for_range(builder, num_steps) as step:
            _emit_step(builder, _at(builder, steps, builder.mul(step.index, I64(FIELDS))), rows, size)

    return _loaded(_place("interpreter"), lambda: _function(interpret, soon=False))


def _compiled(program: Program) -> Any:
    """Compiles what `_interpreter` does for one program, which it ignores, straight on: four times as fast. The code is
    kept on disk."""
    return _loaded(_place_of(program), lambda: _function(_straight_on(program), soon=True))


def _place_of(program: Program) -> Path:
    return _place(*program[:3], program.num_leaves)


def _place(*content: Any) -> Path:
    """The file of code that depends on this, on the CPU and on LLVM."""
    key = hashlib.sha256(repr((this_cpu(), llvmlite.__version__)).encode())
    for each in content:
        key.update(repr(each.shape).encode() + each.tobytes() if isinstance(each, np.ndarray) else repr(each).encode())
    return Path(numba.config.CACHE_DIR) / "programs" / key.hexdigest()[:32]


def _straight_on(program: Program) -> Callable[[Any, Sequence[Any], Any], None]:
    """The steps of one program, for `_function`."""
    graph, lanes = new_graph(), this_cpu().register_bits // 64
    values = {i: graph.leaf(i, WORD, LOWEST, HIGHEST) for i in range(program.num_leaves)}
    values |= {program.num_leaves + i: value for i, value in enumerate(program.constants.tolist())}
    for operation, *args, result in program.steps.tolist():
        name = OPERATIONS[operation]
        values[result] = make(name, *(values[arg] for arg in args[: ARGUMENTS.get(name, 2)]))
    outputs = {row: values[row] for row in program.results.tolist()}

    def compute(builder: Any, given: Sequence[Any], size: Any) -> None:
        rows, kind = given[2], lanes_of(I64, lanes)
        with cgutils.for_range_slice(builder, I64(0), size, I64(lanes)) as (at, _):

            def place(row: int) -> Any:
                return _at(builder, rows, builder.add(at, I64(row * _SIZE)))

            def leaf(row: int, _: int) -> Any:
                return builder.load(place(row), typ=kind, align=8)

            emitter = Emitter(builder, lanes, 64, leaf, outputs.values(), False)
            for value, row in [(emitter.get(value, 64), row) for row, value in outputs.items()]:
                builder.store(value, place(row), align=8)

    return compute


@lru_cache(maxsize=1 << 10)
def _loaded_from(place: Path) -> Any:
    """The code of a file as a function of Python's, which owns it; None if the file is missing or damaged."""
    code = keeping.read(place)
    return None if code is None else _callable(code)


def _loaded(place: Path, compile_it: Callable[[], bytes]) -> Any:
    if place.exists() and (found := _loaded_from(place)):
        return found
    code = compile_it()
    with suppress(OSError):  # a disk that has no room is no reason to stop
        keeping.write(place, code)
    return _callable(code)


def _callable(code: bytes) -> Any:
    engine, address = linked(code, "run")
    run = ctypes.CFUNCTYPE(None, *(ctypes.c_int64 if kind == I64 else ctypes.c_void_p for kind in _KINDS))(address)
    run.engine = engine  # type: ignore[attr-defined]  # which owns the code
    return run


_KINDS = I64, POINTER, POINTER, POINTER, I64, *4 * [I64, POINTER, POINTER, I64, I64, POINTER]


def _function(emit_steps: Callable[[Any, Sequence[Any], Any], None], soon: bool) -> bytes:
    """Compiles `run` with these steps: `emit_steps(builder, args, size)` computes the first `size` values of rows."""
    module = ir.Module("programs")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), _KINDS), "run")
    *given, count = function.args[:5]
    leaves, more_leaves, outputs, more_outputs = (function.args[i : i + 6] for i in range(5, 29, 6))
    rows, results = given[2:]
    builder = ir.IRBuilder(function.append_basic_block())
    with cgutils.for_range_slice(builder, I64(0), count, I64(_SIZE)) as (start, _):
        left = builder.sub(count, start)
        size = builder.select(builder.icmp_signed("<", left, I64(_SIZE)), left, I64(_SIZE))
        for columns in (leaves, more_leaves):
            for number, value, there in _each(builder, columns, start, size):
                row = _at(builder, rows, builder.mul(number, I64(_SIZE)))
                builder.store(builder.load(there, typ=I64), _at(builder, row, value))
        emit_steps(builder, given, size)
        for columns in (outputs, more_outputs):
            for number, value, there in _each(builder, columns, start, size):
                result = builder.load(_at(builder, results, number), typ=I64)
                row = _at(builder, rows, builder.mul(result, I64(_SIZE)))
                builder.store(builder.load(_at(builder, row, value), typ=I64), there)
    builder.ret_void()
    return object_code(str(module), soon)


def _at(builder: Any, array: Any, place: Any) -> Any:
    return builder.gep(array, [place], source_etype=I64)


def _each(builder: Any, columns: Sequence[Any], start: Any, size: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Emits loops over `size` values of columns from place `start` on; yields, in each, the number of the leaf or the
    output, the value's number, and its address."""
    num, which, array, apart, step, places = columns
    in_order = builder.icmp_signed("==", builder.ptrtoint(places, I64), I64(0))
    with cgutils.for_range(builder, num) as column:
        number = builder.load(_at(builder, which, column.index), typ=I64)
        first = _at(builder, array, builder.mul(apart, number))
        with builder.if_else(in_order) as (plain, elsewhere):
            with plain, cgutils.for_range(builder, size) as loop:
                place = builder.add(start, loop.index)
                yield number, loop.index, _at(builder, first, builder.mul(step, place))
            with elsewhere, cgutils.for_range(builder, size) as loop:
                place = builder.load(_at(builder, places, builder.add(start, loop.index)), typ=I64)
                yield number, loop.index, _at(builder, first, builder.mul(step, place))


def _emit_step(builder: Any, step: Any, values: Any, size: Any) -> None:
    """Emits the operation of a step on the first `size` values of its rows."""
    operation, *rows = (builder.load(_at(builder, step, I64(i)), typ=I64) for i in range(FIELDS))
    rows = [_at(builder, values, builder.mul(row, I64(_SIZE))) for row in rows]
    kind, done = lanes_of(I64, _LANES), builder.append_basic_block()
    chosen = builder.switch(operation, done)
    for number, name in enumerate(OPERATIONS):
        block, graph = builder.append_basic_block(name), new_graph()
        chosen.add_case(I64(number), block)
        builder.position_at_end(block)
        with cgutils.for_range_slice(builder, I64(0), size, I64(_LANES)) as (at, _):
            *arguments, result = (_at(builder, row, at) for row in rows)
            given = [builder.load(each, typ=kind, align=8) for each in arguments[: ARGUMENTS.get(name, 2)]]
            output = make(name, *(graph.leaf(value, WORD, LOWEST, HIGHEST) for value in given))
            emitter = Emitter(builder, _LANES, 64, lambda value, _: value, [output], False)
            builder.store(emitter.get(output, 64), result, align=8)
        builder.branch(done)
    builder.position_at_end(done)
