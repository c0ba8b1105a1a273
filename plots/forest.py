"""Figure: what variants are worth, as a forest plot: the difference that each makes to the probability of a loss."""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from quorisk.plots.canvas import beside, framed, given_or_current
from quorisk.plots.style import quorisk_style, style_of
from quorisk.say import choose, numbers, text
from quorisk.say.colours import FAINT, INK

NO_DIFFERENCE = "no difference seen"
"""Group id of the marks for pairs of which no run differed."""
_WIDTH_IN, _ROW_IN, _PANEL_IN = 9.5, 0.3, 1.05
_DECADES = 4
"""Of the scale on either side of 0, at most; what is nearer to 0 is drawn linearly."""


def forest_figure(frame: pd.DataFrame) -> Figure:
    """Returns the figure of a comparison's frame (`compare.rows`): a panel for any data loss, and one for each
    invariant that broke, unless it alone is that data loss.
    """
    panels = list(_shown(frame))
    row_in = _ROW_IN if frame["baseline"].nunique() == 1 else 1.4 * _ROW_IN
    heights = [_PANEL_IN + row_in * len(choose.of(frame, invariant)) for invariant in panels]
    with quorisk_style():
        figure, canvas = framed(_title(frame), caption(frame), _WIDTH_IN, sum(heights) + 0.3)
        grid = canvas.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
        for axes, invariant in zip(grid[:, 0], panels, strict=True):
            forest(frame, invariant, axes)
    return figure


def forest(frame: pd.DataFrame, invariant: str = text.ANY_LOSS, ax: Axes | None = None) -> Axes:
    """Draws the pairs of one invariant: a square where the interval leaves 0 out, a circle where it does not.

    Where no run differed, the mark is hollow and its interval says how far off the difference may be: nothing seen is
    not nothing there. Variants that were each estimated alone need no runs to differ.
    """
    axes, rows = given_or_current(ax), choose.of(frame, invariant)
    y = np.arange(len(rows))
    unequal = np.array([_is_known(row) for row in rows.to_dict("records")])
    apart = ((rows["difference_low"] > 0) | (rows["difference_high"] < 0)).to_numpy()
    at = rows["difference"].to_numpy()
    reach = np.abs(rows[["difference_low", "difference_high"]].to_numpy().T - at)
    axes.axvline(0.0, color=INK, linewidth=1.0)
    for chosen, index, marker, face, group in (
        (unequal & apart, 1, "s", None, "apart"),
        (unequal & ~apart, 0, "o", None, "not apart"),
        (~unequal, 0, "o", "white", NO_DIFFERENCE),
    ):
        colour = style_of(index).colour
        bars = axes.errorbar(
            at[chosen],
            y[chosen],
            xerr=reach[:, chosen],
            color=colour,
            marker=marker,
            mfc=face or colour,
            markersize=6,
            linestyle="none",
            capsize=3,
            elinewidth=1.3,
        )
        bars.lines[0].set_gid(group)
    axes.set_yticks(y, _labels(rows), fontsize=7.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    _scale(axes, rows)
    beside(axes, [_number(row) for row in rows.to_dict("records")])
    axes.set_title(f"Probability that a run {text.event(rows['invariant'].iloc[0])}")
    axes.set_xlabel("variant minus baseline")
    return axes


def _labels(rows: pd.DataFrame) -> list[str]:
    names = rows[["variant", "baseline"]].replace("_", " ", regex=True)
    if rows["baseline"].nunique() == 1:
        return list(names["variant"])
    return [f"{variant}\nagainst {baseline}" for variant, baseline in names.itertuples(index=False)]


def _scale(axes: Axes, rows: pd.DataFrame) -> None:
    """Logarithmic on both sides of 0, but for the tick nearest to it; ticks at powers of ten."""
    ends = rows[["difference_low", "difference_high"]].to_numpy()
    sizes = np.abs(ends[ends != 0])
    highest = math.ceil(math.log10(sizes.max()))
    lowest = max(math.floor(math.log10(sizes.min())), highest - _DECADES)
    axes.set_xscale("symlog", linthresh=10.0**lowest, linscale=0.6)
    powers = [10.0**power for power in range(lowest, highest + 1)]
    ticks = [-p for p in reversed(powers)] + [0.0] + powers
    axes.set_xticks(ticks, [numbers.short(tick) for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    low, high = min(ends.min(), 0.0), max(ends.max(), 0.0)
    axes.set_xlim(min(1.5 * low, -(10.0**lowest)), max(1.5 * high, 10.0**lowest))
    axes.axvspan(-(10.0**lowest), 10.0**lowest, color=FAINT, alpha=0.35, linewidth=0, zorder=0)


def _number(row: dict[str, float]) -> str:
    """The difference and its interval in figures."""
    low, high = row["difference_low"], row["difference_high"]
    if not _is_known(row):
        return f"{'none seen: ' if row['paired'] else ''}{numbers.bound(max(high, -low))}"
    difference = f"{_signed(row['difference'])} {numbers.span(low, high, _signed)}"
    if not row["paired"]:
        return difference
    p = row["p_adjusted"]
    return f"{difference}, " + (f"p {numbers.number(p)}" if p >= 1e-99 else f"p < {numbers.short(1e-99)}")


def _is_known(row: dict[str, float]) -> bool:
    """Whether there is a difference to show, rather than a bound on it."""
    if row["paired"]:
        return row["only_variant"] + row["only_baseline"] > 0
    return row["difference_low"] > 0 or row["difference_high"] < 0


def _signed(value: float) -> str:
    return numbers.signed(value, numbers.number)


def _shown(frame: pd.DataFrame) -> Iterator[str]:
    counts = ["both", "only_variant", "only_baseline"]
    any_loss = frame[frame["invariant"] == text.ANY_LOSS][counts].to_numpy()
    for invariant, rows in frame.groupby("invariant", sort=False):
        here = rows[counts].to_numpy()
        same = rows["data_loss"].all() and np.array_equal(here, any_loss)
        if invariant == text.ANY_LOSS or (here.any() and not same):
            yield str(invariant)


def _title(frame: pd.DataFrame) -> str:
    baselines = frame["baseline"].unique()
    if len(baselines) > 1:
        return "What variants are worth: each against every other"
    return f"What variants are worth: each against {baselines[0].replace('_', ' ')}"


def caption(frame: pd.DataFrame) -> str:
    """Model, faults, runs, intervals and assumptions of a figure."""
    first = frame.iloc[0]
    pairs = frame[["variant", "baseline"]].drop_duplicates()
    alone = (
        ""
        if frame["paired"].all() and not frame["from_exits"].any()
        else (
            "Data loss is too rare to be seen in these runs: each variant was estimated alone. There is a p where two "
            "share an exact head, by runs from its exits. "
        )
    )
    together = f"which hold together for all {len(pairs)} pairs" if len(pairs) > 1 else "from Clopper-Pearson bounds"
    return (
        f"{text.terms(frame)} All variants see the same random numbers. "
        f"Bars: {numbers.percent(first['confidence'])} intervals of the difference, {together}. "
        "Squares: the interval does not contain 0. Circles: it does. Hollow: no run differed, and the bar is what "
        f"that leaves possible. {alone}"
        f"p: exact McNemar test, adjusted for the number of pairs. Shaded: linear scale. {text.scheduler(frame)}"
    )
