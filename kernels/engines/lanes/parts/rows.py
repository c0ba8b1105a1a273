"""Rows of kernels: written by lanes whose runs have ended, added up to tallies by the rule of the generic engine."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from quorisk.kernels.compiled import LATE, bind
from quorisk.kernels.engines.lanes.plan import REDO
from quorisk.kernels.engines.tally import add_all, add_run, parts
from quorisk.kernels.model import LOST, Model, exposure_mask
from quorisk.kernels.tracing.machine import DOUBLE, I1, I64, POINTER, constant, intrinsic

LINE_WORDS = 8
"""Words of a line of the processor's cache, and of its widest register."""


@cache
def add_rows() -> Any:
    """`add_rows(rows, times, timed, time_unit, shape, columns, tally, redo)`: see the template."""
    return bind(_add_rows, "lanes", kept_for="", redo_outcome=REDO, lost_outcome=LOST)


class _Ended(NamedTuple):
    """Runs, as `tally.sums` takes them."""

    outcome: np.ndarray
    broken_mask: np.ndarray
    met_mask: np.ndarray
    steps: np.ndarray
    messages: np.ndarray
    first_steps: Sequence[Any]


def add_rows_at_once(
    model: Model,
    rows: np.ndarray,
    timed: bool,
    time_unit: float,
    columns: np.ndarray,
    tally: np.ndarray,
    records: np.ndarray,
) -> np.ndarray:
    """Does what `add_rows` does, by NumPy: slower, but without compiling or loading code. Writes `records`, too, unless
    there is no room for any.

    Returns the places of incomplete rows.
    """
    is_complete = rows[:, 0] != REDO
    if not timed:
        is_complete &= (rows[:, 0] != LOST) & (rows[:, 1] & exposure_mask(model) == 0)
    there = rows[is_complete]
    times, nothing = there.view(np.float64), np.zeros(len(there))
    steps, lasted = np.split(columns, [len(model.invariants)])
    first_steps = [there[:, column] if column >= 0 else 0 for column in steps]
    fixed = there[:, 0], there[:, 1], there[:, 2], there[:, 3], there[:, 4]
    ended = _Ended(*fixed, first_steps)
    time = parts(times[:, 5] * time_unit if timed else nothing)
    exposed = [parts(times[:, column] * time_unit if column >= 0 else nothing) for column in lasted]
    add_all(model, ended, time, [part for both in exposed for part in both], tally)
    if len(records):
        records[is_complete] = np.stack([*fixed, *time], axis=1)
    return np.flatnonzero(~is_complete)


def model_shape(model: Model) -> tuple[int, int]:
    """Returns a model's number of invariants and the mask of its exposures, which `add_rows` needs."""
    return len(model.invariants), exposure_mask(model)


def scratch_words(num_columns: int, lanes: int) -> int:
    """Words of the memory that `write_rows` needs, with those for its alignment."""
    return (num_columns + 1) * max(lanes, LINE_WORDS) + LINE_WORDS


def aligned(builder: Any, scratch: Any) -> Any:
    """The first place in the scratch memory at which a line of the processor's cache begins."""
    size = 8 * LINE_WORDS
    above = builder.add(builder.ptrtoint(scratch, I64), constant(I64, size - 1))
    return builder.inttoptr(builder.and_(above, constant(I64, -size)), POINTER)


def write_rows(builder: Any, scratch: Any, rows: Any, columns: Sequence[Any], run: Any, ended: Any) -> None:
    """Writes the rows that the step before kept, of the lanes whose bits are set in `ended`.

    Then keeps those of this step: `columns` are a row's values and `run` the number of each lane's run; `rows` has a
    row for each run. A processor cannot predict how many runs end in a step; a step later the number has been known for
    long. `scratch` is `aligned`. Leaves the builder in another block.
    """
    kept, used = dict[int, Any](), 0
    for value in (*columns, run):  # many columns are one value, or the same for all runs
        if not isinstance(value, ir.Constant) and id(value) not in kept:
            kept[id(value)] = builder.gep(scratch, [constant(I64, used)], source_etype=I64)
            bits = 64 if value.type.element == DOUBLE else value.type.element.width
            used += -(-bits * value.type.count // (64 * LINE_WORDS)) * LINE_WORDS
    start, loop, after = builder.block, builder.append_basic_block("row"), builder.append_basic_block("written")
    builder.cbranch(builder.icmp_unsigned("!=", ended, constant(I64, 0)), loop, after)
    builder.position_at_end(loop)
    left = builder.phi(I64)
    lane = intrinsic(builder, "llvm.cttz", I64, [left, constant(I1, 1)], I64)

    def of_lane(value: Any) -> Any:
        return builder.gep(kept[id(value)], [lane], source_etype=value.type.element)

    first = builder.mul(_word(builder, builder.load(of_lane(run), typ=run.type.element)), constant(I64, len(columns)))
    for i, value in enumerate(columns):
        element = value.type.element
        one = value if isinstance(value, ir.Constant) else builder.load(of_lane(value), typ=element)
        one = builder.extract_element(one, lane) if isinstance(value, ir.Constant) else one
        builder.store(_word(builder, one), builder.gep(rows, [builder.add(first, constant(I64, i))], source_etype=I64))
    remaining = builder.and_(left, builder.sub(left, constant(I64, 1)))  # without the lane just written, the lowest
    left.add_incoming(ended, start)
    left.add_incoming(remaining, builder.block)
    builder.cbranch(builder.icmp_unsigned("!=", remaining, constant(I64, 0)), loop, after)
    builder.position_at_end(after)
    for value in (*columns, run):
        if id(value) in kept:
            builder.store(value, kept.pop(id(value)), align=8 * LINE_WORDS)


def _word(builder: Any, value: Any) -> Any:
    """A column's value in a row's 64 bits."""
    return builder.bitcast(value, I64) if value.type == DOUBLE else builder.sext(value, I64)


# A template, with the names that are bound by `add_rows`

lost_outcome = redo_outcome = LATE


def _add_rows(rows, times, timed, time_unit, shape, columns, tally, redo):
    """Adds rows to `tally`; `times` are the rows as float64.

    Returns the number of incomplete rows, and writes their places to `redo`.
    """
    num_redo = 0
    num_invariants, exposure = shape
    # filled for the few runs that break something: a view of each row would be counted by its owner
    first_steps, exposed = np.zeros(num_invariants, np.int64), np.zeros(len(columns) - num_invariants)
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
                first_steps[k] = rows[i, columns[k]] if columns[k] >= 0 else 0
            for k in range(len(exposed)):
                column = columns[num_invariants + k]
                exposed[k] = times[i, column] if column >= 0 else 0.0
        add_run(ended, broken_mask, met_mask, steps, messages, time, time_unit, first_steps, exposed, tally)
    return num_redo
