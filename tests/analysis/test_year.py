"""A design's year: scenarios estimated and solved, one by one and together."""

import json
import math
import re

import pytest
from rich.console import Console

import quorisk
from quorisk.analysis import year
from quorisk.analysis.compare import by_year, compare
from quorisk.analysis.estimate import method
from quorisk.analysis.estimate.estimate import estimate
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment.config import ConfigError, build
from quorisk.analysis.statistics.yearly import confidence_of_each
from quorisk.command import show_year

DOCUMENT = {
    "protocol": "compaction",
    "model": {"messages": 2, "compactions": 2, "keys": 1, "values": 1, "max_crashes": 1},
    "variant": {"persist_cursor_before_delete": False},
    "run": {"runs": 20_000, "confidence": 0.9},
    "scenarios": {
        "calm": {"per_year": 1000, "rates": {"broker_crash": 0.01}},
        "storm": {"per_year": 3, "rates": {"broker_crash": 0.5}},
    },
}


def load(*overrides: str):
    return build(DOCUMENT, "x.toml", overrides)


def test_an_exact_year_is_the_sum_of_its_scenarios():
    found = year.exact_year(load(), 1 << 28)
    p = {name: exact(load(f"scenario={name}"), 1 << 28).data_loss.p for name in ("calm", "storm")}
    assert found.losses.p == pytest.approx(1000 * p["calm"] + 3 * p["storm"], rel=1e-14)
    assert found.losses.p > 0
    assert (found.losses.low, found.losses.high, found.losses.method) == (found.losses.p, found.losses.p, "exact")
    assert math.fsum(filter(None, map(found.share, ("calm", "storm")))) == pytest.approx(1.0)
    assert " losses a year (exact), counted one by one: on average one every " in show_year.said(found.losses)


def test_an_estimated_year_holds_the_exact_one():
    found, truth = year.estimate_year(load(), 1), year.exact_year(load(), 1 << 28)
    assert found.losses.low < truth.losses.p < found.losses.high
    assert found.losses.confidence == 0.9
    level = confidence_of_each(0.9, 2)
    for name, result in found.scenarios.items():
        alone = estimate(load(f"scenario={name}", f"run.confidence={level!r}"), 1)
        assert result.data_loss == alone.data_loss
    sums = [
        sum(found.per_year[n] * getattr(r.data_loss, end) for n, r in found.scenarios.items())
        for end in ("low", "high")
    ]
    assert [found.losses.low, found.losses.high] == pytest.approx(sums)


def test_a_scenario_that_was_not_seen_to_lose_but_may_decide_is_named(monkeypatch):
    found = year.estimate_year(load("scenarios.calm.rates.broker_crash=1e-7"), 1)
    assert found.scenarios["calm"].data_loss.losses == 0
    assert found.unseen == ["calm"]
    assert (found.share("calm"), found.share("storm")) == (None, None)
    monkeypatch.setattr(method, "PILOT_RUNS", 10_000)
    solved = year.estimate_year(load("scenarios.calm.rates.broker_crash=1e-7"), 1)
    assert (solved.scenarios["calm"].data_loss.losses, solved.unseen) == (0, [])
    assert solved.losses.low < year.exact_year(load("scenarios.calm.rates.broker_crash=1e-7"), 1 << 28).losses.p
    assert (solved.share("calm") or 1.0) < 0.01


def test_a_year_is_of_one_design_with_scenarios():
    assert year.has_year(load())
    assert not year.has_year(load("scenario=calm"))
    designs = load("grid.keys=[1, 2]")
    assert not year.has_year(designs)
    with pytest.raises(ConfigError, match=r"^x.toml: grid.model.keys: 2 designs, but one is needed; pick one with "):
        year.exact_year(designs, 1 << 28)
    without = build({key: value for key, value in DOCUMENT.items() if key != "scenarios"}, "x.toml")
    with pytest.raises(ConfigError, match=r"^x.toml: scenarios: there are none"):
        year.estimate_year(without, 1)


def test_a_year_is_json_with_losses_a_year_and_each_scenario():
    told = json.loads(
        json.dumps(year.as_json(year.exact_year(load("scenarios.storm.rates.broker_crash=0.3"), 1 << 28)))
    )
    assert told["losses_per_year"]["p"] > 1000 * told["scenarios"]["calm"]["data_loss"]["p"] > 0
    assert told["mean_time_between_losses_s"]["p"] * told["losses_per_year"]["p"] == pytest.approx(31_557_600)


@pytest.mark.parametrize(("per_year", "said"), [("1.5", "1.5"), ("0.03", "0.03"), ("5e10", "50,000,000,000")])
def test_the_times_a_year_are_shown_as_they_are(capsys, per_year, said):
    found = year.exact_year(load(f"scenarios.storm.per_year={per_year}"), 1 << 28)
    show_year.year(found, Console(width=120))
    assert re.search(rf"storm +│ +{said} │", capsys.readouterr().out)


def test_a_scenario_that_cannot_lose_is_said_to_lose_0_and_not_less(capsys, monkeypatch):
    monkeypatch.setattr(method, "PILOT_RUNS", 10_000)
    show_year.year(year.estimate_year(load("scenarios.calm.rates.broker_crash=0"), 1), Console(width=120))
    assert re.search(r"calm +│ +1,000 │ +0 \(solved\) │ +0 │", capsys.readouterr().out)


def test_variants_are_compared_in_losses_a_year():
    def changed(*more: str):
        return load("grid.persist_cursor_before_delete=[true]", "run.runs=5000", *more)

    plans = by_year.plans(changed, lambda there: compare.vary(there, ["persist_cursor_before_delete=true,false"]))
    assert list(plans) == ["calm", "storm"]
    assert {plan.experiment.run.confidence for plan in plans.values()} == {confidence_of_each(0.9, 2)}
    found = by_year.compare_years(plans, 0.9, 1)
    truth = year.exact_year(load(), 1 << 28).losses.p
    [pair] = found.pairs
    assert pair.of_baseline == 0.0
    assert pair.low < truth < pair.high
    [calm], [storm] = (found.scenarios[name].pairs for name in ("calm", "storm"))
    assert pair.difference == pytest.approx(
        1000 * calm.events["data loss"].difference + 3 * storm.events["data loss"].difference
    )
    assert json.loads(json.dumps(by_year.as_json(found)))["losses_per_year"][0]["high"] == pair.high


def test_what_makes_a_scenario_is_not_varied_along_with_the_others(tmp_path):
    def planned(vary: str, *overrides: str):
        def changed(*more: str):
            return load(*overrides, *more)

        return by_year.plans(changed, lambda there: compare.vary(there, [vary]), [compare.axis(vary)[1]])

    with pytest.raises(ConfigError, match=r"^x.toml: grid.rates.broker_crash: scenario calm has its own"):
        planned("broker_crash=0.1,0.2")
    plans = planned("producer=1,2", "rates.broker_crash=0.3")
    assert [plan.variants[0].point.rates["broker_crash"] for plan in plans.values()] == [0.01, 0.5]


def test_an_ablation_turns_switches_and_repairs_off_in_scenarios_that_have_their_own():
    sizes = {"bookies": 2, "clients": 1, "write_quorum": 2, "ack_quorum": 2, "entries": 1, "inflight": 1}
    calm = {"per_year": 10, "variant": {"fence_unknown_ledger": True}}
    outage = {"per_year": 1, "faults": {"auto_recovery": False}, "run": {"lifetime": 1}}
    document = {
        "protocol": "bookkeeper",
        "model": sizes,
        "faults": {"max_lost": 2, "auto_recovery": True},
        "scenarios": {"calm": calm, "outage": outage},
    }

    def changed(*more: str):
        return build(document, "x.toml", more)

    repairs = compare.repairs_on(changed())
    assert [p.name for p in repairs] == ["auto_recovery"]
    plans = by_year.plans(changed, lambda there: compare.ablation(there, repairs))
    labels = [[variant.label for variant in plan.variants] for plan in plans.values()]
    assert labels[0] == labels[1]
    assert "auto_recovery off" in labels[0]
    for plan in plans.values():
        off = {variant.label: variant.point.values for variant in plan.variants}
        assert not off["fence_unknown_ledger off"]["fence_unknown_ledger"]
        assert not off["auto_recovery off"]["auto_recovery"]
        assert plan.experiment.notes == ()
    years = by_year.compare_years({n: p._replace(experiment=_few(p)) for n, p in plans.items()}, 0.95, 1)
    assert [pair.variant for pair in years.pairs] == labels[0][1:]


def _few(plan):
    return plan.experiment._replace(run=plan.experiment.run._replace(runs=200))


def test_one_scenario_alone_is_compared_in_probabilities():
    assert by_year.plans(lambda *more: load("scenario=calm", *more), lambda there: pytest.fail("one")) == {}


def test_a_year_is_a_function_too():
    found = quorisk.year(DOCUMENT, solve=True)
    assert found.losses == year.exact_year(load(), 1 << 28).losses
    frame = found.frame()
    assert list(frame["scenario"]) == ["calm", "storm"]
    assert frame["losses_per_year"].sum() == pytest.approx(found.losses.p)
    assert found.as_json()["losses_per_year"]["p"] == found.losses.p
    assert "losses a year (exact)" in found._repr_html_()
