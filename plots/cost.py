"""Figure: what safety costs: messages and steps for each run that succeeds, against the probability of a loss."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from quorisk.plots.canvas import framed, given_or_current, legend_columns, log_ticks
from quorisk.plots.looks import Looks
from quorisk.plots.style import MOST_LINES, Style, quorisk_style
from quorisk.say import choose, text

MESSAGES, STEPS = "messages", "steps"
"""What runs cost: columns of a result frame."""
UPPER_BOUND = "upper bound"
"""Group id of the marks of configurations without losses."""
_OTHERS = Style("#8a949e", ".")
_SIZE = 6
"""Of marks, in points."""
_MOST_SETTINGS, _MOST_OTHERS = 3, 40
_ARROW = 0.6
"""An upper bound's arrow goes down to this part of it."""


def cost_figure(frame: pd.DataFrame, invariant: str = text.ANY_LOSS) -> Figure | None:
    """Returns the figure for one invariant of a result frame (`results.frame`): a column of panels for each
    setting of the faults, the first, middle and last of many, since faults are not a choice. None if there is only one
    design, or no run succeeds.
    """
    rows = choose.of(frame, invariant)
    keys = choose.design(text.varied(rows))
    if not keys or not choose.succeeded(rows).any():
        return None
    settings = text.configurations(rows, choose.faults(text.varied(rows)))
    if len(settings) > _MOST_SETTINGS:
        settings = [settings[0], settings[len(settings) // 2], settings[-1]]
    measures = [measure for measure in (MESSAGES, STEPS) if rows[measure].any()]
    panels = [choose.where(rows, setting) for setting in settings]
    looks = _looks(rows, panels, measures, keys)
    panels = [_shown(panel, keys, looks) for panel in panels]
    left_out = choose.left_out(
        sum(map(len, panels)), len(rows), "points at these faults that are named or reach highest"
    )
    width_in = max(2.7 * len(settings), 5.5)
    labels = list(map(choose.label, looks))
    columns = legend_columns(labels, width_in) if labels else 1
    height_in = 2.3 * len(measures) + 0.2 * -(-len(labels) // columns) + 0.5
    with quorisk_style():
        title = f"What safety costs: probability that a run {text.event(invariant)}"
        figure, canvas = framed(title, caption(rows) + left_out, width_in, height_in)
        grid = canvas.subplots(len(measures), len(settings), sharex="row", sharey=True, squeeze=False)
        for axes, (measure, here) in zip(grid.flat, [(m, here) for m in measures for here in panels], strict=True):
            _panel(axes, here, measure, keys, looks)
        for axes, setting in zip(grid[0], settings, strict=True):
            axes.set_title(text.settings(setting, text.independent(rows, list(setting))))
        for axes in grid[:, 0]:
            axes.set_ylabel("probability in a run")
        marks = [Line2D([], [], **look.marks(_SIZE)) for look in looks.values()]
        canvas.legend(marks, labels, loc="outside lower left", ncols=columns, fontsize=8)
    return figure


def cost(frame: pd.DataFrame, invariant: str = text.ANY_LOSS, measure: str = STEPS, ax: Axes | None = None) -> Axes:
    """Draws a mark for each configuration: its mean cost and its probability of a loss.

    Named are those that no other one beats, being as cheap and as safe and better in one of the two, and all that lost
    nothing; how safe, the upper ends of the intervals say. Pass rows under the same faults: faults are not a choice.
    """
    axes, rows = given_or_current(ax), choose.of(frame, invariant)
    keys = text.varied(rows)
    looks = _looks(rows, [rows], [measure], keys)
    _panel(axes, _shown(rows, keys, looks), measure, keys, looks)
    axes.set_ylabel("probability in a run")
    axes.legend(fontsize=8)
    return axes


def efficient_mask(costs: np.ndarray, risks: np.ndarray) -> np.ndarray:
    """Returns which of n pairs no other one beats: bool, shape (n,)."""
    order = np.lexsort((risks, costs))
    mask = np.zeros(len(costs), bool)
    lowest, cost_there = np.inf, np.nan
    for place in order:
        if risks[place] < lowest or (risks[place] == lowest and costs[place] == cost_there):
            mask[place] = True
            lowest, cost_there = risks[place], costs[place]
    return mask


def mean(rows: pd.DataFrame, measure: str) -> pd.Series:
    """Returns what a run that succeeds costs if it also pays for those that do not; infinite if none does."""
    return rows[measure] / choose.succeeded(rows)


def _shown(rows: pd.DataFrame, keys: Sequence[str], looks: Mapping[str, Style]) -> pd.DataFrame:
    """The rows that have a look, and the worst _MOST_OTHERS of the others."""
    named = np.array([name in looks for name in choose.names(rows, keys)], bool)
    others = choose.worst(rows[~named], _MOST_OTHERS).index
    return rows[named | rows.index.isin(others)]


def _looks(
    frame: pd.DataFrame, panels: Sequence[pd.DataFrame], measures: Sequence[str], keys: Sequence[str]
) -> dict[str, Style]:
    """Styles, by their settings, of the first MOST_LINES configurations that no other one beats in some panel, and of
    those without a loss.
    """
    looks = Looks(frame)
    found: dict[str, Style] = {}
    for measure in measures:
        for rows in panels:
            mask = efficient_mask(mean(rows, measure).to_numpy(), rows["high"].to_numpy())
            efficient = rows[mask | (rows["losses"] == 0)]  # runs without a loss tell none of them from the others
            settings = efficient[list(keys)].to_dict("records")
            found |= {name: looks.of(each) for name, each in zip(choose.names(efficient, keys), settings, strict=True)}
    return dict(list(found.items())[:MOST_LINES])


def _panel(axes: Axes, rows: pd.DataFrame, measure: str, keys: Sequence[str], looks: Mapping[str, Style]) -> None:
    """A mark for each row; those that have a look come last, and so on top."""
    names = pd.Series(choose.names(rows, keys), rows.index)
    _marks(axes, rows[~names.isin(looks)], measure, _OTHERS)
    for name, look in looks.items():
        _marks(axes, rows[names == name], measure, look, choose.label(name))
    axes.set(yscale="log", xlabel=f"{measure} for each run that succeeds")
    log_ticks(axes.yaxis)


def _marks(axes: Axes, rows: pd.DataFrame, measure: str, look: Style, label: str = "") -> None:
    drawn = {"capsize": 2, "elinewidth": 0.8, **look.marks(_SIZE)}
    rows = rows[choose.succeeded(rows) > 0]
    seen, bounds = rows[rows["losses"] > 0], rows[rows["losses"] == 0]
    if len(seen):
        reach = np.abs(seen[["low", "high"]].to_numpy().T - seen["p"].to_numpy())
        axes.errorbar(mean(seen, measure), seen["p"], yerr=reach, label=label, **drawn)
    if len(bounds):
        high = bounds["high"].to_numpy()
        at = mean(bounds, measure)
        face = "none" if label else "white"  # designs that cost the same are seen through each other
        bars = axes.errorbar(
            at, high, yerr=(1 - _ARROW) * high, uplims=True, label=label, **drawn | {"fillstyle": "full", "mfc": face}
        )
        bars.lines[0].set_gid(UPPER_BOUND)


def caption(rows: pd.DataFrame) -> str:
    """Model, faults, runs, intervals and assumptions of a figure."""
    return (
        f"{text.terms(rows)} Bars: {text.intervals(rows)}. "
        "Hollow marks with an arrow: no breach was seen, and this is the upper end of the interval. Named: "
        "configurations that no other one under the same faults beats in both cost and the upper end of the interval, "
        "and those without a breach, which these runs cannot tell apart. Small and grey: the others. "
        "The cost of all runs is divided by those that succeeded: those that completed or reached the horizon. "
        f"{text.scheduler(rows)}"
    )
