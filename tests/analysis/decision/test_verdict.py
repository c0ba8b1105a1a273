"""Verdicts against a target, at their boundaries; recommendations say no more than the verdicts."""

import itertools
import math

import pytest
from hypothesis import given as given_values
from hypothesis import settings as given_examples
from hypothesis import strategies as st

from quorisk.analysis.decision import verdict
from quorisk.analysis.decision.advice import recommend
from quorisk.analysis.decision.designs import Design, ranked_designs
from quorisk.analysis.decision.judging import FAILS, MEETS, UNDECIDED, judge, runs_to_settle, tail
from quorisk.analysis.decision.verdict import decades
from quorisk.analysis.results.frame import frame as frame_of
from quorisk.analysis.statistics.intervals import clopper_pearson
from quorisk.analysis.statistics.sequential import confidence_sequence
from quorisk.plots.report import Provenance, report
from quorisk.say import choose, numbers, text
from tests.plots.tables import RUNS, frame, table

FAULTS = {"faults__message_loss": [0.1, 0.2]}


def rows(losses, confidence=0.95, simultaneous=False, unfinished=0, **varied):
    given = frame_of(table(losses, unfinished, **varied), confidence, simultaneous)
    return choose.rows_of(given, "data loss")


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
    safe, mixed, bad = ranked_designs(rows([0, 0, 0, 30, 30, 30], model__keys=[1, 2, 3], **FAULTS))
    assert [each.settings for each in (safe, mixed, bad)] == ["keys 1", "keys 2", "keys 3"]
    # 0 of 1000 reaches to 0.0037, 30 of 1000 from 0.0203 to 0.0426
    assert [each.verdict(0.01) for each in (safe, mixed, bad)] == [MEETS, FAILS, FAILS]
    assert [each.verdict(0.03) for each in (safe, mixed, bad)] == [MEETS, UNDECIDED, UNDECIDED]
    assert [each.verdict(0.05) for each in (safe, mixed, bad)] == [MEETS] * 3
    assert (safe.worst["at"], mixed.worst["at"], bad.worst["at"]) == ("", "message loss 0.2", "")
    # point 3 lost 30 of its 1,000 runs; the others pay for them
    assert mixed.cost("steps") == pytest.approx((10 + 11 / 0.97) / 2)
    assert mixed.cost("messages") == pytest.approx((4 + 6 / 0.97) / 2)


def test_designs_are_ranked_by_the_upper_ends_of_their_worst_faults_rates_among_them():
    varied = {"model__keys": [1, 2], "rates__broker_crash": [0.5, 1.0]}
    given = rows([30, 3, 9, 9], **varied)
    given.loc[given["point_id"] == "id1", "high"] = 0.5
    found = [(each.settings, each.worst["at"]) for each in ranked_designs(given)]
    assert found == [("keys 2", ""), ("keys 1", "broker crash 1")]


def test_worst_faults_have_units_where_time_has():
    given = rows([30, 3, 9, 9], **{"model__keys": [1, 2], "rates__broker_crash": [1 / 3600, 1 / 86_400]})
    ats = [
        [each.worst["at"] for each in ranked_designs(some)] for some in (given, given.assign(**{text.TIME_UNIT: "s"}))
    ]
    assert ats == [["", "broker crash 2.77778 × 10⁻⁴"], ["", "broker crash 1 / h"]]


def test_no_more_is_known_than_the_weakest_bound_of_designs_without_a_loss_under_any_faults():
    given = frame([0, 0, 0, 3, 0, 0], model__keys=[1, 2, 3], **FAULTS)
    given.loc[given["point_id"] == "id2", "high"] = 0.6  # its design lost under other faults
    given.loc[given["point_id"] == "id4", "high"] = 0.5
    said = recommend(given.assign(target=math.inf)).sentences[0]
    assert said == "No run of keys 1; keys 3 lost data: all that is known is an upper bound of 0.500."


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
    keys = next(each for each in ranked_designs(given[given["invariant"] == "data loss"]) if each.worst["high"] == 0.6)
    assert keys.worst["at"] != keys.telling(0.01)["at"]
    said = recommend(given.assign(target=0.01)).sentences
    assert any(f"0.0300, interval 0.0203 to 0.0426 (at {keys.telling(0.01)['at']})" in sentence for sentence in said)
    assert not any("0.6" in sentence for sentence in said)
    html = report(given.assign(target=0.01), [], Provenance("", "", []))
    assert "0.600" not in html[html.index("Try other targets") : html.index("Which targets are met")]


def test_the_rule_of_three_says_how_many_runs_settle_it():
    given = rows([0])
    [design] = ranked_designs(given)
    runs = design.runs_to_settle(tail(given), 1e-6)
    assert clopper_pearson(0, math.ceil(runs), 0.95)[1] <= 1e-6 < clopper_pearson(0, math.floor(runs) - 1, 0.95)[1]


@pytest.mark.parametrize("interval", [clopper_pearson, confidence_sequence])
@pytest.mark.parametrize(("losses", "target"), [(0, 0.001), (2, 0.003), (4, 0.003), (30, 0.029), (30, 0.031)])
def test_so_many_runs_settle_it_if_they_go_on_alike(interval, losses, target):
    point = {"losses": losses, "hidden": 0, "runs": RUNS, "sequential": interval is confidence_sequence}
    runs = runs_to_settle(point, 0.025, target)

    def judged(runs):
        low, high = interval(round(losses / RUNS * runs), round(runs), 0.95)
        return judge(low, high, target)

    assert judged(RUNS) == UNDECIDED
    assert judged(runs / 2) == UNDECIDED
    assert judged(1.1 * runs) == (MEETS if losses / RUNS < target else FAILS)


@pytest.mark.parametrize("sequential", [False, True])
def test_no_number_of_runs_settles_what_hidden_runs_or_the_estimate_hide(sequential):
    point = {"losses": 3, "hidden": 0, "runs": RUNS, "sequential": sequential}
    assert runs_to_settle(point, 0.025, 0.003) == math.inf
    assert runs_to_settle(point | {"losses": 1, "hidden": 9}, 0.025, 0.005) == math.inf
    assert runs_to_settle(point | {"losses": 0, "hidden": 9}, 0.025, 0.009) == math.inf
    assert runs_to_settle(point | {"losses": 0, "hidden": 9}, 0.025, 0.02) < math.inf


@pytest.mark.parametrize("interval", [clopper_pearson, confidence_sequence])
@pytest.mark.parametrize(("losses", "target"), [(0, 3e-12), (4, 7e-12), (30, 2.9e-11), (30, 3.3e-11)])
def test_beyond_a_head_it_is_runs_from_its_exits_that_settle(interval, losses, target):
    """Not the runs that it would take to count the losses, which are a billion times as many."""
    inside, leaves = 1e-12, 1e-9
    of_exits = {"inside": inside, "leaves": leaves, "exit_runs": RUNS, "exit_losses": losses, "exit_hidden": 0}
    point = {"losses": 1e-9, "hidden": 0, "runs": 100, "sequential": interval is confidence_sequence, **of_exits}
    runs = runs_to_settle(point, 0.025, target)

    def judged(runs):
        q_low, q_high = interval(round(losses / RUNS * runs), round(runs), 0.95)
        return judge(inside + leaves * q_low, inside + leaves * q_high, target)

    assert judged(runs / 2) == UNDECIDED
    assert judged(1.1 * runs) == (MEETS if inside + leaves * losses / RUNS < target else FAILS)
    assert runs_to_settle(point | {"exit_runs": 0}, 0.025, target) == math.inf  # not sampled at all
    assert runs_to_settle(point, 0.025, inside / 2) == math.inf


def test_a_design_is_settled_by_the_first_point_that_fails_or_the_last_that_meets():
    def settled(losses, target):
        given = rows(losses, **FAULTS)
        [design] = ranked_designs(given)
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
    points = [{"completed": 5, "horizon": 5, "steps": 50}, {"completed": 1000, "horizon": 0, "steps": 7000}]
    assert Design("", points, points[0]).cost("steps") == 6.0


def test_runs_that_get_stuck_are_paid_for_by_those_that_do_not():
    point = {"runs": 100, "completed": 16, "horizon": 0, "stuck": 84, "steps": 3200}
    assert Design("", [point], point).cost("steps") == 200.0
    assert Design("", [point, point | {"completed": 0}], point).cost("steps") == math.inf
    assert Design("", [point, point | {"stuck": 90}], point).p_stuck() == 0.9


def test_the_tail_is_that_of_each_interval():
    assert tail(rows([1, 2], model__keys=[1, 2])) == pytest.approx(0.025)
    assert tail(rows([1, 2], 0.9, simultaneous=True, model__keys=[1, 2])) == pytest.approx(0.025)


def test_decades_go_from_what_all_meet_to_what_none_does():
    found = decades(ranked_designs(rows([0, 30, 30], model__keys=[1, 2, 3])))
    assert [each.target for each in found] == pytest.approx([0.1, 0.01, 0.001])
    assert [[design.settings for design in each.meets] for each in found] == [
        ["keys 1", "keys 2", "keys 3"],
        ["keys 1"],
        [],
    ]
    assert [(each.fails, each.undecided) for each in found] == [(0, 0), (2, 0), (2, 1)]
    assert [each.target for each in decades(ranked_designs(rows([RUNS])))] == pytest.approx([1.0, 0.1])


def test_decades_are_ten_at_the_most():
    def reaching(high):
        return Design("", [], {"high": high})

    found = [reaching(1.0)._replace(points=[{"low": 0.5}]), reaching(1e-12)._replace(points=[{"low": 0.0}])]
    assert [each.target for each in decades(found)] == pytest.approx([10.0**-i for i in range(10)])


def test_a_recommendation_names_what_meets_what_does_not_and_what_is_open():
    given = frame([0, 0, 30, 30, 9, 9], model__keys=[1, 2, 3], **FAULTS)
    headline, said, _ = recommend(given.assign(target=0.01))
    assert headline == "Run keys 1."
    goal = "target: a probability of data loss of at most 0.01 a run"
    assert said[:2] == ["P(data loss) < 0.00369, none seen.", f"None of the 2 other designs meets the {goal}."]
    assert said[2].startswith("Not met by keys 2. The worst: keys 2: 0.0300, interval 0.0203 to 0.0426")
    assert said[3].startswith("Undecided at this precision: keys 3; about ")
    assert any("about 0.3 of 6 intervals may miss" in each for each in said)
    assert any("judged by its worst faults" in each for each in said)


QUORUMS = [(2, 1), (2, 2), (3, 2), (3, 3)]


def designs_of(losses, quorums=QUORUMS, off=(), target=0.01):
    """A frame of BookKeeper's designs, WQ and AQ each, with so many losses in 1,000 runs; `off`: a mechanism is."""
    given = frame(losses, target=target, model__design=[f"WQ {stored} AQ {copies}" for stored, copies in quorums])
    place = given["point_id"].str.removeprefix("id").astype(int)
    stored, copies = (place.map(dict(enumerate(each))) for each in zip(*quorums, strict=True))
    changed = place.isin(off).map({True: "fencing off", False: ""})
    survives = (copies - 1).astype(str) + " bookies"
    return given.assign(copies=copies, stored=stored, on_disk=True, survives=survives, changed=changed)


def chosen(given):
    found = ranked_designs(choose.rows_of(given, "data loss"))
    return [each.settings.removeprefix("design ") for each in verdict.choice(found, given["target"].iloc[0])]


def test_no_design_is_chosen_for_fewer_copies_because_nothing_was_lost():
    assert chosen(designs_of([0, 0, 0, 0])) == ["WQ 3 AQ 3"]
    headline, said, _ = recommend(designs_of([0, 0, 0, 0]))
    assert headline == "Run design WQ 3 AQ 3."
    assert "3 of 3 copies on disk when acknowledged; survives the loss of 2 bookies" in said[0]
    assert any("no reason to have fewer copies" in each and "WQ 2 AQ 1" in each for each in said)
    # where losses were seen and are few enough, the number speaks: what stores least comes first, then the safest
    assert chosen(designs_of([5, 2, 1, 0], target=0.02)) == ["WQ 2 AQ 2", "WQ 2 AQ 1", "WQ 3 AQ 3", "WQ 3 AQ 2"]
    assert chosen(designs_of([30, 2, 1, 0], target=0.02)) == ["WQ 2 AQ 2", "WQ 3 AQ 3", "WQ 3 AQ 2"]


def test_no_design_is_chosen_that_has_a_mechanism_off():
    assert chosen(designs_of([9, 5, 0, 0], off=(2, 3), target=0.05)) == ["WQ 2 AQ 2", "WQ 2 AQ 1"]
    headline, said, _ = recommend(designs_of([90, 90, 0, 0], off=(2, 3)))
    assert headline.startswith("No design is recommended, though 2 of 4 meet the target")
    assert said[0] == "Each of them has a mechanism off, a risky setting on, or is an older version."
    _, said, _ = recommend(designs_of([9, 5, 0, 0], off=(2, 3), target=0.05))
    assert any(each.startswith("design WQ 3 AQ 3; design WQ 3 AQ 2: not recommended") for each in said)


def test_a_switch_is_named_where_it_is_not_as_it_is_by_default():
    given = {"model.keys": 2, "variant.fencing": False, "variant.unclean": False}
    assert text.design(given | {"changed": "fencing off"}, list(given)) == "keys 2, fencing off"
    given |= {"variant.fencing": True, "variant.unclean": True}
    assert text.design(given | {"changed": "unclean on"}, list(given)) == "keys 2, unclean on"
    assert text.design(given, list(given)) == "keys 2"
    off = {
        "model.servers": 3,
        **dict.fromkeys(text._FSYNCS, False),
        "changed": "followers' fsync off, leader's fsync off",
    }
    assert text.design(off, list(off)[:-1]) == "3 servers, fsync off"
    on = off | dict.fromkeys(text._FSYNCS, True) | {"changed": ""}
    assert text.design(on, list(off)[:-1]) == "3 servers, fsync"
    assert text.design(on, ["model.servers"]) == "3 servers"
    assert (
        text.design(off | {text._FSYNCS[0]: True, "model.servers": 1}, list(off)[:-1]) == "1 server, leader's fsync off"
    )


def test_designs_of_which_nothing_was_lost_share_a_rank_however_many_runs_they_had():
    given = designs_of([0, 0, 90, 30])
    given.loc[given["point_id"] == "id1", "high"] = 0.3
    ranks = {each.settings: each.rank for each in ranked_designs(choose.rows_of(given, "data loss"))}
    assert ranks == {"design WQ 2 AQ 1": 1, "design WQ 2 AQ 2": 1, "design WQ 3 AQ 3": 3, "design WQ 3 AQ 2": 4}


@given_examples(max_examples=25, deadline=None)
@given_values(st.lists(st.integers(0, RUNS), min_size=2, max_size=6), st.randoms())
def test_ranks_do_not_depend_on_the_order_of_the_grid_and_fewer_losses_never_rank_below_more(losses, random):
    rows = choose.rows_of(frame(losses, target=0.01, model__keys=range(len(losses))), "data loss")
    places = list(range(len(losses)))
    random.shuffle(places)
    found = ranked_designs(rows)
    assert ranked_designs(rows.iloc[places]) == found
    assert verdict.choice(ranked_designs(rows.iloc[places]), 0.01) == verdict.choice(found, 0.01)
    for one, other in itertools.product(found, found):
        if one.worst["losses"] < other.worst["losses"]:
            assert one.rank <= other.rank
            assert one.rank < other.rank or one.is_tied(other)


def test_the_runs_that_settle_are_those_of_the_hardest_to_settle():
    given = frame([4, 6], model__keys=[1, 2])
    easy, hard = (each.runs_to_settle(0.025, 0.01) for each in ranked_designs(choose.rows_of(given, "data loss")))
    assert RUNS < easy < hard
    assert f"about {numbers.number(hard)} runs" in recommend(given.assign(target=0.01)).sentences[0]


def test_without_a_target_nothing_passes():
    headline, said, _ = recommend(frame([0, 30], model__keys=[1, 2]).assign(target=math.inf))
    assert headline.startswith("No target was set (run.target)")
    assert said[0] == "No run of keys 1 lost data: all that is known is an upper bound of 0.00369."
    assert said[1].startswith("The highest: keys 2: 0.0300")
    assert not any("meet" in each for each in [headline, *said])


def test_hidden_runs_are_told_of():
    _, said, _ = recommend(frame([0, 30], unfinished=7, model__keys=[1, 2]).assign(target=0.01))
    assert any(each.startswith("14 runs ended before it was known") for each in said)


def test_a_single_design_reads_well():
    headline, said, _ = recommend(frame([0]).assign(target=0.01))
    assert headline.startswith("This design meets the target")
    assert said == ["P(data loss) < 0.00369, none seen."]
    assert recommend(frame([30]).assign(target=math.inf)).sentences == [
        "The lowest upper end: this design: 0.0300, interval 0.0203 to 0.0426."
    ]
    headline, said, _ = recommend(frame([0]).assign(target=1e-6))
    assert headline.startswith("This design is not shown to meet the target")
    assert said[1].startswith("Undecided at this precision: this design; about 3.69 × 10⁶ runs")


def test_where_all_runs_may_hide_a_loss_nothing_is_known():
    for unfinished, horizon in ((RUNS, 0), (0, RUNS)):
        given = frame_of(table([0], unfinished, horizon), 0.95, at_any_time=True)
        _, said, _ = recommend(given.assign(target=0.5))
        assert said[0] == "P(data loss) at most 1, none seen."
        assert said[1].endswith("an estimate is at the target, or runs that ended early hide it.")
        assert (
            recommend(given.assign(target=math.inf))
            .sentences[0]
            .endswith("lost data: all that is known is an upper bound of 1.00.")
        )


def test_configurations_without_runs_are_told_of():
    for number, said in ((3, "3 configurations"), (1, "1 configuration")):
        first = recommend(frame([0]).assign(target=0.01), number).sentences[0]
        assert first == f"Not covered here: {said} without any runs yet."


def test_a_zero_that_is_proved_ranks_before_one_that_is_not():
    rows = choose.rows_of(frame([0, 0, 5], model__keys=[1, 2, 3]), "data loss")
    rows.loc[rows["model.keys"] == 2, "high"] = 0.0
    assert [(each.settings, each.rank, each.is_proved) for each in ranked_designs(rows)] == [
        ("keys 2", 1, True),
        ("keys 1", 2, False),
        ("keys 3", 2, False),
    ]
