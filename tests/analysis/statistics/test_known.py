"""What is known of figures: published posteriors, and what every distribution owes to the contract."""

import math

import numpy as np
import pytest

from quorisk.analysis.statistics.known import Beta, Gamma, LogitNormal, LogNormal, Z, log_normal_between
from quorisk.analysis.statistics.uncertainty import variance_shares

EVERY = [
    Gamma(3, 200.0),
    Gamma(0, 1e-3),
    Gamma(10**6, 7.0),
    Beta(3, 400),
    Beta(0, 1),
    Beta(7, 7),
    LogNormal(0.01, 2.0),
    LogNormal(0.25, 2.0, 1.0),
    LogitNormal(0.5, 0.9),
    LogitNormal(1e-6, 1e-2),
    log_normal_between(1.0, 100.0),
]
MIDPOINTS = (np.arange(200_000) + 0.5) / 200_000


def product(scale, known, exponents):
    """What is known of scale x product of rate^exponent: exact for lognormal rates, else to first order."""
    log_median = math.log(scale) + math.fsum(k * math.log(known[name].median) for name, k in exponents.items())
    sigma = math.sqrt(math.fsum((k * known[name].log_sigma) ** 2 for name, k in exponents.items()))
    return LogNormal(math.exp(log_median), math.exp(Z * sigma))


def test_jeffreys_posteriors_as_published():
    many, none = Gamma(4317, 115_638_676 / 365), Gamma(0, 79_740 / 365)
    assert np.round(100 * many.quantile([0.025, 0.975]), 3).tolist() == [1.322, 1.404]
    assert round(100 * none.mean, 3) == 0.229
    assert round(100 * float(none.quantile(0.975)), 3) == 1.150


@pytest.mark.parametrize("known", EVERY, ids=repr)
def test_moments_are_those_of_the_quantiles(known):
    values = known.quantile(MIDPOINTS)
    assert (np.diff(values) >= 0).all()
    assert known.median == pytest.approx(float(known.quantile(0.5)), rel=1e-12)
    assert known.mean == pytest.approx(values.mean(), rel=1e-3)
    assert known.log_sigma == pytest.approx(np.log(values).std(), rel=5e-3)


def test_an_error_factor_is_the_high_end_over_the_median_and_the_median_over_the_low_one():
    known = LogNormal(0.0075, 2.0, 1.0)
    assert known.quantile([0.05, 0.5, 0.95]).tolist() == pytest.approx([0.00375, 0.0075, 0.015])


def test_a_probability_is_never_more_than_1():
    assert LogNormal(0.2, 2.0, 1.0).quantile(1 - 1e-12) == 1.0
    assert LogitNormal(0.5, 0.99).quantile(1 - 1e-12) < 1.0


def test_a_range_has_its_ends():
    assert log_normal_between(2.0, 8.0).quantile([0.05, 0.5, 0.95]).tolist() == pytest.approx([2.0, 4.0, 8.0])
    assert LogitNormal(0.5, 0.9).quantile([0.05, 0.5, 0.95]).tolist() == pytest.approx([0.5, 0.75, 0.9])


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_what_is_known_exactly_has_one_value(value):
    known = LogNormal(value, 1.0)
    assert known.quantile([0.001, 0.5, 0.999]).tolist() == [value] * 3
    assert (known.mean, known.log_sigma) == (value, 0.0)


def test_four_copies_make_sixteen_of_an_error_factor_of_two():
    rate = {"p": LogNormal(0.0075, 2.0)}
    losses = product(1e9, rate, {"p": 4})
    assert losses.median == pytest.approx(1e9 * 0.0075**4)
    assert losses.error_factor == pytest.approx(16)
    assert round(losses.mean / losses.median, 2) == 4.14
    drawn = 1e9 * rate["p"].quantile(MIDPOINTS) ** 4
    assert np.quantile(drawn, [0.05, 0.95]) == pytest.approx(losses.quantile([0.05, 0.95]), rel=1e-3)


def test_shares_of_the_log_variance_are_those_of_squared_powers():
    known = {"a": LogNormal(1e-3, 2.0), "b": LogNormal(5.0, 3.0), "c": LogNormal(2.0, 1.0)}
    powers = {"a": 2, "b": -1, "c": 9}
    variances = [(2 * math.log(2)) ** 2, math.log(3) ** 2, 0.0]
    shares = variance_shares(known, powers)
    assert list(shares.values()) == pytest.approx([each / sum(variances) for each in variances], rel=1e-14)
    assert product(1.0, known, powers).log_sigma ** 2 == pytest.approx(sum(variances) / 1.6448536269514722**2)
    assert variance_shares({"c": known["c"]}, {"c": 9}) == {"c": 0.0}


def test_intervals_of_losses_hold_the_truth_as_often_as_they_say():
    """Fleets with 1 to 300 expected failures, whose losses go with the fourth power of the rate."""
    rng, num_fleets = np.random.default_rng(33), 1000
    rate = np.exp(rng.uniform(np.log(0.003), np.log(0.05), num_fleets))
    exposure = np.exp(rng.uniform(np.log(1), np.log(300), num_fleets)) / rate
    failures = rng.poisson(rate * exposure)
    ends = [Gamma(k, t).quantile([0.05, 0.95]) ** 4 for k, t in zip(failures, exposure, strict=True)]
    held = sum(low <= truth <= high for (low, high), truth in zip(ends, rate**4, strict=True))
    assert abs(held / num_fleets - 0.9) < 4 * math.sqrt(0.09 / num_fleets)
