"""Lists of incidents: what they count, in how much time of whom, and what is oddities."""

from pathlib import Path

import pytest

from quorisk.analysis.rates import incidents
from quorisk.analysis.rates.incidents import Watched, unix_s
from quorisk.analysis.rates.oddities import Oddities
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.protocols import evidence

YEAR = Watched(10, unix_s("2025-01-01"), unix_s("2026-01-01"))
YEAR_S = 365 * 86_400


def read(tmp_path: Path, *lines: str, watched: Watched = YEAR):
    path = tmp_path / "incidents.csv"
    path.write_text("\n".join(("kind,node,start,end,data_lost", *lines)))
    oddities: Oddities = {}
    found = incidents.counts_of_lists([path], watched, oddities)
    return {each.kind: (each.events, each.exposure) for each in found}, {
        odd: seen.times for odd, seen in oddities.items()
    }


def test_nodes_that_are_lost_and_that_stop_are_counted_in_the_time_of_all_nodes(tmp_path):
    found, oddities = read(
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
        evidence.SHARE_TOGETHER: (0, 2),
    }
    assert oddities == {}


def test_a_line_that_is_repeated_is_one_loss_also_if_it_has_dates_alone(tmp_path):
    """Such a line lasts no time, so that none of its like begins before it is over."""
    line = "node,b1,2025-02-01,2025-02-01,true"
    oddities: Oddities = {}
    lists = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for path, number in zip(lists, (1, 2), strict=True):
        path.write_text("\n".join(("kind,node,start,end,data_lost", *[line] * number)))
    found = {each.kind: each.events for each in incidents.counts_of_lists(lists, YEAR, oddities)}
    assert found[evidence.NODE_LOSSES] == 1
    assert {odd: seen.times for odd, seen in oddities.items()} == {incidents.OVERLAPPING: 2, incidents.NO_DURATION: 3}


def test_an_incident_that_ends_on_the_date_on_which_it_starts_has_no_known_duration(tmp_path):
    """It did not last 0 s: each rate would be as much too high as such lines are many."""
    same_day = [
        f"{kind},{kind}{i},2025-0{i}-01,2025-0{i}-01,{i < 4}" for kind in ("node", "repair") for i in range(1, 6)
    ]
    found, oddities = read(tmp_path, *same_day)
    assert found[evidence.NODE_LOSSES] == (3, 10 * YEAR_S)
    assert found[evidence.NODE_STOPS] == (2, 10 * YEAR_S)
    assert found.keys().isdisjoint({evidence.REPLACEMENTS, evidence.NODE_RETURNS, evidence.REPAIRS})
    assert oddities == {incidents.NO_DURATION: 10}
    found, _ = read(tmp_path, *same_day, "node,b,2025-07-01,2025-07-02,true", "repair,b,2025-07-01T00:00,,")
    assert found[evidence.REPLACEMENTS] == (1, 86_400)
    assert found[evidence.REPAIRS] == (0, 184 * 86_400 / 2)


def test_a_node_that_is_lost_as_soon_as_it_is_replaced_is_two_losses(tmp_path):
    lines = ("node,b1,2025-02-01,2025-02-02,true", "node,b1,2025-02-02,2025-02-03,true")
    found, oddities = read(tmp_path, *lines)
    assert found[evidence.NODE_LOSSES] == (2, 10 * YEAR_S)
    assert oddities == {}


def test_a_list_without_incidents_says_that_none_happened(tmp_path):
    found, _ = read(tmp_path)
    assert found == {evidence.NODE_LOSSES: (0, 10 * YEAR_S), evidence.NODE_STOPS: (0, 10 * YEAR_S)}


def test_nodes_that_an_outage_hits_are_one_outage_and_so_many_trials(tmp_path):
    found, oddities = read(
        tmp_path,
        *(
            f"outage,b{node},2025-05-01T00:00:{node:02},{'' if node == 3 else '2025-05-01T01:00'},{node == 3}"
            for node in range(9)
        ),
        "outage,b1,2025-07-01,2025-07-02,false",
    )
    assert found[evidence.OUTAGES] == (2, YEAR_S)
    assert found[evidence.LOST_IN_OUTAGES] == (1, 9)
    assert evidence.NODE_LOSSES not in found
    assert oddities == {incidents.PARTIAL: 1}


def test_an_outage_of_which_most_nodes_are_not_listed_says_nothing_of_how_many_came_back(tmp_path):
    """The one line of a node that was lost is not "one of one": 45 nodes were hit."""
    found, oddities = read(tmp_path, "outage,b1,2025-05-01,2025-05-02,true", watched=YEAR._replace(nodes=45))
    assert found == {evidence.OUTAGES: (1, YEAR_S)}
    assert oddities == {incidents.PARTIAL: 1}


def test_a_node_that_an_outage_lists_twice_is_one(tmp_path):
    twice = ["outage,b1,2025-05-01T00:00,2025-05-01T01:00,false", "outage,b1,2025-05-01T00:01,,true"]
    found, _ = read(tmp_path, *twice, watched=YEAR._replace(nodes=1))
    assert found[evidence.LOST_IN_OUTAGES] == (1, 1)


def test_of_a_complete_list_what_it_does_not_have_did_not_happen(tmp_path):
    found, _ = read(tmp_path, "repair,b1,2025-05-01T00:00,2025-05-01T03:00,", watched=YEAR._replace(is_complete=True))
    assert found[evidence.NODE_LOSSES] == (0, 10 * YEAR_S)
    assert found[evidence.OUTAGES] == (0, YEAR_S)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ["flood,b1,2025-05-01,2025-05-02,true"],
            r'incidents of other kinds: 1 \(first: .*: "flood", where node, drive,',
        ),
        (["node,b1,2024-05-01,2024-05-02,true"], "incidents that start before the time watched, or after it: 1 "),
        (["node,b1"], r"incidents that cannot be read: 1 \(first: .*: line 2: too few columns\)$"),
    ],
)
def test_a_list_of_which_nothing_counts_is_refused(tmp_path, lines, said):
    with pytest.raises(ConfigError, match=rf"incidents\.csv: nothing that can be counted; {said}"):
        read(tmp_path, *lines)


def test_a_field_longer_than_any_is_refused_in_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"incidents\.csv: cannot be read: field larger than field limit"):
        read(tmp_path, "node," + "x" * 200_000)


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
    found, oddities = read(tmp_path, "node,a,2025-02-01T00:00,2025-02-01T02:00,false", line)
    assert oddities == {odd: 1}
    assert found[evidence.NODE_LOSSES] == (0, 10 * YEAR_S)
    assert found[evidence.NODE_STOPS] == (1, 10 * YEAR_S)
    assert found[evidence.NODE_RETURNS] == (1, 5 * 3600 if odd is incidents.OVERLAPPING else 2 * 3600)
