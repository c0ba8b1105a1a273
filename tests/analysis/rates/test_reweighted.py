"""What the rates allow: each draw solved as it would be anew, closed forms, and a surrogate whose error is shown."""

import math
from typing import Any

import numpy as np
import pytest

from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment.config import build_experiment
from quorisk.analysis.rates import reweighted
from quorisk.analysis.rates.draws import PER_YEAR, by_draw, draw_unknowns, unknowns, with_values
from quorisk.analysis.rates.sensitivity import grown_head

MEMORY = 1 << 26
DOCUMENT: dict[str, Any] = {
    "protocol": "bookkeeper",
    "model": {"bookies": 2, "clients": 1, "write_quorum": 2, "ack_quorum": 2, "entries": 1, "inflight": 1},
    "faults": {"max_lost": 2, "auto_recovery": True, "message_loss": {"events": 2, "trials": 100}},
    "rates": {
        "bookie_is_lost": {"value": "1 % / year", "error_factor": 2},
        "client_closes_ledger_success": {"low": "1 / 1 h", "high": "1 / 1 min"},
    },
    "run": {"lifetime": "7 days"},
    "scenarios": {
        "entry": {"per_year": {"value": 1e6, "error_factor": 3}},
        "outage": {
            "per_year": {"events": 2, "exposure": "4 years"},
            "rates": {"bookie_is_lost": {"value": "0.2 / h", "error_factor": 1.5}},
            "run": {"lifetime": "1 h"},
        },
    },
}


def experiment(**more):
    return build_experiment({**DOCUMENT, **more}, "x.toml")


def solved(of, point, values):
    alone = of._replace(points=(point._replace(point=with_values(point.point, values)),))
    return exact(alone, MEMORY, data_loss_alone=True).data_loss.p


def losses(of):
    return [(solved(of, point, {}),) * 2 for point in of.points]


def known(of, num_draws=reweighted.NUM_DRAWS) -> Any:
    return reweighted.losses_by_rates(of, losses(of), num_draws)


@pytest.fixture(scope="module")
def usual():
    return known(experiment())


def test_each_draw_is_a_design_solved_anew():
    of = experiment()
    found = known(of, 16)
    [design] = found.designs
    values = [draw_unknowns(of, 16).values(unknowns(of, point)) for point in of.points]
    for i, drawn in enumerate(zip(*(list(by_draw(each)) for each in values), strict=True)):
        truth = sum(row[PER_YEAR] * solved(of, point, row) for point, row in zip(of.points, drawn, strict=True))
        assert design.values[i] == pytest.approx(truth, rel=1e-9)
    assert design.num_solved == 16
    assert design.error_factor == pytest.approx(1.0, abs=1e-6)


def test_no_probability_is_above_1(monkeypatch):
    """Elasticities alone would take a large one there."""
    monkeypatch.setattr(reweighted, "_MOST_STEPS", 0)
    of = experiment(
        scenarios={}, faults={"max_lost": 2}, rates={"bookie_is_lost": {"value": "0.005 / h", "error_factor": 30}}
    )
    [design] = known(of).designs
    assert design.num_solved < len(design.values)
    assert design.error_factor > 1.0
    assert max(*design.values, design.high) == 1.0


def test_of_two_copies_an_error_factor_of_2_makes_4():
    of = experiment(
        scenarios={}, faults={"max_lost": 2}, rates={"bookie_is_lost": {"value": "1 % / year", "error_factor": 2}}
    )
    [design] = known(of).designs
    assert design.powers["rates.bookie_is_lost"] == pytest.approx(2.0, abs=1e-3)
    assert design.median == pytest.approx(losses(of)[0][0], rel=0.01)
    assert [design.low / design.median, design.high / design.median] == pytest.approx([0.25, 4.0], rel=0.02)
    assert design.shares == {"rates.bookie_is_lost": 1.0}
    assert 0 < design.bent < 1e-6


def test_shares_are_those_of_a_product_of_powers_and_what_it_does_not_explain_is_said(usual):
    [design] = usual.designs
    parts = {name: (power * usual.of[name].known.log_sigma) ** 2 for name, power in design.powers.items()}
    assert design.shares == pytest.approx({name: part / sum(parts.values()) for name, part in parts.items()})
    assert set(design.shares) == set(usual.draws.names)
    assert 1e-4 < design.bent < 0.1
    assert "values" not in design.as_json()


def test_where_draws_are_not_solved_some_tell_how_far_off_the_rest_may_be(usual, monkeypatch):
    [truth] = usual.designs
    monkeypatch.setattr(reweighted, "_MOST_STEPS", 1)
    [design] = known(experiment()).designs
    assert design.num_solved == 8
    assert design.error_factor > 1.01
    assert design.low <= truth.low < truth.high <= design.high
    assert design.values[:8] == pytest.approx(truth.values[:8], rel=1e-12)
    assert np.abs(np.log(design.values / truth.values)).max() > 0


@pytest.mark.parametrize("most_steps", [1 << 23, 1])
def test_what_a_head_leaves_out_counts_at_the_upper_end_alone(monkeypatch, most_steps):
    of = experiment(faults={"max_lost": 2, "message_loss": {"value": 0.01, "error_factor": 2}})
    [truth] = known(of).designs
    monkeypatch.setattr(reweighted, "_CERTAIN", 0.02)
    monkeypatch.setattr(reweighted, "_MOST_STEPS", most_steps)
    monkeypatch.setattr("quorisk.analysis.estimate.rare.SMALL", 0)
    [design] = known(of).designs
    low, high = np.quantile(design.values, [0.05, 0.95])
    assert design.low == pytest.approx(low / design.error_factor, rel=1e-12)
    assert design.high > high * design.error_factor * (1 + 1e-9)
    assert design.low <= truth.low < truth.high <= design.high


def test_draws_at_which_much_leaves_the_head_widen_no_others(usual, monkeypatch):
    """The three largest of 256 in each scenario: the quantiles lie among the others."""
    [truth] = usual.designs
    solve = reweighted._solved

    def solved(*given):
        found = solve(*given)
        found[np.argsort(found[:, 0])[-3:], 1] = 30.0 * found[:, 0].max()
        return found

    monkeypatch.setattr(reweighted, "_solved", solved)
    [design] = known(experiment()).designs
    assert design.low == pytest.approx(truth.low, rel=1e-9)
    assert truth.high * (1 - 1e-9) < design.high < 2.0 * truth.high


def leaving(monkeypatch, leaves):
    """The memory that each head is given; all leave this much open."""
    given = list[int]()

    def counted(of, memory_bytes, **more):
        given.append(memory_bytes)
        found: Any = grown_head(of, memory_bytes, **more)
        return found._replace(solved=found.solved._replace(leaves=leaves(found.solved)))

    monkeypatch.setattr(reweighted, "grown_head", counted)
    return given


def test_a_head_gets_an_eighth_of_the_memory_and_all_of_it_where_a_run_was_lost(monkeypatch):
    """All were given as much, and took most of the time of `recommend` to find that nothing is known."""
    of = experiment(scenarios={})
    [(p, _)] = losses(of)
    given = leaving(monkeypatch, lambda solved: 2 * reweighted._CERTAIN * solved.lost)
    found: list[Any] = [reweighted.losses_by_rates(of, [(low, p)], 8) for low in (0.0, p)]
    [unseen], [seen] = (each.designs for each in found)
    assert given == [reweighted.MEMORY // 8, reweighted.MEMORY // 8, reweighted.MEMORY]
    assert unseen.as_json() == seen.as_json()
    assert unseen.median > 0.0
    certain = leaving(monkeypatch, lambda solved: 0.0)
    assert reweighted.losses_by_rates(of, [(p, p)], 8)
    assert certain == [reweighted.MEMORY // 8]


def test_a_scenario_is_not_tried_again_where_two_heads_no_larger_left_most_open(monkeypatch):
    of = experiment(scenarios={}, grid={"rates.client_closes_ledger_success": ["1 / 1 h", "1 / 2 h", "1 / 3 h"]})
    ends, given = losses(of), leaving(monkeypatch, lambda solved: 0.6)
    found: Any = reweighted.losses_by_rates(of, ends, 8)
    assert given == [reweighted.MEMORY // 8] * 2
    assert found.designs == [None] * 3
    assert set(found.unsolved) == {0, 1, 2}


def test_a_scenario_without_weight_is_left_as_it_is():
    scenarios = {**DOCUMENT["scenarios"], "entry": {"per_year": {"value": 1e-3, "error_factor": 3}}}
    of = experiment(scenarios=scenarios)
    [design] = known(of).designs
    assert "rates.client_closes_ledger_success" in design.powers  # the outage's
    assert design.powers["scenarios.entry.per_year"] < 1e-5
    assert "rates.bookie_is_lost" not in design.powers


def test_nothing_is_said_of_rates_that_are_known_exactly_or_of_losses_that_are_counted(monkeypatch):
    exactly = experiment(rates={}, faults={"max_lost": 2}, scenarios={}, run={})
    assert reweighted.losses_by_rates(exactly, [(0.1, 0.1)]) is None
    monkeypatch.setattr(reweighted, "grown_head", lambda *_, **__: None)
    assert known(experiment()).designs == [None]


def test_events_tell_of_a_rate_a_year_and_of_a_probability_a_trial():
    of = known(experiment(), 8).of
    assert (of["rates.bookie_is_lost"].often, of["rates.bookie_is_lost"].per) == (pytest.approx(0.01), "year")
    assert (of["scenarios.outage.per_year"].often, of["scenarios.outage.per_year"].per) == (
        pytest.approx(0.5, rel=0.2),
        "year",
    )
    assert of["faults.message_loss"].per == "trial"
    assert math.isclose(of["faults.message_loss"].often, of["faults.message_loss"].value)
