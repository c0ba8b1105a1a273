"""Verdicts against a target, at their boundaries; recommendations say no more than the verdicts."""

import math

import pytest

from quorisk.analysis.results import frame as frame_of
from quorisk.analysis.statistics import intervals, sequential
from quorisk.analysis.statistics.intervals import clopper_pearson
from quorisk.analysis.statistics.sequential import confidence_sequence
from quorisk.plots import choose, numbers, verdict
from quorisk.plots.recommend import recommend
from quorisk.plots.report import Provenance, report
from quorisk.plots.verdict import FAILS, MEETS, UNDECIDED, Design, decades, designs, judge, runs_to_settle, tail
from tests.plots.tables import RUNS, frame, table

FAULTS = {"faults__message_loss": [0.1, 0.2]}


def rows(losses, confidence=0.95, simultaneous=False, unfinished=0, **varied):
    given = frame_of(table(losses, unfinished, **varied), confidence, simultaneous)
    return choose.of(given, "data loss")


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1e-6, MEETS),
        (0.0, math.nextafter(1e-6, 1), UNDECIDED),
        (1e-6, 1e-3, UNDECIDED),
        (math.nextafter(1e-6, 1), 1e-3, FAILS),
        (0.0, 1.0, UNDECIDED),
    ],
)
def test_an_interval_meets_a_target_only_as_a_whole(low, high, expected):
    assert judge(low, high, 1e-6) == expected


def test_a_design_meets_under_all_faults_and_fails_under_any():
    safe, mixed, bad = designs(rows([0, 0, 0, 30, 30, 30], model__keys=[1, 2, 3], **FAULTS))
    assert [each.settings for each in (safe, mixed, bad)] == ["keys 1", "keys 2", "keys 3"]
    # 0 of 1000 reaches to 0.0037, 30 of 1000 from 0.0203 to 0.0426
    assert [each.verdict(0.01) for each in (safe, mixed, bad)] == [MEETS, FAILS, FAILS]
    assert [each.verdict(0.03) for each in (safe, mixed, bad)] == [MEETS, UNDECIDED, UNDECIDED]
    assert [each.verdict(0.05) for each in (safe, mixed, bad)] == [MEETS] * 3
    assert (safe.worst["at"], mixed.worst["at"], bad.worst["at"]) == ("", "message loss 0.2", "")
    assert mixed.mean("steps") == 8 + 2.5
    assert mixed.mean("messages") == 5


def test_designs_are_ranked_by_the_upper_ends_of_their_worst_faults_rates_among_them():
    varied = {"model__keys": [1, 2], "rates__broker_crash": [0.5, 1.0]}
    given = rows([30, 3, 9, 9], **varied)
    given.loc[given["point_id"] == "id1", "high"] = 0.5
    found = [(each.settings, each.worst["at"]) for each in designs(given)]
    assert found == [("keys 2", ""), ("keys 1", "broker crash 1")]


def test_no_more_is_known_than_the_weakest_bound_of_designs_without_a_loss_under_any_faults():
    given = frame([0, 0, 0, 3, 0, 0], model__keys=[1, 2, 3], **FAULTS)
    given.loc[given["point_id"] == "id2", "high"] = 0.6  # its design lost under other faults
    given.loc[given["point_id"] == "id4", "high"] = 0.5
    said = recommend(given, math.inf).sentences[0]
    assert said == "No run of keys 1; keys 3 lost data: at most 0.500, no more is known."


def test_the_point_that_fails_need_not_be_the_one_whose_interval_reaches_highest():
    def point(losses, runs):
        low, high = clopper_pearson(losses, runs, 0.95)
        return {"losses": losses, "runs": runs, "p": losses / runs, "low": low, "high": high}

    few, many = point(0, 5), point(30, RUNS)
    design = Design("", [few, many], few)
    assert design.verdict(0.01) == FAILS
    assert design.telling(0.01) is many
    assert design.verdict(0.03) == UNDECIDED
    assert design.telling(0.03) is few
    assert Design("", [many, point(31, RUNS)], many).telling(0.01) is many


def test_where_a_design_fails_the_faults_are_told_under_which_it_does():
    given = frame([0, 30, 0, 0], model__keys=[1, 2], **FAULTS)
    given.loc[given["point_id"] == "id0", "high"] = 0.6  # few runs, say, which decide nothing
    keys = next(each for each in designs(given[given["invariant"] == "data loss"]) if each.worst["high"] == 0.6)
    assert keys.worst["at"] != keys.telling(0.01)["at"]
    said = recommend(given, 0.01).sentences
    assert any(f"0.0300, interval 0.0203 to 0.0426 (at {keys.telling(0.01)['at']})" in sentence for sentence in said)
    assert not any("0.6" in sentence for sentence in said)
    html = report(given, [], Provenance("", "", []), 0.01)
    assert "0.600" not in html[html.index("Designs, the safest first") : html.index("Which targets are met")]


def test_the_rule_of_three_says_how_many_runs_settle_it():
    given = rows([0])
    [design] = designs(given)
    runs = design.runs_to_settle(tail(given), 1e-6)
    assert clopper_pearson(0, math.ceil(runs), 0.95)[1] <= 1e-6 < clopper_pearson(0, math.floor(runs) - 1, 0.95)[1]


@pytest.mark.parametrize("interval", [clopper_pearson, confidence_sequence])
@pytest.mark.parametrize(("losses", "target"), [(0, 0.001), (2, 0.003), (4, 0.003), (30, 0.029), (30, 0.031)])
def test_so_many_runs_settle_it_if_they_go_on_alike(interval, losses, target):
    method = {clopper_pearson: intervals.METHOD, confidence_sequence: sequential.METHOD}[interval]
    point = {"losses": losses, "hidden": 0, "runs": RUNS, "method": method}
    runs = runs_to_settle(point, 0.025, target)

    def judged(runs):
        low, high = interval(round(losses / RUNS * runs), round(runs), 0.95)
        return judge(low, high, target)

    assert judged(RUNS) == UNDECIDED
    assert judged(runs / 2) == UNDECIDED
    assert judged(1.1 * runs) == (MEETS if losses / RUNS < target else FAILS)


@pytest.mark.parametrize("method", [intervals.METHOD, sequential.METHOD])
def test_no_number_of_runs_settles_what_hidden_runs_or_the_estimate_hide(method):
    point = {"losses": 3, "hidden": 0, "runs": RUNS, "method": method}
    assert runs_to_settle(point, 0.025, 0.003) == math.inf
    assert runs_to_settle(point | {"losses": 1, "hidden": 9}, 0.025, 0.005) == math.inf
    assert runs_to_settle(point | {"losses": 0, "hidden": 9}, 0.025, 0.009) == math.inf
    assert runs_to_settle(point | {"losses": 0, "hidden": 9}, 0.025, 0.02) < math.inf


def test_a_design_is_settled_by_the_first_point_that_fails_or_the_last_that_meets():
    def settled(losses, target):
        given = rows(losses, **FAULTS)
        [design] = designs(given)
        assert design.verdict(target) == UNDECIDED
        alone = [runs_to_settle(point, tail(given), target) for point in design.points]
        return design.runs_to_settle(tail(given), target), alone

    runs, (first, second) = settled([10, 14], 0.01)  # the first is at the target, the second on its way beyond it
    assert (runs, first) == (second, math.inf)
    runs, (first, second) = settled([15, 14], 0.01)
    assert runs == first < second
    runs, (first, second) = settled([4, 5], 0.01)
    assert runs == second > first


def test_what_a_run_costs_is_its_mean_over_faults_whatever_the_numbers_of_runs():
    points = [{"runs": 10, "steps": 50}, {"runs": 1000, "steps": 7000}]
    assert Design("", points, points[0]).mean("steps") == 6.0


def test_the_tail_is_that_of_each_interval():
    assert tail(rows([1, 2], model__keys=[1, 2])) == pytest.approx(0.025)
    assert tail(rows([1, 2], 0.9, simultaneous=True, model__keys=[1, 2])) == pytest.approx(0.025)


def test_decades_go_from_what_all_meet_to_what_none_does():
    found = decades(designs(rows([0, 30, 30], model__keys=[1, 2, 3])))
    assert [each.target for each in found] == pytest.approx([0.1, 0.01, 0.001])
    assert [[design.settings for design in each.meets] for each in found] == [
        ["keys 1", "keys 2", "keys 3"],
        ["keys 1"],
        [],
    ]
    assert [(each.fails, each.undecided) for each in found] == [(0, 0), (2, 0), (2, 1)]
    assert [each.target for each in decades(designs(rows([RUNS])))] == pytest.approx([1.0, 0.1])


def test_decades_are_ten_at_the_most():
    def reaching(high):
        return Design("", [], {"high": high})

    found = [reaching(1.0)._replace(points=[{"low": 0.5}]), reaching(1e-12)._replace(points=[{"low": 0.0}])]
    assert [each.target for each in decades(found)] == pytest.approx([10.0**-i for i in range(10)])


def test_a_recommendation_names_what_meets_what_does_not_and_what_is_open():
    given = frame([0, 0, 30, 30, 9, 9], model__keys=[1, 2, 3], **FAULTS)
    headline, said = recommend(given, 0.01)
    assert headline == "1 of 3 designs meets the target: a probability of data loss of at most 10⁻² a run."
    assert said[0].startswith("Meeting it: keys 1. Of these keys 1 costs least: 1.00 messages a run.")
    assert said[1].startswith("Not meeting it: keys 2. The worst: keys 2: 0.0300, interval 0.0203 to 0.0426")
    assert said[2].startswith("Undecided at this precision: keys 3; about ")
    assert any("of 6 up to 0.3 may be expected to miss" in each for each in said)
    assert any("judged by its worst faults" in each for each in said)


def test_the_cheapest_that_meets_is_named():
    _, said = recommend(frame([0, 0, 30], model__keys=[1, 2, 3]), 0.01)
    assert said[0].startswith("Meeting it: keys 1; keys 2. Of these keys 1 costs least: 0.00 messages a run.")
    _, said = recommend(frame([30, 0, 0], model__keys=[1, 2, 3]), 0.01)
    assert said[0].startswith("Meeting it: keys 2; keys 3. Of these keys 2 costs least: 2.00 messages a run.")


def test_the_runs_that_settle_are_those_of_the_hardest_to_settle():
    given = frame([4, 6], model__keys=[1, 2])
    easy, hard = (each.runs_to_settle(0.025, 0.01) for each in designs(choose.of(given, "data loss")))
    assert RUNS < easy < hard
    assert f"about {numbers.number(hard)} runs" in recommend(given, 0.01).sentences[0]


def test_without_a_target_nothing_passes():
    headline, said = recommend(frame([0, 30], model__keys=[1, 2]), math.inf)
    assert headline.startswith("No target was set (run.target)")
    assert said[0] == "No run of keys 1 lost data: at most 0.00369, no more is known."
    assert said[1].startswith("The highest: keys 2: 0.0300")
    assert not any("meet" in each for each in [headline, *said])


def test_hidden_runs_are_told_of():
    _, said = recommend(frame([0, 30], unfinished=7, model__keys=[1, 2]), 0.01)
    assert any(each.startswith("14 runs ended before it was known") for each in said)


def test_a_single_design_reads_well():
    headline, said = recommend(frame([0]), 0.01)
    assert headline.startswith("The one design meets the target")
    assert said == ["In its worst case, the one design: < 0.00369."]
    assert recommend(frame([30]), math.inf).sentences == [
        "The lowest upper end: the one design: 0.0300, interval 0.0203 to 0.0426."
    ]
    headline, said = recommend(frame([0]), 1e-6)
    assert headline.startswith("No design is shown to meet the target")
    assert said[1].startswith("Undecided at this precision: the one design; about 3.69 × 10⁶ runs")


def test_where_all_runs_may_hide_a_loss_nothing_is_known():
    for unfinished, horizon in ((RUNS, 0), (0, RUNS)):
        given = frame_of(table([0], unfinished, horizon), 0.95, at_any_time=True)
        _, said = recommend(given, 0.5)
        assert said[0] == "In its worst case, the one design: at most 1."
        assert said[1].endswith("an estimate is at the target, or runs that ended early hide it.")
        assert recommend(given, math.inf).sentences[0].endswith("lost data: at most 1.00, no more is known.")


def test_configurations_without_runs_are_told_of():
    assert recommend(frame([0]), 0.01, 3).sentences[0].startswith("3 configurations have no runs yet")


def test_verdicts_on_many_points_are_cheap_enough_to_make():
    assert len(verdict.designs(rows([1] * 10_000, model__keys=range(10_000)))) == 10_000
