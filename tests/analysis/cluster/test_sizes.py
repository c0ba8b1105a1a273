"""Quantiles of how much incidents lose, from bins, against those of distributions that are known."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from quorisk.analysis.cluster.figures import QUANTILES
from quorisk.analysis.cluster.sizes import quantiles
from quorisk.kernels.cluster.sizes import bin_of, no_sizes


@pytest.mark.parametrize(("ledgers", "p"), [(100_000, 1 / 3), (3000, 0.5), (12, 0.4)])
@pytest.mark.parametrize("unit", [1.0, 1000.0, 16.0 / 3])
def test_intervals_contain_the_quantiles_of_many_small_things_that_share_a_bin(ledgers, p, unit):
    found, law = no_sizes(), binom(ledgers, p)
    for num, weight in enumerate(law.pmf(np.arange(1, ledgers + 1)), 1):
        if weight:
            place = bin_of(unit * num)
            found.weight[0, place] += weight
            found.largest[0, place] = max(found.largest[0, place], unit * num)
    told = quantiles(found.weight[0], found.largest[0], unit, math.inf, 0.95)
    for name, q in QUANTILES.items():
        exactly = unit * law.ppf(q)
        assert told[name].low <= exactly <= told[name].value == told[name].high <= 1.006 * told[name].low
        if ledgers == 12:
            assert told[name].low == pytest.approx(told[name].high, rel=1e-12)


def test_sizes_that_are_no_multiples_have_no_least_one_above_them():
    """Of what is not on disk an outage may take 2.4 entries on average, where it takes copies as well."""
    weight, largest = np.zeros((2, no_sizes().weight.shape[1]))
    weight[bin_of(2.4)], largest[bin_of(2.4)] = 1.0, 2.4
    assert quantiles(weight, largest, 1.0, 10.0, 0.95)["p50"] == (2.4, 2.4, 2.4)


@pytest.mark.parametrize(
    ("independent", "bounded"), [(3.8, []), (4, ["p50"]), (35, ["p50", "p90"]), (381, [*QUANTILES])]
)
def test_few_sizes_do_not_bound_how_large_one_in_a_hundred_is(independent, bounded):
    """Of so few, none need be among the largest hundredth."""
    weight, largest = np.zeros((2, no_sizes().weight.shape[1]))
    for size in (1.0, 100.0):
        weight[bin_of(size)], largest[bin_of(size)] = 1.0, size
    told = quantiles(weight, largest, 1.0, independent, 0.95)
    assert [name for name, size in told.items() if math.isfinite(size.high)] == bounded
