"""The simulation of what operators do against another one, of which nothing but its settings and counts is known."""

import json

import pytest

from tests.references.kafka_operations import SPELL, lost, setting
from tests.support import ROOT

ROWS = [json.loads(line) for line in (ROOT / "tests" / "data" / "kafka_operations.jsonl").read_text().splitlines()]
RUNS = 60_000


@pytest.mark.exhaustive
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_as_many_runs_lose_something(row):
    (found, *_), p = lost(setting(row["setting"]), RUNS, 1), row["p"]
    variance = p * (1.0 - p) * (1.0 / RUNS + 1.0 / row["runs"])
    assert abs(found / RUNS - p) <= 4.5 * variance**0.5


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["lag_disk_min1", "lag_crash_min2_unclean_noelr", "lag_power_min1", "lag_disk_acks1"])
def test_a_fault_after_ten_minutes_of_stalls_loses_what_one_at_any_time_in_ten_does(name):
    """Scenarios of lag have the former, as rates are constant; how often they come counts the latter."""
    row = next(row for row in ROWS if row["name"] == name)["setting"]
    once = {fault: row[fault] / 6.0 for fault in ("crash", "power", "disk")}
    later, within = setting(row | once | {"lifetime_s": 36_000, "max_stalls": 10**6}), setting(row)._replace(**SPELL)
    found, expected = (lost(each, 4 * RUNS, 1)[0] for each in (later, within))
    assert 0.9 < found / expected < 1.1
