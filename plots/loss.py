"""Figure: the probability that an invariant breaks, against message loss, for each configuration."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import NullLocator

from quorisk.plots.canvas import framed, given_or_current, legend_columns, log_ticks, panel_columns, width_beside
from quorisk.plots.looks import Looks
from quorisk.plots.style import MOST_LINES, MOST_PANELS, MOST_ROWS, MOST_VALUES, Style, quorisk_style, style_of
from quorisk.say import choose, numbers, text
from quorisk.say.colours import FAINT

UPPER_BOUND = "upper bound"
"""Group id of the marks for points without losses."""
_ARROW = 0.55
"""End of an upper bound's arrow, as a part of the bound."""
_DODGE = 0.03
"""The most distance of the outermost lines at a value, as a part of the axis' length: less than a mark's width."""


def loss_figure(
    frame: pd.DataFrame, invariant: str = text.ANY_LOSS, x: str | None = None, hue: str | None = None
) -> Figure:
    """Returns the figure for one invariant of a result frame (`results.frame`).

    Lines against the parameter `x`, if one is given; else against message loss if the grid varies it, else against a
    varied rate, else a row for each configuration. `hue` is a parameter that tells lines apart, in the place of those
    chosen; the others have panels. A point without losses is drawn as the upper end of its interval, with an arrow away
    from it.
    """
    rows = choose.rows_of(frame, invariant)
    axis_keys, keys = _axis_keys(rows, x)
    with quorisk_style():
        if not axis_keys:
            shown = choose.worst(rows, MOST_ROWS)
            width_in, left_out = (width_beside(choose.labels(shown, keys)), choose.left_out_note(len(shown), len(rows)))
            figure, canvas = _framed(rows, width_in, 0.26 * len(shown) + 1.3, left_out)
            _dots(canvas.subplots(), rows, keys)
            return figure
        return _panels(rows, axis_keys, keys, hue)


def loss(frame: pd.DataFrame, invariant: str = text.ANY_LOSS, ax: Axes | None = None) -> Axes:
    """Draws what `loss_figure` does into one pair of axes: all lines, or MOST_LINES of them."""
    axes, rows = given_or_current(ax), choose.rows_of(frame, invariant)
    axis_keys, keys = _axis_keys(rows)
    if not axis_keys:
        _dots(axes, rows, keys)
        return axes
    configurations = text.configurations(rows, keys)[:MOST_LINES]
    looks, rows = Looks(rows), _thinned(rows, axis_keys[0])
    _panel(axes, rows, axis_keys, _places(rows[axis_keys[0]], len(configurations)), configurations, looks)
    axes.set(xlabel=_axis_label(axis_keys), ylabel=text.measure(rows), ylim=_limits(rows))
    log_ticks(axes.yaxis)
    if len(configurations) > 1:
        axes.legend()
    return axes


def _axis_keys(rows: pd.DataFrame, x: str | None = None) -> tuple[list[str], list[str]]:
    """Returns the parameter of the axis (`x`, if given) and those that it fixes, if there is one; and the others."""
    keys = text.varied(rows)
    rates = (key for key in keys if key == text.MESSAGE_LOSS or (key.startswith("rates.") and rows[key].nunique() >= 3))
    against = x or next(rates, None)
    if against is None:
        return [], keys
    rest = [key for key in keys if key != against]
    alike = [key for key in rest if (rows.groupby(against)[key].nunique() == 1).all()]
    return [against, *alike], text.independent(rows, [key for key in rest if key not in alike])


def _split(rows: pd.DataFrame, keys: Sequence[str], hue: str | None) -> tuple[list[str], list[str]]:
    """Returns the parameters that tell panels apart, and those that tell lines apart: `hue` alone, if given."""
    if hue is not None:
        return [key for key in keys if key != hue], [hue]
    panels = [key for key in keys if rows[key].dtype == bool]
    lines = [key for key in keys if key not in panels]
    if not lines:
        panels, lines = lines, panels
    while len(lines) > 1 and len(text.configurations(rows, lines)) > MOST_LINES:
        panels.insert(0, lines.pop(0))
    return panels, lines


def _panels(rows: pd.DataFrame, axis_keys: Sequence[str], keys: Sequence[str], hue: str | None) -> Figure:
    panel_keys, line_keys = _split(rows, keys, hue)
    panels = text.configurations(rows, panel_keys)[:MOST_PANELS]
    configurations = text.configurations(rows, line_keys)[:MOST_LINES]
    looks, num_all, rows = Looks(rows), len(rows), _thinned(rows, axis_keys[0])
    num_shown = sum(len(choose.rows_with(rows, panel | line)) for panel in panels for line in configurations)
    left_out = choose.left_out_note(num_shown, num_all, "points that there is room for")
    abreast = len(text.configurations(rows, panel_keys[-1:]))
    num_columns = abreast if 1 < abreast <= 3 else panel_columns(len(panels), 3)
    num_rows = -(-len(panels) // num_columns)
    width, height = max(3.1 * num_columns, 6.2) + 0.7, 2.9 * num_rows + 1.0
    figure, canvas = _framed(rows, width, height, left_out)
    grid = canvas.subplots(num_rows, num_columns, sharex=True, sharey=True, squeeze=False)
    places = _places(rows[axis_keys[0]], len(configurations))
    for axes, panel in zip(grid.flat, panels, strict=False):
        _panel(axes, choose.rows_with(rows, panel), axis_keys, places, configurations, looks)
        axes.set_title(text.settings(panel, panel_keys))
    grid[0, 0].set_ylim(_limits(rows))
    log_ticks(grid[0, 0].yaxis)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes in grid.flat[len(panels) - num_columns : len(panels)]:
        axes.set_xlabel(_axis_label(axis_keys))
        axes.tick_params(labelbottom=True)
    for axes in grid[:, 0]:
        axes.set_ylabel(text.measure(rows))
    handles, labels = grid[0, 0].get_legend_handles_labels()
    if len(handles) > 1:
        canvas.legend(handles, labels, loc="outside lower left", ncols=legend_columns(labels, width), handlelength=3.5)
    return figure


def _thinned(rows: pd.DataFrame, against: str) -> pd.DataFrame:
    """Returns the rows at MOST_VALUES of the axis' values at most, the smallest and the greatest among them."""
    values = np.unique(rows[against])
    kept = values[np.linspace(0, len(values) - 1, min(len(values), MOST_VALUES)).round().astype(int)]
    return rows[rows[against].isin(kept)]


def _panel(
    axes: Axes,
    rows: pd.DataFrame,
    axis_keys: Sequence[str],
    places: "_Places",
    configurations: Sequence[Mapping[str, Any]],
    looks: Looks,
) -> None:
    """Draws a line for each configuration."""
    against = axis_keys[0]
    for index, configuration in enumerate(configurations):
        series = choose.rows_with(rows, configuration).sort_values(against)
        x = series[against].map(places.of) * places.dodge ** (index - (len(configurations) - 1) / 2)
        label = text.settings(configuration, configuration)
        _series(axes, x, series[against] > 0, series, looks.of(configuration), label)
    _ticks(axes, places.of)


def _series(axes: Axes, x: pd.Series, positive: pd.Series, series: pd.DataFrame, look: Style, label: str) -> None:
    """Draws estimates with intervals, joined by a line where `positive`, and upper bounds with an arrow down."""
    seen = series["losses"] > 0
    joined, zeros = series["p"].where(seen & positive), series["high"][~seen]
    zeros = zeros.where(zeros > 0)  # what cannot be has no place on this axis
    axes.plot(x, joined, color=look.colour, linestyle=look.dashes, linewidth=1.3)
    axes.errorbar(x[seen], series["p"][seen], yerr=_bars(series[seen]), **_BARS, **look.marks(_SIZE))
    hollow = look._replace(fill="none")
    bounds = axes.errorbar(x[~seen], zeros, yerr=(1 - _ARROW) * zeros, uplims=True, **_BARS, **hollow.marks(_SIZE))
    bounds.lines[0].set_gid(UPPER_BOUND)
    axes.plot([], [], label=label, **look.marks(_SIZE) | {"linestyle": look.dashes})
    axes.set(xscale="log", yscale="log")


def _bars(rows: pd.DataFrame) -> np.ndarray:
    """Returns the lengths of error bars below and above the estimates, shape (2, rows)."""
    return np.abs(rows[["low", "high"]].to_numpy().T - rows["p"].to_numpy())


_BARS: Mapping[str, Any] = {"capsize": 2, "elinewidth": 1}
_SIZE = 5
"""Size of marks, in points."""


def _dots(axes: Axes, rows: pd.DataFrame, keys: Sequence[str]) -> None:
    """Draws a row for each configuration, in the grid's order from the top; the worst if there are many."""
    rows = choose.worst(rows, MOST_ROWS)
    y = pd.Series(range(len(rows)), rows.index)
    seen = rows["losses"] > 0
    zeros = rows["high"][~seen]
    axes.errorbar(rows["p"][seen], y[seen], xerr=_bars(rows[seen]), **_BARS, **style_of(0).marks(_SIZE))
    hollow = style_of(0)._replace(fill="none")
    bounds = axes.errorbar(zeros, y[~seen], xerr=(1 - _ARROW) * zeros, xuplims=True, **_BARS, **hollow.marks(_SIZE))
    bounds.lines[0].set_gid(UPPER_BOUND)
    axes.set_yticks(y, choose.labels(rows, keys))
    axes.set_xlim(_limits(rows))  # first: Matplotlib warns of a logarithmic axis without a number on it
    axes.set(xscale="log", ylim=(len(rows) - 0.5, -0.5), xlabel=text.measure(rows))
    log_ticks(axes.xaxis)


def _axis_label(keys: Sequence[str]) -> str:
    alike = "".join(f"\ntogether with {text.name(key)}" for key in keys[1:])
    if keys[0] == text.MESSAGE_LOSS:
        return f"probability that a message is lost{alike}"
    if keys[0].startswith("rates."):
        return f"rate of {text.name(keys[0])} (1 / model time){alike}"
    return f"{text.name(keys[0])}{alike}"


class _Places(NamedTuple):
    """Places of values on a logarithmic axis."""

    of: dict[float, float]
    """Place of each value; that of 0 is a step to the left of the rest."""
    dodge: float
    """Factor from one line to the next, so that marks and bars are not all on top of each other."""


def _places(values: pd.Series, num_lines: int) -> _Places:
    positive = np.unique(values[values > 0])
    ratios = positive[1:] / positive[:-1]
    zero = {0.0: positive[0] / max(3.0, ratios.max(initial=1.0))} if (values == 0).any() else {}
    places = zero | {float(value): float(value) for value in positive}
    decades = math.log10(positive[-1] / min(places.values()))
    room = 0.6 * math.log10(ratios.min(initial=3.0)) / num_lines
    return _Places(places, 10 ** min(_DODGE * decades / max(num_lines - 1, 1), room))


def _ticks(axes: Axes, places: Mapping[float, float]) -> None:
    """Draws ticks at the grid's own values, as far as there is room, and a line that sets 0 apart."""
    shown = list(places)[:: -(-len(places) // 8)]
    axes.set_xticks([places[value] for value in shown], [numbers.short(value) for value in shown])
    axes.xaxis.set_minor_locator(NullLocator())
    if 0.0 in places:
        axes.axvline(1.7 * places[0.0], color=FAINT, linestyle=":", linewidth=1.5)


def _limits(rows: pd.DataFrame) -> tuple[float, float]:
    """Returns the ends of an axis with room for all intervals and arrows, some two decades at least."""
    seen = rows["losses"] > 0
    ends = [*rows["low"][seen], *(_ARROW * rows["high"][~seen])]
    lowest, highest = min((end for end in ends if end > 0), default=1.0), rows["high"].max() or 1.0
    return min(lowest / 2, highest / 50), 2 * highest if text.is_yearly(rows) else min(2 * highest, 1.5)


def _framed(rows: pd.DataFrame, width_in: float, height_in: float, left_out: str) -> tuple[Figure, SubFigure]:
    title = text.question(rows, rows["invariant"].iloc[0])
    return framed(title, caption(rows) + left_out, width_in, height_in)


def caption(rows: pd.DataFrame) -> str:
    """Model, faults, runs, intervals and assumptions of a figure."""
    return (
        f"{text.terms(rows)} Bars: {text.intervals(rows)}. "
        "Hollow marks with an arrow: no breach was seen, and this is the upper end of the interval. "
        f"{text.scheduler(rows)}"
    )
