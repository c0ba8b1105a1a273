"""All figures of a sweep, by name."""

import re
from collections.abc import Iterator, Sequence

import pandas as pd
from matplotlib.figure import Figure

from quorisk.plots import text
from quorisk.plots.cost import cost_figure
from quorisk.plots.distribution import distribution_figure
from quorisk.plots.heat_map import heat_map_figure
from quorisk.plots.loss import loss_figure
from quorisk.plots.outcomes import outcomes_figure


def figures(
    frame: pd.DataFrame, histograms: pd.DataFrame, invariants: Sequence[str] | None = None
) -> Iterator[tuple[str, Figure]]:
    """Names that are safe as file names, and figures, of a sweep's frames (`analysis.tidy.Sweep`).

    Every invariant has its figure of losses, the first also a heat map and one of costs, if the grid varies what they
    compare. Without `invariants` they are those worth showing, any data loss first.
    """
    invariants = text.shown(frame) if invariants is None else invariants
    for invariant in invariants:
        yield _name("loss", invariant), loss_figure(frame, invariant)
    first = invariants[0]
    for kind, figure in (("heat_map", heat_map_figure(frame, first)), ("cost", cost_figure(frame, first))):
        if figure is not None:
            yield _name(kind, first), figure
    yield "outcomes", outcomes_figure(frame)
    yield "distribution", distribution_figure(frame, histograms)


def _name(kind: str, invariant: str) -> str:
    return f"{kind}_{re.sub('[^A-Za-z0-9]+', '_', invariant)[:60]}"
