"""Rows of kernels: written by lanes whose runs have ended, added up to tallies by the rule of the generic engine."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from quorisk.kernels.compiled import LATE, bind
from quorisk.kernels.engines.lanes.kernel import FIXED_COLUMNS, REDO
from quorisk.kernels.engines.tally import add_run, write_record
from quorisk.kernels.model import LOST, Model, exposure_mask
from quorisk.kernels.tracing.machine import DOUBLE, I1, I64, constant, intrinsic

FIXED = len(FIXED_COLUMNS)


@cache
def add_rows() -> Any:
    """`add_rows(rows, times, timed, time_unit, shape, tally, records, redo)`: see the template."""
    return bind(_add_rows, "lanes", cached=True, redo_outcome=REDO, lost_outcome=LOST, fixed=FIXED)


def model_shape(model: Model) -> tuple[int, int]:
    """What `add_rows` has to know of a model: its number of invariants, and the mask of its exposures."""
    return len(model.invariants), exposure_mask(model)


def write_rows(
    builder: Any, scratch: Any, rows: Any, columns: Sequence[Any], run: Any, ended: Any, following: Any
) -> tuple[Any, Any]:
    """Writes the rows of the lanes whose bits are set in `ended`, and gives these lanes the runs from `following` on.

    `columns` are a row's values and `run` the number of each lane's run; `rows` has a row for each run. Returns the
    numbers of all lanes' runs now, and that of the next run. Leaves the builder in another block.
    """
    lanes, kept = run.type.count, dict[int, Any]()
    for value in (*columns, run):  # many columns are one value, or the same for all runs
        if not isinstance(value, ir.Constant) and id(value) not in kept:
            kept[id(value)] = builder.gep(scratch, [constant(I64, len(kept) * lanes)], source_etype=I64)
            builder.store(value, kept[id(value)], align=8)
    start, loop, after = builder.block, builder.append_basic_block("row"), builder.append_basic_block("refill")
    builder.branch(loop)
    builder.position_at_end(loop)
    left, number = builder.phi(I64), builder.phi(I64)
    lane = intrinsic(builder, "llvm.cttz", I64, [left, constant(I1, 1)], I64)

    def of_lane(value: Any) -> Any:
        return builder.gep(kept[id(value)], [lane], source_etype=value.type.element)

    first = builder.mul(_word(builder, builder.load(of_lane(run), typ=run.type.element)), constant(I64, len(columns)))
    for i, value in enumerate(columns):
        element = value.type.element
        one = value if isinstance(value, ir.Constant) else builder.load(of_lane(value), typ=element)
        one = builder.extract_element(one, lane) if isinstance(value, ir.Constant) else one
        builder.store(_word(builder, one), builder.gep(rows, [builder.add(first, constant(I64, i))], source_etype=I64))
    builder.store(builder.trunc(number, run.type.element), of_lane(run))
    remaining = builder.and_(left, builder.sub(left, constant(I64, 1)))
    next_number = builder.add(number, constant(I64, 1))
    for phi, at_first, on in ((left, ended, remaining), (number, following, next_number)):
        phi.add_incoming(at_first, start)
        phi.add_incoming(on, builder.block)
    builder.cbranch(builder.icmp_unsigned("!=", remaining, constant(I64, 0)), loop, after)
    builder.position_at_end(after)
    return builder.load(kept[id(run)], typ=run.type, align=8), next_number


def _word(builder: Any, value: Any) -> Any:
    """A column's value in a row's 64 bits."""
    return builder.bitcast(value, I64) if value.type == DOUBLE else builder.sext(value, I64)


# A template, with the names that are bound by `add_rows`

fixed = lost_outcome = redo_outcome = LATE


def _add_rows(rows, times, timed, time_unit, shape, tally, records, redo):
    """Adds rows to `tally` and writes them to `records`, unless that is empty; `times` are the rows as float64.

    Returns the number of runs that the rows do not tell all of, and their places in `redo`.
    """
    num_redo = 0
    num_invariants, exposure = shape
    # filled for the few runs that break something: a view of each row would be counted by its owner
    first_steps, exposed = np.zeros(num_invariants, np.int64), np.zeros(rows.shape[1] - fixed - num_invariants)
    for i in range(len(rows)):
        ended, broken_mask, met_mask, steps, messages = rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3], rows[i, 4]
        asks_time = ended == lost_outcome or broken_mask & exposure != 0
        if ended == redo_outcome or (asks_time and not timed):
            redo[num_redo] = i
            num_redo += 1
            continue
        time = times[i, 5] if timed else 0.0
        if broken_mask != 0:
            for k in range(num_invariants):
                first_steps[k] = rows[i, fixed + k]
            for k in range(len(exposed)):
                exposed[k] = times[i, fixed + num_invariants + k]
        high, low = add_run(ended, broken_mask, met_mask, steps, messages, time, time_unit, first_steps, exposed, tally)
        if len(records) > 0:
            write_record(records, i, ended, broken_mask, met_mask, steps, messages, high, low)
    return num_redo
