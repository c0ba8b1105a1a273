"""Gaps in metrics: events and time are counted over the same steps, whatever the steps are."""

import bisect
import json
import random

import pytest

from quorisk.analysis.rates import metrics
from quorisk.analysis.rates.oddities import Oddities
from quorisk.kernels.protocols import evidence

START = 1_735_689_600
"""2025-01-01."""
WEEK_S = 7 * 86_400
UP_H, DOWN_H = 100, 8
"""Mean hours of the nodes made here."""


def counts(tmp_path, nodes):
    """Counts of nodes' series of `up`, pairs of a time since START and a value, and oddities."""
    result = [
        {"metric": {"__name__": "up", "job": f"j{i}"}, "values": [[START + at, str(value)] for at, value in pairs]}
        for i, pairs in enumerate(nodes)
    ]
    path = tmp_path / "up.json"
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}))
    oddities: Oddities = {}
    found = {each.kind: (each.events, each.exposure) for each in metrics.counts_of_queries([path], oddities)}
    return found, {odd: seen.times for odd, seen in oddities.items()}


def samples(times, seed):
    """Samples of a node that stops and returns at random."""
    chance, changes = random.Random(seed), [0.0]
    while changes[-1] < times[-1]:
        mean_s = 3600 * (UP_H if len(changes) % 2 else DOWN_H)
        changes.append(changes[-1] + chance.expovariate(1 / mean_s))
    return [(at, bisect.bisect(changes, at) % 2) for at in times]


FINE, COARSE = range(0, WEEK_S, 60), range(WEEK_S, 52 * WEEK_S, 3600)
BY_DAY = [at for at in range(0, 52 * WEEK_S, 300) if at % 86_400 < 43_200]


@pytest.mark.parametrize("times", [[*FINE, *COARSE], [*COARSE, *range(52 * WEEK_S, 53 * WEEK_S, 60)], BY_DAY])
def test_rates_are_right_whatever_the_steps_and_gaps(tmp_path, times):
    """Files of different steps that follow each other, in either order, and series that lack half of each day."""
    found, _ = counts(tmp_path, [samples(times, seed) for seed in range(6)])
    for kind, hours in ((evidence.NODE_STOPS, UP_H), (evidence.NODE_RETURNS, DOWN_H)):
        events, exposure_s = found[kind]
        assert events > 100
        assert exposure_s / events / 3600 == pytest.approx(hours, rel=4 / events**0.5)


def test_a_change_of_steps_is_no_gap_and_a_lost_sample_is_one_among_steps_of_any_length(tmp_path):
    fine, coarse = range(0, 6000, 60), range(6000, 6000 + 40 * 3600, 3600)
    times = [*fine, *coarse]
    assert counts(tmp_path, [[(at, 1) for at in times]]) == ({evidence.NODE_STOPS: (0, coarse[-1])}, {})
    found, oddities = counts(tmp_path, [[(at, 1) for at in times if at not in (fine[50], coarse[20])]])
    assert found == {evidence.NODE_STOPS: (0, coarse[-1] - 2 * 60 - 2 * 3600)}
    assert oddities == {metrics.GAPS: 2}


@pytest.mark.parametrize(("value", "kind"), [(1, evidence.NODE_STOPS), (0, evidence.NODE_RETURNS)])
def test_neither_the_time_of_a_gap_counts_nor_an_event_in_it(tmp_path, value, kind):
    pairs = [(60 * i, value if i < 20 else 1 - value) for i in range(40) if not 15 < i < 25]
    found, oddities = counts(tmp_path, [pairs])
    assert found[kind] == (0, 15 * 60)
    assert oddities == {metrics.GAPS: 1, metrics.IN_GAP: 1}
