"""What a report says first: the chosen design's risk, cause, doubt and cost, of made-up designs."""

import math

import numpy as np
import pytest

from quorisk.analysis.decision.designs import Design
from quorisk.analysis.decision.doubt import Doubt
from quorisk.analysis.decision.summary import summary
from quorisk.analysis.statistics.uncertainty import DrawnLosses
from quorisk.plots.report import report
from tests.plots.tables import frame
from tests.plots.test_report import LOST_AT, PROVENANCE

COUNTS = {"losses": 1, "messages": 0, "steps": 1, "completed": 1, "horizon": 0, "stuck": 0, "runs": 9, "hidden": 0}
STORED = {"stored": 3, "copies": 2, "on_disk": True, "stored_bytes": 2.0**40, "survives": "1 bookie"}
WRITE = {"write_p50_ms": 0.5, "write_p99_ms": 2.0}
CLUSTER = {
    "any_loss": 1e-3,
    "incidents": 2e-3,
    **{"entries": 10.0, "entries_low": 10.0, "entries_high": 10.0},
    "incident_p50": 5e4,
    "incident_p99": 3e5,
    "incident_p99_high": 3e5,
    "by_cause_outages": 5e-4,
    "by_cause_rack_outages": 1.5e-3,
}


def design(p: float, **more) -> Design:
    worst = {**COUNTS, "p": p, "low": p, "high": p, "method": "exact", "confidence": 0.95, "point_id": "a", **more}
    return Design("WQ 3", [worst], worst)


def told(found: Design, target: float = 1.0, sure: Doubt | None = None) -> dict[str, str]:
    said = summary([found], target, sure)
    return {"design": said.standing, said.measure: said.risk, **dict(said.facts)}


def test_of_a_cluster_it_says_how_often_how_much_and_why():
    sure = Doubt({"WQ 3": DrawnLosses(np.ones(1), 1e-3, 1e-4, 1e-2, 1.0, 1, {}, {}, 0.0)}, {"WQ 3": 1.0}, {}, None, {})
    assert told(design(2e-3, **CLUSTER, **STORED, **WRITE), 1.0, sure) == {
        "design": "WQ 3 (recommended)",
        "P(any loss in a year)": "0.00200",
        "uncertain rates": "1.00 × 10⁻⁴ to 0.0100, nine times in ten",
        "happens": "about once in 500 years",
        "lost at once": "50,000 entries (median); in 99 of 100 incidents at most 300,000",
        "main cause": "rack outages (75% of the incidents)",
        "it stores": "3 copies of each entry, 1 TiB in all",
        "it survives": "the loss of 1 bookie",
        "a write takes": "0.500 ms (median); 99 of 100 at most 2.00 ms",
    }


def test_where_another_design_loses_fewer_entries_though_more_often_it_is_said():
    first = design(2e-3, **{**CLUSTER, "entries": 80.0, "entries_low": 79.0, "entries_high": 81.0})
    for high, is_said in ((6.0, True), (79.0, False)):
        other = design(4e-3, **{**CLUSTER, "entries": 5.0, "entries_low": 4.0, "entries_high": high})
        facts = dict(summary([first, other._replace(settings="WQ 2")], 1.0, None).facts)
        said = "WQ 2 loses 5 a year on average against 80, though it loses data more often"
        assert facts.get("fewest entries") == (said if is_said else None)


@pytest.mark.parametrize(("high", "is_said"), [(0.12, True), (0.3, False)])
def test_where_another_design_loses_anything_less_often_though_more_on_average_it_is_said(high, is_said):
    first = design(5.0, p_any=0.3, p_any_low=0.29, p_any_high=0.31)
    other = design(80.0, p_any=0.1, p_any_low=0.09, p_any_high=high)._replace(settings="WQ 2")
    facts = dict(summary([first, other], 100.0, None).facts)
    said = "WQ 2 loses anything with probability 0.1 a year against 0.3, though it loses more on average"
    assert facts.get("least often") == (said if is_said else None)


@pytest.mark.parametrize(("per_year", "cause"), [(1.0, "failover"), (0.1, "rack outages")])
def test_what_most_losses_come_of_may_be_a_scenario_beside_the_cluster(per_year, cause):
    beside = {**COUNTS, "run.scenario": "failover", "per_year": per_year, "incident": True}
    beside |= dict.fromkeys(("p", "low", "high"), 5e-3)
    inside = {"run.scenario": "entry", "per_year": 1e10, "p": 1e-3, "incident": False}
    assert told(design(6e-3, **CLUSTER, parts=[beside, inside]))["main cause"].startswith(cause)


def test_without_a_cluster_it_is_losses_and_without_a_design_that_meets_targets_it_says_so():
    parts = [
        {"run.scenario": name, "per_year": 10.0, "p": p, "low": p, "high": p}
        for name, p in (("entry", 0.1), ("outage", 0.2))
    ]
    said = told(design(3.0, parts=parts, p_any=0.95, p_any_low=0.94, p_any_high=0.96), 1.0)
    assert said["design"] == "WQ 3 (not recommended)"
    named = design(3.0, parts=parts, **{"model.ack_quorum": 2})._replace(settings="3/3/2, fencing off")
    assert told(named, 1.0)["3/3/2"] == "ensemble 3, write quorum 3, ack quorum 2"
    assert said["P(any loss in a year)"] == "0.950"
    assert said["losses a year"].startswith("3.00")
    assert said["main cause"] == "outage (66.7% of the losses)"
    assert said["uncertain rates"] == "effect not known: the file does not say how well its rates are known"


def test_of_a_design_whose_doubt_was_not_found_it_says_why_and_not_how_often_it_is_the_choice():
    """At all draws such a design loses what it loses: how often it is the choice is not known, either."""
    known = DrawnLosses(np.ones(1), 1e-3, 1e-4, 1e-2, 1.0, 1, {}, {}, 0.0)
    why = {"WQ 3": "its losses were counted"}
    sure = Doubt({"WQ 2": known, "WQ 4": known}, {"WQ 3": 0.6, "WQ 4": 0.4}, {}, None, {}, why)
    said = told(design(2e-3, **CLUSTER), 1.0, sure)
    assert said["uncertain rates"] == "effect not known: its losses were counted"
    assert "still the choice" not in said


def test_the_interval_at_the_rates_given_is_told_apart_from_uncertain_rates_and_what_changes_the_choice_is_there():
    found = design(2e-3, **CLUSTER)
    worst = found.worst | {"low": 1e-3, "high": 3e-3, "method": "Clopper-Pearson"}
    said = dict(summary([found._replace(points=[worst], worst=worst)], 1.0, None, ["one", "two", "three"]).facts)
    assert said["95% interval"] == "0.00100 to 0.00300, at the rates given"
    facts = summary([found], 1.0, None, ["one", "two", "three"]).facts
    at = facts.index(("what changes it", "one"))
    assert facts[at + 1] == ("", "two")  # the label stands once
    assert "three" not in [fact for _, fact in facts]


def test_why_a_design_is_the_choice_is_said():
    first, other, bad = design(1e-3, stored=3), design(1e-5, stored=4), design(0.9, stored=2)
    assert dict(summary([other, first, bad], 0.1, None).facts)["why"] == (
        "2 of 3 designs meet the targets; none of these stores less"
    )
    assert dict(summary([first, bad], 0.1, None).facts)["why"] == "no other design meets the targets"
    assert "why" not in told(first)


def test_it_stands_before_the_recommendation():
    html = report(frame([0, 30], **LOST_AT), [], PROVENANCE)
    assert 0 < html.index('<section id="summary">') < html.index('id="recommendation"')


def test_how_far_the_interval_of_an_undecided_design_reaches_stands_beside_its_figure():
    assert told(design(1e-3, **{"low": 1e-4, "high": 0.381}), 0.01)["design"] == "WQ 3 (undecided, up to 0.381)"
    close = {"low": 0.0, "high": 0.99999192}
    assert told(design(0.5, **close), 0.9)["design"] == "WQ 3 (undecided, up to 0.999992)"  # rounded up
    unseen = told(design(0.0, **close, **{"losses": 0}), 0.9)
    assert unseen["design"] == "WQ 3 (undecided)"  # the risk is the bound
    assert unseen["95% bound"] == "no loss was seen, at the rates given"
    assert told(design(0.1, **{"low": 0.05, "high": 0.381}), 0.01)["design"] == "WQ 3 (not recommended)"


def test_without_a_target_nothing_is_recommended():
    assert told(design(2e-3, **CLUSTER), math.inf)["design"] == "WQ 3 (no target is set)"


@pytest.mark.parametrize(
    ("protocol", "hits", "said"),
    [
        ("raft", 1.0, "at most 1 log; a file with [cluster] also tells how many entries"),
        ("kafka", 40.0, "at most 40 partitions; a file of `quorisk init kraft` also tells how many entries"),
    ],
)
def test_without_a_cluster_the_most_that_an_event_takes_is_told_in_the_files_unit(protocol, hits, said):
    part = {"run.scenario": "all_zones_lose_power", "per_year": 10.0, "p": 0.1, "low": 0.1, "high": 0.1, "hits": hits}
    facts = told(design(1.0, parts=[part | {"protocol": protocol}], protocol=protocol), 1.0)
    assert facts["lost at once"].startswith(said)
    assert facts["main cause"] == "all zones lose power (100% of the losses)"
