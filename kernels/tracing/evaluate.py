"""Expressions computed for many values of their leaves at once.

One loop of machine code runs all programs, each of their steps on a row of values. NumPy, called for every step, takes
twenty times as long for a few dozen values.
"""

import ctypes
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from quorisk.kernels.tracing.cpu import linked, object_code
from quorisk.kernels.tracing.emit import Emitter
from quorisk.kernels.tracing.expressions import HIGHEST, LOWEST, WORD
from quorisk.kernels.tracing.folding import make, new_graph
from quorisk.kernels.tracing.machine import I64, POINTER, lanes_of
from quorisk.kernels.tracing.programs import ARGUMENTS, FIELDS, OPERATIONS, Program, specialized

_SIZE, _LANES = 64, 8
"""Number of values in a row, and of those computed by one instruction."""


class Columns(NamedTuple):
    """Values of some leaves or outputs, by leaf or output and place."""

    array: np.ndarray
    """int64 or uint64, of any strides."""
    places: np.ndarray | None = None
    """int64, the places of the values in it, if these are not all of them in order."""

    def table(self) -> np.ndarray:
        """int64, by leaf or output: address of its first value, distance of two values, and address of `places`."""
        found = np.zeros((len(self.array), 3), np.int64)
        apart, step = self.array.strides
        found[:, 0] = self.array.ctypes.data + apart * np.arange(len(self.array))
        found[:, 1] = step // 8
        found[:, 2] = 0 if self.places is None else self.places.ctypes.data
        return found


class Evaluation:
    """Outputs of a program that can be computed any number of times, by one thread at a time."""

    def __init__(self, whole: Program, fixed: Mapping[int, int] | None = None) -> None:
        """`fixed` are the values of leaves that always have the same one, by their numbers; these come last."""
        self.num_outputs = len(whole.results)
        rows = _rows_of(whole)
        for number, value in (fixed or {}).items():
            rows[number] = value
        _run()(len(whole.steps), whole.steps.ctypes.data, rows.ctypes.data, 1, 0, 0, 0, 0, 0)
        self._program = specialized(whole, fixed or {}, rows[:, 0].copy())
        self._rows = _rows_of(self._program)

    def __call__(self, leaves: np.ndarray) -> np.ndarray:
        """The values of the outputs where the leaves have these, int64 by leaf and place: int64 by output and place."""
        found = np.empty((self.num_outputs, leaves.shape[1]), np.int64)
        self.write(leaves.shape[1], [Columns(leaves)], [Columns(found)])
        return found

    def write(self, count: int, leaves: Iterable[Columns], outputs: Iterable[Columns]) -> None:
        """Writes `count` values of all outputs, for as many of the first leaves as are given, in order."""
        given, out = (np.concatenate([each.table() for each in columns]) for columns in (leaves, outputs))
        assert len(out) == self.num_outputs
        arrays = self._program.steps, self._rows, given, self._program.results, out
        steps, rows, table, results, out_table = (array.ctypes.data for array in arrays)
        _run()(len(self._program.steps), steps, rows, count, len(given), table, len(out), results, out_table)


def _rows_of(program: Program) -> np.ndarray:
    """Rows of a program's values, with the constants in theirs."""
    rows = np.zeros((program.num_values, _SIZE), np.int64)
    rows[program.num_leaves :][: len(program.constants)] = program.constants[:, None]
    return rows


@cache
def _run() -> Any:
    """Compiles `run(num_steps, steps, values, count, num_leaves, leaves, num_outputs, rows, outputs)`, with tables of
    columns for leaves and outputs."""
    module = ir.Module("programs")
    numbers_and_arrays = [I64, POINTER, POINTER, I64, I64, POINTER, I64, POINTER, POINTER]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), numbers_and_arrays), "run")
    num_steps, steps, values, count, num_leaves, leaves, num_outputs, rows, outputs = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    with cgutils.for_range_slice(builder, I64(0), count, I64(_SIZE)) as (start, _):
        left = builder.sub(count, start)
        size = builder.select(builder.icmp_signed("<", left, I64(_SIZE)), left, I64(_SIZE))
        with cgutils.for_range(builder, num_leaves) as leaf:
            row = _at(builder, values, builder.mul(leaf.index, I64(_SIZE)))
            for value, there in _each(builder, leaves, leaf.index, start, size):
                builder.store(builder.load(there, typ=I64), _at(builder, row, value))
        with cgutils.for_range(builder, num_steps) as step:
            _emit_step(builder, _at(builder, steps, builder.mul(step.index, I64(FIELDS))), values, size)
        with cgutils.for_range(builder, num_outputs) as output:
            row = builder.load(_at(builder, rows, output.index), typ=I64)
            row = _at(builder, values, builder.mul(row, I64(_SIZE)))
            for value, there in _each(builder, outputs, output.index, start, size):
                builder.store(builder.load(_at(builder, row, value), typ=I64), there)
    builder.ret_void()
    engine, address = linked(object_code(str(module)), function.name)
    types = (ctypes.c_int64 if kind == I64 else ctypes.c_void_p for kind in numbers_and_arrays)
    run = ctypes.CFUNCTYPE(None, *types)(address)
    run.engine = engine  # type: ignore[attr-defined]  # which owns the code
    return run


def _at(builder: Any, array: Any, place: Any) -> Any:
    return builder.gep(array, [place], source_etype=I64)


def _each(builder: Any, table: Any, number: Any, start: Any, size: Any) -> Iterator[tuple[Any, Any]]:
    """Emits loops over `size` values of a column from place `start` on; yields, in each, the value's number and its
    address."""
    column = _at(builder, table, builder.mul(number, I64(3)))
    first, step, places = (builder.load(_at(builder, column, I64(i)), typ=I64) for i in range(3))
    array = builder.inttoptr(first, POINTER)
    with builder.if_else(builder.icmp_signed("==", places, I64(0))) as (in_order, elsewhere):
        with in_order, cgutils.for_range(builder, size) as loop:
            yield loop.index, _at(builder, array, builder.mul(step, builder.add(start, loop.index)))
        with elsewhere, cgutils.for_range(builder, size) as loop:
            place = _at(builder, builder.inttoptr(places, POINTER), builder.add(start, loop.index))
            yield loop.index, _at(builder, array, builder.mul(step, builder.load(place, typ=I64)))


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
