"""Write latency: against published figures, against brute force, and with intervals that hold."""

import math

import numpy as np
import pytest

from quorisk.analysis.decision import latency_table
from quorisk.analysis.decision.latency import (
    BUILT_IN,
    BY_RANKS,
    EXACT,
    LEVELS,
    Measured,
    RoundTrip,
    lognormal,
    pareto_exponential,
    round_trip_cdf,
    write_latency,
)
from quorisk.kernels.errors import ConfigError
from tests.external import pbs


@pytest.mark.parametrize(("acks", "published_ms"), pbs.YAMMER_MS.items())
def test_yammer_s_reads_and_writes_are_as_published(acks, published_ms):
    assert pbs.yammer(acks) == pytest.approx(published_ms, rel=pbs.DEVIATION)


@pytest.mark.parametrize(("name", "published_ms"), pbs.WRITES_MS.items())
def test_writes_are_as_published(name, published_ms):
    ours = [pbs.p999(BUILT_IN[name], acks) for acks in (1, 2, 3)]
    assert ours == pytest.approx(published_ms, rel=pbs.DEVIATION)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize(("copies", "acks"), [(3, 1), (3, 2), (5, 3), (4, 4)])
def test_it_is_what_sampling_says(name, copies, acks):
    """A quarter of a million writes: the rank of an exact quantile among them is within five standard deviations."""
    rng, num = np.random.default_rng(7), 250_000

    def draw(delay):
        (share, heavy), (_, light) = delay.parts
        kind = rng.random((num, copies)) < share
        return np.where(kind, heavy.rvs((num, copies), random_state=rng), light.rvs((num, copies), random_state=rng))

    trips = np.sort(draw(BUILT_IN[name].request) + draw(BUILT_IN[name].answer), axis=1)[:, acks - 1]
    for each in write_latency(BUILT_IN[name], copies, acks):
        assert each.method == EXACT
        deviation = math.sqrt(each.level * (1 - each.level) / num)
        assert np.mean(trips <= each.ms) == pytest.approx(each.level, abs=5 * deviation)


def test_the_distribution_of_a_round_trip_is_known_in_closed_form():
    """Two exponentials, as mixtures with next to no Pareto part: 1 - (b exp(-a t) - a exp(-b t)) / (b - a)."""
    a, b = 0.3, 7.0
    pair = RoundTrip(*(pareto_exponential(1e-15, 1.0, 3.0, rate) for rate in (a, b)))
    for t in (0.01, 0.5, 3.0, 40.0):
        exact = 1.0 - (b * math.exp(-a * t) - a * math.exp(-b * t)) / (b - a)
        assert round_trip_cdf(pair, t) == pytest.approx(exact, abs=1e-13)


@pytest.mark.parametrize(("spread", "t_ms"), [(1.001, 36.0), (1.08, 150.0), (1.5, 7.0), (40.0, 500.0)])
def test_a_leg_may_be_as_narrow_or_as_wide_as_can_be_beside_the_other(spread, t_ms):
    """The tail of a round trip, against its average over a hundred thousand quantiles of the narrower leg."""
    wide, narrow = lognormal(0.86, 47.0), lognormal(1.8, 1.8 * spread)
    ((_, long),), ((_, short),) = wide.parts, narrow.parts
    tail = long.sf(t_ms - short.ppf((np.arange(100_000) + 0.5) / 100_000)).mean()
    assert 1e-4 < tail < 0.2
    for legs in ((wide, narrow), (narrow, wide)):
        assert 1.0 - round_trip_cdf(RoundTrip(*legs), t_ms) == pytest.approx(tail, rel=0.01)


def test_kafka_s_wait_is_cut():
    assert [each.ms for each in write_latency(BUILT_IN["YMMR"], 3, 3, cut_ms=500.0)][2] == 500.0
    assert write_latency(BUILT_IN["YMMR"], 3, 3, cut_ms=500.0)[0] == write_latency(BUILT_IN["YMMR"], 3, 3)[0]


def test_intervals_of_measured_quantiles_hold():
    """900 samples of 2,000 round trips: the true quantiles are in 95% of the intervals, less 4 standard deviations."""
    rng, truth = np.random.default_rng(3), RoundTrip(lognormal(2.0, 12.0), pareto_exponential(1e-12, 1, 1, 1e3))
    trips = rng.lognormal(math.log(2.0), math.log(6.0) / 2.3263478740408408, (900, 2000))
    trips += rng.exponential(1e-3, trips.shape)
    exact = write_latency(truth, 3, 2)
    held = np.zeros(len(LEVELS))
    for sample in np.sort(trips):
        found = write_latency(Measured(sample), 3, 2)
        held += [low <= true.ms <= high for true, (_, _, low, high, _) in zip(exact, found, strict=True)]
    assert (held / 900 >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / 900)).all()
    assert (held / 900 <= 0.99).all()


def test_too_few_measurements_tell_no_upper_end():
    found = write_latency(Measured(np.arange(1.0, 101.0)), 3, 3)
    assert all(each.method == BY_RANKS for each in found)
    assert found[0].high_ms < 100.0
    assert found[2].high_ms == math.inf


def test_the_table_is_read(tmp_path):
    (tmp_path / "journal.csv").write_text("host,ms\nb1,2.5\nb2,1.5\n", "utf-8")
    given = latency_table.read_table({"replica": {"csv": "journal.csv", "column": "ms"}, "cut_ms": 30_000}, tmp_path)
    assert isinstance(given.replica, Measured)
    assert given.replica.sorted_ms.tolist() == [1.5, 2.5]
    assert given.cut_ms == 30_000
    assert latency_table.read_table({"replica": "YMMR"}, tmp_path).replica == BUILT_IN["YMMR"]
    both = {"median_ms": 2.0, "p99_ms": 12.0}
    given = latency_table.read_table({"request": both, "answer": both}, tmp_path)
    assert isinstance(given.replica, RoundTrip)
    assert given.replica.request.parts[0][1].ppf(0.99) == pytest.approx(12.0)


LOGNORMAL = "median_ms", "p99_ms"
PARETO = "pareto_share", "pareto_min_ms", "pareto_shape", "exponential_per_ms"
EXTREMES = (
    dict(zip(LOGNORMAL, (1e-6, 1.0), strict=True)),
    dict(zip(LOGNORMAL, (1e4, 1e10), strict=True)),
    dict(zip(LOGNORMAL, (9.999e9, 1e10), strict=True)),
    dict(zip(PARETO, (1e-6, 1e10, 0.1, 1e6), strict=True)),
    dict(zip(PARETO, (0.999999, 1e10, 0.1, 1e-10), strict=True)),
)


@pytest.mark.parametrize("extreme", EXTREMES)
def test_whatever_a_table_may_say_has_quantiles(tmp_path, extreme):
    next_to_nothing = dict(zip(LOGNORMAL, (1e-6, 1.0000001e-6), strict=True))
    for legs in ((extreme, next_to_nothing), (next_to_nothing, extreme)):
        given = latency_table.read_table(dict(zip(("request", "answer"), legs, strict=True)), tmp_path)
        assert isinstance(given.replica, RoundTrip)
        leg = given.replica.request if legs[0] is extreme else given.replica.answer
        for each in write_latency(given.replica, 1, 1):
            before, there = (sum(share * part.cdf(ms) for share, part in leg.parts) for ms in (each.ms - 2e-6, each.ms))
            assert before - 1e-6 <= each.level <= there + 1e-6


def request(**given):
    """A table of two legs, of which the other is not looked at any more."""
    return {"request": given, "answer": {}}


BOUNDS = r"a number from 1e-06 to 1e\+10"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "latency: give either replica, or request and answer"),
        ({"replica": "LNKD"}, 'latency.replica = "LNKD": one of LNKD-SSD, LNKD-DISK, YMMR'),
        ({"replica": {"csv": "none.csv"}}, "none.csv cannot be read"),
        ({"replica": {"csv": "two.csv"}}, "latency.replica.column = null: not a column of .*two.csv, which has 2"),
        ({"replica": {"csv": "/dev/zero"}}, "latency.replica: /dev/zero: not a regular file"),
        ({"replica": {"csv": "\0"}}, r'\\u0000" cannot be read: embedded null byte'),
        ({"replica": "YMMR", "cut_ms": 10**400}, rf"latency.cut_ms = 9?1?0+\.\.\.: {BOUNDS}"),
        ({"replica": "YMMR", "\0": 1}, r'"latency.\\u0000": no such key'),
        ({"replica": {"csv": "two.csv", "column": "a"}}, "two.csv, line 3: not a number of milliseconds above 0"),
        ({"request": {"median_ms": 2.0, "p99_ms": 12.0}}, "latency.answer: missing"),
        (request(median_ms=2.0, p99_ms=1.0), "latency.request.p99_ms = 1: more than median_ms"),
        (request(median_ms=2.0), "latency.request: a table with only"),
        ({"replica": "YMMR", "cut_ms": 0}, "latency.cut_ms = 0: a number from 1e-06"),
        (request(median_ms=1e-300, p99_ms=1.0), rf"^latency.request.median_ms = 1e-300: {BOUNDS}$"),
        (request(median_ms=1e-6, p99_ms=1.1), r"more than median_ms \(1e-06\), and 1e\+06 times that at most$"),
        (
            request(**dict(zip(PARETO, (0.5, 1.0, 1e-3, 1.0), strict=True))),
            r"^latency.request.pareto_shape = 0.001: a number from 0.1 to 1e\+06$",
        ),
        ({"replicas": 3}, "latency.replicas: no such key; .latency. has replica"),
    ],
)
def test_mistakes_are_told_with_key_and_what_is_allowed(tmp_path, table, said):
    (tmp_path / "two.csv").write_text("a,b\n1,2\n-1,2\n", "utf-8")
    with pytest.raises(ConfigError, match=said):
        latency_table.read_table(table, tmp_path)
