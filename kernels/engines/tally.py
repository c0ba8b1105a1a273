"""Tallies of runs: integers only, so that sums do not depend on order, threads or partitions.

A time is a whole number of ticks of 2**-30 of a unit of model time, up to 2**76: with seconds, from nanoseconds to two
million years. Since 64 bits do not hold it, it is summed in two parts, of which the lower has LOW_BITS.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.engines.job import RECORD
from quorisk.kernels.model import LOST, OUTCOMES, Model, exposures, fault_kinds
from quorisk.kernels.ops import as_int64, as_uint64, jitable, leading_zeros, where

STEP_BINS, TIME_BINS = 32, 78
"""Bins of the histograms: bin 0 counts zeros, bin b counts 2**(b - 1) to 2**b - 1, the last bin all above."""
TIME_TICK = 2.0**-30
"""Unit of model time in sums and histograms."""
LOW_BITS = 38
HIGH_TICK = 2.0**LOW_BITS * TIME_TICK
"""Unit of the higher part of a time."""
TICKS, HIGH_TICKS = 1.0 / TIME_TICK, 1.0 / HIGH_TICK
MOST_TIME = 2.0**46
"""Longest time; longer ones count as this."""
MOST_TICKS, MOST_HIGH_TICKS = int(MOST_TIME * TICKS), int(MOST_TIME * HIGH_TICKS)

FIXED_COLUMNS = (*OUTCOMES, "steps", "steps_squared", "messages", "loss_steps", "loss_time_high", "loss_time_low")
STEPS, STEPS_SQUARED, MESSAGES, LOSS_STEPS, LOSS_TIME_HIGH, LOSS_TIME_LOW = range(len(OUTCOMES), len(FIXED_COLUMNS))
STEP_HISTOGRAM = len(FIXED_COLUMNS)
TIME_HISTOGRAM = STEP_HISTOGRAM + STEP_BINS
BROKEN = TIME_HISTOGRAM + TIME_BINS
"""First of the columns by invariant: runs that broke it, then the sums of the first steps at which they did. After them
come two for each exposure, the parts of the time for which it lasted, and then lost runs by the mask of the kinds of
faults that they met."""


class Tally(NamedTuple):
    """Sums over `runs` runs of one point; those of losses are over lost runs."""

    runs: int
    outcomes: dict[str, int]
    steps: int
    steps_squared: int
    messages: int
    loss_steps: int
    loss_time_ticks: int
    step_histogram: list[int]
    loss_time_histogram: list[int]
    broken: dict[str, int]
    first_steps: dict[str, int]
    exposed_ticks: dict[str, int]
    """Ticks for which each invariant was broken whose breach is exposure."""
    losses_by_faults: dict[frozenset[str], int]
    """Lost runs by the kinds of faults that they met; only sets that came up."""


def ticks(high: int, low: int) -> int:
    """A time, or a sum of times, in ticks, of its two parts."""
    return (int(high) << LOW_BITS) + int(low)


@jitable
def parts(time):
    """The two parts of a time, float64 in units of model time. Only fractions of a tick are rounded."""
    time = where(time < MOST_TIME, time, MOST_TIME)
    high = as_int64(time * HIGH_TICKS)
    return high, as_int64((time - high * HIGH_TICK) * TICKS)


@jitable
def time_bin(high, low):
    """The bin of a time in a histogram."""
    bits_high, bits_low = 64 - leading_zeros(as_uint64(high)), 64 - leading_zeros(as_uint64(low))
    return where(high > 0, LOW_BITS + bits_high, bits_low)


@jitable
def add_run(ended, broken_mask, met_mask, steps, messages, time, time_unit, first_steps, exposed, tally):
    """Adds a run to a tally; returns the two parts of its time. Times are in the engines' unit."""
    high, low = parts(time * time_unit)
    tally[ended] += 1
    tally[STEPS] += steps
    tally[STEPS_SQUARED] += steps * steps
    tally[MESSAGES] += messages
    tally[STEP_HISTOGRAM + min(64 - leading_zeros(as_uint64(steps)), STEP_BINS - 1)] += 1
    after_broken = BROKEN + 2 * len(first_steps)
    if ended == LOST:
        tally[LOSS_STEPS] += steps
        tally[LOSS_TIME_HIGH] += high
        tally[LOSS_TIME_LOW] += low
        tally[TIME_HISTOGRAM + time_bin(high, low)] += 1
        tally[after_broken + 2 * len(exposed) + met_mask] += 1
    if broken_mask != 0:
        for i in range(len(first_steps)):
            here = broken_mask >> i & 1
            tally[BROKEN + i] += here
            tally[BROKEN + len(first_steps) + i] += here * first_steps[i]
        for k in range(len(exposed)):
            exposed_high, exposed_low = parts(exposed[k] * time_unit)
            tally[after_broken + 2 * k] += exposed_high
            tally[after_broken + 2 * k + 1] += exposed_low
    return high, low


@jitable
def write_record(records, row, ended, broken_mask, met_mask, steps, messages, high, low):
    """Writes a row of RECORD."""
    records[row, 0] = ended
    records[row, 1] = broken_mask
    records[row, 2] = met_mask
    records[row, 3] = steps
    records[row, 4] = messages
    records[row, 5] = high
    records[row, 6] = low


def sums(runs: Any, time: tuple[Any, Any], exposed: Sequence[Any]) -> list[tuple[int, list[Any]]]:
    """Returns what each of many runs adds to a tally by `add_run`'s rule: (first column, columns from there on) pairs.

    `runs` has arrays, NumPy's or JAX's, with an element for each run; `time` and `exposed` are parts of times.
    """
    steps = runs.steps.astype(np.int64)
    lost = runs.outcome == LOST
    added = [runs.outcome == outcome for outcome in range(len(OUTCOMES))]
    added += [steps, steps * steps, runs.messages, *(where(lost, each, 0) for each in (steps, *time))]
    broken = [runs.broken_mask >> i & 1 for i in range(len(runs.first_steps))]
    broken += [bit * first for bit, first in zip(broken, runs.first_steps, strict=True)]
    return [(0, added), (BROKEN, [*broken, *exposed])]


def bins(model: Model, runs: Any, time: tuple[Any, Any]) -> list[tuple[Any, Any]]:
    """Returns, for each histogram, which of such runs count one in it, and in which column each does."""
    lost = runs.outcome == LOST
    bits = 64 - leading_zeros(as_uint64(runs.steps))
    return [
        (lost | True, STEP_HISTOGRAM + where(bits < STEP_BINS, bits, STEP_BINS - 1)),
        (lost, TIME_HISTOGRAM + time_bin(*time)),
        (lost, first_met(model) + runs.met_mask),
    ]


def add_all(model: Model, runs: Any, time: tuple[Any, Any], exposed: Sequence[Any], tally: np.ndarray) -> None:
    """Adds such runs, NumPy's, to a tally."""
    for first, columns in sums(runs, time, exposed):
        tally[first : first + len(columns)] += np.array([int(column.sum()) for column in columns], np.int64)
    for among, column in bins(model, runs, time):
        tally += np.bincount(column[among], minlength=len(tally))


def first_exposed(model: Model) -> int:
    """First of the columns by exposure."""
    return BROKEN + 2 * len(model.invariants)


def first_met(model: Model) -> int:
    """First of the columns by mask of the kinds of faults."""
    return first_exposed(model) + 2 * len(exposures(model))


def num_columns(model: Model) -> int:
    """Length of a model's tally row."""
    return first_met(model) + (1 << len(fault_kinds(model)))


def empty(model: Model, num_records: int) -> tuple[np.ndarray, np.ndarray]:
    """A tally of no runs, int64 of length `num_columns(model)`, and room for `num_records` records."""
    return np.zeros(num_columns(model), np.int64), np.empty((num_records, len(RECORD)), np.int64)


def named_tally(model: Model, row: list[int]) -> Tally:
    """A tally row, int64 of length `num_columns(model)`, under names."""
    names = [invariant.name for invariant in model.invariants]
    values = [int(value) for value in row]
    exposed, met = first_exposed(model), first_met(model)
    by_invariant = values[BROKEN:exposed]
    return Tally(
        runs=sum(values[: len(OUTCOMES)]),
        outcomes=dict(zip(OUTCOMES, values, strict=False)),
        steps=values[STEPS],
        steps_squared=values[STEPS_SQUARED],
        messages=values[MESSAGES],
        loss_steps=values[LOSS_STEPS],
        loss_time_ticks=ticks(values[LOSS_TIME_HIGH], values[LOSS_TIME_LOW]),
        step_histogram=values[STEP_HISTOGRAM:TIME_HISTOGRAM],
        loss_time_histogram=values[TIME_HISTOGRAM:BROKEN],
        broken=dict(zip(names, by_invariant[: len(names)], strict=True)),
        first_steps=dict(zip(names, by_invariant[len(names) :], strict=True)),
        exposed_ticks={
            names[place]: ticks(*values[exposed + 2 * k : exposed + 2 * k + 2])
            for k, place in enumerate(exposures(model))
        },
        losses_by_faults={kinds_of(model, mask): losses for mask, losses in enumerate(values[met:]) if losses},
    )


def kinds_of(model: Model, met_mask: int) -> frozenset[str]:
    """The kinds of faults that a run met, of its mask."""
    return frozenset(kind for k, kind in enumerate(fault_kinds(model)) if met_mask >> k & 1)
