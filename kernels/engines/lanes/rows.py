"""Rows of kernels added up to tallies, by the rule of the generic engine."""

from functools import cache
from typing import Any

from quorisk.kernels.compiled import bind
from quorisk.kernels.engines.lanes.kernel import FIXED_COLUMNS, REDO
from quorisk.kernels.engines.numba_engine import add_run
from quorisk.kernels.model import LOST

FIXED = len(FIXED_COLUMNS)


@cache
def add_rows() -> Any:
    """`add_rows(rows, times, timed, time_unit, tally, records, redo)`: see the template."""
    return bind(_add_rows, "lanes", cached=True, redo_outcome=REDO, lost_outcome=LOST, fixed=FIXED, add_run=add_run)


# ruff: noqa: F821


def _add_rows(rows, times, timed, time_unit, tally, records, redo):
    """Adds rows to `tally` and writes them to `records`, unless that is empty; `times` are the rows as float64.

    Returns the number of runs that the rows do not tell all of, and their places in `redo`.
    """
    num_redo = 0
    for i in range(len(rows)):
        ended = rows[i, 0]
        if ended == redo_outcome or (ended == lost_outcome and not timed):
            redo[num_redo] = i
            num_redo += 1
            continue
        time = times[i, 4] * time_unit if timed else 0.0
        ticks = add_run(ended, rows[i, 1], rows[i, 2], rows[i, 3], time, rows[i, fixed:], tally)
        if len(records) > 0:
            records[i, 0] = ended
            records[i, 1] = rows[i, 1]
            records[i, 2] = rows[i, 2]
            records[i, 3] = rows[i, 3]
            records[i, 4] = ticks
    return num_redo
