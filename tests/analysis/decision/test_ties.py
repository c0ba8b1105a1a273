"""Designs whose losses cannot be told apart: they share a rank, and what is certain decides between them."""

import numpy as np

from quorisk.analysis.decision import verdict
from quorisk.analysis.decision.advice import recommend
from quorisk.analysis.decision.designs import Design, ranked_designs
from quorisk.say import choose
from tests.analysis.decision.test_verdict import chosen, designs_of
from tests.plots.tables import frame


def tied(low=2.54, high=2.55, **columns):
    """Two designs that store alike: the first one loses a hair less, but its writes take longer."""
    given = designs_of([30, 30], quorums=((5, 3), (5, 2)), target=100.0)
    first = given["point_id"] == "id0"
    p99_ms = np.where(first, 28.0, 26.4)
    ends = {"p": np.where(first, 2.548, 2.549), "low": np.where(first, 2.54, low), "high": np.where(first, 2.55, high)}
    return given.assign(**ends, write_p99_ms=p99_ms, write_p99_high_ms=p99_ms, **columns)


def test_what_is_certain_decides_between_designs_that_losses_do_not_tell_apart():
    slow, fast = "WQ 5 AQ 3", "WQ 5 AQ 2"
    for high in (2.5499, 2.5501):  # by a hair on either side of the other one's
        found = ranked_designs(choose.rows_of(tied(high=high), "data loss"))
        assert [each.rank for each in found] == [1, 1]
        assert chosen(tied(high=high)) == [slow, fast]  # no reason to have fewer copies
        assert chosen(tied(high=high, wants_nodes=1, nodes=1)) == [fast, slow]  # this many are enough
        tie = "A tie: design {} and design {} lose equally much, as far as these numbers tell: "
        tie += "their intervals overlap or lie less than 1% apart. {}."
        copies, speed = (f"What decides is that it {why}" for why in ("has more copies when acknowledged", "is faster"))
        assert tie.format(slow, fast, copies) in recommend(tied(high=high)).sentences
        assert tie.format(fast, slow, speed) in recommend(tied(high=high, wants_nodes=1, nodes=1)).sentences
    apart = tied(low=2.58, high=2.59, wants_nodes=1, nodes=1)
    assert chosen(apart) == [slow, fast]
    assert not any("tie" in each for each in recommend(apart).sentences)


def test_of_ties_a_design_that_survives_a_rack_comes_first_unless_a_target_asks_for_racks():
    slow, fast = "WQ 5 AQ 3", "WQ 5 AQ 2"
    given = tied(wants_nodes=1, nodes=1)
    racks = {of_slow: given["point_id"].map({"id0": of_slow, "id1": 1}) for of_slow in (0, 1, 2)}
    for of_slow, first in ((0, fast), (1, fast), (2, slow)):
        assert chosen(given.assign(zones=racks[of_slow]))[0] == first
    assert any("it survives the loss of a rack." in each for each in recommend(given.assign(zones=racks[2])).sentences)
    assert chosen(given.assign(zones=racks[2], wants_zones=1)) == [fast, slow]  # this many are enough


def test_a_design_whose_writes_stop_at_any_restart_comes_last_even_if_it_stores_less():
    goes_on, stops = "design WQ 5 AQ 3", "design WQ 5 AQ 2"
    given = tied(wants_nodes=1, nodes=1)
    for stored in (5, 6):
        given["stored"] = given["point_id"].map({"id0": stored, "id1": 5})
        for stopping, first in ((0, stops), (1, goes_on)):
            given["stops_with_one"] = given["point_id"].map({"id0": 0, "id1": stopping})
            found = ranked_designs(choose.rows_of(given, "data loss"))
            assert verdict.choice(found, 100.0)[0].settings == first
            assert verdict.chosen(found, 100.0, stops) == first
    both = ranked_designs(choose.rows_of(given.assign(stops_with_one=1), "data loss"))
    assert verdict.choice(both, 100.0)[0].settings == stops


def test_without_a_target_a_design_whose_writes_stop_at_any_restart_is_the_last_of_its_rank():
    given = tied()
    for stopping, last in (({"id0": 0, "id1": 1}, "id1"), ({"id0": 1, "id1": 0}, "id0")):
        found = ranked_designs(
            choose.rows_of(given.assign(stops_with_one=given["point_id"].map(stopping)), "data loss")
        )
        assert {each.rank for each in found} == {1}
        assert found[-1].worst["point_id"] == last


def test_steps_decide_last_and_the_same_of_rows_that_count_messages_and_of_those_that_do_not():
    """A report counts messages, a recommendation that solves does not: both are to say the same, in the same words."""
    many, few = "design WQ 5 AQ 3", "design WQ 5 AQ 2"
    for steps, first, why in (
        ((9.4, 8.6), few, "needs fewer messages and other steps to do its work"),
        ((8.99, 8.97), many, ""),
    ):
        for messages in ((0, 0), (3, 7)):
            given = tied(wants_nodes=1, nodes=1)
            here = given["point_id"] == "id0"
            counted = {"steps": np.where(here, *steps) * 1000, "messages": np.where(here, *messages) * 1000}
            given = given.assign(**counted, completed=1000, horizon=0, write_p99_ms=26.4, write_p99_high_ms=26.4)
            found = ranked_designs(choose.rows_of(given, "data loss"))
            other = many if first == few else few
            assert verdict.choice(found, 100.0)[0].settings == first
            one, two = (next(each for each in found if each.settings == name) for name in (first, other))
            assert verdict.deciding(one, two, found) == why


def test_on_a_cluster_steps_are_those_of_scenarios_beside_it():
    nothing = dict.fromkeys(("losses", "messages", "stuck", "horizon"), 0)
    part = nothing | {"runs": 10, "high": 1e-3, "any_loss": 1e-3}
    replaced = part | {"incident": False, "steps": 5000, "completed": 10}
    beside = part | {"incident": True, "steps": 123, "completed": 10}
    for parts, steps in (([replaced], 0.0), ([replaced, beside], 12.0)):
        point = part | {"parts": parts, "steps": 5123, "completed": 20}
        assert Design("WQ 3", [point], point).steps == steps


def test_losses_that_differ_by_less_than_rates_are_known_to_are_a_tie_even_if_they_are_exact():
    for p, ranks in ((2.548801, [1, 1]), (2.57, [1, 1]), (2.58, [1, 2]), (3.0, [1, 2])):
        given = tied(low=p, high=p)
        first = given["point_id"] == "id0"
        given.loc[first, ["low", "high"]] = 2.5488
        assert [each.rank for each in ranked_designs(choose.rows_of(given, "data loss"))] == ranks


def test_of_a_rank_those_that_lose_less_come_first_though_more_of_their_runs_get_stuck():
    given = tied(low=1.0, high=2.0).assign(copies=3, stored=5, zones=1)
    given["low"], given["stuck"] = given["high"] - 1.5, given["point_id"].map({"id0": 1, "id1": 5})
    found = ranked_designs(choose.rows_of(given, "data loss"))
    assert [each.rank for each in found] == [1, 1]
    assert [each.interval[1] for each in found] == [2.0, 2.55]


def test_a_choice_stands_as_long_as_losses_do_not_tell_it_from_another():
    enough = {"wants_nodes": 1, "nodes": 1}
    slow, fast = "design WQ 5 AQ 3", "design WQ 5 AQ 2"
    found = ranked_designs(choose.rows_of(tied(**enough), "data loss"))
    assert verdict.chosen(found, 100.0) == verdict.chosen(found, 100.0, fast) == fast
    assert verdict.chosen(found, 100.0, slow) == slow
    assert verdict.chosen(found, 1.0, slow) == ""
    apart = ranked_designs(choose.rows_of(tied(low=2.58, high=2.59, **enough), "data loss"))
    assert verdict.chosen(apart, 100.0, fast) == slow
    less = tied(**enough)
    less["stored"] = less["point_id"].map({"id0": 5, "id1": 4})  # which now meets the target
    assert verdict.chosen(ranked_designs(choose.rows_of(less, "data loss")), 100.0, slow) == fast


def test_designs_of_a_rank_all_overlap_and_those_of_others_lie_apart_from_its_first():
    given = choose.rows_of(frame([30] * 4, target=9.0, model__keys=[1, 2, 3, 4]), "data loss")
    ends = {"id0": (1.0, 2.0), "id1": (2.5, 3.0), "id2": (1.9, 4.0), "id3": (2.1, 2.2)}
    for side, name in enumerate(("low", "high")):
        given[name] = given["point_id"].map({point: each[side] for point, each in ends.items()})
    ranks = {each.settings: each.rank for each in ranked_designs(given)}
    assert ranks == {"keys 1": 1, "keys 3": 1, "keys 4": 3, "keys 2": 4}
