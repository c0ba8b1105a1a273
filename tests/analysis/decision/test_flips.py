"""What would change a choice, as results alone tell: every flip has another choice on its other side."""

import re

import pytest

from quorisk.analysis.decision import flips
from quorisk.analysis.decision.advice import recommend
from quorisk.analysis.decision.designs import ranked_designs
from quorisk.analysis.decision.flips import MOST, NARROW, STEP, flip
from quorisk.analysis.decision.verdict import choice
from quorisk.say import choose, text
from tests.plots.tables import frame
from tests.plots.test_frontier import year


@pytest.mark.parametrize("at", [1.5, 40.0, 0.7, 0.02])
def test_a_flip_is_narrowed_down_between_two_sides_that_were_both_tried(at):
    tried = {}

    def by(factor):
        tried[factor] = "other" if (factor > at) == (at > 1) else "this"
        return tried[factor]

    found = flip(by, "this", STEP if at > 1 else 1 / STEP)
    assert found is not None
    assert found.instead == tried[found.beyond] == "other"
    assert found.before == 1.0 or tried[found.before] == "this"
    assert sorted([found.before, found.beyond])[0] <= at <= sorted([found.before, found.beyond])[1]
    assert max(found.before / found.beyond, found.beyond / found.before) <= NARROW
    assert flip(by, "this", 1 / STEP if at > 1 else STEP) is None
    assert flip(lambda factor: "other" if factor > 1.1 * MOST else "this", "this", STEP) is None


def chosen(rows, target):
    picks = choice(ranked_designs(rows), target)
    return picks[0].settings if picks else "no design meets the targets"


def test_each_flip_that_is_told_is_one_on_both_of_its_sides():
    rows = choose.rows_of(year([20, 30, 40, 10, 1, 200, 9, 4, 3, 0, 0, 5]).frame, text.ANY_LOSS)
    said = flips.flip_sentences(rows, ranked_designs(rows), 1.0)
    now, found = chosen(rows, 1.0), 0
    for line in said:
        told = re.fullmatch(r'With "(\w+)" ([\d.]+) times as often: (.*); with ([\d.]+), still .*\.', line)
        if told:
            scenario, beyond, instead, before = told.groups()

            def at(factor, scenario=scenario):
                more = rows["per_year"].where(rows["run.scenario"] != scenario, rows["per_year"] * float(factor))
                return rows.assign(per_year=more)

            assert chosen(at(beyond), 1.0) == instead != now
            assert chosen(at(before), 1.0) == now
            found += 1
        elif told := re.fullmatch(r"With a target of ([\d.]+): (.*); with ([\d.]+), still .*\.", line):
            beyond, instead, before = told.groups()
            assert chosen(rows, float(beyond)) == instead != now == chosen(rows, float(before))
            found += 1
    assert said[0] == "More runs may decide: the target lies in the interval of WQ 2, AQ 3."
    assert found == len(said) - 1 > 1
    assert recommend(year([20, 30, 40, 10, 1, 200, 9, 4, 3, 0, 0, 5]).frame).flips == said


def test_that_no_scenario_changes_the_choice_is_told():
    rows = choose.rows_of(year([0] * 12, target=0.5).frame, text.ANY_LOSS)
    rare = rows.assign(high=rows["high"] / 1e6)
    assert flips.flip_sentences(rare, ranked_designs(rare), 0.5) == [
        "Any one scenario 100 times more or less often: still WQ 3, AQ 3."
    ]


def test_switches_at_their_defaults_are_named_where_nothing_else_is():
    given = {"variant.flush_every_message": False, "variant.fencing": True, "changed": ""}
    assert text.design(given, ["variant.flush_every_message"]) == "flush every message off"
    assert text.design(given, list(given)[:2]) == "flush every message off, fencing on"
    assert text.design(given | {"variant.flush_every_message": True}, list(given)[:2]) == "all mechanisms on"
    assert text.design(given, []) == "this design"


def test_what_would_be_chosen_under_some_of_the_faults_alone_is_told():
    given = frame([0, 30, 0, 0], model__keys=[1, 2], faults__message_loss=[0.01, 0.2])
    keys = given["model.keys"]
    given = given.assign(target=0.01, stored=keys, copies=keys, on_disk=True, survives="1 bookie")

    def alone(rows):
        return [each for each in recommend(rows).flips if each.startswith("If")]

    assert alone(given) == []  # fewer copies are not chosen because runs cannot tell them apart
    assert alone(given.assign(wants_copies=1)) == ["If there were only message loss 0.01: keys 1."]
    follows = {"faults.message_loss": 0.0, "rates.repair": given["model.keys"] * 0.5}
    assert (
        alone(given.drop_duplicates("model.keys").assign(wants_copies=1, **follows)) == []
    )  # no fault: each design has its own


def test_nothing_is_told_of_one_design_that_meets_the_target():
    assert recommend(frame([0]).assign(target=0.01)).flips == []


def test_where_no_design_meets_the_targets_those_that_one_would_meet_are_told():
    given = frame([30, 60], model__keys=[1, 2])
    high = ranked_designs(choose.rows_of(given, text.ANY_LOSS))[0].worst["high"]
    told = "With targets that allow P(data loss) of a run up to 0.0426"
    assert recommend(given.assign(target=1e-6)).flips == [f"{told}: keys 1."]
    assert recommend(given.assign(target=0.0426)).headline == "Run keys 1."
    assert recommend(given.assign(target=0.9999 * high)).headline.startswith(
        "It is undecided whether a design meets the target"
    )
    assert recommend(given.assign(target=1e-9)).headline.startswith("No design is shown to meet the target")
    more, targets = recommend(given.assign(target=0.9999 * high)).flips
    assert more == "More runs may decide: the target lies in the interval of keys 1."
    assert targets == f"{told}: keys 1."
    assert recommend(frame([30]).assign(target=1e-6)).flips == [f"{told}: this design."]
    slow = given.assign(target=1.0, write_p99_ms=9.0, write_p99_high_ms=9.0, wants_write_p99_ms=5.0)
    assert recommend(slow).flips == ["With targets that allow p99 of a write 9.00 ms: keys 1."]
    off = given.assign(target=1e-6, changed="fencing off")
    assert recommend(off).flips[0].startswith("No target would change it")


def test_a_scenario_that_would_have_to_happen_less_often_is_told_where_no_design_meets_the_targets():
    said = recommend(year([20, 30, 40, 10, 1, 200, 9, 4, 3, 1, 2, 5], target=1e-4).frame).flips
    assert said[0].startswith("With targets that allow losses a year up to ")
    assert said[1:] == ["Any one scenario 100 times less often: still no design meets the targets."]
    clean = recommend(year([0, 900, 0, 900, 0, 900, 0, 900, 0, 900, 0, 900], target=0.5).frame).flips
    assert any(each.startswith('With "failover" 0.') and "still no design meets the targets" in each for each in clean)
