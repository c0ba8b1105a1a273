"""How sure a choice is: shares of draws, what is learned next, and how many events decide it."""

import json
import math

import numpy as np
import pytest
from scipy.special import ndtr

from quorisk.analysis.decision.designs import Design
from quorisk.analysis.decision.doubt import SETTLED, _counted, doubt, doubt_sentences, learned, of_draws
from quorisk.analysis.decision.summary import summary
from quorisk.analysis.rates.draws import draw_named
from quorisk.analysis.statistics.known import LogNormal, Z
from quorisk.analysis.statistics.uncertainty import Allowed, DrawnLosses, Figure
from quorisk.say import numbers

OUTAGES = LogNormal(0.5, 3.0)
NOTHING = {"losses": 1, "messages": 0, "steps": 1, "completed": 1, "horizon": 0, "stuck": 0, "runs": 1, "point_id": ""}


def design(number: int, p: float, stored: int) -> Design:
    worst = {**NOTHING, "p": p, "low": p, "high": p, "stored": stored, "copies": stored, "point_id": str(number)}
    return Design(f"copies {stored}", [worst], worst)


def known(*powers: float) -> Allowed:
    """Designs that lose 1e-3 x (outages / 0.5)^power, and what else is not known does not matter."""
    draws = draw_named(("scenarios.outage.per_year", "rates.other"), 512)
    outages = OUTAGES.quantile(draws.levels[:, 0]) / OUTAGES.median
    found = []
    for power in powers:
        values = 1e-3 * outages**power
        median, low, high = (float(each) for each in np.quantile(values, [0.5, 0.05, 0.95]))
        shares = {draws.names[0]: 1.0, draws.names[1]: 0.0}
        found.append(DrawnLosses(values, median, low, high, 1.0, 512, {draws.names[0]: power}, shares, 0.0))
    figure = Figure(OUTAGES, OUTAGES.median, OUTAGES.median, "year", 1.0)
    return Allowed(draws, {draws.names[0]: figure, draws.names[1]: figure}, list(found))


def test_a_choice_that_a_rate_decides_is_as_sure_as_the_rate():
    """The cheap design meets the target up to twice as many outages; beyond that the dear one is the choice."""
    found = [design(0, 1e-3, 2), design(1, 1e-3, 3)]
    sure = doubt(found, 2e-3, known(1.0, 0.0), {"0": 0, "1": 1})
    assert sure is not None
    part = float(ndtr(math.log(2.0) / OUTAGES.log_sigma))
    assert sure.choice == {"copies 2": pytest.approx(part, abs=0.01), "copies 3": pytest.approx(1 - part, abs=0.01)}
    assert sure.less["copies 2"]["copies 3"] == pytest.approx(0.5, abs=0.01)
    assert sure.learn is not None
    assert (sure.learn.name, sure.learn.per) == ("scenarios.outage.per_year", "year")
    assert sure.learn.at == pytest.approx(1.0, rel=0.05)
    assert sure.learn.gain == pytest.approx(1 - part, abs=0.03)
    assert sure.learn.events == math.ceil((Z / math.log(sure.learn.at / 0.5)) ** 2)
    assert sure.learn.exposure == pytest.approx(sure.learn.events / 0.5)
    said = " ".join(doubt_sentences(sure, "copies 2", "losses a year"))
    assert "It is the choice in 85% of the draws from what is known of the rates, and copies 3 in 15%." in said
    assert sure.learn.years == pytest.approx(sure.learn.events / 0.5)
    flips = numbers.plain(sure.learn.at, 2)
    where = f"on which side of {flips} a year scenarios.outage.per_year lies, where the choice changes"
    remedy = "What makes it not matter: copies 3 meets the targets in all of the draws, whatever it is."
    assert f"Nobody can measure {where}: it would take about 6 events, in 12 years of this cluster. {remedy}" in said
    without_target = doubt_sentences(sure, "copies 2", "losses a year", is_named=False)
    assert without_target[0].startswith("Given how well the rates are known, losses a year of copies 2 may be ")
    assert without_target[1].startswith("copies 2 is the choice in 85% of the draws")


def test_the_draws_in_which_no_design_meets_the_targets_are_told():
    sure = doubt([design(0, 1e-3, 2), design(1, 1e-3, 3)], 2e-3, known(1.0, 1.0), {"0": 0, "1": 1})
    assert sure is not None
    assert (set(sure.choice), round(sure.choice[""], 2)) == ({"copies 2", ""}, 0.15)
    said = doubt_sentences(sure, "copies 2", "losses a year")
    assert "It is the choice in 85% of the draws from what is known of the rates, and none in 15%." in said


@pytest.mark.parametrize(
    ("a_year", "per", "said"),
    [
        (20.0, "year", "Measure it next: about 6 events, in 220 days of this cluster, would show"),
        (1e7, "trial", "Measure it next: about 6 events, in 38 s of this cluster, would show"),
        (math.inf, "year", "Measure it next: about 6 events, in a day's metrics, would show"),
        (None, "year", "Measure it next: about 6 events, in 12 years of it, would show"),
        (None, "trial", "Measure it next: about 6 events, in 12 trials, would show"),
        (None, "unit of time", "Measure it next: about 6 events, in 12 units of time, would show"),
        (1.0, "year", "Nobody can measure on which side of 1 a year"),
    ],
)
def test_what_to_learn_says_how_long_that_takes(a_year, per, said):
    figure = Figure(OUTAGES, OUTAGES.median, OUTAGES.median, per, a_year)
    learn = _counted("it", 0.1, figure, float(ndtr(math.log(2.0) / OUTAGES.log_sigma)))
    assert said in learned(learn)
    assert json.loads(json.dumps(learn._asdict()))["name"] == "it"


def test_a_choice_that_no_rate_changes_leaves_nothing_to_learn():
    sure = doubt([design(0, 1e-3, 2), design(1, 1e-3, 3)], 1.0, known(1.0, 0.0), {"0": 0, "1": 1})
    assert sure is not None
    assert sure.choice["copies 2"] > SETTLED
    assert sure.learn is None


def test_nothing_is_said_where_nothing_is_known():
    found = [design(0, 1e-3, 2)]
    assert doubt(found, 1.0, None, {"0": 0}) is None


def test_of_a_design_whose_losses_are_not_solved_is_said_why_nothing_is_known_and_not_that_it_is_surely_the_choice():
    """Its losses are the same at all draws, so that it would be the choice in all of them."""
    found = [design(0, 1e-4, 2), design(1, 1e-3, 3)]
    counted = known(0.0, 1.0)._replace(unsolved={0: "failover"})
    for other, choices in ((counted.designs[1], 1), (None, 0)):
        sure = doubt(found, 1.0, counted._replace(designs=[None, other]), {"0": 0, "1": 1})
        assert sure is not None
        assert len(sure.choice) == choices
        why = 'its losses in "failover" were sampled or bounded, not solved exactly'
        assert doubt_sentences(sure, "copies 2", "losses a year") == [
            f"How much the doubt about rates matters to losses a year is not known: {why}."
        ]
        assert (
            " losses a year of copies 2 is not known"
            in doubt_sentences(sure, "copies 2", "losses a year", is_named=False)[0]
        )
        assert dict(summary(found, 1.0, sure).facts)["uncertain rates"] == f"effect not known: {why}"


def test_of_a_design_that_is_proved_to_lose_nothing_rates_leave_nothing_open():
    found = [design(0, 0.0, 2)]
    sure = doubt(found, 1.0, known(1.0)._replace(designs=[None]), {"0": 0})
    assert sure is not None
    assert doubt_sentences(sure, "copies 2", "losses a year") == []
    assert dict(summary(found, 1.0, sure).facts)["how sure"] == "proved, whatever the rates"


@pytest.mark.parametrize(("any_loss", "is_told"), [(0.999e-3, True), (0.9e-3, False)])
def test_nothing_is_said_of_losses_beside_a_cluster_unless_they_are_few(any_loss, is_told):
    """What is known of a cluster's figures says nothing of scenarios that are incidents beside it."""
    alone = design(0, 1e-3, 2)
    worst = {**alone.worst, "any_loss": any_loss, "entries_high": 1.0, "incident_p99_high": 1.0}
    sure = doubt([alone._replace(points=[worst], worst=worst)], 1.0, known(1.0), {"0": 0})
    assert sure is not None
    why = "much of what it loses comes in scenarios beside its cluster"
    assert (set(sure.allowed), dict(sure.open)) == (({"copies 2"}, {}) if is_told else (set(), {"copies 2": why}))


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (0.0, "less than 1%"),
        (0.004, "less than 1%"),
        (0.852, "85%"),
        (0.994, "99%"),
        (0.996, "nearly all"),
        (1.0, "all"),
    ],
)
def test_draws_tell_whole_percents(part, said):
    assert of_draws(part) == said
