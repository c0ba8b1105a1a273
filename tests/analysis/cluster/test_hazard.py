"""P(any) from rates of incidents, where it is known."""

import math
import random

import pytest

from quorisk.analysis.cluster.hazard import IncidentRates, p_any_in_years


def exactly(value: float) -> tuple[float, float, float]:
    return value, value, value


@pytest.mark.parametrize("rate", [1e-9, 1e-3, 0.05, 0.5])
@pytest.mark.parametrize("years", [1.0, 10.0])
def test_incidents_one_by_one(rate, years):
    memory = 0.02
    rates = IncidentRates(exactly(rate), exactly(rate * math.exp(-rate * memory)), memory, 0.0)
    estimate, low, high = p_any_in_years(rates, years)
    truth = -math.expm1(-rate * years)
    assert low <= truth <= high
    assert estimate == pytest.approx(truth, rel=1e-3)
    assert high - low < 6.0 * rate * memory * truth + 1e-15


def test_incidents_in_pairs():
    """Each comes with another a time later: both ends hold, and lie close together."""
    rng = random.Random(1)
    for _ in range(300):
        memory = 10.0 ** rng.uniform(-4, -1.5)
        later, pairs = rng.uniform(0.0, memory), 10.0 ** rng.uniform(-6, 0.3)
        # none in [0, 1) unless a pair begins in it, or less than `later` before
        truth = -math.expm1(-pairs * (1.0 + later))
        first = pairs * math.exp(-pairs * (memory + later))
        estimate, low, high = p_any_in_years(IncidentRates(exactly(2.0 * pairs), exactly(first), memory, 0.0))
        assert low <= truth <= high
        assert low <= estimate <= high
        assert high - low < (12.0 * pairs * memory + 4.0 * memory) * truth + 1e-15


def test_more_than_a_bound_can_tell():
    estimate, low, high = p_any_in_years(IncidentRates(exactly(30.0), exactly(10.0), 0.1, 0.0))
    assert (low, high) == (0.0, 1.0)
    assert 0.9 < estimate <= 1.0


def test_what_may_be_off_widens_both_ends():
    narrow, wide = (p_any_in_years(IncidentRates(exactly(1e-3), exactly(1e-3), 1e-6, off)) for off in (0.0, 1e-4))
    assert wide[1] == pytest.approx(narrow[1] - 1e-4)
    assert wide[2] == pytest.approx(narrow[2] + 1e-4)
