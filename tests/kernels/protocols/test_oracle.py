"""Exhaustive search against what the TLC model checker finds on the original specifications."""

import json
from importlib import import_module

import pytest

from quorisk.analysis.experiment.config import build
from quorisk.analysis.explore import explore as analysis_explore
from quorisk.kernels.states.search import explore
from tests.support import ROOT, values_of

ROWS = json.loads((ROOT / "tests" / "data" / "tlc.json").read_text())
MEMORY = 2 << 30


def size_of(text):
    """A TLA+ set literal's cardinality, or a number."""
    return text.count(",") + 1 if text.startswith("{") else int(text)


def bookkeeper(row):
    names = {
        "Bookies": "bookies",
        "Clients": "clients",
        "WriteQuorum": "write_quorum",
        "AckQuorum": "ack_quorum",
        "SendLimit": "entries",
        "InflightLimit": "inflight",
    }
    return {names[key]: size_of(value) for key, value in row["constants"].items()} | row["variant"]


def kafka(row):
    names = {
        "Replicas": "replicas",
        "LogSize": "log_size",
        "MaxRecords": "max_records",
        "MaxLeaderEpoch": "max_leader_epoch",
    }
    truncation = {
        "KafkaTruncateToHighWatermark": "high_watermark",
        "Kip101": "kip101",
        "Kip279": "kip279",
        "Kip320": "kip320",
        "Kip320FirstTry": "kip320_first_try",
    }[row["module"]]
    return {names[key]: size_of(value) for key, value in row["constants"].items()} | {
        "truncation": truncation,
        "track_committed": False,
    }


def compaction(row):
    sizes = {
        "MessageSentLimit": "messages",
        "CompactionTimesLimit": "compactions",
        "KeySpace": "keys",
        "ValueSpace": "values",
        "MaxCrashTimes": "max_crashes",
    }
    switches = {"RetainNullKey": "retain_null_key", "ModelProducer": "model_producer"}
    constants = row["constants"]
    return {name: size_of(constants[key]) for key, name in sizes.items()} | {
        name: constants[key] == "TRUE" for key, name in switches.items()
    }


TRANSLATIONS = {"BookKeeperProtocol": bookkeeper, "compaction": compaction}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_search_finds_what_tlc_finds(row):
    translate = TRANSLATIONS.get(row["module"], kafka)
    model = import_module(f"quorisk.kernels.protocols.{translate.__name__}").MODEL
    found = explore(model, model.make_params(values_of(model, **translate(row))), MEMORY)
    assert found.complete
    assert (found.distinct_states, found.depth) == (row["distinct_states"], row["depth"])
    # invariants that only type-check the spec's variables, which never break, have no counterpart here
    for name, count in row["states_by_first_broken_invariant"].items():
        assert found.first_broken.get(name, 0) == count, name


def test_explore_leaves_history_out_unless_asked():
    """Kafka's `track_committed` adds states that the specification does not have."""
    row = next(row for row in ROWS if row["module"] == "Kip320")
    sizes = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
    asked = build({"protocol": "kafka", "model": sizes | {"track_committed": True}}, "asked.toml")
    silent = build({"protocol": "kafka", "model": sizes}, "silent.toml")
    assert silent.points[0].point.values["track_committed"]
    assert analysis_explore(silent, MEMORY)[0].distinct_states == row["distinct_states"]
    assert analysis_explore(asked, MEMORY)[0].distinct_states > row["distinct_states"]
