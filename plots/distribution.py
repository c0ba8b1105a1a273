"""Figure: how many steps runs take, and how soon lost runs lose, for the designs that lose most."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, PercentFormatter

from quorisk.plots.canvas import framed, given_or_current, legend_columns, log_ticks
from quorisk.plots.looks import Looks
from quorisk.plots.style import MOST_LINES, quorisk_style
from quorisk.say import choose, numbers, text
from quorisk.say.quantities import say_time

STEPS, TIME_TO_LOSS = "steps", "time to loss"
"""Quantities that there are histograms of (`results.sweeps.histograms`)."""
_WIDTH_IN = 7.5
_MOST_TICKS = 8
_TITLES = {STEPS: "Steps of a run", TIME_TO_LOSS: "Model time until data is lost"}


def distribution_figure(frame: pd.DataFrame, histograms: pd.DataFrame) -> Figure:
    """Returns the figure of a result frame (`results.frame`) and its histograms (`results.sweeps.histograms`)."""
    rows = choose.of(frame, text.ANY_LOSS)
    shown = _lines(rows)
    timed = histograms[(histograms["quantity"] == TIME_TO_LOSS) & np.isfinite(histograms["bin_high"])]
    has_times = timed["point_id"].isin(shown["point_id"]).any()
    quantities = [STEPS, TIME_TO_LOSS] if has_times else [STEPS]
    left_out = choose.left_out(
        len(shown), len(choose.worst_faults(rows)), "designs that lose most, each under its worst faults"
    )
    with quorisk_style():
        title = "How long runs take, and how soon they lose data" if rows["losses"].any() else "How long runs take"
        labels = choose.labels(shown, text.independent(rows, text.varied(rows)))
        columns = legend_columns(labels, _WIDTH_IN)
        legend_in = 0.19 * -(-len(labels) // columns)
        figure, canvas = framed(title, caption(rows) + left_out, _WIDTH_IN, 2.9 + legend_in)
        grid = canvas.subplots(1, len(quantities), squeeze=False)
        for axes, quantity in zip(grid.flat, quantities, strict=True):
            distribution(frame, histograms, quantity, axes)
        if len(labels) > 1:
            handles, _ = grid[0, 0].get_legend_handles_labels()
            canvas.legend(handles, labels, loc="outside lower left", ncols=columns, handlelength=3.5, fontsize=8)
    return figure


def distribution(frame: pd.DataFrame, histograms: pd.DataFrame, quantity: str = STEPS, ax: Axes | None = None) -> Axes:
    """Draws a line for each design under its worst faults, for the MOST_LINES worst of many.

    Steps: the share of all runs that took this many steps or fewer. Model time: the share of all runs that had lost
    data by then. Marks stand at the upper ends of the histograms' bins, where these shares are exact. Without any loss
    whose time is known the lines are empty.
    """
    axes, rows = given_or_current(ax), choose.of(frame, text.ANY_LOSS)
    keys = text.independent(rows, text.varied(rows))
    design = choose.design(keys)
    looks, rows = Looks(rows), _lines(rows)
    known = histograms[(histograms["quantity"] == quantity) & np.isfinite(histograms["bin_high"])]
    known = known[known["point_id"].isin(rows["point_id"])]
    counts = known.pivot_table(index="bin_high", columns="point_id", values="runs", fill_value=0)
    for label, row in zip(choose.labels(rows, keys), rows.to_dict("records"), strict=True):
        shares = counts.get(row["point_id"], pd.Series(0, counts.index)).cumsum() / row["runs"]
        shares = shares.where(shares > 0) if quantity == TIME_TO_LOSS else shares
        look = looks.of({key: row[key] for key in keys if key in design} or {key: row[key] for key in keys})
        drawn: dict[str, Any] = {"color": look.colour, "marker": look.marker, "markersize": 4, "fillstyle": look.fill}
        axes.plot(counts.index, shares, linestyle=look.dashes, linewidth=1.2, label=label, **drawn)
        if quantity == TIME_TO_LOSS and row["losses"] and len(counts):
            reach = [[row["p"] - row["low"]], [row["high"] - row["p"]]]
            axes.errorbar(counts.index[-1], row["p"], yerr=reach, capsize=2, elinewidth=1, **drawn)
    axes.set_title(_TITLES[quantity])
    if quantity == STEPS:
        axes.set(xscale="symlog", ylim=(-0.02, 1.02), xlabel="steps, at most", ylabel="share of the runs")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    else:
        axes.set(xscale="log", yscale="log", xlabel="by this model time", ylabel="probability in a run")
        log_ticks(axes.yaxis)
    ticks = _apart(list(counts.index))
    if quantity == TIME_TO_LOSS and text.TIME_UNIT in frame:
        axes.set_xticks(ticks, [say_time(tick) for tick in ticks], fontsize=7, rotation=30, ha="right")
    else:
        short = len(ticks) == 0 or (ticks[0] >= 1e-3 and ticks[-1] < 1e4)
        axes.set_xticks(ticks, [numbers.short(tick) if short else numbers.power_of_two(tick) for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    return axes


def _apart(ends: Sequence[float]) -> list[float]:
    """The last of these ends of bins, and of the others those far enough apart that their labels have room."""
    kept = list(ends[-1:])
    places = {end: math.log2(end) if ends[0] > 0 else math.log2(1 + end) for end in ends}
    for end in reversed(ends[:-1]):
        if places[kept[0]] - places[end] >= (places[ends[-1]] - places[ends[0]]) / _MOST_TICKS:
            kept.insert(0, end)
    return kept


def _lines(rows: pd.DataFrame) -> pd.DataFrame:
    return choose.worst(choose.worst_faults(rows), MOST_LINES)


def caption(rows: pd.DataFrame) -> str:
    """Model, faults, runs, intervals and assumptions of a figure."""
    return (
        f"{text.terms(rows)} Marks: exact shares of the runs, at the upper ends of bins, each twice as wide as the one "
        "before; between marks nothing is known, and the lines only join them. Bars at the last marks: "
        f"{text.intervals(rows, of_runs=True)}, of the probability of a loss. Model time: the mean time of a step is 1 "
        f"divided by the sum of the rates of all actions that may happen next. {text.scheduler(rows)}"
    )
