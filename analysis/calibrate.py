"""Do intervals hold as often as they say? Each kind is made many times, on chains whose answer is known."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from quorisk.analysis.experiment import config
from quorisk.analysis.statistics import intervals, paired
from quorisk.analysis.statistics.intervals import clopper_pearson
from quorisk.analysis.statistics.sequential import Rule, confidence_sequence, looks
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.numba_engine import simulate
from quorisk.kernels.engines.points import Points, pack
from quorisk.kernels.engines.tally import BROKEN
from quorisk.kernels.model import Model

CONFIDENCE, COVERAGE_CONFIDENCE = 0.95, 0.999
"""Confidence of the intervals, and of the interval of each coverage: the latter is high, because there are many."""
PROBABILITIES, RUNS = (0.5, 0.1, 0.001), 10_000
"""Probabilities of loss, and the number of runs where it is fixed."""
RULES = {"until half-width 0.05": Rule(0.05, math.inf), "until half-width P/2": Rule(math.inf, 0.5)}
"""The sequential rules: absolute and relative."""
BUDGET = 10**9
"""Runs of a repetition: no rule needs as many."""
PROTOCOL: dict[str, Any] = {
    "protocol": "compaction",
    "model": {"messages": 1, "compactions": 3, "keys": 1, "values": 1, "max_crashes": 1},
}
PROTOCOL_P = {"DuplicateNullKeyMessage": 1 / 2, "CompactedLedgerLeak": 3 / 1024}
"""The probabilities with which PROTOCOL breaks invariants: its 250 states added up in exact fractions."""


class IntervalKind(NamedTuple):
    """A kind of interval on a chain with a known answer."""

    method: str
    chain: str
    truth: float
    interval: Callable[[int], tuple[int, float, float]]
    """The runs and both ends of the interval of a repetition; a pure function."""


class Calibration(NamedTuple):
    """Coverage of a kind of interval: how often it held the truth."""

    method: str
    chain: str
    truth: float
    repetitions: int
    coverage: float
    coverage_low: float
    coverage_high: float
    mean_runs: float
    mean_width: float | None
    """Mean width of the intervals; None if one had no upper limit."""


def kinds(probabilities: Sequence[float] = PROBABILITIES, runs: int = RUNS, seed: int = 0) -> Iterator[IntervalKind]:
    """Yields every kind of interval on each chain; `runs` are those of the intervals for a fixed number of runs."""
    chains = [("Bernoulli", p, partial(_bernoulli, p, seed)) for p in probabilities]
    chains += [(name, p, partial(_protocol, name, seed)) for name, p in PROTOCOL_P.items()]
    for chain, p, draw in chains:
        yield IntervalKind(intervals.METHOD, chain, p, partial(_fixed, draw, runs))
        for name, rule in RULES.items():
            yield IntervalKind(name, chain, p, partial(_sequential, draw, rule))
    for p in probabilities:
        both, only_variant, only_baseline, _ = pair_of(p)
        difference, ratio = only_variant - only_baseline, (both + only_variant) / (both + only_baseline)
        paired_runs = partial(_paired, p, runs, seed)
        yield IntervalKind(
            "paired difference", "multinomial", difference, partial(paired_runs, paired.difference_interval)
        )
        yield IntervalKind("paired ratio", "multinomial", ratio, partial(paired_runs, paired.ratio_interval))


def calibrate(kind: IntervalKind, repetitions: int) -> Calibration:
    """Repeats a kind of interval."""
    runs, lows, highs = np.array([kind.interval(repetition) for repetition in range(repetitions)]).T
    covered = int(((lows <= kind.truth) & (kind.truth <= highs)).sum())
    low, high = clopper_pearson(covered, repetitions, COVERAGE_CONFIDENCE)
    width = float((highs - lows).mean())
    return Calibration(
        *kind[:3],
        repetitions=repetitions,
        coverage=covered / repetitions,
        coverage_low=low,
        coverage_high=high,
        mean_runs=float(runs.mean()),
        mean_width=width if width < math.inf else None,
    )


def pair_of(p: float) -> tuple[float, float, float, float]:
    """Probabilities of the cells of a `paired.PairTable`: the variant loses with probability p; the baseline in half of
    those runs, and in a part p / 4 of the others."""
    return p / 2, p / 2, (1 - p) * p / 4, (1 - p) * (1 - p / 4)


def _fixed(draw: Callable[[int, int, int], int], runs: int, repetition: int) -> tuple[int, float, float]:
    return runs, *clopper_pearson(draw(repetition, 0, runs), runs, CONFIDENCE)


def _sequential(draw: Callable[[int, int, int], int], rule: Rule, repetition: int) -> tuple[int, float, float]:
    losses = runs = 0
    low, high = 0.0, 1.0
    for look in looks(BUDGET):
        losses += draw(repetition, runs, look - runs)
        runs = look
        low, high = confidence_sequence(losses, runs, CONFIDENCE)
        if rule.is_met(losses, runs, low, high):
            break
    return runs, low, high


def _paired(
    p: float, runs: int, seed: int, interval: Callable[[paired.PairTable, float], tuple[float, float]], repetition: int
) -> tuple[int, float, float]:
    table = paired.PairTable(*_generator(seed, repetition, 0, p).multinomial(runs, pair_of(p)).tolist())
    return runs, *interval(table, CONFIDENCE)


def _bernoulli(p: float, seed: int, repetition: int, first_run: int, num_runs: int) -> int:
    """Losses among runs, each of which loses with probability p, independently of the others."""
    return int(_generator(seed, repetition, first_run, p).binomial(num_runs, p))


def _generator(seed: int, repetition: int, first_run: int, p: float) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=[seed, repetition], counter=[0, 0, first_run, int(p * 2**53)]))


@cache
def _protocol_point() -> tuple[Model, Points]:
    experiment = config.build_experiment(PROTOCOL, "analysis/calibrate.py")
    return experiment.model, pack(experiment.model, [experiment.points[0].point])


def _protocol(invariant: str, seed: int, repetition: int, first_run: int, num_runs: int) -> int:
    """Runs of PROTOCOL that broke an invariant; a repetition has run indices of its own."""
    model, points = _protocol_point()
    column = BROKEN + [each.name for each in model.invariants].index(invariant)
    job = Job(0, repetition * BUDGET + first_run, num_runs)
    return int(simulate(model, points, [job], seed)[0, column])
