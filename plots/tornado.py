"""Figure: a tornado of how far each figure alone moves losses, the widest bar first."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quorisk.plots.canvas import beside, framed, given_or_current, log_ticks, width_beside
from quorisk.plots.style import MOST_ROWS, quorisk_style, style_of
from quorisk.say import numbers
from quorisk.say.colours import INK

_ROW_IN, _AROUND_IN = 0.26, 1.0
_LEAST = 1.005
"""A factor of losses that is not worth a bar."""
FALLING, RISING = "falling", "rising"
"""Group ids of the bars to losses at a figure's low end, and at its high end."""


def tornado_figure(frame: pd.DataFrame, about: str = "") -> Figure | None:
    """Returns the figure of what losses depend on (`analysis.rates.sensitivity.rows`); None if that is not known, or if
    nothing moves them. `about` says whose losses, a sentence.
    """
    shown = _shown(frame)
    if not len(shown):
        return None
    with quorisk_style():
        height_in = _AROUND_IN + _ROW_IN * len(shown)
        figure, canvas = framed("What losses depend on", _caption(frame, shown, about), width_beside(_labels(shown)),
                                height_in)  # fmt: skip
        tornado(frame, canvas.subplots())
    return figure


def tornado(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draws about how many times as many losses there are with each figure at its low end (hatched) and high end."""
    axes, shown = given_or_current(ax), _shown(frame)
    y = np.arange(len(shown))
    for index, (end, hatch, group) in enumerate((("at_low", "////", FALLING), ("at_high", "", RISING))):
        ends = shown[end].to_numpy()
        left, right = np.minimum(ends, 1.0), np.maximum(ends, 1.0)
        colour = style_of(index).colour
        bars = axes.barh(y, right - left, 0.62, left, color=colour, hatch=hatch, edgecolor=INK, linewidth=0.5)
        for bar in bars:
            bar.set_gid(group)
    axes.axvline(1.0, color=INK, linewidth=1.0)
    axes.set_xscale("log")
    axes.use_sticky_edges = False
    axes.margins(x=0.04)
    axes.set_yticks(y, _labels(shown), fontsize=7.5)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("times as many losses")
    log_ticks(axes.xaxis)
    beside(axes, [numbers.with_sign(each, lambda value: f"{value:.3g}") for each in shown["elasticity"]])
    return axes


def _shown(frame: pd.DataFrame) -> pd.DataFrame:
    reach = np.abs(np.log(frame[["at_low", "at_high"]].astype(float))).max(axis=1)
    order = reach.sort_values(ascending=False, kind="stable")
    return frame.loc[order[order > np.log(_LEAST)].index[:MOST_ROWS]]


def _labels(shown: pd.DataFrame) -> list[str]:
    return [f"{key}\n{ends}" if ends else key for key, ends in zip(shown["name"], shown["ends"], strict=True)]


def _caption(frame: pd.DataFrame, shown: pd.DataFrame, about: str) -> str:
    stated = shown["stated"]
    ends = "at the ends of 90 % of what is known of it" if stated.all() else "halved and doubled"
    if stated.any() and not stated.all():
        ends = f"at the ends of 90 % of what is known of it, or {ends} where the file gives a value alone"
    more = len(frame) - len(shown)
    left_out = f" Not shown: {more:,} that change next to nothing." if more else ""
    return (
        f"{about} Bars: about how many times as many losses there would be with one figure {ends}, and all others as "
        "they are; hatched: at its low end. They are extrapolated by the elasticity, which is on the right: by it, "
        f"twice the figure would make losses 2 to that power times as many.{left_out}"
    ).strip()
