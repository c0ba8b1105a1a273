"""Rates and the like that would change a sweep's choice: searched for once, and kept in the sweep's folder."""

import hashlib
import json
import logging
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from quorisk.analysis.decision import breakeven, verdict
from quorisk.analysis.decision.designs import ranked_designs
from quorisk.analysis.decision.levers import untold
from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.experiment.config import Experiment
from quorisk.kernels.cores import num_cores
from quorisk.kernels.protocols.registry import foreign_roots
from quorisk.say import choose, text
from quorisk.say.numbers import counted
from quorisk.say.waiting import Tell
from quorisk.sparkjobs import files, folder

MEMORY = 64 << 20
"""Bytes for each chain."""
_LOG = logging.getLogger("quorisk")
_SOURCES = "quorisk.kernels", "quorisk.analysis", "quorisk.plots"
"""Packages that a search's results depend on."""


def break_even_sentences(
    frame: pd.DataFrame, experiment: Experiment, out: Path, within_s: float, tell: Tell | None
) -> list[str]:
    """Returns sentences on the rates and the like that change a sweep's choice; none without designs to choose from.

    They are kept in the folder: the same results are searched again only if some figures were left for want of time,
    and there is more of it now.
    """
    rows = choose.rows_of(frame, text.ANY_LOSS)
    found, target = ranked_designs(rows), float(rows["target"].iloc[0])
    if len(found) < 2 or not verdict.has_targets(found, target):
        return []
    key = _key(rows, experiment)
    if (kept := _kept(out, key, within_s)) is not None:
        _LOG.info("break-even points: as they were, since the results have not changed")
        return kept
    _LOG.info("break-even points: searching for at most %.0f s", within_s)
    start = time.monotonic()
    weighed = rows[rows["point_id"].isin(breakeven.can_be_chosen(found))]
    run_s = float(weighed["wall_s"].max()) / num_cores() if len(weighed) else 0.0
    weigher = Weigher(MEMORY, num_cores(), tell, run_s < within_s)
    search = breakeven.find_break_even(experiment, rows, weigher, untold(experiment), within_s)
    tried, spent_s = counted(len(search.tried), "figure"), time.monotonic() - start
    _LOG.info("break-even points: %s tried in %.0f s, %d not", tried, spent_s, len(search.untried))
    said = search.told()
    if search.chosen is not None and search.chosen != verdict.chosen(found, target):
        said = [f"If whatever can be solved is solved exactly, the choice is {search.chosen or 'none'}."]
    told = {"key": key, "within_s": None if not search.untried else within_s, "sentences": said}
    files.write_in_folder(out / folder.BREAK_EVEN, json.dumps(told | {"sha256": _checksum(told)}, indent=1).encode())
    return said


def _kept(out: Path, key: str, within_s: float) -> list[str] | None:
    """Returns the sentences of an earlier search with this key; None if a search of `within_s` could find more."""
    path = out / folder.BREAK_EVEN
    if not path.is_file():  # none yet, or what may never end, such as a pipe
        return None
    try:
        told: Any = json.loads(path.read_bytes())
        same = told.pop("sha256") == _checksum(told) and told["key"] == key
        same = same and (told["within_s"] is None or told["within_s"] >= within_s)
        return [str(each) for each in told["sentences"]] if same else None
    except (AttributeError, OSError, ValueError, RecursionError, KeyError, TypeError):  # damaged: found anew
        return None


def _checksum(told: dict[str, Any]) -> str:
    """Returns the checksum of what a search found: without it, a report would show whatever is in the file."""
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _key(rows: pd.DataFrame, experiment: Experiment) -> str:
    """Returns a hash of all that a search depends on: results, file, and our own code."""
    digest = hashlib.sha256(rows.to_csv().encode() + b"\0" + folder.as_run(experiment).encode())
    roots = [Path(str(import_module(name).__file__)).parent for name in _SOURCES]
    for root in (*roots, *foreign_roots()):
        for path in sorted([*root.rglob("*.py"), *root.rglob("*.toml")]):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
