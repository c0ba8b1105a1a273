"""Figure: what data say of rates, beside what a profile says: of all together, by model, and over time."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quorisk.plots.canvas import framed, given_or_current, log_ticks, width_beside
from quorisk.plots.style import MOST_ROWS, quorisk_style, style_of
from quorisk.say.colours import FAINT, INK
from quorisk.say.numbers import counted
from quorisk.say.quantities import YEAR_S

_ABOUT = ("posterior", "default", "model", "period")
"""What a row is about, in the order in which rows are drawn; each with a colour and mark of its own."""
_ROW_IN, _PANEL_IN = 0.23, 0.75
_MOST_LABEL = 60
_PER = (("second", 1), ("minute", 60), ("hour", 3600), ("day", 86_400), ("year", YEAR_S))


def posteriors_figure(frame: pd.DataFrame) -> Figure:
    """Returns the figure of what data say (`analysis.rates.answer.rows`), a panel for each key."""
    keys = list(dict.fromkeys(frame["key"]))
    shown = {key: _shown(frame[frame["key"] == key]) for key in keys}
    heights = [_PANEL_IN + _ROW_IN * len(rows) for rows in shown.values()]
    width = width_beside([label for rows in shown.values() for label in rows["label"]])
    with quorisk_style():
        caption = " ".join(_caption(frame, shown))
        figure, canvas = framed("What the data say of rates", caption, width, sum(heights) + 0.3)
        grid = canvas.subplots(len(keys), 1, squeeze=False, height_ratios=heights)
        for axes, key in zip(grid[:, 0], keys, strict=True):
            posteriors(frame, key, axes)
    return figure


def posteriors(frame: pd.DataFrame, key: str, ax: Axes | None = None) -> Axes:
    """Draws one key: medians, with thick bars for 50 % and thin ones for 90 % of what is known."""
    axes, rows = given_or_current(ax), _shown(frame[frame["key"] == key])
    y = np.arange(len(rows))
    factor, unit = _unit(rows)
    rows = rows.assign(**{column: factor * rows[column] for column in ("median", "p5", "p25", "p75", "p95")})
    for index, about in enumerate(_ABOUT):
        mine = (rows["about"] == about).to_numpy()
        style = style_of(index)
        at = rows[mine]
        axes.hlines(y[mine], at["p5"], at["p95"], color=style.colour, linewidth=1.0)
        axes.hlines(y[mine], at["p25"], at["p75"], color=style.colour, linewidth=3.5)
        axes.plot(at["median"], y[mine], style.marker, color=style.colour, mec="white", markersize=6, gid=about)
        if about == "default":
            for value in at["median"]:
                axes.axvline(value, color=FAINT, linewidth=1.5, zorder=0)
    axes.set_xscale("log")
    axes.set_yticks(y, [_cut(label) for label in rows["label"]], fontsize=7.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.set_title(key, color=INK)
    axes.set_xlabel(unit)
    log_ticks(axes.xaxis)
    return axes


def _shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows in the order of _ABOUT; of models those that are known best, and of periods the last."""
    parts = [rows[rows["about"] == about] for about in _ABOUT]
    models, periods = parts[2:]
    width = np.log(models["p95"]) - np.log(models["p5"])
    parts[2:] = [models.loc[width.sort_values(kind="stable").index[:MOST_ROWS]].sort_index(), periods.iloc[-MOST_ROWS:]]
    return pd.concat(parts)


def _unit(rows: pd.DataFrame) -> tuple[float, str]:
    """What rates are multiplied by, and called then: per cent a year, or times in a shorter time, once or more."""
    if rows["in_trials"].any():
        return 100.0, "%"
    middle = float(rows["median"].iloc[0])
    for name, seconds in _PER:
        if middle * seconds >= 1:
            return seconds, f"times {'an' if name == 'hour' else 'a'} {name}"
    return 100.0 * YEAR_S, "% a year"


def _cut(label: str) -> str:
    return label if len(label) <= _MOST_LABEL else f"{label[: _MOST_LABEL - 1]}…"


def _caption(frame: pd.DataFrame, shown: dict[str, pd.DataFrame]) -> Iterator[str]:
    there = set(frame["about"])
    yield "Marks: medians. Thick bars: 50 % of what is known; thin ones: 90 %."
    yield "Circles: what the profile made from these data says."
    if "default" in there:
        yield "Squares, and the line: what the profile says without them."
    if "model" in there:
        yield "Diamonds: drives of one model, each on its own."
    if "period" in there:
        yield "Triangles: one period, each on its own."
    left_out = len(frame) - sum(map(len, shown.values()))
    if left_out:
        yield f"Not shown: {counted(left_out, 'row')}, of the models known least and the first periods."
    yield "Rates are Poisson; priors are Jeffreys'."
