"""What a batch of runs is summed up to: integers only, so that sums do not depend on order, threads or partitions."""

from typing import NamedTuple

from quorisk.kernels.model import OUTCOMES, Model

STEP_BINS, TIME_BINS = 32, 64
"""Bins of the histograms: bin 0 counts zeros, bin b counts 2**(b - 1) to 2**b - 1, the last bin all above."""
TIME_TICK = 2.0**-20
"""Unit of model time in sums and histograms."""
TICKS = 1.0 / TIME_TICK
MOST_TICKS = 2.0**42
"""Longer times count as this many ticks."""

FIXED_COLUMNS = (
    *OUTCOMES,
    "steps",
    "steps_squared",
    "messages",
    "loss_steps",
    "loss_time_ticks",
)
STEPS, STEPS_SQUARED, MESSAGES, LOSS_STEPS, LOSS_TIME = range(len(OUTCOMES), len(FIXED_COLUMNS))
STEP_HISTOGRAM = len(FIXED_COLUMNS)
TIME_HISTOGRAM = STEP_HISTOGRAM + STEP_BINS
BROKEN = TIME_HISTOGRAM + TIME_BINS
"""First of the columns by invariant: runs that broke it, then the sums of the first steps at which they did."""


class Tally(NamedTuple):
    """Sums over `runs` runs of one point; every field but `broken` and `first_steps` is over all of them."""

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


def num_columns(model: Model) -> int:
    """Length of a model's tally row."""
    return BROKEN + 2 * len(model.invariants)


def read(model: Model, row: list[int]) -> Tally:
    """A tally row, int64 of length `num_columns(model)`, under names."""
    names = [invariant.name for invariant in model.invariants]
    values = [int(value) for value in row]
    by_invariant = values[BROKEN:]
    return Tally(
        runs=sum(values[: len(OUTCOMES)]),
        outcomes=dict(zip(OUTCOMES, values, strict=False)),
        steps=values[STEPS],
        steps_squared=values[STEPS_SQUARED],
        messages=values[MESSAGES],
        loss_steps=values[LOSS_STEPS],
        loss_time_ticks=values[LOSS_TIME],
        step_histogram=values[STEP_HISTOGRAM:TIME_HISTOGRAM],
        loss_time_histogram=values[TIME_HISTOGRAM:BROKEN],
        broken=dict(zip(names, by_invariant[: len(names)], strict=True)),
        first_steps=dict(zip(names, by_invariant[len(names) :], strict=True)),
    )
