"""Expressions computed for many values of their leaves at once.

One loop of machine code runs all programs, each of their steps on a row of values. NumPy, called for every step, takes
twenty times as long for a few dozen values.
"""

import ctypes
from collections.abc import Iterator, Mapping, Sequence
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

    def numbers(self) -> tuple[int, ...]:
        """How many leaves or outputs these are, the address of the first value, the distance of two leaves or outputs
        and of two places, in values, and the address of `places`."""
        apart, step = self.array.strides
        places = 0 if self.places is None else self.places.ctypes.data
        return len(self.array), self.array.ctypes.data, apart // 8, step // 8, places


_NOTHING = Columns(np.empty((0, 0), np.int64))


class Evaluation:
    """Outputs of a program that can be computed any number of times, by one thread at a time."""

    def __init__(self, whole: Program, fixed: Mapping[int, int] | None = None) -> None:
        """`fixed` are the values of leaves that always have the same one, by their numbers; these come last."""
        self.num_outputs = len(whole.results)
        rows = _rows_of(whole)
        for number, value in (fixed or {}).items():
            rows[number] = value
        _run()(*_pointers(whole, rows), 1, *4 * _NOTHING.numbers())
        self._program = specialized(whole, fixed or {}, rows[:, 0].copy())
        self._rows = _rows_of(self._program)
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
        columns = (leaves, more_leaves, outputs, more_outputs)
        _run()(*self._pointers, count, *(number for each in columns for number in each.numbers()))


def _rows_of(program: Program) -> np.ndarray:
    """Rows of a program's values, with the constants in theirs."""
    rows = np.zeros((program.num_values, _SIZE), np.int64)
    rows[program.num_leaves :][: len(program.constants)] = program.constants[:, None]
    return rows


def _pointers(program: Program, rows: np.ndarray) -> tuple[int, ...]:
    return len(program.steps), program.steps.ctypes.data, rows.ctypes.data, program.results.ctypes.data


@cache
def _run() -> Any:
    """Compiles `run(num_steps, steps, rows, results, count, ...)`, with the numbers of four `Columns`: the leaves, more
    of them, outputs, and more of them."""
    module = ir.Module("programs")
    kinds = [I64, POINTER, POINTER, POINTER, I64, *4 * [I64, POINTER, I64, I64, POINTER]]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), "run")
    num_steps, steps, rows, results, count, *numbers = function.args
    leaves, more_leaves, outputs, more_outputs = (numbers[i : i + 5] for i in range(0, 20, 5))
    builder = ir.IRBuilder(function.append_basic_block())
    with cgutils.for_range_slice(builder, I64(0), count, I64(_SIZE)) as (start, _):
        left = builder.sub(count, start)
        size = builder.select(builder.icmp_signed("<", left, I64(_SIZE)), left, I64(_SIZE))
        for columns, first in ((leaves, I64(0)), (more_leaves, leaves[0])):
            for number, value, there in _each(builder, columns, start, size):
                row = _at(builder, rows, builder.mul(builder.add(first, number), I64(_SIZE)))
                builder.store(builder.load(there, typ=I64), _at(builder, row, value))
        with cgutils.for_range(builder, num_steps) as step:
            _emit_step(builder, _at(builder, steps, builder.mul(step.index, I64(FIELDS))), rows, size)
        for columns, first in ((outputs, I64(0)), (more_outputs, outputs[0])):
            for number, value, there in _each(builder, columns, start, size):
                result = builder.load(_at(builder, results, builder.add(first, number)), typ=I64)
                row = _at(builder, rows, builder.mul(result, I64(_SIZE)))
                builder.store(builder.load(_at(builder, row, value), typ=I64), there)
    builder.ret_void()
    engine, address = linked(object_code(str(module)), function.name)
    run = ctypes.CFUNCTYPE(None, *(ctypes.c_int64 if kind == I64 else ctypes.c_void_p for kind in kinds))(address)
    run.engine = engine  # type: ignore[attr-defined]  # which owns the code
    return run


def _at(builder: Any, array: Any, place: Any) -> Any:
    return builder.gep(array, [place], source_etype=I64)


def _each(builder: Any, columns: Sequence[Any], start: Any, size: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Emits loops over `size` values of columns from place `start` on; yields, in each, the number of the leaf or the
    output, the value's number, and its address."""
    num, array, apart, step, places = columns
    in_order = builder.icmp_signed("==", builder.ptrtoint(places, I64), I64(0))
    with cgutils.for_range(builder, num) as column:
        first = _at(builder, array, builder.mul(apart, column.index))
        with builder.if_else(in_order) as (plain, elsewhere):
            with plain, cgutils.for_range(builder, size) as loop:
                place = builder.add(start, loop.index)
                yield column.index, loop.index, _at(builder, first, builder.mul(step, place))
            with elsewhere, cgutils.for_range(builder, size) as loop:
                place = builder.load(_at(builder, places, builder.add(start, loop.index)), typ=I64)
                yield column.index, loop.index, _at(builder, first, builder.mul(step, place))


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
