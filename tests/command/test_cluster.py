"""`quorisk cluster`: what it prints, of one design and of several, and its JSON."""

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from quorisk import cluster
from quorisk.analysis.cluster.availability import RackDown
from quorisk.analysis.cluster.figures import Size
from quorisk.command import show_cluster
from quorisk.say import numbers
from tests.analysis.experiment.files import BOOKKEEPER
from tests.analysis.experiment.test_cluster import CLUSTER
from tests.support import ROOT


@pytest.fixture
def on_a_cluster(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        BOOKKEEPER.replace("ack_quorum = 2", "ack_quorum = 3") + CLUSTER + "[run]\nruns = 20000\nseed = 3\n"
    )
    return str(path)


def test_one_design(printed, on_a_cluster):
    out = printed("cluster", on_a_cluster, "--set", "restarts=26", "--set", "restart_time=2 min")
    assert out.startswith("P(any loss in a year) 4.42 × 10⁻⁴ [4.4")
    assert "], once in 2,260 years; strata\nLost at once: 88" in out
    assert "│ P(any loss in a year)    │ 4.42 × 10⁻⁴ │" in out
    assert "What took the last copy: power outage (99.4%), a node lost alone after an event (0.57" in out
    assert "100,000 entries once in 2,270 years; 1,000,000 entries once in" in out
    assert (
        "Ledgers that cannot be closed, as nodes do not answer: 1.2 × 10⁻⁶ on average at any time, each for 43 s."
        in out
    )


def test_one_entry_is_one(quorisk):
    design = ("--set", "cluster.nodes=20", "--set", "write_quorum=4", "--set", "ack_quorum=1")
    out = quorisk("cluster", str(ROOT / "configs" / "cluster.toml"), *design)[1]
    assert "\nLost at once: 1 entry (median).\n" in out


def test_json(quorisk, on_a_cluster):
    code, out, _ = quorisk("cluster", on_a_cluster, "--json", "--threads", "1")
    told = json.loads(out)
    assert code == 0
    p_any = told["p_any_loss_per_year"]
    assert p_any["low"] <= 4.4206e-4 <= p_any["high"]
    assert (p_any["method"], told["incident_entries"]["p50"]) == ("strata", pytest.approx(880_000, rel=0.01))
    assert quorisk("cluster", on_a_cluster, "--json", "--threads", "2")[1] == out


def test_several_designs(quorisk, on_a_cluster):
    grid = ("--set", "grid.cluster.nodes=[20, 100]", "--set", "grid.events.power_outage.per_year=[1, 2]")
    code, out, _ = quorisk("cluster", on_a_cluster, *grid)
    assert code == 0
    assert (out.count("│ nodes 20, power"), out.count("│ nodes 100, power")) == (2, 2)
    assert not re.search("× *│", out)  # no number continues on the next line
    [said] = [line for line in out.splitlines() if "loses anything less often than" in line]
    rarer, fewer = said.split(" loses anything less often than ")
    assert rarer == "nodes 20, power outage per year 2"  # there, fewer sets of nodes hold all copies of anything
    assert fewer.startswith("nodes 100, power outage per year 1, but more on average: ")
    designs = json.loads(quorisk("cluster", on_a_cluster, "--json", *grid)[1])["designs"]
    assert [each["design"] for each in designs][1] == {"cluster.nodes": 20, "cluster.events.power_outage.per_year": 2.0}


def test_rates_of_designs_have_units_and_what_is_assumed_of_one_design_is_said_of_that_one(quorisk):
    code, out, _ = quorisk("cluster", str(ROOT / "configs" / "kafka_cluster.toml"))
    assert code == 0
    assert "│ broker flushes 1 / 30 s │" in out
    assert "With broker flushes 1 / 30 s: at any time 3 × 10⁵ acknowledged entries are not on disk" in out
    assert out.count("Nodes are lost at a constant rate") == out.count("\n- Nodes are lost") == 1


def test_nothing_seen_is_a_bound(quorisk, on_a_cluster):
    settings = ("--set", "events.power_outage.per_year=0", "--set", "method=count")
    code, out, _ = quorisk("cluster", on_a_cluster, *settings)
    assert code == 0
    assert out.startswith("P(any loss in a year) < 5.")
    assert "P(any loss in a year)    │ < 5." in out
    assert "By 20,000 years of the cluster drawn at random; intervals hold with 95% confidence each.\n" in out


@pytest.mark.parametrize(("runs", "bounded"), [(100, False), (20_000, True)])
def test_few_incidents_bound_no_quantile_from_above(quorisk, on_a_cluster, runs, bounded):
    settings = ("--set", "events.power_outage.p_lost=0.1", "--set", "method=count", "--set", f"runs={runs}")
    code, out, _ = quorisk("cluster", on_a_cluster, *settings)
    assert code == 0
    assert "an incident loses" in out
    assert "95% confidence each. The one of entries lost a year takes the largest incident that was drawn" in out
    assert ("Too few incidents were drawn to tell how large" in out) != bounded


def test_a_file_without_a_cluster(refused, written):
    path = written("mine.toml", BOOKKEEPER)
    assert refused("cluster", str(path)) == f"{path}: [cluster]: missing; see docs/cluster.md"


def test_in_python(on_a_cluster):
    found = cluster(on_a_cluster, {"cluster.nodes": 100})
    [frame] = found.frame().to_dict("records")
    assert frame["p_any_low"] <= frame["p_any"] <= frame["p_any_high"]
    assert frame["p_any"] == found.designs[0].losses.p_any.value == found.as_json()["p_any_loss_per_year"]["p"]
    assert "P(any loss in a year)" in found._repr_html_()
    assert repr(found).startswith("<Incidents: P(any loss in a year) 0.03")


def test_sizes_are_said_to_be_of_the_cluster_s_own_incidents(quorisk, on_a_cluster):
    """Beside a scenario whose incidents take an entry each."""
    scenario = "[scenarios.takeover]\nper_year = 5e-4\nincident = true\nfaults.max_lost = 3\nauto_recovery = false\n"
    scenario += 'rates.bookie_is_lost = "1 / min"\nrun.lifetime = "10 days"\n'
    Path(on_a_cluster).write_text(Path(on_a_cluster).read_text() + scenario)
    answered = cluster(on_a_cluster)
    found = answered.as_json()
    own = sum(each["share"] for cause, each in found["causes"].items() if cause != "takeover")
    assert found["share_with_sizes"] == pytest.approx(own)
    out = quorisk("cluster", on_a_cluster)[1]
    of = f", in incidents of the cluster ({numbers.share(own)} of all): "
    assert f"Lost at once{of}88" in out
    assert "┃ an incident of the cluster loses ┃" in out
    assert f"So much at once, or more{of}" in out
    console = Console(width=200, record=True, file=io.StringIO())
    show_cluster.print_clusters(2 * list(answered.designs), 0.95, console)
    assert "(cluster alone)" in console.export_text()


def test_a_cause_without_a_trace_is_said_to_have_none(quorisk, printed, on_a_cluster):
    out = quorisk("trace", on_a_cluster, "--memory", "1MiB")[1]
    assert "The likeliest incident (99.4% of them): power outage. It has no trace of its own. For one entry:" in out
    scenarios = "".join(
        f"[scenarios.{name}]\nper_year = 1e-9\nincident = true\nfaults.max_lost = {most}\nauto_recovery = false\n"
        'rates.bookie_is_lost = "1 / min"\nrun.lifetime = "10 days"\n'
        for name, most in {"first": 1, "second": 3}.items()
    )
    Path(on_a_cluster).write_text(Path(on_a_cluster).read_text() + scenarios)
    out = printed("trace", on_a_cluster)
    assert "power outage. Shown for one entry in scenario second:" in out


def test_of_what_was_drawn_too_seldom_only_is_said_what_it_is_at_most():
    at_least = {1.0: Size(1e-3, 0.9e-3, 1.1e-3), 10.0: Size(1e-6, 0.6e-6, 3e-6), 100.0: Size(1e-8, 0.0, 1e-6)}
    found: Any = SimpleNamespace(losses=SimpleNamespace(at_least=at_least | {1000.0: Size(0.0, 0.0, 1e-6)}))
    assert show_cluster._at_least(found) == (
        "1 entry once in 1,000 years; 10 entries once in 1 × 10⁶ years; 100 entries less than once in 1 × 10⁶ years"
    )


@pytest.mark.parametrize(
    ("down", "said"),
    [
        ((0.0, 0.0, 0.0, True), "all ledgers can be read; all can be closed; all take writes."),
        ((0.0, None, 0.5, False), "all ledgers can be read; 50% of ledgers take no writes as long as it lasts."),
    ],
)
def test_what_a_rack_that_is_down_takes_is_said_in_a_line(down, said):
    assert show_cluster._rack_down(RackDown(*down)) == f"While one rack is down: {said}"


def test_a_year_is_not_of_one_scenario(quorisk):
    """recommend and cluster say in a line where to ask about one."""
    pulsar = str(ROOT / "configs" / "pulsar.toml")
    for verb in ("recommend", "cluster"):
        code, out, err = quorisk(verb, pulsar, "--scenario", "failover")
        assert (code, out) == (2, "")
        said = f"ask `quorisk estimate {pulsar} --scenario failover` about one design"
        assert err.splitlines()[-1].endswith(f"by a whole year, of which one scenario is a part; {said}")
