"""What stands beside an experiment's numbers, and what its copies cost."""

import pytest

from quorisk.analysis.decision.scope import scope_of
from quorisk.analysis.experiment.config import load
from quorisk.kernels.errors import ConfigError
from quorisk.say import numbers
from quorisk.say.plain import plain_data
from tests.analysis.experiment.files import BOOKKEEPER
from tests.support import ROOT


def test_the_scope_is_the_model_s_limits_the_file_s_scenarios_and_the_latency_s_source():
    experiment = load(ROOT / "configs" / "pulsar.toml")
    scope = scope_of(experiment)
    assert scope.limits == experiment.model.limits
    assert [each.name for each in scope.scenarios] == ["entry", "failover", "power_outage"]
    assert all(said.endswith(".") for each in scope.scenarios for said in each.simplifications)
    assert scope.profile.startswith("bookkeeper_ssd: ")
    assert ("ack quorum Qa (managedLedgerDefaultAckQuorum)", "model.ack_quorum", "") in scope.settings
    assert plain_data(scope)["scenarios"][1]["per_year"] == 2000.0


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        ("entries = 3", "cost.entry_bytes: missing"),
        ("entry_bytes = 0", "cost.entry_bytes = 0: a number above 0"),
        ("entry_bytes = true", "cost.entry_bytes = true: a number above 0"),
        ("bytes = 1", "cost.bytes: no such key; .cost. has entry_bytes, entries"),
    ],
)
def test_mistaken_costs_are_told(written, cost, said):
    path = written("x.toml", f"{BOOKKEEPER}[cost]\n{cost}\n")
    with pytest.raises(ConfigError, match=said):
        load(path)


def test_copies_take_bytes(written):
    path = written("x.toml", f"{BOOKKEEPER}[cost]\nentry_bytes = 1024\nentries = 1e9\n")
    assert numbers.size(load(path).tables["cost"].stored_bytes(3)) == "2.79 TiB"


@pytest.mark.parametrize(
    ("num_bytes", "said"), [(1, "1 B"), (1023, "1,023 B"), (1024, "1 KiB"), (3 * 1024**4, "3 TiB")]
)
def test_bytes_read_well(num_bytes, said):
    assert numbers.size(num_bytes) == said
