"""Draws of unknowns: one level for each, wherever it is used."""

import numpy as np
import pytest

from quorisk.analysis.experiment import config
from quorisk.analysis.rates.draws import PER_YEAR, by_draw, draw_unknowns, unknowns, with_values
from quorisk.analysis.statistics.known import Gamma, LogNormal

DOCUMENT = {
    "protocol": "bookkeeper",
    "model": {"bookies": 3, "clients": 1, "write_quorum": 2, "ack_quorum": 1, "entries": 1, "inflight": 1},
    "faults": {"max_lost": 1, "message_loss": {"events": 1, "trials": 1000}},
    "rates": {
        "bookie_is_lost": {"value": 0.01, "error_factor": 2},
        "client_closes_ledger_success": {"value": 1, "error_factor": 1},
        "writer_crashes": 0.5,
    },
    "scenarios": {
        "entry": {"per_year": {"events": 4, "exposure": "2 years"}},
        "outage": {"per_year": 1, "rates": {"bookie_is_lost": {"value": 5, "error_factor": 3}}},
    },
    "grid": {"write_quorum": [2, 3]},
}


def experiment(**more):
    return config.build_experiment({**DOCUMENT, **more}, "x.toml")


def test_a_points_unknowns_are_the_files_but_where_its_scenario_has_its_own():
    found = experiment()
    entry, outage = (unknowns(found, each) for each in found.points[:2])
    assert {key: each.name for key, each in entry.items()} == {
        "faults.message_loss": "faults.message_loss",
        "rates.bookie_is_lost": "rates.bookie_is_lost",
        PER_YEAR: "scenarios.entry.per_year",
    }
    assert entry[PER_YEAR].known == Gamma(4, 2.0)
    assert outage["rates.bookie_is_lost"] == ("scenarios.outage.rates.bookie_is_lost", LogNormal(5.0, 3.0))
    assert PER_YEAR not in outage


def test_designs_and_scenarios_share_draws_and_each_has_its_distribution():
    found = experiment()
    drawn = draw_unknowns(found, 256)
    assert drawn.names == (
        "faults.message_loss",
        "rates.bookie_is_lost",
        "scenarios.entry.per_year",
        "scenarios.outage.rates.bookie_is_lost",
    )
    values = [drawn.values(unknowns(found, each)) for each in found.points]
    for first, second in ((values[0], values[2]), (values[1], values[3])):
        assert first.keys() == second.keys()
        assert all((first[key] == second[key]).all() for key in first)
    assert (values[0]["faults.message_loss"] == values[1]["faults.message_loss"]).all()
    lost = values[0]["rates.bookie_is_lost"]
    assert np.quantile(lost, [0.05, 0.5, 0.95]) == pytest.approx([0.005, 0.01, 0.02], rel=0.03)
    assert abs(np.corrcoef(np.log(lost), np.log(values[1]["rates.bookie_is_lost"]))[0, 1]) < 0.05


def test_a_grids_figures_are_one_unknown_with_the_distribution_of_each():
    listed = [{"value": 0.01, "error_factor": 2}, {"value": 0.04, "error_factor": 4}, 0.05]
    found = experiment(grid={"rates.bookie_is_lost": listed}, scenarios={})
    drawn = draw_unknowns(found, 64)
    *both, third = (drawn.values(unknowns(found, each)) for each in found.points)
    first, second = (each["rates.bookie_is_lost"] for each in both)
    assert "rates.bookie_is_lost" not in third
    assert np.log(second / 0.04) == pytest.approx(2 * np.log(first / 0.01))


def test_draws_are_the_same_every_time_and_others_with_another_seed():
    found = experiment()
    assert (draw_unknowns(found, 100).levels == draw_unknowns(found, 100).levels).all()
    assert draw_unknowns(found, 100).levels.shape == (100, 4)
    assert not (draw_unknowns(found, 100).levels == draw_unknowns(found, 100, seed=2).levels).any()
    assert draw_unknowns(experiment(rates={}, faults={}, scenarios={}), 8).levels.shape == (8, 0)


def test_draws_go_into_points():
    found = experiment()
    each = found.points[0]
    [first, *_] = by_draw(draw_unknowns(found, 4).values(unknowns(found, each)))
    point = with_values(each.point, first)
    assert point.rates["bookie_is_lost"] == first["rates.bookie_is_lost"] != each.point.rates["bookie_is_lost"]
    assert point.message_loss == first["faults.message_loss"]
    assert {**point.rates, "bookie_is_lost": 0.01} == each.point.rates
    assert point.values == each.point.values


def test_low_discrepancy_points_find_a_mean_where_random_ones_are_far_off():
    found = experiment()
    values = draw_unknowns(found, 1024).values(unknowns(found, found.points[0]))["rates.bookie_is_lost"]
    power = LogNormal(0.01**2, 4.0)
    assert (values**2).mean() == pytest.approx(power.mean, rel=0.005)
