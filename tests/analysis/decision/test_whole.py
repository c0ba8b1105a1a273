"""P(any loss in a year): one figure, the same from every verb, with scenarios' events and on a cluster."""

import io
import json
import math
from typing import Any

import pytest
from rich.console import Console

import quorisk
from quorisk.analysis.cluster.figures import YearFigure
from quorisk.analysis.compare import compare
from quorisk.analysis.decision import depends, whole
from quorisk.analysis.decision.designs import runs_of_interval
from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.config import ConfigError, build_experiment
from quorisk.analysis.rates import sensitivity
from quorisk.command import show_sensitivity, show_year
from quorisk.command.show import console
from quorisk.say import numbers
from tests.support import ROOT

DOCUMENT: dict[str, Any] = {
    "protocol": "compaction",
    "model": {"messages": 2, "compactions": 2, "keys": 1, "values": 1, "max_crashes": 1},
    "variant": {"persist_cursor_before_delete": False},
    "run": {"runs": 20_000},
    "scenarios": {
        "calm": {"per_year": 10, "hits": 4, "rates": {"broker_crash": 0.01}},
        "storm": {"per_year": 0.3, "hits": 100, "fates": "shared", "rates": {"broker_crash": 0.5}},
        "each": {"per_year": 0.01, "hits": 3, "fates": "independent", "rates": {"broker_crash": 0.7}},
    },
}
CLUSTERED: dict[str, Any] = {
    "protocol": "bookkeeper",
    "model": {"bookies": 2, "clients": 1, "write_quorum": 2, "ack_quorum": 2, "entries": 1, "inflight": 1},
    "variant": {"fence_unknown_ledger": False},
    "faults": {"message_loss": 0.01, "max_lost": 2},
    "cluster": {
        "nodes": 12,
        "racks": 3,
        "ledgers": 300,
        "entries_per_ledger": 100,
        "node_loss": 0.05,
        "repair_bandwidth": "100 MB/s",
        "node_bytes": "1 GB",
        "events": {
            "power_outage": {"scope": "cluster", "per_year": 1.0, "p_lost": 0.02},
            "rack_outage": {"scope": "rack", "per_year": 0.5, "p_lost": 0.0},
        },
    },
    "scenarios": {
        "entry": {"per_year": 1e9, "run": {"lifetime": 10.0}},
        "failover": {"per_year": 0.5, "incident": True, "run": {"lifetime": 20.0}},
    },
}


def load(*overrides: str, document: dict[str, Any] = DOCUMENT):
    return build_experiment(document, "x.toml", overrides)


def year(experiment, **options):
    return whole.whole_year(experiment, Weigher(1 << 26, 1), **options)


def test_a_year_is_the_sum_of_events_in_closed_form():
    p = {name: exact(load(f"scenario={name}"), 1 << 28).data_loss.p for name in DOCUMENT["scenarios"]}
    found = year(load(), is_exact=True)
    lost = 10 * 4 * p["calm"] + 0.3 * 100 * p["storm"] + 0.01 * 3 * p["each"]
    assert found.entries[:3] == pytest.approx([lost] * 3, rel=1e-12)
    known = 0.3 * p["storm"] + 0.01 * (1 - (1 - p["each"]) ** 3)
    ends = 10 * p["calm"] + known, 10 * (1 - (1 - p["calm"]) ** 4) + known
    assert (found.incidents.low, found.incidents.high) == pytest.approx(ends, rel=1e-9)
    assert found.p_any.value == found.p_any.high == pytest.approx(1 - math.exp(-ends[1]), rel=1e-9)
    assert found.either == pytest.approx({"shared": 1 - math.exp(-ends[0]), "independent": found.p_any.value})
    told = year(load("scenarios.calm.fates=shared"))
    assert (told.either, told.p_any.high) == ({}, pytest.approx(1 - math.exp(-ends[0])))


def test_a_year_is_of_one_design_and_a_picked_scenario_is_none():
    assert not load("scenario=calm").asks_year
    assert not build_experiment({**DOCUMENT, "scenarios": {}}, "x.toml").asks_year
    with pytest.raises(ConfigError, match=r"^x.toml: grid.model.keys: 2 grid points, but one is needed"):
        year(load("grid.keys=[1, 2]"))
    with pytest.raises(ConfigError, match=r"^x.toml: scenarios.calm: not solved"):
        whole.whole_year(load("run.horizon=5"), Weigher(1 << 26, 1), is_exact=True)


def test_each_scenario_says_the_number_of_runs_behind_its_interval():
    """With a horizon nothing can be solved, so that all are counted."""
    experiment, said = load("run.horizon=5"), io.StringIO()
    found = year(experiment)
    runs = {name: row["runs"] for name, row in found.scenarios.items()}
    assert max(runs.values()) == experiment.run.runs
    show_year.print_year(found, experiment, Console(file=said, width=200))
    assert all(f", {number:,} runs" in said.getvalue() for number in runs.values())
    assert {row["runs"] for row in year(load()).scenarios.values()} == {0}
    head = {"method": "exact head, sampled tail", "runs": 20_000.0, "exit_runs": 3_000.0}
    assert (runs_of_interval(head), runs_of_interval(head | {"exit_runs": math.nan})) == (3_000, 0)


@pytest.mark.parametrize(("low", "is_bounded"), [(2e-12, True), (2e-9, False)])
def test_the_middle_of_bounds_is_no_estimate(low, is_bounded):
    experiment, said = load(), io.StringIO()
    found = year(experiment)
    rows = {name: row | {"p": 4e-9, "low": low, "high": 8e-9} for name, row in found.scenarios.items()}
    show_year.print_year(found._replace(scenarios=rows), experiment, Console(file=said, width=300))
    assert said.getvalue().count("4 × 10⁻⁹ (bounds only)") == is_bounded * len(rows)


@pytest.mark.parametrize("document", [DOCUMENT, CLUSTERED], ids=["scenarios", "cluster"])
def test_every_verb_says_the_same_first(quorisk_of, document):
    """estimate, exact, compare, sensitivity, trace, recommend, and on a cluster cluster."""
    vary = "persist_cursor_before_delete=false,true" if document is DOCUMENT else "max_lost=2,1"
    asked = [["estimate"], ["exact"], ["compare", "--vary", vary], ["sensitivity"], ["trace"]]
    asked += [["recommend", "--break-even", "none"], *([["cluster"]] if document is CLUSTERED else [])]
    found = [json.loads(quorisk_of(document, *verb)) for verb in asked]
    figures = [each["p_any_loss_per_year"] for each in found]
    assert 0.0 < figures[0]["p"] < 1.0
    for verb, each in zip(asked, figures, strict=True):
        assert {key: each[key] for key in ("p", "low", "high")} == pytest.approx(
            {key: figures[0][key] for key in ("p", "low", "high")}, rel=1e-12
        ), verb


@pytest.mark.parametrize(
    ("name", "one_design"),
    [
        ("raft_cluster.toml", []),
        ("kafka_cluster.toml", ["rates.broker_flushes=1 / 30 s"]),
        ("cluster.toml", ["cluster.nodes=20", "write_quorum=3", "ack_quorum=2"]),
    ],
)
def test_causes_are_those_of_all_incidents_and_nothing_else(name, one_design):
    for found in whole.wholes(config.load(ROOT / "configs" / name, one_design), Weigher(1 << 26, 1)):
        assert math.fsum(found.by_cause.values()) == pytest.approx(found.incidents.value, rel=0.02)


def test_a_trace_that_finds_no_path_says_the_year_all_the_same(quorisk_of, printed, tmp_path):
    """A cursor that is persisted first loses nothing, however often the broker crashes: that is proved."""
    document = {**DOCUMENT, "variant": {}}
    found = json.loads(quorisk_of(document, "trace"))
    assert (found["trace"], found["proved"], found["p_any_loss_per_year"]["high"]) == (None, True, 0.0)
    out = printed("trace", str(tmp_path / "x.toml"))
    first, second = out.splitlines()
    assert first == "P(any loss in a year) 0; exact"
    assert second.startswith("no reachable state breaks ")


@pytest.mark.parametrize("document", [DOCUMENT, CLUSTERED], ids=["scenarios", "cluster"])
def test_designs_are_told_as_they_are_known_and_left_by_what_is_interrupted(document, monkeypatch):
    several = "grid.keys=[1, 2]" if document is DOCUMENT else "grid.faults.max_lost=[1, 2]"
    experiment, said = load(several, document=document), list[str]()
    found = whole.wholes(experiment, Weigher(1 << 26, 1, known=said.append))
    assert len(said) == 2
    for each in found if document is DOCUMENT else ():
        p = each.p_any
        ends = "" if p.low == p.high else f" {numbers.in_brackets(p.low, p.high)}"
        assert f"{each.settings}: P(any loss in a year) {numbers.plain(p.value)}{ends}" in said
    if document is CLUSTERED:
        assert f"P(any loss in a year) {numbers.plain(found[0].p_any.value)}" in said[1]  # the worst faults are last
        said.clear()

        def interrupt(*given: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Weigher, "_weighed", interrupt)
        monkeypatch.setattr(Weigher, "_exactly", interrupt)
        with pytest.raises(KeyboardInterrupt):
            Weigher(1 << 26, 1, known=said.append).frame(experiment)
        assert len(said) == 2
        assert all(line.endswith(", without failover") for line in said)


@pytest.fixture
def quorisk_of(quorisk, written):
    def asked(document, verb, *options) -> str:
        code, out, _ = quorisk(verb, str(written("x.toml", _toml(document))), "--json", *options)
        assert code == 0, out
        return str(out)

    return asked


def _toml(document: dict[str, Any], prefix: str = "") -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in document.items() if not isinstance(value, dict)]
    for key, value in document.items():
        if isinstance(value, dict):
            lines += [f"[{prefix}{key}]", _toml(value, f"{prefix}{key}.")]
    return "\n".join(lines)


@pytest.mark.exhaustive
def test_elasticities_are_those_of_differences_of_the_year_itself():
    """Of each figure of the file, with scenarios and on a cluster."""
    for document in (DOCUMENT, CLUSTERED):
        given = load(document=document)
        found = depends.depends(given, 1 << 26, 1)
        assert isinstance(found, depends.YearlyElasticities)
        assert found.whole.p_any == year(given).p_any
        every = {"p_any": found.elasticities, "incidents": found.of_incidents, "entries": found.of_entries}
        told = {key: value for key, value in found.values.items() if value > 0.0}
        assert not any(found.elasticities[key] for key in found.values.keys() - told.keys())
        for key in told if document is DOCUMENT else [key for key in told if not key.startswith("rates.")]:
            values = [_moved(key, found.values[key], direction) for direction in (1, -1)]
            ends = [year(load(f"{key}={value!r}", document=document)) for value in values]
            for name, of in every.items():
                up, down = (getattr(each, name).value for each in ends)
                slope = math.log(up / down) / math.log(values[0] / values[1])
                assert of[key] == pytest.approx(slope, abs=0.02, rel=0.02), (key, name)


@pytest.mark.exhaustive
def test_what_is_not_known_of_a_scenario_that_loses_little_counts_as_0_and_is_told(capsys):
    """Runs that end at a fixed time have no known elasticities; an outage's p_lost is a figure of the cluster."""
    for per_year, is_little in (1e-4, True), (0.5, False):
        failover = {**CLUSTERED["scenarios"]["failover"], "per_year": per_year, "run": {"horizon": 10.0}}
        document = {**CLUSTERED, "scenarios": {"failover": failover}, "run": {"runs": 2000}}
        found = depends.depends(build_experiment(document, "x.toml"), 1 << 26, 1)
        assert depends.as_json(found)["elasticities_taken_as_0"] == ["failover"] * is_little
        assert (found.elasticities["cluster.events.power_outage.p_lost"] is not None) == is_little
        show_sensitivity.print_sensitivity(found, console())
        said = "depends on some figures is not known, and counts as 0.\n" in capsys.readouterr().out
        assert said == is_little


def test_a_scenario_weighs_what_a_deeper_head_knows_of_it(monkeypatch):
    given = load()
    narrow = depends.depends(given, 1 << 26, 1)

    def widened(*asked):
        found = whole.whole_year(*asked)
        wide = {
            name: {**row, "p": 3 * row["p"], "low": 0.0, "high": 6 * row["p"]} for name, row in found.scenarios.items()
        }
        return found._replace(scenarios=wide)

    monkeypatch.setattr(depends, "whole_of", widened)
    found = depends.depends(given, 1 << 26, 1)
    assert isinstance(narrow, depends.YearlyElasticities)
    assert isinstance(found, depends.YearlyElasticities)
    assert (found.elasticities, found.of_incidents) == (narrow.elasticities, narrow.of_incidents)

    def counted(*asked):
        return solved(*asked)._replace(confidence=0.95)

    solved = sensitivity.sensitivity
    monkeypatch.setattr(sensitivity, "sensitivity", counted)
    found = depends.depends(given, 1 << 26, 1)
    assert isinstance(found, depends.YearlyElasticities)
    assert found.of_incidents != narrow.of_incidents  # other runs than the year's own tell no more of it


def _moved(key: str, value: float, direction: int) -> float:
    return int(value) + direction if key == "cluster.nodes" else value * 1.05**direction


def test_words_of_the_cluster_say_how_often_and_how_many():
    more = {"racked": {"per_year": "events.rack_outage", "hits": "rack_ledgers", "incident": True}}
    more["node"] = {"per_year": "node_losses", "hits": "node_entries", "incident": True, "message_loss": 0.02}
    document = {**CLUSTERED, "scenarios": {**CLUSTERED["scenarios"], **more}}
    given = load(document=document)
    racked, node = (given.scenarios[name].event(given.clusters[0]) for name in more)
    assert racked.per_year == 1.5  # of each of three racks
    assert racked.hits == pytest.approx(300 * (1 - (8 * 7) / (12 * 11)))  # both copies elsewhere
    assert (node.per_year, node.hits) == pytest.approx((0.6, 30_000 * 2 / 12))
    with pytest.raises(ConfigError, match=r'scenarios.racked.per_year = "events.flood": there is no \[cluster.events'):
        load("scenarios.racked.per_year=events.flood", document=document)
    with pytest.raises(ConfigError, match=r'scenarios.calm.hits = "ledgers": needs \[cluster\]'):
        load("scenarios.calm.hits=ledgers")
    often = load('scenarios.calm.per_year="2 / s"').scenarios["calm"].event(None).per_year
    assert often == pytest.approx(2 * 31_557_600)


def test_variants_are_compared_by_their_years():
    each = compare.one_by_one(load, ["persist_cursor_before_delete=false,true"])
    found = {label: year(one) for label, one in each.items()}
    told = whole.by_variant(found)
    [pair] = told["pairs"]
    assert (pair["difference"], pair["high"]) == (-year(load()).p_any.value, -year(load()).p_any.low)
    assert told["p_any_loss_per_year"]["p"] == -pair["difference"]
    assert list(told["expected_entries_by_variant"]) == list(found)


@pytest.mark.parametrize(("high", "is_said"), [(6.0, True), (75.0, False)])
def test_variants_are_named_of_which_one_loses_less_often_and_the_other_less(high, is_said):
    rare, few = YearFigure(1e-3, 1e-3, 1e-3, "exact"), YearFigure(5.0, 5.0, 5.0, "exact")
    year = whole.Whole("", rare, rare, few, {}, {}, {}, 0.95)
    other = year._replace(p_any=YearFigure(4e-4, 3e-4, 5e-4, ""), entries=YearFigure(80.0, 70.0, 90.0, ""))
    third = year._replace(p_any=YearFigure(9e-4, 8e-4, 1e-3, ""), entries=YearFigure(9.0, 8.0, 10.0, ""))
    said = io.StringIO()
    found = {"WQ 4": year._replace(entries=YearFigure(5.0, 4.0, high, "")), "WQ 3": other, "WQ 5": third}
    show_year.variants(found, Console(file=said, width=200))
    assert (
        "WQ 3 loses anything less often than WQ 4, but more on average: 80 a year against 5.\n" in said.getvalue()
    ) == is_said
    assert ("P(any loss) and losses a year disagree on 1 other pair as well." in said.getvalue()) == is_said


def test_a_year_is_a_function_too():
    found = quorisk.year(DOCUMENT, solve=True)
    assert found.found.p_any == year(load()).p_any
    frame = found.frame()
    assert list(frame["scenario"]) == ["calm", "storm", "each"]
    assert frame["losses_per_year"].sum() == pytest.approx(found.as_json()["losses_per_year"]["p"])
    assert "P(any loss in a year)" in found._repr_html_()
