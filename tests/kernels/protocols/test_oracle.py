"""Exhaustive search against what the TLC model checker finds on the original specifications."""

import json

import pytest

from quorisk.analysis.experiment.config import build_experiment
from quorisk.analysis.explore import explore as analysis_explore
from quorisk.kernels.protocols import registry
from quorisk.kernels.states.search import explore
from tests.references.tlc_rows import TLC, Tlc
from tests.support import ROOT, values_of

DATA = ROOT / "tests" / "data"
ROWS = [
    row
    for file in sorted(DATA.glob("tlc*.json"))
    for row in json.loads(file.read_text())
    if "max_depth" not in row  # see test_raft.py
]
MEMORY = 2 << 30
NOT_HERE = "EarlierFragmentsReachWriteQuorum"
"""An invariant that TLC and the literal interpreter count alone."""


def value_of(text):
    """A constant as an experiment file has it: a set by the number of its elements."""
    if isinstance(text, str):
        return {"TRUE": True, "FALSE": False}.get(text, text.count(",") + 1 if text.startswith("{") else text)
    return text


def protocol_of(row):
    """The protocol whose model stands for the TLA+ module of a row."""
    stand_for_it = [name for name in registry.names() if row["module"] in translation(name).modules]
    assert len(stand_for_it) == 1, f"{row['module']}: modelled by {stand_for_it or 'no protocol'}"
    return stand_for_it[0]


def translation(name):
    return TLC.get(name) or Tlc({}, {})


def parameters_of(row):
    """The model's parameters that a row means. KeyError for a constant that the protocol's translation lacks."""
    tlc = translation(protocol_of(row))
    constants = {tlc.constants[name]: value_of(text) for name, text in row.get("constants", {}).items()}
    sizes = {name: value if isinstance(value, bool) else int(value) for name, value in constants.items() if name}
    return {
        **sizes,
        **row.get("model", {}),
        **row.get("faults", {}),
        **tlc.modules[row["module"]],
        **(row.get("variant") or {}),
    }


@pytest.mark.sampled(45)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_search_finds_what_tlc_finds(row):
    model = registry.load(protocol_of(row))
    found = explore(model, model.make_params(values_of(model, **parameters_of(row))), MEMORY)
    assert found.complete
    assert (found.distinct_states, found.depth) == (row["distinct_states"], row["depth"])
    # invariants that only type-check the spec's variables, which never break, have no counterpart here
    for kind, states in (
        ("states_by_first_broken_invariant", found.first_broken),
        ("breaking_states", found.breaking_states),
    ):
        for name, count in row.get(kind, {}).items():
            assert name == NOT_HERE or states.get(name, 0) == count, (kind, name)


def test_rows_that_no_protocol_translates_are_refused():
    row = next(row for row in ROWS if row["module"] == "Kip320")
    with pytest.raises(AssertionError, match="Raft: modelled by no protocol"):
        protocol_of(row | {"module": "Raft"})
    with pytest.raises(KeyError, match="Controllers"):
        parameters_of(row | {"constants": row["constants"] | {"Controllers": "3"}})


def test_explore_leaves_history_out_unless_asked():
    """Kafka's `track_committed` adds states that the specification does not have."""
    row = next(row for row in ROWS if row["module"] == "Kip320")
    sizes = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
    asked = build_experiment({"protocol": "kafka", "model": sizes | {"track_committed": True}}, "asked.toml")
    silent = build_experiment({"protocol": "kafka", "model": sizes}, "silent.toml")
    assert silent.points[0].point.values["track_committed"]
    assert analysis_explore(silent, MEMORY)[0].distinct_states == row["distinct_states"]
    assert analysis_explore(asked, MEMORY)[0].distinct_states > row["distinct_states"]
