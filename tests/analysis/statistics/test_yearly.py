"""Losses a year: the sum of scenarios, its interval, and how often that holds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorisk.analysis.statistics import yearly
from quorisk.analysis.statistics.intervals import clopper_pearson
from quorisk.analysis.statistics.yearly import Part

P = st.floats(0.0, 1.0)


@given(st.lists(st.tuples(st.floats(0.0, 1e12), P, P, P), min_size=1, max_size=5))
def test_a_sum_is_that_of_its_parts(given_parts):
    parts = [Part(per_year, *sorted(ends)) for per_year, *ends in given_parts]
    parts = [Part(part.per_year, part.low, part.p, part.high) for part in parts]
    total = yearly.add_up(parts, 0.9)
    assert total.p == pytest.approx(sum(part.per_year * part.p for part in parts))
    assert total.low == pytest.approx(sum(part.per_year * part.low for part in parts))
    assert total.high == pytest.approx(sum(part.per_year * part.high for part in parts))


def test_what_is_exact_needs_no_interval():
    total = yearly.add_up([Part(3.0, 0.5, 0.5, 0.5), Part(2.0, 0.0, 0.0, 0.0)], 0.9)
    assert total == yearly.Losses(1.5, 1.5, 1.5, 1.0, "exact")
    assert total.years_between == (1.0 / 1.5,) * 3
    mixed = yearly.add_up([Part(3.0, 0.5, 0.5, 0.5), Part(2.0, 0.0, 0.0, 0.1)], 0.9)
    assert (mixed.low, mixed.confidence) == (1.5, 0.9)
    assert mixed.high == pytest.approx(1.7)


def test_the_time_between_losses_is_for_ever_if_there_are_none():
    total = yearly.add_up([Part(2.0, 0.0, 0.0, 0.25)], 0.9)
    assert total.years_between == (math.inf, 2.0, math.inf)


@pytest.mark.parametrize("together", [True, False])
def test_the_interval_of_a_sum_holds_as_often_as_it_says_however_scenarios_depend(together):
    """Runs of both scenarios are independent, or the very same; half of either losses weigh the same."""
    generator, confidence, runs, repetitions = np.random.default_rng(5), 0.9, 400, 2000
    p, per_year = np.array([0.01, 0.05]), np.array([5.0, 1.0])
    held = 0
    for _ in range(repetitions):
        uniform = generator.random((2, runs))
        if together:
            uniform[1] = uniform[0]
        losses = (uniform < p[:, None]).sum(axis=1)
        level = yearly.confidence_of_each(confidence, 2)
        parts = [
            Part(often, int(k) / runs, *clopper_pearson(int(k), runs, level, 0))
            for often, k in zip(per_year, losses, strict=True)
        ]
        total = yearly.add_up(parts, confidence)
        held += total.low <= p @ per_year <= total.high
    assert held / repetitions > confidence - 4 * math.sqrt(confidence * (1 - confidence) / repetitions)


def test_one_scenario_alone_needs_no_adjustment():
    assert yearly.confidence_of_each(0.95, 1) == pytest.approx(0.95)
    assert yearly.confidence_of_each(0.95, 0) == pytest.approx(0.95)
    assert yearly.confidence_of_each(0.95, 5) == pytest.approx(0.99)
