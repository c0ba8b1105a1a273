"""Expressions computed for many values of their leaves at once.

Each set of outputs becomes a program: its steps are operations on rows of values. One loop of machine code runs all
programs. NumPy, called for every step, takes twenty times as long for a few dozen values.
"""

import ctypes
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from quorisk.kernels.tracing.cpu import linked, object_code
from quorisk.kernels.tracing.demand import in_order
from quorisk.kernels.tracing.emit import Emitter
from quorisk.kernels.tracing.expressions import BOOLEAN, HIGHEST, LOWEST, WORD, Node
from quorisk.kernels.tracing.folding import make, new_graph
from quorisk.kernels.tracing.machine import I64, INTEGERS, POINTER, lanes_of

_SIZE, _LANES = 64, 8
"""Number of values in a row, and of those computed by one instruction."""
_OPERATIONS = (*sorted(BOOLEAN), *INTEGERS, "shr", "div", "deposit", "popcount", "int", "when", "select")
_ARGUMENTS = {"not": 1, "popcount": 1, "int": 1, "select": 3}
"""Number of arguments of operations that have not two."""
_FIELDS = 5
"""Fields of a step, 64 bits each: its operation, the rows of up to three arguments, the row of the result."""


class Evaluation:
    """Outputs that can be computed any number of times, by one thread at a time, from leaves of these names."""

    def __init__(self, outputs: Iterable[Any], names: Iterable[Any]) -> None:
        outputs, places = list(outputs), {name: row for row, name in enumerate(names)}
        constants, steps, rows = [0] * len(places), list[list[int]](), dict[Any, int]()

        def row(value: Any) -> int:
            """The row of an expression that has one, or of a constant, which gets one here."""
            key = value.id if isinstance(value, Node) else ("constant", int(value))
            if key not in rows:
                rows[key] = len(constants)
                constants.append(0 if isinstance(value, Node) else int(value))
            return rows[key]

        for node in in_order(outputs):
            if node.op == "leaf":
                rows[node.id] = places[node.args[0]]
            else:
                args = [row(arg) for arg in node.args]
                steps.append([_OPERATIONS.index(node.op), *args, *[0] * (3 - len(args)), row(node)])
        self._results = np.array([row(output) for output in outputs], int)
        self._program = np.array(steps, np.int64)
        self._values = np.repeat(np.array(constants, np.int64)[:, None], _SIZE, axis=1)

    def __call__(self, leaves: np.ndarray) -> np.ndarray:
        """The values of the outputs where the leaves have these, int64 by leaf and place: int64 by output and place."""
        found = np.empty((len(self._results), leaves.shape[1]), np.int64)
        for start in range(0, leaves.shape[1], _SIZE):
            part = leaves[:, start : start + _SIZE]
            size = part.shape[1]
            self._values[: len(part), :size] = part
            _run()(len(self._program), self._program.ctypes.data, self._values.ctypes.data, size)
            found[:, start : start + size] = self._values[self._results, :size]
        return found


@cache
def _run() -> Any:
    """Compiles `run(num_steps, program, values, size)`."""
    module = ir.Module("programs")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64, POINTER, POINTER, I64]), "run")
    num_steps, program, values, size = function.args
    builder, kind = ir.IRBuilder(function.append_basic_block()), lanes_of(I64, _LANES)
    with cgutils.for_range(builder, num_steps) as steps:
        step = builder.gep(program, [builder.mul(steps.index, I64(_FIELDS))], source_etype=I64)
        operation, *rows = (
            builder.load(builder.gep(step, [I64(i)], source_etype=I64), typ=I64) for i in range(_FIELDS)
        )
        rows = [builder.gep(values, [builder.mul(row, I64(_SIZE))], source_etype=I64) for row in rows]
        done = builder.append_basic_block()
        chosen = builder.switch(operation, done)
        for number, name in enumerate(_OPERATIONS):
            block, graph = builder.append_basic_block(name), new_graph()
            chosen.add_case(I64(number), block)
            builder.position_at_end(block)
            with cgutils.for_range_slice(builder, I64(0), size, I64(_LANES)) as (at, _):
                *arguments, result = (builder.gep(row, [at], source_etype=I64) for row in rows)
                given = [builder.load(each, typ=kind, align=8) for each in arguments[: _ARGUMENTS.get(name, 2)]]
                output = make(name, *(graph.leaf(value, WORD, LOWEST, HIGHEST) for value in given))
                emitter = Emitter(builder, _LANES, 64, lambda value, _: value, [output], False)
                builder.store(emitter.get(output, 64), result, align=8)
            builder.branch(done)
        builder.position_at_end(done)
    builder.ret_void()
    engine, address = linked(object_code(str(module), soon=True), function.name)
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, *2 * [ctypes.c_void_p], ctypes.c_int64)(address)
    run.engine = engine  # type: ignore[attr-defined]  # which owns the code
    return run
