"""Traces of the experiment files in `configs/`, each found once."""

from functools import cache

from quorisk.analysis.estimate.estimate import only_point
from quorisk.analysis.experiment import config
from quorisk.analysis.traces import find
from tests.support import ROOT

CONFIGS = ROOT / "configs"
MEMORY = 64 << 20
NO_MEMORY = 1 << 10
"""Not even for the beginning of a search."""
SHOWCASES = {
    "defect1": ("defect1.toml", "NoDivergenceBetweenClientAndMetaData", ()),
    # the README's recovery tells the metadata store of a new ensemble at once
    "defect2": ("defect2.toml", "OnlyValidFragments", ("variant.defer_recovery_ensemble_change=false",)),
    "defect3": ("defect3.toml", "NoDivergenceBetweenClientAndMetaData", ()),
    "kip101": ("kip101.toml", "StrongIsr", ()),
    "last_replica_standing": ("last_replica_standing.toml", "LeaderCompletenessProperty", ()),
    "all_copies_lost": ("all_copies_lost.toml", "NoCommittedRecordLostGlobally", ()),
    "leaked_ledger": ("leaked_ledger.toml", "CompactedLedgerLeak", ()),
}
"""By picture of `make counterexamples`: configuration, invariant, overrides."""
DEPTHS = {
    "defect1": 18,
    "defect2": 21,
    "defect3": 32,
    "kip101": 12,
    "last_replica_standing": 8,
    "all_copies_lost": 9,
    "leaked_ledger": 13,
}
"""States in each showcase, the first and the last included."""


def found_in(file, overrides, wanted, memory=MEMORY):
    experiment = config.load(CONFIGS / file, overrides)
    run = experiment.run
    return find.find_counterexample(experiment.model, only_point(experiment), wanted, memory, run.seed, run.runs)


@cache
def showcase(name):
    file, invariant, overrides = SHOWCASES[name]
    return found_in(file, overrides, (invariant,)).trace
