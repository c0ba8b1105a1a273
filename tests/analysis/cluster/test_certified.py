"""What clusters lose, three ways: strata and years of ours, and an independent program's figures."""

from math import comb, hypot, sqrt

import pytest
from scipy.stats import binom

from quorisk.analysis.cluster import certified as module
from quorisk.analysis.cluster.certified import DrawPlan, certified
from quorisk.analysis.cluster.sampled import losses_of_years
from quorisk.kernels.cluster.setting import Cluster, Thin
from quorisk.kernels.cluster.years import ANY, ENTRIES, INCIDENTS, draw_years
from tests.analysis.cluster.clusters import HOUR, KNOWN, cluster_of, outage

YEARS, DRAWS = 40_000, DrawPlan(3, 2)
SEVERAL = 4.5
WIDTH = 7.5
"""Standard errors that an interval by Bernstein is wide, or more."""


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Where losses are frequent strata are not apt, and would take as many draws as they may."""
    monkeypatch.setattr(module, "MOST", 1 << 16)


WAYS = {"any": ("p_any", ANY), "incidents": ("incidents", INCIDENTS), "entries": ("entries", ENTRIES)}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", KNOWN)
def test_three_ways_agree(name):
    cluster = cluster_of(name)
    losses, tally = certified(cluster, 0.95, DRAWS), draw_years(cluster, 0, YEARS, 5, threads=2)
    for what, (field, place) in WAYS.items():
        figure, (theirs, error) = getattr(losses, field), KNOWN[name]["strata"][what]
        assert figure.low - SEVERAL * error <= theirs <= figure.high + SEVERAL * error
        off = (figure.high - figure.low) / WIDTH
        assert abs(figure.value - theirs) < SEVERAL * hypot(off, error) + 1e-4 * theirs, what
        scale = cluster.entries if what == "entries" else 1.0
        drawn = scale * tally.mean(place)
        spread = scale * sqrt(max(0.0, tally.mean(place + 1) - tally.mean(place) ** 2) / YEARS)
        if spread:
            assert abs(drawn - figure.value) < SEVERAL * hypot(spread, off), what
        literally = KNOWN[name].get("literal")
        if literally:
            told, error = literally[what]
            assert abs(told - figure.value) < SEVERAL * hypot(error, off), what


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["g1 random 3", "g4 distinct racks 3", "g8 random 3, thin entries"])
def test_sizes_and_causes_of_strata_are_those_of_years(name):
    cluster = cluster_of(name)
    solved, drawn = (
        certified(cluster, 0.95, DRAWS),
        losses_of_years(cluster, draw_years(cluster, 0, 2 * YEARS, 6, threads=2), 0.95),
    )
    for quantile, size in solved.in_entries.items():
        assert drawn.in_entries[quantile].low <= size.value <= drawn.in_entries[quantile].high
    least = 0.02 if not cluster.thin else 1e-4  # most incidents are of thin entries, where there are any
    assert solved.by_cause["single_losses_after_event"].share > least
    for cause, each in solved.by_cause.items():
        other = drawn.by_cause[cause].incidents
        assert abs(each.incidents.value - other.value) <= 2.5 * (other.high - other.value) + 1e-12
    assert sum(each.share for each in solved.by_cause.values()) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("name", ["g9 random 3 of 20", "g11 random 5 of 20, no outages", "g12 distinct racks 3 of 100"])
def test_rare_losses_are_known_to_a_hundredth(name):
    losses = certified(cluster_of(name), 0.95, DRAWS)
    for figure in (losses.p_any, losses.incidents, losses.entries):
        assert figure.high - figure.low < 0.01 * figure.value
        assert figure.low <= figure.value <= figure.high


@pytest.mark.parametrize("thin", [(), (Thin(2, 50.0, True),)])
def test_how_often_so_much_is_lost_at_once_has_an_interval_that_holds_where_few_large_incidents_were_drawn(thin):
    """With entries of few copies most draws are of small incidents, and one in 30,000 of a million entries."""
    num, ledgers, p = 36, 62_208, 0.0075
    cluster = Cluster(num, 4, 4, ledgers, 50_000, events=(outage(1.0, p),), thin=thin)
    at_least = certified(cluster, 0.95, DRAWS).at_least
    for size in (1e5, 1e6):
        least = size / 50_000 - 1
        by_lost = (binom.pmf(k, num, p) * binom.sf(least, ledgers, comb(k, 4) / comb(num, 4)) for k in range(num + 1))
        exactly = sum(by_lost)
        assert at_least[size].low <= exactly <= at_least[size].high
    assert at_least[1e5].high < 1.3 * at_least[1e5].low
    assert at_least[1e6].high < (1e-5 if thin else 3e-7)


def test_a_queue_of_repairs_matters_where_nodes_are_lost_one_by_one():
    """Given that two nodes died, the second waits for the first: 2^(WQ - 1) / WQ times as many losses if T is all."""
    alone = Cluster(20, 3, 3, 1e6, 1000, node_loss=0.02, repair_time=2.0 * HOUR)
    each, queue = (certified(cluster, 0.95, DRAWS).entries for cluster in (alone, alone._replace(repair_queue=True)))
    assert queue.value / each.value == pytest.approx(4.0 / 3.0, rel=0.01)


def test_without_losses():
    losses = certified(Cluster(5, 2, 2, 10, 10), 0.95, DRAWS)
    assert (losses.p_any.value, losses.p_any.high, losses.incidents.high, losses.entries.high) == (0.0, 0.0, 0.0, 0.0)
    assert not losses.in_entries
    assert not losses.at_least


def test_in_flight_entries_are_lost_in_outages_alone():
    cluster = cluster_of("g9 random 3 of 20")
    writers = certified(cluster._replace(thin=(Thin(1, 1.0, True),)), 0.95, DRAWS).by_cause["thin_entries"].incidents
    # a node in 133 does not come back and the entry is on it, but in an outage in which two others do not either
    others = 1.0 - 0.9925**19 - 19 * 0.0075 * 0.9925**18
    assert writers.low <= 0.0075 * (1.0 - others) <= writers.high
    assert writers.high < 1.02 * writers.low
