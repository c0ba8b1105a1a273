"""Are intervals what they say? Every estimator repeated many times on chains whose answer is known."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from analysis import config, paired
from analysis.intervals import METHOD as FIXED
from analysis.intervals import clopper_pearson
from analysis.sequential import Rule, confidence_sequence, fixed_size, looks
from kernels.numba_engine import Job, simulate
from kernels.points import pack
from kernels.tally import BROKEN

PRECISION, RELATIVE_PRECISION = 0.05, 0.5
"""At which the sequential rule stops: absolute and relative half-width."""
BUDGET = 10**8
"""Runs that the sequential rule may use."""
PROTOCOL: dict[str, Any] = {
    "protocol": "compaction",
    "model": {"messages": 1, "compactions": 2, "keys": 1, "values": 1, "max_crashes": 1},
    "run": {"max_steps": 1000},
}
"""A protocol whose answer is known: INVARIANT breaks in a run with probability PROTOCOL_P, by exact solution."""
INVARIANT, PROTOCOL_P = "CompactedLedgerLeak", 0.0
_PROTOCOL_NAME = "compaction engine"

Draw = Callable[[int, int, int], int]
"""`draw(repetition, first_run, num_runs)`: losses among these runs of a repetition, a pure function."""


class Chain(NamedTuple):
    """A source of runs whose probability of a loss is known."""

    name: str
    p: float
    draw: Draw


class Sample(NamedTuple):
    """What one repetition of an estimator gave."""

    runs: int
    low: float
    high: float
    reference: float
    """Width of the Clopper-Pearson interval of the same runs, as if their number had been fixed."""


class Calibration(NamedTuple):
    """An estimator's repetitions on a chain."""

    method: str
    chain: str
    p: float
    truth: float
    """What the interval should hold: p, or the difference or ratio of two probabilities."""
    repetitions: int
    covered: int
    coverage: float
    coverage_low: float
    coverage_high: float
    """Clopper-Pearson, 99% confidence."""
    mean_runs: float
    mean_width: float | None
    """None if an interval had no upper limit."""
    mean_reference_width: float
    """Of the Clopper-Pearson intervals of the same runs; for two variants those of the first."""


class Result(NamedTuple):
    """What a calibration found."""

    confidence: float
    seed: int
    precision: float
    relative_precision: float
    fixed_size: int
    """Runs for which Hoeffding's inequality promises the half-width `precision`, whatever p is."""
    rows: list[Calibration]


def calibrate(
    probabilities: Sequence[float],
    repetitions: int,
    runs: int,
    confidence: float,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Repeats every estimator. `progress` is called with the number of repetitions since its last call."""
    rows = []
    for chain, method, truth, estimator in _work(probabilities, runs, confidence, seed):
        samples = []
        for repetition in range(repetitions):
            samples.append(estimator(repetition))
            if progress:
                progress(1)
        rows.append(_summary(method, chain, truth, samples))
    size = fixed_size(PRECISION, 1.0 - confidence)
    return Result(confidence, seed, PRECISION, RELATIVE_PRECISION, size, rows)


def num_repetitions(num_probabilities: int, repetitions: int) -> int:
    """How many repetitions `calibrate` makes in all."""
    return (5 * num_probabilities + 2) * repetitions


def _work(
    probabilities: Sequence[float], runs: int, confidence: float, seed: int
) -> Iterator[tuple[Chain, str, float, Callable[[int], Sample]]]:
    """Chain, method, truth and what makes one repetition."""
    absolute, relative = Rule(PRECISION, math.inf), Rule(math.inf, RELATIVE_PRECISION)
    for p in probabilities:
        chain = Chain("Bernoulli", p, _bernoulli(p, seed))
        yield chain, FIXED, p, lambda r, c=chain: _fixed(c, r, runs, confidence)
        yield chain, _stopped(absolute), p, lambda r, c=chain: _sequential(c, r, absolute, confidence)
        yield chain, _stopped(relative), p, lambda r, c=chain: _sequential(c, r, relative, confidence)
        cells = paired_cells(p)
        for method, truth, interval in (
            ("paired difference", cells[1] - cells[2], paired.difference_interval),
            ("paired ratio", (cells[0] + cells[1]) / (cells[0] + cells[2]), paired.ratio_interval),
        ):
            yield chain, method, truth, lambda r, i=interval, c=cells: _paired(c, r, runs, confidence, seed, i)
    protocol = _protocol(seed)
    yield protocol, FIXED, protocol.p, lambda r: _fixed(protocol, r, runs, confidence)
    yield protocol, _stopped(absolute), protocol.p, lambda r: _sequential(protocol, r, absolute, confidence)
