"""Traces of the experiment files in `configs/`, each found once."""

from functools import cache

from quorisk.analysis.estimate.estimate import only_point
from quorisk.analysis.experiment import config
from quorisk.analysis.traces import find
from scripts.counterexamples import SHOWCASES
from tests.support import ROOT

CONFIGS = ROOT / "configs"
MEMORY = 64 << 20
NO_MEMORY = 1 << 10
"""Not even for the beginning of a search."""
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
    return find.find(experiment.model, only_point(experiment), wanted, memory, run.seed, run.runs)


@cache
def showcase(name):
    file, invariant, overrides = SHOWCASES[name]
    return found_in(file, overrides, (invariant,)).trace
