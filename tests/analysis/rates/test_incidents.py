"""Lists of incidents: what they count, in how much time of whom, and what is told."""

from pathlib import Path

import pytest

from quorisk.analysis.rates import incidents
from quorisk.analysis.rates.incidents import Watched, unix_s
from quorisk.analysis.rates.told import Told
from quorisk.kernels.protocols import evidence

YEAR = Watched(10, unix_s("2025-01-01"), unix_s("2026-01-01"))
YEAR_S = 365 * 86_400


def read(tmp_path: Path, *lines: str, watched: Watched = YEAR):
    path = tmp_path / "incidents.csv"
    path.write_text("\n".join(("kind,node,start,end,data_lost", *lines)))
    told: Told = {}
    found = incidents.read([path], watched, told)
    return {each.kind: (each.events, each.exposure) for each in found}, {odd: seen.times for odd, seen in told.items()}


def test_nodes_that_are_lost_and_that_stop_are_counted_in_the_time_of_all_nodes(tmp_path):
    found, told = read(
        tmp_path,
        "node,b1,2025-02-01,2025-02-02,true",
        "drive,b2,2025-03-01T10:00,2025-03-01T16:00,yes",
        "node,b3,2025-04-01T00:00:00Z,2025-04-01T02:00:00+01:00,no",
    )
    assert found == {
        evidence.NODE_LOSSES: (2, 10 * YEAR_S),
        evidence.NODE_STOPS: (1, 10 * YEAR_S),
        evidence.REPLACEMENTS: (2, 30 * 3600),
        evidence.NODE_RETURNS: (1, 3600),
    }
    assert told == {}


def test_a_list_without_incidents_says_that_none_happened(tmp_path):
    found, _ = read(tmp_path)
    assert found == {evidence.NODE_LOSSES: (0, 10 * YEAR_S), evidence.NODE_STOPS: (0, 10 * YEAR_S)}


def test_nodes_that_an_outage_hits_are_one_outage_and_so_many_trials(tmp_path):
    found, _ = read(
        tmp_path,
        *(
            f"outage,b{node},2025-05-01T00:00:{node:02},{'' if node == 3 else '2025-05-01T01:00'},{node == 3}"
            for node in range(9)
        ),
        "outage,b1,2025-07-01,2025-07-02,false",
    )
    assert found[evidence.OUTAGES] == (2, YEAR_S)
    assert found[evidence.LOST_IN_OUTAGES] == (1, 10)
    assert evidence.NODE_LOSSES not in found


def test_repairs_are_counted_in_half_the_time_that_they_take_and_those_not_over_add_time_alone(tmp_path):
    """For so long a ledger waits, on average."""
    found, _ = read(tmp_path, "repair,b1,2025-05-01T00:00,2025-05-01T03:00,", "repair,b2,2025-12-31T22:00,,")
    assert found == {evidence.REPAIRS: (1, 2.5 * 3600)}


@pytest.mark.parametrize(
    ("line", "odd"),
    [
        ("node,b1,2025-05-01,2025-04-01,false", incidents.BACKWARDS),
        ("node,b1,2024-05-01,2024-05-02,false", incidents.OUTSIDE),
        ("node,b1,2026-01-01,2026-01-02,false", incidents.OUTSIDE),
        ("node,b1,yesterday,2025-01-02,false", incidents.UNREADABLE),
        ("node,b1,2025-05-01,2025-05-02,maybe", incidents.UNREADABLE),
        ("node,b1,2025-05-01", incidents.UNREADABLE),
        ("flood,b1,2025-05-01,2025-05-02,true", incidents.OTHER),
        ("node,a,2025-02-01T01:00,2025-02-01T05:00,false", incidents.OVERLAPPING),
    ],
)
def test_what_is_odd_is_told_and_counts_for_nothing(tmp_path, line, odd):
    found, told = read(tmp_path, "node,a,2025-02-01T00:00,2025-02-01T02:00,false", line)
    assert told == {odd: 1}
    assert found[evidence.NODE_LOSSES] == (0, 10 * YEAR_S)
    assert found[evidence.NODE_STOPS] == (1, 10 * YEAR_S)
    assert found[evidence.NODE_RETURNS] == (1, 5 * 3600 if odd is incidents.OVERLAPPING else 2 * 3600)
