"""A design's losses on its cluster: which scenarios they replace, what comes beside them, targets, what rates allow."""

import math
import tomllib
from typing import Any

import pytest

from quorisk.analysis.cluster import interpolated, joined
from quorisk.analysis.cluster.answer import answer, answer_of, effort_of, p_any_of, placed_designs, quick_effort
from quorisk.analysis.cluster.certified import DrawPlan, any_loss, certified
from quorisk.analysis.cluster.joined import enough_of, with_cluster, with_p_any, worst_clusters
from quorisk.analysis.compare.compare import one_by_one
from quorisk.analysis.decision import recommend
from quorisk.analysis.decision.advice import recommend as words_of
from quorisk.analysis.decision.designs import ranked_designs as ranked
from quorisk.analysis.decision.rows import REPLACED
from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.experiment import starters
from quorisk.analysis.experiment.config import build_experiment
from quorisk.analysis.experiment.placed import PLACEMENT
from quorisk.kernels.errors import ConfigError

DOCUMENT: dict[str, Any] = {
    "protocol": "bookkeeper",
    "model": {"bookies": 2, "clients": 1, "write_quorum": 2, "ack_quorum": 2, "entries": 1, "inflight": 1},
    "variant": {"fence_unknown_ledger": False},
    "faults": {"message_loss": 0.01, "max_lost": 2},
    "cluster": {
        "nodes": 12,
        "ledgers": 300,
        "entries_per_ledger": 100,
        "events": {
            "power": {"per_year": {"value": 1.0, "error_factor": 3}, "p_lost": {"value": 0.02, "error_factor": 2}}
        },
        "repair_bandwidth": "100 MB/s",
        "node_bytes": "1 GB",
    },
    "scenarios": {
        "entry": {"per_year": 1e9, "run": {"lifetime": 10.0}},
        "failover": {"per_year": 0.5, "clients": 2},
    },
}


def experiment(**changes):
    return build_experiment({**DOCUMENT, **changes}, "x.toml")


def advised(given):
    return recommend.advise(given, Weigher(1 << 26, 2))


def designs_of(given):
    """The designs that advice is about, without its words and what would change it."""
    return ranked(Weigher(1 << 26, 2).frame(given))


@pytest.fixture(scope="module")
def advice():
    return advised(experiment(targets={"p_any_loss_per_year": 0.5, "losses_per_year": 1e4}))


def test_scenarios_of_entries_are_replaced_and_failovers_come_beside_the_cluster(advice):
    given = experiment()
    [worst] = [each.worst for each in advice.designs]
    alone = answer(placed_designs(given)[0], effort_of(given, 1)).losses
    [failover] = [part for part in worst["parts"] if part["run.scenario"] == "failover"]
    assert 0 < failover["p"] < 1
    rate = 0.5 * failover["p"]
    assert worst["p"] == pytest.approx(1 - (1 - alone.p_any.value) * math.exp(-rate), rel=1e-12)
    assert worst["entries"] == pytest.approx(alone.entries.value + rate, rel=1e-12)
    assert worst["incidents"] == pytest.approx(alone.incidents.value + rate, rel=1e-12)
    [entry] = [part for part in worst["parts"] if part["run.scenario"] == "entry"]
    assert (entry["method"], entry["p"]) == (REPLACED, 0.0)
    assert set(recommend.as_json(advice)["designs"][0]["scenarios"]) == {"failover"}


def test_a_scenario_says_whether_its_losses_are_incidents_of_their_own():
    assert {name: each.incident for name, each in experiment().scenarios.items()} == {"entry": False, "failover": True}
    other = {**DOCUMENT["scenarios"], "failover": {**DOCUMENT["scenarios"]["failover"], "incident": False}}
    assert not experiment(scenarios=other).scenarios["failover"].incident
    other["failover"]["incident"] = 1
    with pytest.raises(ConfigError, match=r"scenarios.failover.incident = 1: true or false"):
        experiment(scenarios=other)


def test_targets_on_any_loss_and_on_entries_both_count(advice):
    [design] = advice.designs
    assert advice.target == 0.5
    assert design.verdict(0.5) == "meets"
    assert not design.shortfalls()
    few = advised(experiment(targets={"p_any_loss_per_year": 0.5, "losses_per_year": 1e-3}, scenarios={}))
    assert any("entries lost a year" in each for each in few.designs[0].shortfalls())
    assert not few.choice
    [many] = designs_of(experiment(targets={"incident_entries_p99": 10.0}))
    assert any("lost at once" in each for each in many.shortfalls())
    for years in (100, 10_000):  # in which there is no incident, and are a few
        run = {"method": "count", "runs": years}
        [drawn] = designs_of(experiment(targets={"incident_entries_p99": 1e7}, run=run, scenarios={}))
        assert (drawn.worst["incident_p99"] > 0.0) == (years > 100)
        assert drawn.worst["incident_p99"] < 1e7
        assert drawn.shortfalls() == ["no bound on losses at once in one of 100 incidents"]
    without = {key: value for key, value in DOCUMENT.items() if key != "cluster"}
    for key in ("p_any_loss_per_year", "incident_entries_p99"):
        with pytest.raises(ConfigError, match=rf"targets\.{key}: needs \[cluster\]"):
            build_experiment({**without, "targets": {key: 0.5}}, "x.toml")


def test_without_scenarios_the_cluster_alone_is_told():
    given = experiment(scenarios={}, grid={"cluster.nodes": [12, 40]})
    [design] = designs_of(given)
    most = max(answer(each, effort_of(given, 1)).losses.p_any.high for each in placed_designs(given))
    assert design.worst["high"] == pytest.approx(most, rel=1e-12)
    assert design.worst["cluster_at"] == "nodes 40"
    assert [each.varied for each in worst_clusters(given).values()] == [{"cluster.nodes": 40}]


def test_what_rates_allow_follows_the_cluster_solved_at_each_draw():
    given = experiment(scenarios={})
    placed = placed_designs(given)
    found = interpolated.losses_on_clusters(given, placed, 64)
    assert found is not None
    [design] = found.designs
    assert design is not None
    assert design.powers["cluster.events.power.per_year"] == pytest.approx(1.0, abs=0.02)
    assert design.powers["cluster.events.power.p_lost"] == pytest.approx(
        2.0, abs=0.25
    )  # few ledgers: of two copies both
    assert 1.0 < design.error_factor < 1.3
    factors = {
        name: found.of[name].known.quantile(found.draws.levels[:, i]) for i, name in enumerate(found.draws.names)
    }
    assert set(factors) == {"cluster.events.power.per_year", "cluster.events.power.p_lost"}
    [power] = placed[0].cluster.events
    for i in (10, 33):
        drawn = {key.rpartition(".")[2]: float(each[i]) for key, each in factors.items()}
        there = placed[0].cluster._replace(events=(power._replace(**drawn),))  # type: ignore[arg-type]
        truth = certified(there, 0.95, DrawPlan(0, 1)).p_any.value
        assert design.values[i] == pytest.approx(truth, rel=design.error_factor - 1 + 0.1)
    exactly = {**DOCUMENT["cluster"], "events": {"power": {"per_year": 1.0, "p_lost": 0.02}}}
    assert interpolated.losses_on_clusters(experiment(scenarios={}, cluster=exactly), placed) is None


def test_any_loss_alone_is_that_of_all_figures():
    cluster = placed_designs(experiment())[0].cluster
    assert any_loss(cluster, 0.95, DrawPlan(0, 1)) == certified(cluster, 0.95, DrawPlan(0, 1)).p_any


def test_recommend_compares_placements():
    """P(any loss in a year) of each placement is that of the file which has it. Two racks have no room for three copies
    in racks of their own."""
    events = {**DOCUMENT["cluster"]["events"], "fire": {"scope": "rack", "per_year": 1.0, "p_lost": 0.5}}
    racks = {**DOCUMENT["cluster"], "racks": 2, "events": events}
    given = {"scenarios": {}, "targets": {"copies": 1}}
    rows = {
        name: Weigher(1 << 26, 2).frame(experiment(cluster={**racks, "placement": name}, **given))
        for name in ("random", "two_racks")
    }
    designs = {name: ranked(each)[0] for name, each in rows.items()}
    own = {name: each.worst["any_loss"] for name, each in designs.items()}
    assert own["two_racks"] < 0.9 * own["random"]
    for name, other in (("random", "two_racks"), ("two_racks", "random")):
        ends = designs[name].by_placement
        assert all(low < p < high for p, low, high in ends.values())
        found = {each: p for each, (p, *_) in ends.items()}
        assert found.pop(name) == pytest.approx(own[name], rel=1e-12)
        assert found["distinct_racks"] == pytest.approx(own["two_racks"], rel=0.01)  # of two copies it is the same
        assert found[other] == pytest.approx(own[other], rel=0.01)
        words = {"random": "copies at random", "two_racks": "copies in two racks"}
        first, second = (f"{p:.3g} with {words[each]}" for each, p in ((name, own[name]), (other, found[other])))
        [said] = [each for each in words_of(rows[name]).sentences if "copies at random" in each]
        assert said.startswith(f"On the cluster, P(any loss in a year) is {first}, ")
        assert second in said
    three = {**DOCUMENT["model"], "bookies": 3, "write_quorum": 3, "ack_quorum": 3}
    [design] = designs_of(experiment(cluster={**racks, "placement": "random"}, model=three, **given))
    assert set(design.by_placement) == {"random", "two_racks"}
    alone = {**DOCUMENT["cluster"], "events": DOCUMENT["cluster"]["events"]}
    assert designs_of(experiment(cluster=alone, **given))[0].placed() == ""


def test_placements_are_compared_with_the_scenarios_beside_them():
    """A cluster that loses next to nothing beside scenarios that lose much was told as next to nothing."""
    rare = {**DOCUMENT["cluster"], "racks": 2, "placement": "two_racks"}
    [design] = designs_of(experiment(cluster=rare, targets={"copies": 1}))
    assert design.worst["p_any"] > 1.4 * design.worst["any_loss"]
    assert design.by_placement["two_racks"].value == pytest.approx(design.worst["p_any"], rel=1e-12)
    beside = design.worst["p_any"] - design.worst["any_loss"]
    assert all(ends.value > beside for ends in design.by_placement.values())


def test_placements_in_a_grid_are_designs():
    """Each loses what the file with that placement loses; the runs of scenarios beside the cluster are the same."""
    racks = {**DOCUMENT["cluster"], "racks": 2}
    grid = {"cluster": {"placement": ["random", "two_racks"], "nodes": [12, 24]}}
    scenarios = {"failover": {"per_year": 0.5, "incident": True, "run": {"lifetime": 10.0}}}
    given = experiment(cluster=racks, grid=grid, scenarios=scenarios, targets={"copies": 1})
    assert len({point.point_id for point in given.points}) == len(given.points) == 2
    weigher = Weigher(1 << 26, 2)
    found = {each.settings: each.worst for each in ranked(weigher.frame(given))}
    names = {"random": "copies at random", "two_racks": "copies in two racks"}
    assert found.keys() == set(names.values())
    for name, said in names.items():
        [alone] = ranked(weigher.frame(given.changed(f"cluster.placement={name}")))
        for column in ("any_loss", "any_loss_low", "p_any", "cluster_at", "zones"):
            assert found[said][column] == alone.worst[column], column
        assert alone.worst["cluster_at"] == "nodes 24"  # the worse of the two, on which both are judged
    assert found["copies in two racks"]["any_loss"] != found["copies at random"]["any_loss"]
    assert len(weigher._known) + len(weigher._solved) == 1
    ways = one_by_one(given.changed, ["placement=random,two_racks"])
    assert [each.points[0].varied[PLACEMENT] for each in ways.values()] == ["random", "two_racks"]


def test_a_placement_whose_losses_cannot_be_told_is_left_out():
    """All copies of a record that is not on disk yet may be in a rack that loses power."""
    answers = starters.OperatorAnswers("12", "3", "1000", "3 days", "3/2/all")
    [placed, *_] = placed_designs(build_experiment(tomllib.loads(starters.filled_template("kraft", answers)), "x.toml"))
    found = {name: joined._placed_as(placed, name) for name in ("random", "two_racks", "distinct_racks")}
    assert {name for name, each in found.items() if each} == {"two_racks", "distinct_racks"}
    assert found["two_racks"]
    assert found["two_racks"].cluster.placement == "two_racks"


def test_a_design_that_loses_far_less_than_all_others_and_the_target_is_told_less_closely():
    """Intervals of scenarios beside clusters: as wide as change no rank and no verdict."""
    grid = {"write_quorum": [1, 2], "ack_quorum": [1, 2], "where": ["ack_quorum == write_quorum"]}
    two = experiment(grid=grid)
    p_any = {key: answer_of(each, quick_effort(two)).losses.p_any.value for key, each in worst_clusters(two).items()}

    def open_parts(given):
        often = given.scenarios["failover"].per_year
        design_of = {point.point_id: point.design for point in given.points}
        return [often * width / p_any[design_of[name]] for name, width in enough_of(given, {}).items()]

    most, least = sorted(p_any.values(), reverse=True)
    assert joined.FAR * least < most
    assert sorted(open_parts(two)) == pytest.approx([joined.WIDTH, joined.WIDTH_OF_LEAST])
    close = experiment(grid=grid, targets={"p_any_loss_per_year": 2.9 * least})
    assert open_parts(close) == pytest.approx([joined.WIDTH] * 2)
    alone = two._replace(
        clusters=two.clusters[:1], points=[point for point in two.points if point.design == two.points[0].design]
    )
    assert open_parts(alone) == pytest.approx([joined.WIDTH])


@pytest.mark.parametrize("target", [math.inf, 0.5, 1e-9])
def test_other_clusters_are_told_as_closely_as_a_choice_needs(target, monkeypatch):
    """P(any loss) within the intervals of the whole answer, wherever it is not surely above the target."""
    grid = {"write_quorum": [1, 2], "ack_quorum": [1, 2], "where": ["ack_quorum == write_quorum"]}
    given = experiment(scenarios={}, grid=grid)
    rows = Weigher(1 << 26, 2).frame(given)
    other = given.changed("events.power.per_year=3")
    asked = []

    def ask(placed, effort):
        asked.append(effort.precision)
        return p_any_of(placed, effort)

    monkeypatch.setattr(joined, "p_any_of", ask)
    told, whole = with_p_any(rows, other, 0.01, target), with_cluster(rows, other, 0.01)
    assert sorted(asked) == ([0.01, 0.01, joined.COARSE, joined.COARSE] if target > 1e-9 else [joined.COARSE] * 2)
    if target == 0.5:  # one design alone is told closely only where its interval is wide for the target
        asked.clear()
        of_one = with_p_any(rows[:1], other, 0.01, target)
        assert asked == [joined.COARSE]
        assert (of_one["any_loss_high"] <= target).all()
    assert list(told["any_loss_low"] > target) == list(whole["any_loss_low"] > target)
    is_close = (told["any_loss_low"] <= whole["any_loss_high"]) & (whole["any_loss_low"] <= told["any_loss_high"])
    assert is_close.all()
    if target == math.inf:
        assert list(told["any_loss"]) == list(whole["any_loss"])
    assert (told["any_loss"] > rows["any_loss"]).all()
    assert list(told["entries"]) == list(rows["entries"])
