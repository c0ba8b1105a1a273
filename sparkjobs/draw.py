"""What a sweep draws from its results."""

import shlex
from pathlib import Path

import pandas as pd
import pyarrow as pa

from analysis import results
from analysis.config import Experiment
from plots import text
from plots.loss import loss_figure
from plots.report import Provenance, report
from plots.style import save
from sparkjobs import folder


def draw(table: pa.Table, experiment: Experiment, source: str, out: Path, command: str | None = None) -> pd.DataFrame:
    """Writes figures and the report of a merged table to `out`; returns the frame that they show.

    `source` is the experiment file's text; `command` is what did it, if not `quorisk run` with that experiment.
    """
    run = experiment.run
    frame = results.frame(table, run.confidence, run.simultaneous, run.at_any_time)
    others = [column for column in frame.columns if column not in experiment.varied]
    frame = frame[[*experiment.varied, *others]]  # parameters in the grid's order
    (out / folder.FIGURES).mkdir(exist_ok=True)
    figures = {}
    for invariant in text.shown(frame):
        figure = loss_figure(frame, invariant)
        name = invariant.replace(" ", "_")
        for kind in ("svg", "png"):
            folder.write(out / folder.FIGURES / f"{name}.{kind}", save(figure, kind))
        figures[invariant] = save(figure, "svg")
    versions = sorted({version for row in table["versions"].to_pylist() for version in row})
    changed = [word for override in experiment.overrides for word in ("--set", override)]
    run_it = shlex.join(["quorisk", "run", experiment.path, "--out", str(out), *changed])
    provenance = Provenance(command or run_it, source, versions)
    folder.write(out / folder.REPORT, report(frame, figures, provenance).encode())
    return frame
