"""Writes that stop: beside each design, as a target, and never silently of a choice or a runner-up."""

import json
import math
from typing import Any

import pytest

from quorisk.analysis.decision.recommend import advise, as_json
from quorisk.analysis.decision.summary import summary
from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.experiment.config import build_experiment
from quorisk.kernels.errors import ConfigError
from quorisk.say.quantities import YEAR_S

AWAY = 12 * 300 / YEAR_S
CLUSTER = {
    "nodes": 30,
    "ledgers": 100,
    "entries_per_ledger": 1000,
    "node_bytes": "1 GB",
    "repair_bandwidth": "100 MB/s",
    "restarts": 12,
    "restart_time": "5 min",
}


def advice(targets: dict[str, Any], cluster: dict[str, Any] | None = CLUSTER, **grid: list[int]) -> Any:
    """Three replicas on 30 brokers, each restarted monthly."""
    document = {
        "protocol": "kraft",
        "profile": "kafka_kraft",
        "model": {"brokers": 3, "replication_factor": 3, "values": 1},
        "variant": {"flush_every_message": True},
        "grid": grid,
        "targets": targets,
    }
    return advise(build_experiment(document | ({"cluster": cluster} if cluster else {}), "x.toml"), Weigher(1 << 26, 1))


def test_a_design_that_stops_at_any_restart_is_no_silent_runner_up():
    found = advice({"p_any_loss_per_year": 0.5}, min_isr=[2, 3])
    told = {each["design"]: each for each in json.loads(json.dumps(as_json(found)))["designs"]}
    assert found.designs[0].is_tied(found.designs[1])
    first, second = (told[each.settings] for each in found.choice)
    assert [each["writes_stop"]["node"] for each in (first, second)] == [0.0, 0.1]
    minutes = [each["write_minutes_lost_per_year"] for each in (first, second)]
    two, three = 3 * AWAY**2 - 2 * AWAY**3, 1 - (1 - AWAY) ** 3
    assert minutes == pytest.approx([each * YEAR_S / 60 for each in (two, three)], rel=1e-3)
    stops = "Any restart stops writes: 10% of the data takes none while one broker is down."
    assert f"Of the runner-up: {stops[0].lower()}{stops[1:]}" in found.words.sentences
    first_screen = dict(summary(found.designs, found.target, found.doubt).facts)
    assert first_screen["runner-up"].endswith(", a tie in losses; any restart stops its writes")
    assert "writes" not in first_screen
    alone = advice({"p_any_loss_per_year": 0.5}, min_isr=[3])
    assert stops in alone.words.sentences
    assert dict(summary(alone.designs, alone.target, alone.doubt).facts)["writes"] == stops
    assert any("takes no writes for 180 minutes a year" in each for each in found.words.sentences)


def test_minutes_without_writes_are_a_target():
    found = advice({"p_any_loss_per_year": 0.5, "write_minutes_lost_per_year": 60}, min_isr=[2, 3])
    assert len(found.choice) == 1
    [short] = [each.shortfalls() for each in found.designs if each.shortfalls()]
    assert short == ["180 minutes a year without writes"]
    assert "at most 60 minutes a year without writes" in found.words.headline + " ".join(found.words.sentences)
    with pytest.raises(ConfigError, match=r"targets\.write_minutes_lost_per_year: needs \[cluster\]"):
        advice({"write_minutes_lost_per_year": 60}, None, min_isr=[2])


def test_minutes_that_nobody_knows_meet_no_target():
    """BookKeeper's writers wait for as long as the rates say, which have no units here."""
    model = {"bookies": 4, "clients": 1, "write_quorum": 3, "ack_quorum": 3, "entries": 1, "inflight": 1}
    targets = {"p_any_loss_per_year": 0.5, "write_minutes_lost_per_year": 60}
    document = {"protocol": "bookkeeper", "model": model, "cluster": CLUSTER, "targets": targets}
    found = advise(build_experiment(document, "x.toml"), Weigher(1 << 26, 1))
    assert found.designs[0].worst["write_minutes_lost_per_year"] == math.inf
    assert found.designs[0].shortfalls() == ["nobody knows how many minutes a year without writes"]
    assert as_json(found)["designs"][0]["write_minutes_lost_per_year"] is None
    known = advise(build_experiment(document | {"profile": "bookkeeper_ssd"}, "x.toml"), Weigher(1 << 26, 1))
    assert known.designs[0].worst["write_minutes_lost_per_year"] == pytest.approx(3 * 12 * 5 / 60, rel=1e-3)
    assert not known.designs[0].shortfalls()
    assert not any("Any restart" in each for each in known.words.sentences)  # another bookie takes the place


def test_writes_that_wait_for_other_bookies_while_a_rack_is_down_are_told():
    """45 bookies in three racks, each write set in two of them."""
    cluster = {"nodes": 45, "racks": 3, "placement": "two_racks", "ledgers": 100, "entries_per_ledger": 1000}
    cluster |= {"node_bytes": "1 GB", "repair_bandwidth": "100 MB/s", "node_loss": "2 % / year"}
    model = {"bookies": 4, "clients": 1, "write_quorum": 3, "ack_quorum": 3, "entries": 1, "inflight": 1}
    document = {"protocol": "bookkeeper", "model": model, "cluster": cluster, "targets": {"p_any_loss_per_year": 0.5}}
    [design] = advise(build_experiment(document, "x.toml"), Weigher(1 << 26, 1)).designs
    share = 1 - (math.comb(30, 3) - 2 * math.comb(15, 3)) / (math.comb(45, 3) - 3 * math.comb(15, 3))
    assert design.worst["pauses_with_rack"] == pytest.approx(share, rel=1e-6)
    assert design.writes_stop()[0].startswith("When a rack goes down, writes of ")
