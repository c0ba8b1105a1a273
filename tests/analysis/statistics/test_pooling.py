"""Groups that are alike but not the same: the posterior of one more, against integrals and simulated fleets."""

import math

import numpy as np
import pytest
from scipy.stats import norm, poisson

from quorisk.analysis.statistics.known import Gamma
from quorisk.analysis.statistics.pooling import Pooled


def test_the_rate_of_another_group_is_the_integral_over_mean_and_spread():
    events, exposures, at = [0, 11, 130], [300.0, 500.0, 900.0], 0.03
    log_middle, spread = np.meshgrid(np.linspace(-10, 1, 121), np.linspace(0.06, 2, 60))
    log_rate = np.linspace(-16, 4, 801)[:, None, None]
    density = norm.pdf(log_rate, log_middle, spread)
    each = [
        (poisson.pmf(k, np.exp(log_rate) * t) * density).sum(axis=0) for k, t in zip(events, exposures, strict=True)
    ]
    weight = np.prod(each, axis=0) * np.exp(-(spread**2) / 2)
    level = (weight * norm.cdf(np.log(at), log_middle, spread)).sum() / weight.sum()
    assert float(Pooled(events, exposures).another().quantile(level)) == pytest.approx(at, rel=0.02)


def test_many_groups_of_one_rate_tell_that_rate():
    another = Pooled([1000] * 40, [1e5] * 40).another()
    assert another.median == pytest.approx(0.01, rel=0.01)
    assert another.log_sigma < 0.09


def test_moments_are_those_of_the_quantiles():
    another = Pooled([25, 110, 300, 90], [3000.0, 5000.0, 9000.0, 4000.0]).another()
    values = another.quantile((np.arange(100_000) + 0.5) / 100_000)
    assert another.mean == pytest.approx(values.mean(), rel=0.01)
    assert another.log_sigma == pytest.approx(np.log(values).std(), rel=0.03)


def test_without_an_event_another_group_has_jeffreys_prior():
    """The integral over a grid of its own, far wider: no cut-off of the middle decides."""
    exposures, at = [10.0, 20.0, 30.0], 0.04
    log_middle, spread = np.meshgrid(np.linspace(-40, 8, 161), np.linspace(0.06, 2, 60))
    log_rate = np.linspace(-50, 4, 361)[:, None, None]
    density = norm.pdf(log_rate, log_middle, spread)
    each = [(np.exp(-np.exp(log_rate) * t) * density).sum(axis=0) for t in exposures]
    weight = np.prod(each, axis=0) * np.exp(-(spread**2) / 2 + log_middle / 2)
    level = (weight * norm.cdf(np.log(at), log_middle, spread)).sum() / weight.sum()
    assert float(Pooled([0, 0, 0], exposures).another().quantile(level)) == pytest.approx(at, rel=0.04)


def test_intervals_of_another_model_hold_and_those_of_all_counts_together_do_not():
    """tests/validation/rates_coverage.py has many more."""
    rng, num_fleets, held, held_by_sum = np.random.default_rng(5), 60, 0, 0
    for _ in range(num_fleets):
        sigma, num_models = abs(rng.normal(0, 0.8)), rng.integers(4, 10)
        rates = 0.012 * np.exp(sigma * rng.standard_normal(num_models + 1))
        exposure = np.exp(rng.uniform(np.log(300), np.log(30_000), num_models))
        failures = rng.poisson(rates[1:] * exposure)
        low, high = Pooled(failures, exposure).another().quantile([0.05, 0.95])
        held += low <= rates[0] <= high
        low, high = Gamma(failures.sum(), exposure.sum()).quantile([0.05, 0.95])
        held_by_sum += low <= rates[0] <= high
    assert abs(held / num_fleets - 0.9) < 4 * math.sqrt(0.09 / num_fleets)
    assert held_by_sum / num_fleets < 0.4
