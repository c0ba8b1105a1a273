"""Which design to run: exact where chains are small, ranked, held to targets; break-even points hold on both sides."""

import json
import math
from types import SimpleNamespace

import pytest

from quorisk.analysis.decision import breakeven, verdict, weigh
from quorisk.analysis.decision.breakeven import break_even, can_be_chosen
from quorisk.analysis.decision.designs import ranked_designs
from quorisk.analysis.decision.latency import BUILT_IN, write_latency
from quorisk.analysis.decision.levers import Lever, is_off, levers, picked, scaled, untold
from quorisk.analysis.decision.recommend import advise, as_json
from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.estimate.estimate import estimate
from quorisk.analysis.estimate.method import ENOUGH_LOSSES, FEW_RUNS
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment import config, units
from quorisk.analysis.statistics import sequential
from quorisk.analysis.statistics.estimator import Estimator
from quorisk.analysis.statistics.sequential import METHOD
from quorisk.analysis.statistics.yearly import confidence_of_each
from quorisk.kernels.engines import registry
from quorisk.kernels.errors import ConfigError
from tests.support import ROOT

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


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    path = tmp_path_factory.mktemp("asked") / "x.toml"

    def load(target=1000.0, *overrides):
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


@pytest.fixture(scope="module")
def expected(load):
    return losses_of(load())


def test_small_chains_are_solved_and_add_up_to_a_year(load, weigher, expected):
    rows = weigher.frame(load())
    assert set(rows["method"]) == {"exact"}
    found = ranked_designs(rows)
    assert [each.settings for each in found] == [f"clients {clients}" for clients in sorted(expected, key=expected.get)]
    for design in found:
        p = expected[int(design.settings[-1])]
        assert [design.worst[name] for name in ("p", "low", "high")] == pytest.approx([p] * 3)


def test_chains_that_are_too_large_are_estimated_by_runs(load, expected):
    weigher = Weigher(1 << 10, 1)
    rows = weigher.frame(load())
    # each at a level at which they hold together; all but the most frequent until they are close enough
    assert set(rows["method"]) == {"Clopper-Pearson", METHOD}
    assert weigher.num_estimated == 4
    for design in ranked_designs(rows):
        assert design.worst["low"] < expected[int(design.settings[-1])] < design.worst["high"]


@pytest.mark.parametrize("is_simultaneous", [False, True])
def test_intervals_hold_together_as_run_simultaneous_says(is_simultaneous):
    sizes = {"bookies": 3, "clients": 1, "write_quorum": 2, "ack_quorum": 2, "entries": 1, "inflight": 1}
    document = {
        **{"protocol": "bookkeeper", "model": sizes, "rates": {"bookie_is_lost": 0.05}, "faults": {"max_lost": 2}},
        "grid": {"ack_quorum": [1, 2], "faults.message_loss": [0.05, 0.1]},
        "run": {"runs": 20_000, "lifetime": 30.0, "method": "count", "simultaneous": is_simultaneous},
    }
    experiment, together = config.build_experiment(document, "x.toml"), 4 if is_simultaneous else 1
    rows = Weigher(1 << 10, 1).frame(experiment)
    assert set(rows["together"]) == {together}
    assert len(rows[rows["losses"] > 0]) == 4
    for row in rows.to_dict("records"):  # as those of a sweep (`results.frame`)
        ends = Estimator(0.95, together, False).interval(int(row["losses"]), int(row["runs"]), int(row["hidden"]))
        assert (row["low"], row["high"]) == pytest.approx(ends)
    said = " ".join(advise(experiment, Weigher(1 << 10, 1)).words.sentences)
    assert ("With run.simultaneous = true, all hold together" in said) != is_simultaneous
    assert ("With 95% confidence, all 4 intervals hold together" in said) == is_simultaneous


def test_with_run_simultaneous_intervals_of_scenarios_hold_together_for_all_designs(load):
    rows = Weigher(1 << 10, 1).frame(load(1000.0, "run.simultaneous=true", "run.method=count"))
    assert (len(rows), set(rows["together"])) == (4, {4})


def test_where_a_design_is_counted_anyway_few_runs_answer_for_its_other_scenarios(load):
    """A head would take longer than all runs, and be of no use: how losses follow rates is not known of the design."""
    counted = load(1000.0, "run.method=count", "run.runs=50000", "scenarios.failover.per_year=0.2")
    rows = Weigher(1 << 10, 1).frame(counted)
    often, seldom = rows[rows["run.scenario"] == "quiet"], rows[rows["run.scenario"] == "failover"]
    assert (set(often["runs"]), set(often["method"])) == ({50000}, {"Clopper-Pearson"})
    assert set(seldom["method"]) == {METHOD}
    for row in seldom.to_dict("records"):
        level = 1.0 - (1.0 - confidence_of_each(counted.run.confidence, 2)) / 2  # the other half is for more runs
        low, high = sequential.confidence_sequence(int(row["losses"]), int(row["runs"]), level)
        assert row["runs"] < 20000
        assert high - low <= 2 * weigh.CLOSE  # where 64 runs were enough, they would say 0
        assert (row["low"], row["high"]) == pytest.approx((low, high))
    solved = Weigher(1 << 10, 1).frame(load(1000.0, "run.runs=50000"))
    assert all("head" in method or method == "exact" for method in solved["method"][:2])


@pytest.mark.parametrize(("runs", "methods"), [(2000, {"auto", "count"}), (FEW_RUNS + 1, {"auto", "count", "head"})])
def test_runs_that_leave_much_open_are_not_made_again(load, monkeypatch, runs, methods):
    """Where there are too few of them for a pilot. A head is asked first if it takes fewer."""
    made = []

    def estimated(alone, *given, **named):
        made.append((alone.points[0].scenario, alone.points[0].design, alone.run.method))
        return estimate(alone, *given, **named)

    monkeypatch.setattr(weigh, "estimate", estimated)
    rows = Weigher(1 << 10, 1).frame(
        load(1000.0, f"run.runs={runs}", "scenarios.failover.rates.client_starts_recovery=0.3")
    )
    assert (rows["losses"] < ENOUGH_LOSSES).all()
    assert {method for *_, method in made} == methods
    assert len({each[:2] for each in made}) == len([each for each in made if each[2] != "head"]) == 4


def test_designs_that_make_the_same_runs_are_estimated_once(monkeypatch):
    """Whether rolls are gated plays no part in a scenario without rolls."""
    made = []

    def estimated(alone, *given, **named):
        made.append(alone.points[0].scenario)
        return estimate(alone, *given, **named)

    monkeypatch.setattr(weigh, "estimate", estimated)
    model = {"brokers": 2, "replication_factor": 2, "min_isr": 1, "values": 1}
    faults = {"max_clean_shutdowns": 1}
    rolls = {"per_year": 1.0, "faults": {"max_rolls": 1}}
    document = {
        **{"protocol": "kraft", "model": model, "faults": faults, "run": {"runs": 300, "method": "count"}},
        "scenarios": {"crash": {"per_year": 1000.0}, "roll": rolls},
        "grid": {"gated_rolls": [True, False]},
    }
    rows = Weigher(1 << 10, 1).frame(config.build_experiment(document, "x.toml"))
    assert made == ["crash", "roll", "roll"]
    crash = rows[rows["run.scenario"] == "crash"]
    assert (len(crash), crash["steps"].nunique()) == (2, 1)
    assert rows[rows["run.scenario"] == "roll"]["steps"].nunique() == 2


def test_after_two_heads_that_tell_no_more_than_counting_others_are_counted(monkeypatch):
    """However many threads there are: numbers must not depend on which of two is done first."""
    methods = []

    def counted(alone, *given, **named):
        methods.append(alone.run.method)
        return estimate(alone._replace(run=alone.run._replace(method="count")), *given, **named)

    monkeypatch.setattr(weigh, "estimate", counted)
    document = {
        "protocol": "kraft",
        "model": {"brokers": 2, "replication_factor": 2, "min_isr": 1, "values": 1},
        "faults": {"max_clean_shutdowns": 1},
        "run": {"runs": 100},
        "scenarios": {"roll": {"per_year": 1.0, "faults": {"max_rolls": 1}}},
        "grid": {"gated_rolls": [True, False], "unclean_leader_election": [True, False]},
    }
    Weigher(1 << 10, 4).frame(config.build_experiment(document, "x.toml"))
    assert methods == ["auto", "auto", "count", "count"]


def test_the_engine_is_told_of_all_that_are_estimated_before_it_runs_any(load, monkeypatch):
    """Of one at a time it would compile a kernel for each of the first ones."""
    told, engine_of = [], registry.engine_of

    def noting(name):
        engine = engine_of(name)

        def simulate(model, points, *given, **named):
            told.append(len(points.params))
            return engine.simulate(model, points, *given, **named)

        return SimpleNamespace(NAME=engine.NAME, simulate=simulate)

    monkeypatch.setattr(registry, "engine_of", noting)
    Weigher(1 << 10, 1).frame(load())
    assert told[0] == 4
    assert set(told[1:]) == {1}


@pytest.mark.parametrize("end", ["lifetime", "horizon"])
def test_losses_at_any_time_are_not_those_of_a_lifetime(load, end):
    """What a chain knows ends with the lifetime: runs count those that ended before it was known."""
    rows = Weigher(1 << 26, 1).frame(load(1000.0, "run.at_any_time=true", f"run.{end}=3.0"))
    assert (rows["hidden"] >= rows["horizon"]).all()
    assert (rows["horizon"] > 0).all()
    assert (rows["high"] >= (rows["losses"] + rows["horizon"]) / rows["runs"]).all()


def test_a_design_whose_runs_may_go_on_for_ever_costs_more_than_any_other(weigher):
    sizes = {"brokers": 2, "replication_factor": 2, "min_isr": 1, "values": 1}
    document = {"protocol": "kraft", "model": sizes, "faults": {"max_clean_shutdowns": 2}}
    document["variant"] = {"semantics": "specification"}  # in which brokers may ask for ever
    rows = weigher.frame(config.build_experiment(document, "x.toml"))
    assert rows["unfinished"].item() > 0.0
    [design] = ranked_designs(rows)
    assert design.cost("steps") == math.inf


def test_what_is_advised_is_what_the_verdicts_say(load, weigher, expected):
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


KEYS = ("scenarios.failover.per_year", "faults.message_loss", "scenarios.failover.rates.client_starts_recovery")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("key", KEYS)
def test_break_even_points_are_confirmed_by_running_both_sides(load, weigher, expected, key):
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


def test_the_verb_says_what_to_choose_and_fails_if_asked_to(quorisk, load):
    path = load(1000.0).path
    code, out, _ = quorisk(
        "recommend", path, "--fail-on-target", "--break-even", "scenarios.quiet.per_year", "--details"
    )
    assert code == 0
    assert out.startswith("Run clients")
    assert "2 of 2 designs meet the target: losses of at most 1000 a year. Of these," in out
    assert "PBS" in out
    code, out, _ = quorisk("recommend", load(1e-9).path, "--break-even", "none", "--fail-on-target", "--json")
    assert code == 3
    assert json.loads(out)["chosen"] is None
    assert quorisk("recommend", load(1e-9).path, "--break-even", "none", "--json")[0] == 0
    code, _, err = quorisk("recommend", path, "--break-even", "rates.nothing")
    assert code == 2
    assert err.startswith("error: --break-even rates.nothing: one of scenarios.failover.per_year")
