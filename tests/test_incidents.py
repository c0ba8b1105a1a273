"""The museum: each incident's data are lost as it was, and not with what prevented it; files, page and verb agree."""

import json

import pytest
from typer.testing import CliRunner

from quorisk.analysis import incidents
from quorisk.analysis.estimate.estimate import only_point
from quorisk.analysis.experiment import config
from quorisk.analysis.traces import find
from quorisk.command import app
from quorisk.command import main as _  # noqa: F401  # the verbs
from quorisk.kernels.errors import ConfigError
from tests.support import ROOT

MEMORY = 12 << 20
TO_PROVE = {"kafka_isr_of_one": 48 << 20}
"""Memory in which the search of all states proves that what prevented it does."""
QUICK, NAMES = "bookkeeper_wiped_bookie_says_no", incidents.incident_names()
"""Whose counterexample the short tests find, and all."""
SEEDS = {"kafka_zombie_leader": "run.seed=7"}
"""Of runs that soon show what one in half a million does."""
RUNS = "run.runs=200_000"
PAGE = (ROOT / "docs" / "incidents.md").read_text()


def loaded(name, *overrides):
    return config.load(incidents.file_of(name), overrides)


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.exhaustive] * (each != QUICK)) for each in NAMES]
)
def test_an_incident_is_found_as_it_was_and_not_with_what_prevented_it(name):
    experiment = loaded(name, *([SEEDS[name]] if name in SEEDS else []))
    incident, memory = experiment.tables["incident"], TO_PROVE.get(name, MEMORY)
    found = find.of_incident(experiment, memory_bytes=memory)
    assert found.trace, found.reason
    assert incident.invariant in (found.trace.invariant, "data loss")
    prevented = loaded(name, *incident.fixed_by, RUNS)
    shown = [each for each in incident.shown_with if "runs" not in each]
    prevented = prevented._replace(tables={"incident": incident._replace(shown_with=tuple(shown))})
    again = find.of_incident(prevented, memory_bytes=memory)
    if again.trace:  # a search has an outage take disks although that has probability 0 here; runs do not
        wanted = find.wanted_invariants(prevented.model, incident.invariant)
        runs = range(prevented.run.runs)
        again = find.find_in_runs(prevented.model, only_point(prevented), wanted, prevented.run.seed, runs, None)
    assert again.trace is None
    assert again.proved or name not in TO_PROVE


@pytest.mark.parametrize("name", incidents.incident_names())
def test_a_probability_has_a_source_or_is_assumed(name):
    """Where the file itself gives a rate or how often something happens, a comment says from where."""
    text = incidents.file_of(name).read_text()
    given = [line for line in text.splitlines() if "error_factor" in line and "error_factor = 1 " not in line]
    assert given
    assert all("#" in line for line in given)
    assert loaded(name).profile or "broker_crash" in text


@pytest.mark.parametrize("name", incidents.incident_names())
def test_the_page_tells_it_with_its_diagram_and_figures(name):
    incident = loaded(name).tables["incident"]
    assert f"## {incident.title}\n" in PAGE
    assert incident.mechanism in PAGE
    assert (ROOT / "docs" / "gallery" / "incidents" / f"{name}.svg").exists()
    figures = json.loads((ROOT / "docs" / "gallery" / "incidents" / "figures.json").read_text())
    was, prevented = figures[name]
    assert was["p"] > 0
    assert was["low"] > 0
    assert prevented["p"] < was["low"]
    assert prevented["high"] < was["high"]


def test_the_verb_lists_and_tells():
    listed = CliRunner().invoke(app.app, ["incidents"])
    assert listed.exit_code == 0
    assert all(name in listed.output for name in incidents.incident_names())
    told = CliRunner().invoke(app.app, ["incidents", "kafka_last_replica_standing"])
    assert told.exit_code == 0
    assert "How the model does it" in told.output
    assert "Prevented by: eligible leader replicas" in told.output
    with pytest.raises(ConfigError, match="incidents nope: one of bookkeeper_"):
        CliRunner().invoke(app.app, ["incidents", "nope"], catch_exceptions=False)


GOOD = (incidents.FOLDER / "kafka_acks_1.toml").read_text()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "', 'titel = "', "incident.titel: no such key; .incident. has title, happened"),
        ('mechanism = "', 'mechanism = "" #', 'incident.mechanism = "": a text, and not empty'),
        ('sources = ["', 'sources = "" #', 'incident.sources = "": a list of texts'),
        (
            'invariant = "data loss"',
            'invariant = "Nope"',
            'incident.invariant = "Nope": one of AckedRecords',
        ),
        ('invariant = "data loss"\n', "", "incident.invariant: missing"),
    ],
)
def test_what_a_table_cannot_say(written, old, new, said):
    assert old in GOOD
    file = written("story.toml", GOOD.replace(old, new))
    with pytest.raises(ConfigError, match=said):
        config.load(file)
