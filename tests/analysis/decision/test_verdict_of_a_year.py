"""Verdicts on losses in a year: sums of scenarios, and other targets beside them."""

import math

import numpy as np
import pytest

from quorisk.analysis.decision import verdict
from quorisk.analysis.decision.advice import recommend
from quorisk.analysis.decision.designs import ranked_designs
from quorisk.analysis.decision.judging import FAILS, MEETS
from quorisk.plots.report import Provenance, report
from quorisk.say import choose
from tests.plots.tables import frame


def yearly(losses, per_year, target=math.inf, **columns):
    """The rows of designs with two scenarios each."""
    rows = choose.rows_of(
        frame(losses, target=target, model__design=range(len(losses) // 2), run__scenario=["a", "b"]), "data loss"
    )
    return rows.assign(per_year=rows["run.scenario"].map(dict(zip("ab", per_year, strict=True))), together=2, **columns)


def test_a_design_s_year_is_the_sum_of_its_scenarios():
    rows = yearly([0, 3, 30, 0], (1000.0, 2.0))
    rows["model.clients"] = rows["run.scenario"].map({"a": 1, "b": 2})  # the scenarios' own, no choice
    safe, bad = ranked_designs(rows)
    assert [each.settings for each in (safe, bad)] == ["design 0", "design 1"]
    for design in (safe, bad):
        parts = rows[rows["model.design"] == int(design.settings[-1])]
        for name in ("p", "low", "high"):
            assert design.worst[name] == pytest.approx((parts["per_year"] * parts[name]).sum())
        assert design.worst["losses"] == parts["losses"].sum()
        assert [part["run.scenario"] for part in design.worst["parts"]] == ["a", "b"]
    assert bad.worst["p"] == pytest.approx(30.0)


def test_a_year_s_target_is_in_losses_a_year_and_may_be_above_1():
    headline, said, _ = recommend(yearly([0, 3, 30, 0], (1000.0, 2.0), target=10.0))
    assert headline == "Run design 0."
    assert said[0] == "0.00600 losses a year."
    assert said[1] == "The other design does not meet the target: losses of at most 10 a year."
    assert "The worst: design 1: 30.0, interval 20.3 to 42.6" in said[2]
    assert not any("probability" in each for each in said)


def test_the_headline_names_all_targets_that_designs_are_held_to():
    rows = yearly([0, 3, 0, 3], (1000.0, 2.0), target=10.0)
    fast = rows["model.design"] == 0
    rows = rows.assign(**{f"write_p99_{end}ms": np.where(fast, 5.0, 30.0) for end in ("", "low_", "high_")})
    rows = rows.assign(wants_write_p99_ms=20.0, nodes=1, wants_nodes=1, zones=0, wants_zones=0)
    headline, said, _ = recommend(rows)
    goals = "losses of at most 10 a year, p99 of a write at most 20 ms, survival of the loss of 1 node"
    assert headline == "Run design 0."
    assert said[1] == f"The other design does not meet the targets: {goals}."
    html = " ".join(report(rows, [], Provenance("", "", [])).split())
    assert "Losses a year, together with the other targets: p99 of a write at most 20 ms, survival of the loss" in html


def test_what_is_wanted_beside_losses_decides_too():
    rows = yearly([0, 3, 0, 3], (1000.0, 2.0), target=10.0)
    fast = rows["model.design"] == 0
    rows = rows.assign(write_p99_ms=5.0, write_p99_high_ms=np.where(fast, 5.0, 30.0), wants_write_p99_ms=20.0)
    one, other = ranked_designs(rows)
    assert (one.verdict(10.0), other.verdict(10.0)) == (MEETS, FAILS)
    assert [each.settings for each in verdict.choice([one, other], 10.0)] == ["design 0"]
    assert any(each.startswith("Rejected for another target") for each in recommend(rows).sentences)
    rows = rows.assign(write_p99_high_ms=5.0, copies=np.where(fast, 3, 2), wants_copies=2)
    assert len(verdict.choice(ranked_designs(rows), 10.0)) == 2  # both have what was said to be enough
