"""Are intervals what they say? Every kind repeated many times on chains whose answer is known."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from quorisk.analysis.experiment import config
from quorisk.analysis.statistics import intervals, paired
from quorisk.analysis.statistics.intervals import clopper_pearson
from quorisk.analysis.statistics.sequential import Rule, confidence_sequence, fixed_size, looks
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.numba_engine import simulate
from quorisk.kernels.engines.points import Points, pack
from quorisk.kernels.engines.tally import BROKEN
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import Model

RULES = {
    "until half-width 0.05": Rule(0.05, math.inf),
    "until half-width P/2": Rule(math.inf, 0.5),
}
"""The sequential rules: absolute and relative."""
LEAST_P = 1e-6
BUDGET = 10**9
"""Runs that a sequential rule may use: none of these needs as many for LEAST_P."""
COVERAGE_CONFIDENCE = 0.999
"""The confidence of the interval of each coverage; high, because there are many of them."""
PROTOCOL: dict[str, Any] = {
    "protocol": "compaction",
    "model": {"messages": 1, "compactions": 3, "keys": 1, "values": 1, "max_crashes": 1},
}
PROTOCOL_P = {"DuplicateNullKeyMessage": 1 / 2, "CompactedLedgerLeak": 3 / 1024}
"""With which probability PROTOCOL breaks what, by adding up its 250 states in exact fractions."""


class Sample(NamedTuple):
    """What an estimator gave once."""

    runs: int
    low: float
    high: float
    reference: float
    """Width of the Clopper-Pearson interval of the same runs, as if their number had been fixed."""


class Estimator(NamedTuple):
    """A kind of interval on a chain with a known answer."""

    method: str
    chain: str
    p: float
    truth: float
    """What the interval should hold: p, or the difference or ratio of p and another probability."""
    sample: Callable[[int], Sample]
    """`sample(repetition)`; a pure function."""


class Calibration(NamedTuple):
    """How well an estimator did."""

    method: str
    chain: str
    p: float
    truth: float
    repetitions: int
    covered: int
    coverage: float
    coverage_low: float
    coverage_high: float
    mean_runs: float
    mean_width: float | None
    """The mean width of the intervals; None if one had no upper limit."""
    mean_reference: float
    """Width of the Clopper-Pearson intervals for p of the same runs."""


class Result(NamedTuple):
    """What a calibration found."""

    confidence: float
    seed: int
    coverage_confidence: float
    fixed_size: int
    """Runs for which Hoeffding's inequality promises a half-width of 0.05, whatever p is."""
    rows: list[Calibration]


def estimators(probabilities: Sequence[float], runs: int, confidence: float, seed: int) -> Iterator[Estimator]:
    """Yields every kind of interval on each chain; `runs` are those of the intervals for a fixed number of runs."""
    chains = [("Bernoulli", p, partial(_bernoulli, p, seed)) for p in probabilities]
    chains += [(name, p, partial(_protocol, name, seed)) for name, p in PROTOCOL_P.items()]
    for chain, p, draw in chains:
        yield Estimator(intervals.METHOD, chain, p, p, partial(_fixed, draw, runs, confidence))
        for name, rule in RULES.items():
            yield Estimator(name, chain, p, p, partial(_sequential, draw, rule, confidence))
    for p in probabilities:
        both, only_variant, only_baseline, _ = pair_of(p)
        ratio = (both + only_variant) / (both + only_baseline)
        for name, truth, interval in (
            ("paired difference", only_variant - only_baseline, paired.difference_interval),
            ("paired ratio", ratio, paired.ratio_interval),
        ):
            yield Estimator(name, "multinomial", p, truth, partial(_paired, p, runs, confidence, seed, interval))


def calibrate(
    chosen: Sequence[Estimator],
    repetitions: int,
    confidence: float,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Repeats estimators. `progress` is called with the number of repetitions that ended since its last call."""
    rows = []
    for estimator in chosen:
        samples = []
        for repetition in range(repetitions):
            samples.append(estimator.sample(repetition))
            if progress:
                progress(1)
        rows.append(_summary(estimator, samples))
    return Result(confidence, seed, COVERAGE_CONFIDENCE, fixed_size(0.05, 1.0 - confidence), rows)


def parse_probabilities(text: str) -> list[float]:
    """Returns probabilities such as "0.5,0.1". Raises ConfigError."""
    try:
        probabilities = [float(each) for each in text.split(",")]
    except ValueError:
        probabilities = []
    if not probabilities or not all(LEAST_P <= p < 1 for p in probabilities):
        raise ConfigError(f" {text}: numbers from {LEAST_P:g} to 1, without 1, with commas between them", "p")
    return probabilities


def pair_of(p: float) -> tuple[float, float, float, float]:
    """Probabilities of the cells of a `paired.Table`: the variant loses with probability p; the baseline in half of
    those runs, and in a part p / 4 of the others."""
    return p / 2, p / 2, (1 - p) * p / 4, (1 - p) * (1 - p / 4)


def _summary(estimator: Estimator, samples: Sequence[Sample]) -> Calibration:
    covered = sum(sample.low <= estimator.truth <= sample.high for sample in samples)
    low, high = clopper_pearson(covered, len(samples), COVERAGE_CONFIDENCE)
    width = float(np.mean([sample.high - sample.low for sample in samples]))
    return Calibration(
        method=estimator.method,
        chain=estimator.chain,
        p=estimator.p,
        truth=estimator.truth,
        repetitions=len(samples),
        covered=covered,
        coverage=covered / len(samples),
        coverage_low=low,
        coverage_high=high,
        mean_runs=float(np.mean([sample.runs for sample in samples])),
        mean_width=width if width < math.inf else None,
        mean_reference=float(np.mean([sample.reference for sample in samples])),
    )


def _fixed(draw: Callable[[int, int, int], int], runs: int, confidence: float, repetition: int) -> Sample:
    low, high = clopper_pearson(draw(repetition, 0, runs), runs, confidence)
    return Sample(runs, low, high, high - low)


def _sequential(draw: Callable[[int, int, int], int], rule: Rule, confidence: float, repetition: int) -> Sample:
    losses = runs = 0
    low, high = 0.0, 1.0
    for look in looks(BUDGET):
        losses += draw(repetition, runs, look - runs)
        runs = look
        low, high = confidence_sequence(losses, runs, confidence)
        if rule.is_met(losses, runs, low, high):
            break
    reference = clopper_pearson(losses, runs, confidence)
    return Sample(runs, low, high, reference[1] - reference[0])


def _paired(
    p: float,
    runs: int,
    confidence: float,
    seed: int,
    interval: Callable[[paired.Table, float], tuple[float, float]],
    repetition: int,
) -> Sample:
    table = paired.Table(*_generator(seed, repetition, 0, p).multinomial(runs, pair_of(p)).tolist())
    reference = clopper_pearson(table.both + table.only_variant, runs, confidence)
    return Sample(runs, *interval(table, confidence), reference[1] - reference[0])


def _bernoulli(p: float, seed: int, repetition: int, first_run: int, num_runs: int) -> int:
    """Losses among runs, each of which loses with probability p, independently of the others."""
    return int(_generator(seed, repetition, first_run, p).binomial(num_runs, p))


def _generator(seed: int, repetition: int, first_run: int, p: float) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=[seed, repetition], counter=[0, 0, first_run, int(p * 2**53)]))


@cache
def _protocol_point() -> tuple[Model, Points]:
    experiment = config.build(PROTOCOL, "analysis/calibrate.py")
    return experiment.model, pack(experiment.model, [experiment.points[0].point])


def _protocol(invariant: str, seed: int, repetition: int, first_run: int, num_runs: int) -> int:
    """Runs of PROTOCOL that broke an invariant; a repetition has run indices of its own."""
    model, points = _protocol_point()
    column = BROKEN + [each.name for each in model.invariants].index(invariant)
    job = Job(0, repetition * BUDGET + first_run, num_runs)
    return int(simulate(model, points, [job], seed)[0, column])
