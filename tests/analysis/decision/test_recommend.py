"""Which design to run: exact where chains are small, ranked, held to targets; break-even points hold on both sides."""

import json

import pytest

from quorisk.analysis.decision import breakeven
from quorisk.analysis.decision.breakeven import Lever, break_even, levers, scaled
from quorisk.analysis.decision.latency import BUILT_IN, write_latency
from quorisk.analysis.decision.recommend import advise, as_json
from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment import config
from quorisk.plots.designs import designs
from quorisk.plots.verdict import choice

FILE = """
protocol = "bookkeeper"
[model]
bookies = 1
clients = 2
write_quorum = 1
ack_quorum = 1
entries = 1
inflight = 1
[variant]
fence_unknown_ledger = false
[faults]
message_loss = 0.01
[latency]
replica = "LNKD-SSD"
[targets]
losses_per_year = {target}
[scenarios.failover]
per_year = 200
rates.client_starts_recovery = 1.0
[scenarios.quiet]
per_year = 2000
rates.client_starts_recovery = 0.01
[run]
runs = 2000
[grid]
clients = [2, 3]
"""


@pytest.fixture
def load(tmp_path):
    def load(target=1000.0, *overrides):
        path = tmp_path / "x.toml"
        path.write_text(FILE.format(target=target), "utf-8")
        return config.load(path, overrides)

    return load


@pytest.fixture(scope="module")
def weigher():
    return Weigher(1 << 26, 1)


def losses_of(experiment):
    """Losses a year by number of clients, from the exact solver alone."""
    found: dict[int, float] = {}
    for point in experiment.points:
        p = exact(experiment._replace(points=(point,)), 1 << 26).data_loss.p
        per_year = experiment.scenarios[point.scenario].per_year
        clients = point.point.values["clients"]
        found[clients] = found.get(clients, 0.0) + per_year * p
    return found


def test_small_chains_are_solved_and_add_up_to_a_year(load, weigher):
    experiment = load()
    expected = losses_of(experiment)
    rows = weigher.frame(experiment)
    assert set(rows["method"]) == {"exact"}
    found = designs(rows)
    assert [each.settings for each in found] == [f"clients {clients}" for clients in sorted(expected, key=expected.get)]
    for design in found:
        p = expected[int(design.settings[-1])]
        assert [design.worst[name] for name in ("p", "low", "high")] == pytest.approx([p] * 3)


def test_chains_that_are_too_large_are_estimated_by_runs(load):
    weigher = Weigher(1 << 10, 1)
    rows = weigher.frame(load())
    assert set(rows["method"]) == {"Clopper-Pearson"}  # each at a level at which they hold together
    assert weigher.num_solved == 0
    assert weigher.num_estimated == 4
    exact_losses = losses_of(load())
    for design in designs(rows):
        assert design.worst["low"] < exact_losses[int(design.settings[-1])] < design.worst["high"]


def test_what_is_advised_is_what_the_verdicts_say(load, weigher):
    expected = losses_of(load())
    safest, other = sorted(expected, key=expected.get)
    found = as_json(advise(load(sum(expected.values()) / 2), weigher))
    assert found["chosen"] == f"clients {safest}"
    assert [(each["design"], each["rank"], each["meets"], each["chosen"]) for each in found["designs"]] == [
        (f"clients {safest}", 1, True, True),
        (f"clients {other}", 2, False, False),
    ]
    assert found["designs"][0]["copies"] == 1
    assert found["designs"][0]["survives"] == "no bookie"
    assert found["designs"][0]["write_p99_ms"] == write_latency(BUILT_IN["LNKD-SSD"], 1, 1)[1].ms
    assert set(found["designs"][0]["scenarios"]) == {"failover", "quiet"}
    json.dumps(found, allow_nan=False)
    assert as_json(advise(load(expected[safest] / 2), weigher))["chosen"] is None


@pytest.mark.parametrize("key", ["scenarios.failover.per_year", "faults.message_loss", "rates.client_starts_recovery"])
def test_break_even_points_are_confirmed_by_running_both_sides(load, weigher, key):
    expected = losses_of(load())
    safest = min(expected, key=expected.get)
    target = 1.3 * expected[safest]
    experiment = load(target)

    def chosen(there):
        found = choice(designs(weigher.frame(there)), target)
        return found[0].settings if found else ""

    advice = advise(experiment, weigher, [key])
    assert advice.levers == [key]
    lever = next(each for each in levers(experiment) if each.key == key)
    for each in advice.break_even:
        before, beyond = (scaled(experiment, lever, factor) for factor in (each.factor_before, each.factor_beyond))
        assert chosen(before) == chosen(experiment) != chosen(beyond) == each.instead
        assert 1 < max(each.factor_beyond / each.factor_before, each.factor_before / each.factor_beyond) <= 1.05
    if key == "scenarios.failover.per_year":  # where the answer is known
        quiet = losses_of(load(1000.0, "run.scenario=quiet"))
        failover = {clients: losses - quiet[clients] for clients, losses in expected.items()}
        other = max(expected, key=expected.get)
        missed = (target - quiet[safest]) / failover[safest]
        equal = (quiet[other] - quiet[safest]) / (failover[safest] - failover[other])
        nearest = min(factor for factor in (missed, equal) if factor > 1)
        above = next(each for each in advice.break_even if each.factor_beyond > 1)
        assert above.factor_before <= nearest <= above.factor_beyond


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
        above, below = break_even(Grid(), Lever("x", 1.0), choose)  # type: ignore[arg-type]
        assert above.factor_before < 7 <= above.factor_beyond
        assert above.instead == "b"
        assert below.factor_beyond <= 0.2 < below.factor_before
        assert below.instead == ""
        assert not list(break_even(Grid(), Lever("x", 1.0), lambda there: "a"))  # type: ignore[arg-type]


def test_the_verb_says_what_to_choose_and_fails_if_asked_to(quorisk, load):
    path = load(1000.0).path
    code, out, _ = quorisk("recommend", path, "--fail-on-target", "--break-even", "scenarios.quiet.per_year")
    assert code == 0
    assert "2 of 2 designs meet the target: at most 1000 losses a year." in out
    assert "To choose: clients" in out
    assert "PBS" in out
    code, out, _ = quorisk("recommend", load(1e-9).path, "--fail-on-target", "--json")
    assert code == 3
    assert json.loads(out)["chosen"] is None
    assert quorisk("recommend", load(1e-9).path, "--json")[0] == 0
    code, _, err = quorisk("recommend", path, "--break-even", "rates.nothing")
    assert code == 2
    assert err.startswith("error: --break-even rates.nothing: one of scenarios.failover.per_year")
