"""Clusters on Spark: the same answers as without it, whatever was cut, interrupted or merged."""

import json

import pytest

from quorisk.analysis.cluster import answer, rows
from quorisk.analysis.experiment import config
from quorisk.kernels.errors import ConfigError
from quorisk.sparkjobs import clusters, folder, plan

FILE = """
protocol = "bookkeeper"

[model]
bookies = 3
clients = 1
entries = 1
inflight = 1

[cluster]
nodes = 6
ledgers = 50
entries_per_ledger = 10
node_loss = "200 % / year"
detection_delay = "2 days"
node_bytes = "1 TB"
repair_bandwidth = "100 MB/s"

[grid]
write_quorum = [2, 3]
"cluster.lifetime_shape" = [1.0, 2.0]
where = ["ack_quorum == write_quorum"]
ack_quorum = [2, 3]

[run]
runs = 600
seed = 3
method = "head"
"""


@pytest.fixture
def load(written, spark, monkeypatch):
    """Loads the file, with overrides; its tasks are so short that there are many."""
    monkeypatch.setattr(plan, "SHORTEST_S", 1e-9)
    path = written("clusters.toml", FILE)
    return lambda *overrides: config.load(path, overrides)


def here(experiment):
    """What `quorisk cluster` says without Spark."""
    placed = answer.placed_designs(experiment)
    return json.loads(json.dumps(answer.as_json(answer.answers(placed, answer.effort_of(experiment, 1)))))


def said(out):
    return json.loads((out / clusters.ANSWERS).read_text())


@pytest.mark.exhaustive
def test_spark_says_what_is_said_without_it_and_its_years_add_up(load, tmp_path):
    ended: list[int] = []
    experiment = load()
    clusters.clusters(experiment, tmp_path / "out", progress=ended.append)
    assert said(tmp_path / "out") == here(experiment)
    assert sum(ended) == 4 * 600
    assert len(clusters._read(tmp_path / "out")) > 10
    half = {first: tmp_path / f"from_{first}" for first in (0, 300)}
    for first, out in half.items():
        clusters.clusters(load(f"run.first_run={first}", "run.runs=300"), out)
    clusters.union_of_years(list(half.values()), tmp_path / "both")
    assert said(tmp_path / "both") == here(experiment)


@pytest.mark.exhaustive
def test_what_was_interrupted_goes_on_and_what_is_of_others_is_refused(load, tmp_path):
    experiment, out = load("write_quorum=2", "ack_quorum=2"), tmp_path / "out"
    clusters.clusters(experiment, out)
    whole = (out / clusters.ANSWERS).read_bytes()
    there = clusters._read(out)
    assert len(there) > 10
    for path in (*(out / folder.YEARS).iterdir(), out / clusters.ANSWERS):
        path.unlink()
    folder.append(out / folder.YEARS, there[1::3], rows.SCHEMA)
    with pytest.raises(ConfigError, match="`resume` keeps them"):
        clusters.clusters(experiment, out)
    for changed in (load("write_quorum=2", "ack_quorum=2", "run.seed=4"), load("write_quorum=3", "ack_quorum=3")):
        with pytest.raises(ConfigError, match="another cluster or seed"):
            clusters.clusters(changed, out, resume=True)
    with pytest.raises(ConfigError, match="can be added, but not removed"):
        clusters.clusters(experiment.changed("run.runs=100"), out, resume=True)
    with pytest.raises(ConfigError, match="holds years of clusters"):
        folder.check_free(out)
    clusters.clusters(experiment, out, resume=True)
    assert (out / clusters.ANSWERS).read_bytes() == whole
    assert len(list((out / folder.YEARS).iterdir())) > 1


def test_a_damaged_file_is_told_and_nothing_is_read_of_it(load, tmp_path):
    few = load("write_quorum=2", "ack_quorum=2", "cluster.lifetime_shape=2.0", "run.runs=50")
    experiment, out = few, tmp_path / "out"
    clusters.clusters(experiment, out)
    damaged = next((out / folder.YEARS).iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    with pytest.raises(ConfigError, match=f"{damaged.name}.*delete this file"):
        clusters.clusters(experiment, out, resume=True)
