"""`quorisk sensitivity`: what it prints of a design, of a year, and where there is nothing that losses depend on."""

import json
import math
from types import SimpleNamespace
from typing import Any

import pytest

from quorisk.analysis.rates import scores
from quorisk.command import show_sensitivity
from quorisk.say import elasticities

PAIR = """
protocol = "bookkeeper"
[model]
bookies = 2
clients = 1
write_quorum = 2
ack_quorum = 2
entries = 1
inflight = 1
[faults]
max_lost = 2
auto_recovery = true
[rates]
bookie_is_lost = { value = "1 % / year", error_factor = 2 }
auditor_replicates_fragment = "1 / 1 h"
client_closes_ledger_success = "1 / 1 min"
[run]
runs = 2000
lifetime = "7 days"
"""
YEAR = """
[scenarios.entry]
per_year = { value = 1e6, error_factor = 3 }
[scenarios.outage]
per_year = 10
auto_recovery = false
rates.bookie_is_lost = { value = "1 % / h", error_factor = 3 }
run.lifetime = "1 h"
"""


@pytest.fixture
def ask(printed, written):
    return lambda text, *options: printed("sensitivity", str(written("x.toml", text)), *options)


def test_a_design(ask):
    found = json.loads(ask(PAIR, "--json"))
    assert found["low"] <= found["p"] <= found["high"] <= found["low"] * (1 + 3e-9)
    assert found["elasticities"]["rates.bookie_is_lost"] == pytest.approx(2.0, abs=0.01)
    assert found["elasticities"]["run.lifetime"] == pytest.approx(2.0, abs=0.01)  # there is no bookie to copy to
    assert found["elasticities"].keys() == found["values"].keys() == found["intervals"].keys()
    assert found["likeliest_path"]["steps"][-1]["words"].endswith("is lost for good")
    out = ask(PAIR)
    assert "Losses grow with the square of rates.bookie_is_lost near its value." in out
    assert "Losses grow with the square of run.lifetime near its value." in out
    assert "A run that loses data meets: lost bookie 2 times." in out
    assert "1 % / year" in out


def test_what_doubling_would_do_is_an_extrapolation_by_the_elasticity(ask):
    """Even where elasticities are exact: losses of a rate that saturates grow less than its power law has it."""
    likely = ("--set", "rates.bookie_is_lost=1 / 7 days")
    found = json.loads(ask(PAIR, *likely, "--json"))
    by_elasticity = 2 ** found["elasticities"]["rates.bookie_is_lost"]
    twice = json.loads(ask(PAIR, "--set", "rates.bookie_is_lost=2 / 7 days", "--json"))["p"] / found["p"]
    assert found["method"].startswith("exact")
    assert twice < 0.95 * by_elasticity
    out = ask(PAIR, *likely)
    assert "about, if doubled" in out
    assert f"By its elasticity, twice rates.bookie_is_lost would add about {100 * (by_elasticity - 1):.2g}%" in out


def test_a_year(ask):
    found = json.loads(ask(PAIR + YEAR, "--json"))
    of_entries = found["elasticities_of"]["entries"]
    shares = [of_entries[f"scenarios.{name}.per_year"] for name in ("entry", "outage")]
    assert sum(shares) == pytest.approx(1.0, rel=1e-9)
    parts = found["scenarios"]
    losses = sum(each["per_year"] * each["p"] for each in parts.values())
    assert found["expected_entries_per_year"]["value"] == pytest.approx(losses, rel=1e-4)
    p = found["p_any_loss_per_year"]["p"]
    of_any = sum(found["elasticities"][f"scenarios.{name}.per_year"] for name in ("entry", "outage"))
    assert of_any == pytest.approx((1 - p) / p * -math.log1p(-p), rel=1e-6)
    # of what a scenario sets for itself there is one of its own, and all others are weighed by the shares
    own = of_entries["scenarios.outage.rates.bookie_is_lost"]
    assert own == pytest.approx(shares[1] * parts["outage"]["elasticities"]["rates.bookie_is_lost"], rel=1e-8)
    common = "rates.client_closes_ledger_success"
    together = sum(share * each["elasticities"][common] for share, each in zip(shares, parts.values(), strict=True))
    assert of_entries[common] == pytest.approx(together, rel=1e-6)
    assert "scenarios.outage.rates.bookie_is_lost" in ask(PAIR + YEAR)


def test_a_figure(ask, tmp_path):
    assert "a figure of that" in ask(PAIR + YEAR, "--plot", str(tmp_path / "x.svg"))
    svg = (tmp_path / "x.svg").read_text()
    assert "× 0.33 to × 3" in svg
    assert "scenarios.outage.per_year" in svg or "outage" in svg


def test_a_figure_that_cannot_be_written_is_a_line(refused, tmp_path, written):
    path = written("x.toml", PAIR)
    said = {"x.gif": "a file name that ends in .svg, .png or .pdf", "absent/x.svg": "cannot be written"}
    for name, why in said.items():
        assert why in refused("sensitivity", str(path), "--plot", str(tmp_path / name))


def test_what_is_counted_has_intervals(ask, monkeypatch):
    often = ["--set", "rates.bookie_is_lost=1 / 1 day", "--set", "run.method=count"]
    monkeypatch.setattr("quorisk.analysis.rates.sensitivity.grown_head", lambda *_: None)
    found = json.loads(ask(PAIR, *often, "--json"))
    assert found["method"] == "score of losing runs"
    low, high = found["intervals"]["rates.bookie_is_lost"]
    monkeypatch.undo()
    assert low < json.loads(ask(PAIR, *often, "--json"))["elasticities"]["rates.bookie_is_lost"] < high


def test_too_few_losses_are_not_known(ask, monkeypatch):
    monkeypatch.setattr("quorisk.analysis.rates.sensitivity.grown_head", lambda *_: None)
    monkeypatch.setattr(scores, "FEWEST_LOSSES", 10**6)
    assert "Too few of the runs lost data" in ask(PAIR)
    assert set(json.loads(ask(PAIR, "--json"))["elasticities"].values()) == {None}


def test_without_a_loss_there_is_nothing_to_depend_on(ask):
    assert "No run can lose data" in ask(PAIR, "--set", "faults.max_lost=0", "--set", "rates.bookie_is_lost=0")


@pytest.mark.parametrize(
    ("key", "elasticity", "said"),
    [
        ("rates.x", 2.02, "Losses grow with the square of rates.x near its value."),
        ("rates.x", 1.4, "Losses grow with the power 1.4 of rates.x near its value."),
        ("rates.x", -1.0, "By its elasticity, twice rates.x would about halve the losses."),
        ("rates.x", -2.0, "By its elasticity, twice rates.x would leave about a quarter of the losses."),
        ("rates.x", -0.2, "By its elasticity, twice rates.x would take about 13% off the losses."),
        ("rates.x", 0.2, "By its elasticity, twice rates.x would add about 15% to the losses."),
        ("run.lifetime", 1.0, "Losses grow in proportion to run.lifetime near its value."),
    ],
)
def test_elasticities_in_words(key, elasticity, said):
    assert elasticities.elasticity_sentence(key, elasticity) == said


def test_what_matters_least_is_said_in_one_sentence():
    said = elasticities.elasticity_sentences({"rates.a": 3.0, "rates.b": 0.01, "rates.c": -0.02})
    assert said == [
        "Losses grow with the cube of rates.a near its value.",
        "By its elasticity, no other would change them by more than about 2% if doubled.",
    ]
    assert elasticities.elasticity_sentences({"rates.a": 0.0}) == [
        "By its elasticity, no rate would change them if doubled."
    ]


def test_the_middle_of_bounds_that_lie_far_apart_is_not_told_as_an_estimate():
    wide: Any = SimpleNamespace(p=0.485, low=3.87e-5, high=0.97)
    narrow: Any = SimpleNamespace(p=0.0335, low=0.026, high=0.0424)
    assert show_sensitivity._risk(wide) == "0.485 (bounds only) [3.87 × 10⁻⁵, 0.97]"
    assert show_sensitivity._risk(narrow) == "0.0335 [0.026, 0.0424]"
