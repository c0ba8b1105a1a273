"""The documentation points at what is there: links, files, and options of the command."""

import doctest
import importlib
import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from quorisk.analysis.cluster import answer
from quorisk.analysis.estimate.estimate import estimate
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment.cluster import cluster_keys
from quorisk.analysis.experiment.config import load
from quorisk.command import app
from quorisk.command import main as _  # noqa: F401  # the verbs
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.protocols import registry
from quorisk.say import numbers
from tests import doc_tables
from tests.support import ROOT

PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
ROOMS = ("kernels", "analysis", "sparkjobs", "plots", "say", "quorisk")
SOURCES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
LINK = re.compile(r"\]\(([^)#\s]+)\)")
CODE_PATH = re.compile(r"`((?:kernels|analysis|sparkjobs|plots|quorisk|configs|scripts|tests|docs)/[\w./]+)`")
COMMAND = re.compile(r"^    (?:\.venv/bin/)?quorisk (\w+)(.*)", re.MULTILINE)


@pytest.mark.parametrize("path", [path for path in SOURCES if ">>> " in path.read_text()], ids=lambda path: path.stem)
def test_examples_in_docstrings_are_right(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    module = importlib.import_module(".".join(("quorisk", *parts)) if parts[0] != "quorisk" else ".".join(parts))
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_paths_lead_somewhere(page):
    text = page.read_text()
    links = [link for link in LINK.findall(text) if "://" not in link]
    missing = [link for link in links if not (page.parent / link).exists()]
    missing += [path for path in CODE_PATH.findall(text) if not (ROOT / path).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_have_the_options_that_are_shown(page):
    for verb, rest in COMMAND.findall(page.read_text()):
        help_text = CliRunner().invoke(app.app, [verb, "--help"]).output
        assert "Usage" in help_text, verb
        unknown = [
            option for option in re.findall(r"(?<!\S)--[a-z-]+", rest.partition("#")[0]) if option not in help_text
        ]
        assert not unknown, (verb, unknown)


@pytest.mark.parametrize(
    ("name", "cluster"),
    [
        ("kraft", "Kafka"),
        ("kafka", "Kafka"),
        ("bookkeeper", "BookKeeper, Pulsar"),
        ("raft", "etcd, Redpanda, JetStream"),
    ],
)
def test_settings_are_those_of_the_protocols_and_their_keys_exist(name, cluster):
    model, settings = registry.load(name), registry.settings(name)
    assert doc_tables.of_settings(settings, cluster) in (ROOT / "docs" / "settings.md").read_text()
    keys = {f"{p.table}.{p.name}" for p in model.parameters} | {f"rates.{action.name}" for action in model.actions}
    named = {key for each in settings for key in re.findall(r"`(\w+\.\w+)`", each.key)}
    assert named
    assert named <= keys | {f"faults.{each.name}" for each in model.probabilities} | {"latency.cut_ms", *cluster_keys()}


@pytest.mark.parametrize("malformed", ['[[settings]]\nname = "acks"\n', "settings = "])
def test_malformed_settings_of_a_protocol_are_named(malformed, tmp_path, monkeypatch):
    (tmp_path / "settings.toml").write_text(malformed)
    monkeypatch.setattr(registry, "_part", lambda *given: str(tmp_path / "__init__.py"))
    with pytest.raises(ConfigError, match=r"protocol = 'ours': .*settings\.toml: "):
        registry.settings("ours")


@pytest.mark.parametrize(("name", "cluster"), [("kraft", "Kafka"), ("bookkeeper", "BookKeeper")])
def test_settings_are_listed_the_other_way_too(name, cluster):
    page = (ROOT / "docs" / "settings.md").read_text()
    assert doc_tables.of_parameters(registry.settings(name), registry.load(name), cluster) in page


def test_the_page_of_rates_has_the_metrics_that_are_read_and_the_keys_that_follow():
    page = (ROOT / "docs" / "rates.md").read_text()
    assert doc_tables.of_metrics() in page
    assert doc_tables.of_evidence({name: registry.evidence(name) for name in ("bookkeeper", "kraft", "kafka")}) in page


@pytest.mark.parametrize("name", registry.own())
def test_rates_are_listed_with_what_they_count(name):
    assert doc_tables.of_rates(registry.load(name)) in (ROOT / "docs" / "actions.md").read_text()


@pytest.mark.exhaustive
def test_what_a_cluster_of_kafka_loses_is_what_the_page_says():
    page = (ROOT / "docs" / "kafka.md").read_text()
    given = load(ROOT / "configs" / "kafka_cluster.toml")
    flushed = given.changed("flush_every_message=true", "rates.broker_flushes=1 / s")
    for each in (*answer.placed_designs(given), *answer.placed_designs(flushed)):
        losses = answer.answer(each, answer.effort_of(given, 1)).losses
        p_any, sizes = losses.p_any, [numbers.in_full(losses.in_entries[name].value) for name in ("p50", "p99")]
        said = f"| {numbers.plain(p_any.value)} {numbers.in_brackets(p_any.low, p_any.high)} | "
        assert said + (", ".join(sizes) if each.unflushed else f"{sizes[0]} (") in page


@pytest.mark.exhaustive
def test_how_often_acks_1_loses_records_in_a_year_is_what_the_page_says(tmp_path):
    """Incidents are events, times P that any of the partitions that one hits loses something itself."""
    path, size = tmp_path / "mine.toml", ["--brokers", "30", "--zones", "3", "--partitions", "12000"]
    size += ["--entries-per-second", "10000", "--retention", "3 days", "--topics", "3/1/1", "--out", str(path)]
    assert CliRunner().invoke(app.app, ["init", "kraft", *size]).exit_code == 0
    incidents = []
    for scenario in ("broker_restarts", "broker_crashes", "leader_cut_off"):
        experiment = load(path, [f"run.scenario={scenario}", "min.insync.replicas=1", "acks=1"])
        event = experiment.scenarios[scenario].event(experiment.clusters[0])
        p = exact(experiment, 2**30, data_loss_alone=True).data_loss.p
        incidents.append(event.per_year * (1.0 - (1.0 - p) ** event.hits))
    restarts, crashes, cut_off = incidents
    page = (ROOT / "docs" / "kafka.md").read_text()
    said = f"{sum(incidents):.0f} incidents a year: {restarts:.0f} of 360 restarts and {crashes:.0f} of 95 crashes, "
    assert said in page
    assert f"and {cut_off:.0f} leaders that are cut off" in page


@pytest.mark.parametrize(
    ("write_quorum", "ack_quorum", "said"),
    [
        (4, 1, "WQ 4 / AQ 1 loses something with {p:.1e} a year"),
        (4, 4, "WQ 4 / AQ 4 with {p:.1e}"),
        (3, 3, '"WQ 3 loses {entries:.0f} entries a year"'),
        (3, 3, "once in {years:,.0f} years"),
    ],
)
def test_what_a_cluster_of_bookies_loses_is_what_the_page_says(write_quorum, ack_quorum, said):
    page = (ROOT / "docs" / "cluster.md").read_text().replace("\n", " ")
    quorums = f"write_quorum={write_quorum}", f"ack_quorum={ack_quorum}"
    given = load(ROOT / "configs" / "cluster.toml", ["cluster.nodes=20", *quorums])
    losses = answer.answer(given.clusters[0], answer.effort_of(given, 1)).losses
    years = float(f"{1 / losses.incidents.value:.3g}")
    told = said.format(p=losses.p_any.value, entries=losses.entries.value, years=years)
    assert told.replace("e-0", "e-") in page


def test_a_protocol_need_not_say_which_settings_it_has():
    assert registry.settings("compaction") == ()
    assert registry.evidence("compaction") == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "invariant", "runs"),
    [
        ("defect1", "NoDivergenceBetweenClientAndMetaData", 600),
        ("defect2", "OnlyValidFragments", 220),
        ("defect2", "NoDivergenceBetweenClientAndMetaData", 1000),
        ("defect3", "NoDivergenceBetweenClientAndMetaData", 1400),
        ("defect3", "AllCommittedEntriesReachAckQuorum", 3500),
    ],
)
def test_a_defect_breaks_an_invariant_as_often_as_its_file_says(name, invariant, runs):
    file = ROOT / "configs" / f"{name}.toml"
    assert re.search(rf"(run|one) of {runs}\b", file.read_text())
    found = estimate(load(file, ["run.runs=2_000_000", "run.method=count"]), 2)
    assert found.invariants[invariant].p == pytest.approx(1 / runs, rel=0.1)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("target", "code"), [(0.99, 0), (1e-9, 3)])
def test_the_workflow_for_pull_requests_runs_as_it_is_written(tmp_path, target, code):
    """Its steps, with programs that write down what `pip` and `gh` are asked for."""
    workflow = (ROOT / "docs" / "ci.md").read_text().replace("${{ vars.QUORISK }}", ROOT.as_uri())
    steps = re.findall(r"run: (.+)", workflow.replace("${{ github.event.number }}", "7"))
    programs = {
        "pip": 'echo "$@"',
        "gh": 'echo "$@"; cat comment.md',
        "quorisk": f'exec {sys.executable} -m quorisk "$@"',
    }
    for name, does in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    case = (ROOT / "configs" / "defect1.toml").read_text()
    (tmp_path / "durability.toml").write_text(re.sub(r"(?m)^runs = .*", f"runs = 2000\ntarget = {target}", case))
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    install, ask, post = (
        subprocess.run(
            ["bash", "-ec", step], check=False, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        for step in steps
    )
    assert (install.returncode, install.stdout) == (0, f"install git+{ROOT.as_uri()}\n")
    assert ask.returncode == code, ask.stderr
    assert (tmp_path / "comment.svg").stat().st_size > 1000
    asked, said = post.stdout.split("\n", 1)
    assert asked == "pr comment 7 --edit-last --create-if-none --body-file comment.md"
    assert said.startswith("### Quorisk: ")
    assert said == (tmp_path / "comment.md").read_text()
