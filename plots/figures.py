"""All figures of a sweep, by name."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from quorisk.analysis.decision import years
from quorisk.plots import canvas
from quorisk.plots.budget import budget_figure
from quorisk.plots.frontier import frontier_figure
from quorisk.plots.heat_map import heat_map_figure
from quorisk.plots.loss import loss_figure
from quorisk.say import text

FIGURES = ("frontier", "budget", "loss", "heat_map")
"""The kinds of figures, in their order."""


class Wish(NamedTuple):
    """The figures that are wanted, and how they are drawn."""

    invariants: Sequence[str] | None = None
    """Invariants to draw; by default those worth showing, any data loss first."""
    only: Sequence[str] = FIGURES
    x: str | None = None
    """The parameter across, in figures of losses and heat maps."""
    hue: str | None = None
    """The parameter that tells lines apart, or goes down in heat maps."""
    frame: canvas.Frame = canvas.Frame()


def figures(
    frame: pd.DataFrame, wish: Wish | None = None, losses_by_faults: pd.DataFrame | None = None
) -> Iterator[tuple[str, Figure]]:
    """Yields names that are safe as file names, and figures, of a sweep's frames (`decision.frames.SweepTables`).

    Every invariant has its figure of losses, the first also a heat map, if the grid varies what they compare. Where
    there are scenarios, losses are those of a year. So they are on a cluster; where it has no scenarios, other breaches
    are those of a run.
    """
    wish = wish or Wish()
    invariants = wish.invariants or text.shown(frame)
    first, is_yearly = invariants[0], text.is_yearly(frame)
    whole = years.yearly_frame(frame) if is_yearly else frame

    def of(invariant: str) -> pd.DataFrame:
        """Returns the rows to draw. A cluster without scenarios has losses a year, but no other breaches a year."""
        told = invariant == text.ANY_LOSS or not is_yearly or frame["per_year"].any()
        return whole if told else frame.drop(columns="per_year")

    draw: list[tuple[str, str, Callable[[], Figure | None]]] = [
        ("frontier", "", partial(frontier_figure, frame)),
        ("budget", "", partial(budget_figure, frame, losses_by_faults)),
        *(("loss", each, partial(loss_figure, of(each), each, wish.x, wish.hue)) for each in invariants),
        ("heat_map", first, partial(heat_map_figure, of(first), first, wish.x, wish.hue)),
    ]
    for kind, invariant, make in draw:
        if kind in wish.only:
            with canvas.framing(wish.frame):
                figure = make()
            if figure is not None:
                yield _name(kind, invariant), figure


def _name(kind: str, invariant: str) -> str:
    return f"{kind}_{re.sub('[^A-Za-z0-9]+', '_', invariant)[:60]}" if invariant else kind
