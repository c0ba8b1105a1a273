"""All figures of a sweep, by name."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from quorisk.plots import canvas, text
from quorisk.plots.cost import cost_figure
from quorisk.plots.distribution import distribution_figure
from quorisk.plots.heat_map import heat_map_figure
from quorisk.plots.loss import loss_figure
from quorisk.plots.outcomes import outcomes_figure

FIGURES = ("loss", "heat_map", "cost", "outcomes", "distribution")
"""The kinds of figures, in their order."""


class Wish(NamedTuple):
    """Which figures, and how."""

    invariants: Sequence[str] | None = None
    """Those worth showing if not given, any data loss first."""
    only: Sequence[str] = FIGURES
    x: str | None = None
    """The parameter across, in figures of losses and heat maps."""
    hue: str | None = None
    """The parameter that tells lines apart, or goes down in heat maps."""
    frame: canvas.Frame = canvas.Frame()


def figures(frame: pd.DataFrame, histograms: pd.DataFrame, wish: Wish | None = None) -> Iterator[tuple[str, Figure]]:
    """Names that are safe as file names, and figures, of a sweep's frames (`analysis.tidy.Sweep`).

    Every invariant has its figure of losses, the first also a heat map and one of costs, if the grid varies what they
    compare.
    """
    wish = wish or Wish()
    invariants = wish.invariants or text.shown(frame)
    first = invariants[0]
    draw: list[tuple[str, str, Callable[[], Figure | None]]] = [
        *(("loss", each, partial(loss_figure, frame, each, wish.x, wish.hue)) for each in invariants),
        ("heat_map", first, partial(heat_map_figure, frame, first, wish.x, wish.hue)),
        ("cost", first, partial(cost_figure, frame, first)),
        ("outcomes", "", partial(outcomes_figure, frame)),
        ("distribution", "", partial(distribution_figure, frame, histograms)),
    ]
    for kind, invariant, make in draw:
        if kind in wish.only:
            with canvas.framing(wish.frame):
                figure = make()
            if figure is not None:
                yield _name(kind, invariant), figure


def _name(kind: str, invariant: str) -> str:
    return f"{kind}_{re.sub('[^A-Za-z0-9]+', '_', invariant)[:60]}" if invariant else kind
