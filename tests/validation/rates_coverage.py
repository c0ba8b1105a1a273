#!/usr/bin/env python3
"""How often 90 % intervals of losses hold the truth, of simulated fleets: the tables of docs/rates.md.

    .venv/bin/python tests/validation/rates_coverage.py [--fleets 1000] [--seed 1]

Losses go with the fourth power of the failure rate, as with four copies. A fleet's models have lognormal rates around
one that is drawn for it, and as many drive-years as are drawn for each; failures are Poisson. Asked is the rate of the
one model whose drives were counted, or that of another model, by three ways to pool: all counts together, the range of
the models' own rates, and the posterior of groups that differ (`analysis/statistics/pooling.py`).
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from quorisk.analysis.statistics.known import Gamma
from quorisk.analysis.statistics.pooling import Pooled

COPIES = 4
ENDS = [0.05, 0.95]
RATE_A_YEAR, DRIVE_YEARS = (0.003, 0.05), (300.0, 30_000.0)
FAILURES = ((1, 3), (3, 10), (10, 100), (100, 10_000))
SPREADS, MODELS = (0.0, 0.3, 0.6, 1.0), (2, 5, 12, 40)

Interval = tuple[float, float]


def by_sum(failures: np.ndarray, drive_years: np.ndarray) -> Interval:
    """All counts together, as of one model."""
    low, high = Gamma(failures.sum(), drive_years.sum()).quantile(ENDS)
    return low, high


def by_range(failures: np.ndarray, drive_years: np.ndarray) -> Interval:
    """From the least of the models' own rates to the most."""
    medians = [Gamma(k, t).median for k, t in zip(failures, drive_years, strict=True)]
    return min(medians), max(medians)


def by_posterior(failures: np.ndarray, drive_years: np.ndarray) -> Interval:
    """What is known of a model that is not among them."""
    low, high = Pooled(failures, drive_years).another().quantile(ENDS)
    return low, high


def holds(interval: Interval, rate: float) -> bool:
    """Whether the interval of losses holds those of the true rate."""
    return interval[0] ** COPIES <= rate**COPIES <= interval[1] ** COPIES


def one_model(rng: np.random.Generator, fleets: int, expected: tuple[float, float]) -> float:
    """The share of fleets of one model, with so many failures expected, whose interval holds the truth."""
    held = 0
    for _ in range(fleets):
        rate = np.exp(rng.uniform(*np.log(RATE_A_YEAR)))
        drive_years = np.exp(rng.uniform(*np.log(expected))) / rate
        held += holds(by_sum(rng.poisson(rate * drive_years, 1), np.array([drive_years])), rate)
    return held / fleets


def another_model(
    rng: np.random.Generator, fleets: int, num_models: int, spread: float, ways: list[Callable[..., Interval]]
) -> list[float]:
    """The share of fleets in which each way's interval holds the rate of one more model."""
    held = np.zeros(len(ways))
    for _ in range(fleets):
        middle = np.exp(rng.uniform(*np.log(RATE_A_YEAR)))
        rate, *rates = middle * np.exp(spread * rng.standard_normal(num_models + 1))
        low, high = np.log(DRIVE_YEARS)
        drive_years = np.exp(rng.uniform(low, high, num_models))
        failures = rng.poisson(np.array(rates) * drive_years)
        held += [holds(way(failures, drive_years), rate) for way in ways]
    return list(held / fleets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    print("| failures expected | held |\n| --- | --- |")
    for low, high in FAILURES:
        print(f"| {low:,} to {high:,} | {one_model(rng, given.fleets, (low, high)):.3f} |", flush=True)
    ways = [by_sum, by_range, by_posterior]
    print("\n| models | spread | all counts together | range | posterior |\n| --- | --- | --- | --- | --- |")
    for num_models in MODELS:
        for spread in SPREADS:
            held = another_model(rng, given.fleets, num_models, spread, ways)
            print(f"| {num_models} | {spread:g} | {' | '.join(f'{each:.3f}' for each in held)} |", flush=True)


if __name__ == "__main__":
    main()
