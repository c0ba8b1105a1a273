"""The simulation of what operators do against another one, of which nothing but its settings and counts is known."""

import json

import pytest

from tests.references.kafka_operations import lost, setting
from tests.support import ROOT

ROWS = [json.loads(line) for line in (ROOT / "tests" / "data" / "kafka_operations.jsonl").read_text().splitlines()]
RUNS = 60_000


@pytest.mark.exhaustive
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_as_many_runs_lose_something(row):
    (found, *_), p = lost(setting(row["setting"]), RUNS, 1), row["p"]
    variance = p * (1.0 - p) * (1.0 / RUNS + 1.0 / row["runs"])
    assert abs(found / RUNS - p) <= 4.5 * variance**0.5
