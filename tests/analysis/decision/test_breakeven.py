"""Break-even points hold on both sides; which figures are scaled, and how they are said."""

import math

import pytest

from quorisk.analysis.decision import breakeven, verdict, weigh
from quorisk.analysis.decision.breakeven import break_even, can_be_chosen
from quorisk.analysis.decision.designs import ranked_designs
from quorisk.analysis.decision.levers import Lever, is_off, levers, picked, scaled, untold
from quorisk.analysis.decision.recommend import advise
from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.experiment import config, units
from quorisk.kernels.errors import ConfigError
from tests.support import ROOT

PHYSICAL = """
protocol = "bookkeeper"
profile = "bookkeeper_ssd"
[model]
bookies = 2
clients = 1
write_quorum = 2
ack_quorum = 1
entries = 1
inflight = 1
[rates]
client_changes_ensemble = "1 / 30 s"
[scenarios.entry]
per_year = 10
[scenarios.outage]
per_year = 1
rates.bookie_is_lost = "0.75 % / min"
"""


KEYS = ("scenarios.failover.per_year", "faults.message_loss", "scenarios.failover.rates.client_starts_recovery")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("key", KEYS)
def test_break_even_points_are_confirmed_by_running_both_sides(load, weigher, losses_of, expected, key):
    safest = min(expected, key=expected.get)
    target = 1.05 * expected[safest]
    experiment = load(target)

    def chosen(there, now=""):
        return verdict.chosen(ranked_designs(weigher.frame(there)), target, now)

    advice = advise(experiment, weigher, [key])
    assert [lever.key for lever in advice.search.tried] == [key]
    if key != "scenarios.failover.rates.client_starts_recovery":
        assert advice.search.found
    now = advice.search.chosen
    for _, each in advice.search.found:  # asked as a reader would, who knows the key and the number
        before, beyond = (load(target, f"{key}={value!r}") for value in (each.before, each.beyond))
        assert chosen(before, now) == chosen(experiment) == now
        assert chosen(beyond, now) == chosen(beyond) == each.instead != now
        assert 1 < max(each.beyond / each.before, each.before / each.beyond) <= 1.06
    if key == "scenarios.failover.per_year":  # where the answer is known
        quiet = losses_of(load(1000.0, "run.scenario=quiet"))
        failover = {clients: losses - quiet[clients] for clients, losses in expected.items()}
        other = max(expected, key=expected.get)
        missed = (target - quiet[safest]) / failover[safest]
        apart = (quiet[other] - 0.99 * quiet[safest]) / (0.99 * failover[safest] - failover[other])  # by 1%
        nearest = min(factor for factor in (missed, apart) if factor > 1)
        above = next(each for _, each in advice.search.found if each.beyond > 200)
        assert above.before <= 200 * nearest <= above.beyond


def test_on_a_cluster_message_loss_is_scaled_with_the_entries_that_few_copies_are_left_of(weigher):
    """Designs with an ack quorum below the write quorum lose by it; runs of single entries are not weighed there."""
    key = "faults.message_loss"

    def load(target, *more):
        grid = "grid.write_quorum=[3, 4]", "grid.ack_quorum=[2]"
        return config.load(
            ROOT / "configs" / "cluster.toml",
            ["cluster.nodes=20", *grid, f"targets.p_any_loss_per_year={target}", *more],
        )

    target = 0.7 * weigher.frame(load(1.0))["any_loss"].max()
    advice = advise(load(target), weigher, [key])
    [(lever, found)], now = advice.search.found, advice.search.chosen
    assert found.beyond < lever.value  # the design with fewer copies meets the target if less is lost
    assert now is not None
    assert (now[:4], found.instead[:4]) == ("WQ 4", "WQ 3")
    sides = (1.05 * found.before, now), (found.beyond / 1.05, found.instead)  # P is told to 1 % there
    for value, chosen in sides:
        assert verdict.chosen(ranked_designs(weigher.frame(load(target, f"{key}={value!r}"))), target, "") == chosen
    assert key in [lever.key for lever in untold(load(target))]
    assert key not in [lever.key for lever in levers(load(target, "grid.ack_quorum=[3]", "grid.write_quorum=[3]"))]


def test_chains_are_not_tried_again_and_again_where_two_no_larger_did_not_fit(load, monkeypatch):
    tried = []

    def too_large(alone, *_, **__):
        tried.append(alone.points[0].varied["model.clients"])
        raise ConfigError("")

    monkeypatch.setattr(weigh, "exact", too_large)
    switches = "grid.fence_recovery_reads=[true, false]", "grid.recovery_lac_floor=[true, false]"
    Weigher(1 << 26, 1).frame(load(1000.0, *switches, "run.runs=10"))
    assert tried == [2, 2, 2, 2]  # two in each scenario


def test_figures_of_what_is_switched_off_are_named_and_not_scaled(load, weigher):
    overrides = "rates.writer_crashes=0.5", "scenarios.quiet.rates.bookie_is_lost=2", "p_lost_in_outage=0.1"
    experiment = load(1000.0, *overrides)
    off = ["scenarios.quiet.rates.bookie_is_lost", "rates.writer_crashes", "faults.p_lost_in_outage"]
    search = advise(experiment, weigher, [*off, "scenarios.quiet.per_year"]).search
    assert {lever.key for lever in search.off} == set(off)
    assert [lever.key for lever in search.tried] == ["scenarios.quiet.per_year"]
    [said] = [each for each in search.told() if each.startswith("Switched off")]
    assert said.startswith("Switched off, and so never enabled in these scenarios: ")
    assert all(f'"{name}"' in said for name in ("bookie is lost", "writer crashes"))
    on = experiment.changed("scenarios.failover.max_lost=1", "writer_crash=true")
    assert {lever.key for lever in picked(on, off) if is_off(on, lever)} == {off[0], off[2]}


def test_a_scenario_s_own_figure_is_scaled_for_itself(load):
    experiment = load(1000.0, "scenarios.quiet.rates.bookie_sends_read_response=3")
    experiment = experiment.changed("scenarios.quiet.run.lifetime=50")
    by_key = {lever.key: lever for lever in levers(experiment)}
    rates = "rates.bookie_sends_read_response", "scenarios.quiet.rates.bookie_sends_read_response"
    assert [by_key[key].value for key in rates] == [1, 3]
    for key, expected in zip(rates, ({"failover": 4, "quiet": 3}, {"failover": 1, "quiet": 12}), strict=True):
        there = scaled(experiment, by_key[key], 4).points
        assert {each.scenario: each.point.rates["bookie_sends_read_response"] for each in there} == expected
    there = scaled(experiment, by_key["scenarios.quiet.run.lifetime"], 4).points
    assert {each.scenario: each.point.lifetime for each in there} == {"failover": math.inf, "quiet": 200}
    assert "run.lifetime" not in by_key
    assert not {each.point_id for each in there if each.scenario == "quiet"} & {p.point_id for p in experiment.points}


@pytest.mark.parametrize("factor", [0.5, 3])
def test_a_figure_is_scaled_as_an_override_of_its_key_would_set_it(written, factor):
    path = written("x.toml", PHYSICAL + 'run.lifetime = "1 min"\n')
    experiment = config.load(
        path, ["faults.message_loss=1e-6", "run.lifetime=7 days", "rates.bookie_is_lost=1 % / year"]
    )
    keys = [lever.key for lever in levers(experiment)]
    assert {"rates.bookie_is_lost", "scenarios.outage.rates.bookie_is_lost", "scenarios.outage.run.lifetime"} < {*keys}
    for lever in levers(experiment):
        value = lever.scaled(lever.value, factor)
        unit = {"rates": " / s", "lifetime": " s"}
        last = next((unit[part] for part in unit if part in lever.own[1]), "")
        by_hand, by_search = experiment.changed(f"{lever.key}={value!r}{last}"), scaled(experiment, lever, factor)
        assert [each.point_id for each in by_hand.points] == [each.point_id for each in by_search.points], lever.key
        assert by_hand.scenarios["outage"].per_year == by_search.scenarios["outage"].per_year


def test_rates_are_said_as_the_file_writes_them_and_have_the_value_that_is_said(written):
    path = written("x.toml", PHYSICAL)
    for override, now, other in (
        ((), "0.75 % / min", "1.17 % / min"),
        (("scenarios.outage.rates.bookie_is_lost=1 / 2.22 h",), "1 / 2.22 h", "1 / 1.42 h"),
    ):
        experiment = config.load(path, override)
        by_key = {lever.key: lever for lever in levers(experiment)}
        lever = by_key["scenarios.outage.rates.bookie_is_lost"]
        assert lever.said(lever.value) == now
        there = lever.scaled(lever.value, 1.5642)
        assert lever.said(there) == other
        assert there == float(units.read_rate(other))
        usual = by_key["rates.client_changes_ensemble"]
        assert usual.said(usual.scaled(usual.value, 0.5)) == "1 / min"
        assert by_key["rates.bookie_is_lost"].written.endswith("% / year")  # the profile's


def test_designs_that_cannot_be_chosen_are_not_weighed_again(load, weigher):
    rows = weigher.frame(load())
    short = rows["model.clients"] == 2
    found = ranked_designs(rows.assign(wants_copies=2, copies=2 - short))
    assert can_be_chosen(found) == set(rows["point_id"][~short])
    assert can_be_chosen(ranked_designs(rows.assign(changed=short.map({True: "fencing off", False: ""})))) == set(
        rows["point_id"][~short]
    )


def test_figures_that_there_is_no_time_for_are_named(load):
    advice = advise(load(), Weigher(1 << 26, 1), None, within_s=0.0, asked=False)
    assert advice.search.tried == []
    names = '"message loss"; "client starts recovery" in quiet; "client starts recovery" in failover'
    assert advice.search.told() == [f"Not tried: {names}."]


def test_the_nearest_flips_on_both_sides_are_found():
    class Grid:
        factor = 1.0

    def choose(there):
        return "a" if 0.2 < there.factor < 7 else "b" if there.factor >= 7 else ""

    def scaled(there, lever, factor):
        result = Grid()
        result.factor = factor
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(breakeven, "scaled", scaled)
        above, below = break_even(Grid(), Lever("x", 1.0), choose, "a")  # type: ignore[arg-type]
        assert above.before < 7 <= above.beyond
        assert above.instead == "b"
        assert below.beyond <= 0.2 < below.before
        assert below.instead == ""
        assert not list(break_even(Grid(), Lever("x", 1.0), lambda there: "a", "a"))  # type: ignore[arg-type]
