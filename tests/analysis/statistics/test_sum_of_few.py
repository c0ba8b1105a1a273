"""Intervals of sums of rare events that weigh more or less."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

from quorisk.analysis.statistics.intervals import sum_of_few


@pytest.mark.parametrize("events", [1, 3, 40])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_events_of_one_weight_have_the_interval_of_a_poisson_distribution(events, confidence):
    weight, error = 0.2, (1.0 - confidence) / 2.0
    low, high = sum_of_few(weight * events, weight**2 * events, weight, confidence)
    assert low == pytest.approx(weight * chi2.ppf(error, 2 * events) / 2.0)
    assert high == pytest.approx(weight * chi2.isf(error, 2 * events + 2) / 2.0)


def test_what_never_varies_is_known():
    assert sum_of_few(3.0, 0.0, 0.0, 0.95) == (3.0, 3.0)


@pytest.mark.parametrize(("events", "share", "by_normal"), [(10, 0.91, 0.83), (30, 0.945, 0.9), (100, 0.95, 0.94)])
def test_it_holds_oftener_than_that_of_the_normal_approximation(events, share, by_normal):
    """Where a few events may make most of the sum, as an outage may take a few ledgers or many."""
    drawn, held, held_by_normal = np.random.default_rng(7), 0, 0
    mean, rounds = events * math.exp(0.5), 2000
    for _ in range(rounds):
        weights = drawn.lognormal(size=drawn.poisson(events))
        total, variance = float(weights.sum()), float((weights**2).sum())
        low, high = sum_of_few(total, variance, float(weights.max()), 0.95)
        held += low <= mean <= high
        held_by_normal += abs(total - mean) <= 1.96 * math.sqrt(variance)
    assert held >= share * rounds
    assert held_by_normal <= by_normal * rounds
