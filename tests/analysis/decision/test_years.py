"""What the scenarios of a design add up to in a year, on a cluster."""

import math

import pytest

from quorisk.analysis.decision import years
from quorisk.analysis.decision.designs import loses_at_least

NOTHING = dict.fromkeys(years.COUNTED, 0)
SIZES = {"incident_p50": 4e6, "incident_p99": 7e6, "incident_p99_high": 8e6}
CLUSTER = {f"{name}{end}": 1e-3 for name in ("any_loss", "incidents", "entries") for end in ("", "_low", "_high")}


def test_of_a_partition_that_a_scenario_loses_nobody_knows_how_much_that_is():
    part = {**NOTHING, **CLUSTER, **SIZES, "p": 1.0, "low": 1.0, "high": 1.0, "per_year": 0.1, "incident": True}
    ledger, partition = (years.year_of_scenarios([part | {"protocol": name}]) for name in ("bookkeeper", "kraft"))
    assert (ledger["incident_p99_high"], ledger["incident_at_least"]) == (1.0, False)
    assert (partition["incident_p50"], partition["incident_p99_high"]) == (1.0, math.inf)
    assert loses_at_least(partition)
    assert years.method_of_entries("solved", partition) == f"solved, {years.AT_LEAST}"
    assert years.method_of_entries("solved", ledger) == "solved"
    seldom, often = (years.year_of_scenarios([part | {"protocol": "kraft", "per_year": at}]) for at in (0.9e-5, 1.1e-5))
    assert [each["incident_p99_high"] for each in (seldom, often)] == [8e6, math.inf]
    assert not loses_at_least(years.year_of_scenarios([part | {"protocol": "kraft", "per_year": 1e-9}]))


@pytest.mark.parametrize(
    ("per_year", "sizes"),
    [
        (0.0, (4e6, 7e6, 8e6)),
        (0.9e-3, (4e6, 7e6, 8e6)),
        (1.1e-3, (1.0, 7e6, 8e6)),
        (98e-3, (1.0, 7e6, 8e6)),
        (0.1, (1,) * 3),
    ],
)
def test_an_incident_of_a_scenario_loses_one_object(per_year, sizes):
    """The median is one object's where most incidents are such; 99 of 100 lose no more where a hundredth is larger."""
    part = {**NOTHING, **CLUSTER, **SIZES, "p": 1.0, "low": 1.0, "high": 1.0, "per_year": per_year, "incident": True}
    found = years.year_of_scenarios([part])
    assert tuple(found[name] for name in years.SIZES) == sizes
    assert found["incidents"] == pytest.approx(1e-3 + per_year)
