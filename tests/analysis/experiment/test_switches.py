"""A file that sets how often a fault happens, while that fault is off, is told so; with --strict it is refused."""

from pathlib import Path

import pytest

from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.switches import idle
from tests.support import ROOT

FILE = """
protocol = "bookkeeper"
[model]
bookies = 2
clients = 1
write_quorum = 2
ack_quorum = 2
entries = 1
inflight = 1
[rates]
bookie_restarts_empty = 1e-3
bookie_is_lost = 1e-3
[faults]
max_lost = 1
[run]
runs = 100
"""
OFF = "rates.bookie_restarts_empty (faults.max_empty_restarts = 0)"
STARTERS = sorted((ROOT / "configs" / "starters").glob("*.toml"))


@pytest.fixture
def file(written):
    return written("mine.toml", FILE)


def said(file: Path, *overrides: str) -> list[str]:
    return idle(config.load(file, overrides))


def test_a_rate_whose_bound_is_0_is_told(file):
    assert said(file) == [OFF]
    assert said(file, "max_empty_restarts=0") == [OFF]
    assert said(file, "max_empty_restarts=1") == []
    assert said(file, "bookie_restarts_empty=0") == []
    assert said(file, "grid.max_empty_restarts=[0, 1]") == [], "a grid that switches it on somewhere"
    assert said(file, "p_lost_in_outage=0.01") == [OFF, "faults.p_lost_in_outage (faults.max_outages = 0)"]
    assert said(file, "max_empty_restarts=1", "client_starts_recovery=2") == [
        "rates.client_starts_recovery (model.clients = 1)"
    ]
    both = said(file, "max_empty_restarts=1", "rack_restarts_empty=2")
    assert both == ["rates.rack_restarts_empty (model.racks = 0)"]
    assert said(file, "max_empty_restarts=1", "bookie_flushes=2") == [
        "rates.bookie_flushes (variant.journal_write = true and variant.journal_sync = true)"
    ]


CLUSTER = """[cluster]
nodes = 20
ledgers = 1e6
entries_per_ledger = 1000
node_loss = 0.02
node_bytes = "24 TB"
repair_bandwidth = "125 MB/s"
racks = 5
[cluster.events.power_outage]
per_year = 0
p_lost = 0
"""


@pytest.mark.parametrize(
    ("key", "value", "switch", "off"),
    [
        ("scatter_width", "4", 'placement="copysets"', 'placement = "random"'),
        ("events.power_outage.p_lost", "0.1", "events.power_outage.per_year=1", "events.power_outage.per_year = 0.0"),
        ("restart_time", "1 h", "restarts=1", "restarts = 0.0"),
        ("service_life", "3 years", "lifetime_shape=2", "lifetime_shape = 1.0"),
        ("disks_per_node", "2", "disk_loss=1", "disk_loss = 0.0"),
        ("batches", "2", "lifetime_shape=2", "lifetime_shape = 1.0"),
    ],
)
def test_what_a_cluster_does_not_use_is_told(file, key, value, switch, off):
    file.write_text(FILE.replace("bookie_restarts_empty = 1e-3\n", "") + CLUSTER)
    assert said(file) == []
    assert said(file, f"cluster.{key}={value}") == [f"cluster.{key} (cluster.{off})"]
    assert said(file, f"cluster.{key}={value}", f"cluster.{switch}") == []
    name = switch.partition("=")[0]
    both = ["random", "copysets"] if name == "placement" else [1, 2] if name == "lifetime_shape" else [0, 1]
    assert said(file, f"cluster.{key}={value}", f"grid.cluster.{name}={both}") == []
    if key.endswith("p_lost"):
        assert said(file, f"cluster.{key}=0") == []


def test_scenarios_are_told_of_their_own_rates(file):
    calm = "[scenarios.calm]\nper_year = 1\nrates.bookie_is_lost = 0.1\n"
    file.write_text(f"{FILE}{calm}[scenarios.storm]\nper_year = 2\nrates.writer_crashes = 1\n")
    storm = "scenarios.storm.rates.writer_crashes (faults.writer_crash = false)"
    assert said(file) == [OFF, storm]
    assert said(file, "scenario=calm") == [OFF]
    assert said(file, "scenarios.storm.faults.writer_crash=true", "scenarios.storm.max_empty_restarts=1") == []


def test_a_profile_s_faults_are_told_unless_the_file_says_that_they_are_off(file):
    file.write_text(FILE.replace("1e-3", '"1 / year"').replace("[model]", 'profile = "bookkeeper_ssd"\n[model]'))
    found = said(file, "max_empty_restarts=1")
    assert "rates.cluster_loses_power (faults.max_outages = 0)" in found
    assert not any("client_starts_recovery" in each for each in found), "no fault"
    assert "rates.cluster_loses_power (faults.max_outages = 0)" not in said(file, "max_outages=0")


def test_a_profile_s_flushes_are_told_where_every_message_is_flushed_unless_the_file_says_so(tmp_path):
    """Kafka's default is not the model's: of a file without the switch nobody would see what it answers."""
    told = "rates.broker_flushes (variant.flush_every_message = true)"
    model = "[model]\nbrokers = 3\nreplication_factor = 3\nmin_isr = 2\nvalues = 1\n"
    (tmp_path / "x.toml").write_text(f'protocol = "kraft"\nprofile = "kafka_kraft"\n{model}')
    assert told in said(tmp_path / "x.toml")
    for stated in ("true", "false"):
        assert told not in said(tmp_path / "x.toml", f"flush_every_message={stated}")


@pytest.mark.parametrize("path", STARTERS, ids=lambda path: path.stem)
def test_starters_set_nothing_that_is_off(path):
    assert said(path) == []


def test_verbs_say_it_in_a_line_and_strict_refuses(quorisk, file):
    line = f"{file}: switched off, so that these change nothing: {OFF}\n"
    for verb in ("exact", "estimate"):
        code, out, err = quorisk(verb, str(file), "--json")
        assert (code, err) == (0, f"note: {line}")
        assert out.startswith("{")
        assert quorisk(verb, str(file), "--strict") == (2, "", f"error: --strict: {line}")
    code, _, err = quorisk("compare", str(file), "--vary", "ack_quorum=1,2", "--strict")
    assert (code, err) == (2, f"error: --strict: {line}")
    assert quorisk("exact", str(file), "--strict", "--set", "max_empty_restarts=1")[0] == 0


@pytest.mark.parametrize(
    "key", ["faults.max_amnesias", "max_amnesias", "grid.max_amnesias", "scenarios.calm.max_amnesias"]
)
def test_a_key_may_be_called_what_it_was_called_before_and_is_told_its_name(file, key):
    file.write_text(f"{FILE}[scenarios.calm]\nper_year = 1\n")
    given = config.load(file, [f"{key}={[1] if 'grid' in key else 1}"])
    assert given.points[0].point.values["max_empty_restarts"] == 1
    assert given.notes == ("max_amnesias is called faults.max_empty_restarts now",)
    file.write_text(FILE.replace("max_lost = 1", "max_amnesias = 1"))
    given = config.load(file)
    assert given.points[0].point.values["max_empty_restarts"] == 1
    assert given.notes == ("max_amnesias is called faults.max_empty_restarts now",)
    assert not config.load(file, ["faults.max_empty_restarts=2"]).points[0].point.values.get("max_amnesias")
