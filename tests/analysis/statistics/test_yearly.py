"""Losses a year: the sum of scenarios, its interval, and how often that holds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorisk.analysis.statistics import yearly
from quorisk.analysis.statistics.intervals import clopper_pearson
from quorisk.analysis.statistics.yearly import INDEPENDENT, SHARED, YearPart

P = st.floats(0.0, 1.0)


@given(st.lists(st.tuples(st.floats(0.0, 1e12), P, P, P), min_size=1, max_size=5))
def test_a_sum_is_that_of_its_parts(given_parts):
    parts = [YearPart(per_year, *sorted(ends)) for per_year, *ends in given_parts]
    parts = [YearPart(part.per_year, part.low, part.p, part.high) for part in parts]
    total = yearly.add_up(parts, 0.9)
    assert total.p == pytest.approx(sum(part.per_year * part.p for part in parts))
    assert total.low == pytest.approx(sum(part.per_year * part.low for part in parts))
    assert total.high == pytest.approx(sum(part.per_year * part.high for part in parts))


def test_what_is_exact_needs_no_interval():
    total = yearly.add_up([YearPart(3.0, 0.5, 0.5, 0.5), YearPart(2.0, 0.0, 0.0, 0.0)], 0.9)
    assert total == yearly.YearlyLosses(1.5, 1.5, 1.5, 1.0, "exact")
    mixed = yearly.add_up([YearPart(3.0, 0.5, 0.5, 0.5), YearPart(2.0, 0.0, 0.0, 0.1)], 0.9)
    assert (mixed.low, mixed.confidence) == (1.5, 0.9)
    assert mixed.high == pytest.approx(1.7)


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
            YearPart(often, int(k) / runs, *clopper_pearson(int(k), runs, level, 0))
            for often, k in zip(per_year, losses, strict=True)
        ]
        total = yearly.add_up(parts, confidence)
        held += total.low <= p @ per_year <= total.high
    assert held / repetitions > confidence - 4 * math.sqrt(confidence * (1 - confidence) / repetitions)


def test_one_scenario_alone_needs_no_adjustment():
    assert yearly.confidence_of_each(0.95, 1) == pytest.approx(0.95)
    assert yearly.confidence_of_each(0.95, 0) == pytest.approx(0.95)
    assert yearly.confidence_of_each(0.95, 5) == pytest.approx(0.99)


def test_three_scenarios_in_closed_form():
    """Events with objects of one fate, of their own, and of nobody knows which."""
    parts = [
        YearPart(10.0, 0.01, 0.01, 0.01, 5.0),
        YearPart(0.3, 0.002, 0.002, 0.002, 100.0, SHARED),
        YearPart(0.01, 0.5, 0.5, 0.5, 3.0, INDEPENDENT),
    ]
    apart = 10.0 * (1.0 - 0.99**5) + 0.3 * 0.002 + 0.01 * (1.0 - 0.5**3)
    together = 10.0 * 0.01 + 0.3 * 0.002 + 0.01 * (1.0 - 0.5**3)
    rate = yearly.incidents(parts)
    assert rate == pytest.approx((apart, together, apart), rel=1e-13)
    assert yearly.lost_a_year(parts).value == pytest.approx(
        10 * 5 * 0.01 + 0.3 * 100 * 0.002 + 0.01 * 3 * 0.5, rel=1e-13
    )
    assert yearly.p_any(rate).high == pytest.approx(1.0 - math.exp(-apart), rel=1e-13)
    of_cluster = yearly.Ends(0.2, 0.1, 0.3)
    assert yearly.p_any(rate, of_cluster).low == pytest.approx(1.0 - 0.9 * math.exp(-together), rel=1e-13)
    assert [yearly.incidents(parts, fates).value for fates in yearly.FATES] == pytest.approx(
        [0.1 + 0.0006 + 0.00875, apart]
    )
    assert yearly.is_open(parts)
    assert not yearly.is_open(parts[1:])
    assert not yearly.is_open([YearPart(1.0, 0.0, 0.0, 0.0, 9.0), YearPart(1.0, 0.5, 0.5, 0.5)])


def test_what_is_sure_to_be_lost_or_not_is_an_incident_each_time_or_never():
    assert yearly.incidents([YearPart(3.0, 1.0, 1.0, 1.0, 1e9)]) == (3.0, 3.0, 3.0)
    assert yearly.p_any(yearly.incidents([YearPart(1e9, 0.0, 0.0, 0.0, 1e9)])) == (0.0, 0.0, 0.0)
    assert yearly.p_any(yearly.Ends(1e9, 1e9, 1e9), yearly.Ends(1.0, 1.0, 1.0)).value == 1.0


def test_one_fate_and_fates_of_their_own_are_the_ends_that_a_simulation_reaches():
    """A zone whose brokers are all one, and brokers of one partition each."""
    p, hits = 0.02, 60
    rng = np.random.default_rng(3)
    apart = (rng.random((100_000, hits)) < p).any(axis=1).mean()
    together = (rng.random(100_000) < p).mean()
    for seen, fates in ((together, SHARED), (apart, INDEPENDENT)):
        expected = yearly.incidents([YearPart(1.0, p, p, p, hits, fates)]).value
        assert seen == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / 100_000))
