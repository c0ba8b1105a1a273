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
def test_more_is_lost_where_stalls_go_on_as_the_files_say(name):
    """Factors that files of `quorisk init kraft` say beside their scenarios of lag, which have three stalls."""
    given = setting(next(row for row in ROWS if row["name"] == name)["setting"])
    found, more = (lost(each, 4 * RUNS, 1)[0] for each in (given, given._replace(**SPELL)))
    assert (1.5 if given.acks1 else 3.0) < more / found < (2.1 if given.acks1 else 4.1)
