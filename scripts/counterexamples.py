"""Draws the counterexamples of docs/gallery: python scripts/counterexamples.py [FOLDER]

The same pictures, byte for byte, each time.
"""

import sys
from pathlib import Path

from quorisk.analysis.estimate.estimate import only_point
from quorisk.analysis.experiment import config
from quorisk.analysis.traces import find
from quorisk.analysis.traces.formats import picture

ROOT = Path(__file__).parent.parent
MEMORY = 64 << 20
"""Too little for the search of the BookKeeper models, whose counterexamples then come from random runs."""
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
"""By picture: configuration, invariant, overrides."""


def main(folder: Path) -> None:
    """Writes the pictures to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (file, invariant, overrides) in SHOWCASES.items():
        experiment = config.load(ROOT / "configs" / file, overrides)
        run = experiment.run
        found = find.find(experiment.model, only_point(experiment), [invariant], MEMORY, run.seed, run.runs)
        if not found.trace:
            sys.exit(f"{name}: {found.reason}")
        (folder / f"{name}.svg").write_text(picture(found.trace), "utf-8")
        print(f"{folder / name}.svg: {found.trace.invariant} in {len(found.trace.path.steps)} steps, {found.reason}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "gallery")
