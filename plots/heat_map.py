"""Figure: the probability that an invariant breaks over two parameters, as a table of shaded cells."""

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from quorisk.plots.canvas import framed, given_or_current, log_ticks, panel_columns
from quorisk.plots.style import quorisk_style
from quorisk.say import choose, numbers, text
from quorisk.say.colours import FAINT, INK

BOUND, MISSING = "upper bound", "no such configuration"
"""Group ids of the cells without losses, and of those that the grid leaves out."""
_COLOURS, _NONE_SEEN = "YlOrBr", "#f1f3f5"
"""Shades, in the same order in grey and to the colour-blind, darker for likelier; the colour if no breach was seen."""
_PREFERRED = (("model.write_quorum", "model.ack_quorum"), ("model.replicas", "variant.truncation"))
_MOST = 8, 6
"""Rows and columns of a panel, at most."""
_PAGE_IN = 8.0, 6.2
"""The most width and height of all panels together, in inches."""
_HALF_LIGHT = 0.179
"""The luminance on which white and black are equally legible: WCAG's contrast is 4.6 to 1 with either."""
_CELL_IN = 0.42, 1.25
"""Height and width of a cell, in inches."""
_FULL_SIZE_CHARACTERS = 24
"""Characters of the longest interval at full size; longer ones are written smaller, to stay within their cells."""
_CHARACTER_IN = 0.06
"""Width of a character of a label beside a row, in inches."""
_LOW_IN = 2.4
"""The greatest height in inches without room for a long label at the colour bar."""
_LABEL_CHARACTERS_IN = 13
"""Characters of the rows' label per inch of the panels' height."""


def axes_keys(frame: pd.DataFrame, x: str | None = None, hue: str | None = None) -> tuple[str, str] | None:
    """Returns the parameters of rows and columns: `hue` and `x`, or those that a design chooses rather than those that
    it does not.

    None if the grid does not vary two parameters, or one fixes the others.
    """
    varied = text.varied(frame)
    for pair in _PREFERRED:
        if set(pair) <= set(varied) and x is None and hue is None:
            return pair
    keys = text.independent(frame, choose.keys_of_design(varied) + choose.faults(varied))
    if x is not None or hue is not None:
        others = [key for key in keys if key not in (x, hue)]
        keys = [hue or next(iter(others), ""), x or next(iter(others), "")]
        return (keys[0], keys[1]) if all(keys) else None
    return (keys[0], keys[1]) if len(keys) > 1 else None


def heat_map_figure(
    frame: pd.DataFrame, invariant: str = text.ANY_LOSS, x: str | None = None, hue: str | None = None
) -> Figure | None:
    """Returns the figure for one invariant of a result frame (`results.frame`): a panel for each setting of the
    parameters that are not its axes, `x` across and `hue` down. None if the grid varies fewer than two parameters.
    """
    rows = choose.rows_of(frame, invariant)
    pair = axes_keys(rows, x, hue)
    if pair is None:
        return None
    panels = _panel_settings(rows, pair)
    lengths = [len(_values(rows, key, most)) for key, most in zip(pair, _MOST, strict=True)]
    panel_in = lengths[1] * _CELL_IN[1] + 0.25, lengths[0] * _CELL_IN[0] + 0.28
    abreast = max(1, int(_PAGE_IN[0] / panel_in[0]))
    shown = panels[: abreast * max(1, int(_PAGE_IN[1] / panel_in[1]))]
    last = rows[list(shown[0])[-1]].nunique() if shown[0] else 1
    abreast = last if 1 < last <= abreast else panel_columns(len(shown), abreast)
    num_rows = -(-len(shown) // abreast)
    num_shown = sum(len(_cells(choose.rows_with(rows, panel), rows, pair)) for panel in shown)
    left_out = choose.left_out_note(num_shown, len(rows), "first points of the grid")
    title = f"{text.question(rows, invariant)}, by {text.name(pair[0])} and {text.name(pair[1])}"
    with quorisk_style():
        longest = max(len(text.value(value)) for value in _values(rows, pair[0], _MOST[0]))
        beside_in = max(1.2, 0.85 + _CHARACTER_IN * longest)
        size_in = max(panel_in[0] * abreast + beside_in, 5.5), panel_in[1] * num_rows + 0.8
        figure, canvas = framed(title, caption(rows) + left_out, *size_in)
        grid = canvas.subplots(num_rows, abreast, squeeze=False, sharex=True, sharey=True)
        for axes, panel in zip(grid.flat, shown, strict=False):
            _panel(axes, choose.rows_with(rows, panel), rows, pair)
            axes.set_title(text.settings(panel, panel), fontsize=8)
        for axes in grid.flat[len(shown) :]:
            axes.set_axis_off()
        for axes in grid.flat[len(shown) - abreast : len(shown)]:
            axes.tick_params(labelbottom=True)
        canvas.supxlabel(text.name(pair[1]), fontsize=9)
        width = max(8, int(_LABEL_CHARACTERS_IN * panel_in[1] * num_rows))
        beside = textwrap.wrap(text.name(pair[0]).replace(".", ". "), width)  # Kafka's names break at their dots
        canvas.supylabel("\n".join(beside).replace(". ", "."), fontsize=9)
        if rows["losses"].any():
            shades = ScalarMappable(LogNorm(*_scale(rows)), _COLOURS)
            label = "upper end of the interval" if size_in[1] > _LOW_IN else "upper end\nof the interval"
            bar = canvas.colorbar(shades, ax=grid, fraction=0.03, aspect=25, label=label)
            log_ticks(bar.ax.yaxis)
            if math.isfinite(target := _target(rows)):
                bar.ax.axhline(target, color=INK, linewidth=2)
                bar.ax.annotate(
                    "target", (0, target), (-3, 0), textcoords="offset points", ha="right", va="center", size=7
                )
    return figure


def heat_map(frame: pd.DataFrame, invariant: str = text.ANY_LOSS, ax: Axes | None = None) -> Axes:
    """Draws the first panel of `heat_map_figure` into one pair of axes. Raises ValueError if the grid varies fewer
    than two parameters.
    """
    axes, rows = given_or_current(ax), choose.rows_of(frame, invariant)
    pair = axes_keys(rows)
    if pair is None:
        raise ValueError("a heat map takes a grid that varies two parameters")
    _panel(axes, choose.rows_with(rows, _panel_settings(rows, pair)[0]), rows, pair)
    axes.set(xlabel=text.name(pair[1]), ylabel=text.name(pair[0]))
    return axes


def _panel_settings(rows: pd.DataFrame, pair: tuple[str, str]) -> list[dict[str, Any]]:
    """Returns the settings that tell panels apart: those of the parameters that are not the axes."""
    keys = [key for key in text.varied(rows) if key not in pair]
    return text.configurations(rows, text.independent(rows, keys))


def _scale(rows: pd.DataFrame) -> tuple[float, float]:
    """Returns the ends of all panels' shades, from rows with losses: centred on any target, and a decade at least."""
    highs = rows["high"][rows["losses"] > 0]
    lowest, highest, target = highs.min(), highs.max(), _target(rows)
    if math.isfinite(target):
        factor = max(highest / target, target / lowest, 10.0)
        return target / factor, target * factor
    return min(lowest, highest / 10), highest


def _target(rows: pd.DataFrame) -> float:
    return float(rows["target"].iloc[0])


def _cells(here: pd.DataFrame, rows: pd.DataFrame, pair: tuple[str, str]) -> list[tuple[int, int, Mapping[str, Any]]]:
    """Returns row, column and results of each configuration that has a cell."""
    down, across = (_values(rows, key, most) for key, most in zip(pair, _MOST, strict=True))
    return [
        (down.index(each[pair[0]]), across.index(each[pair[1]]), each)
        for each in here.to_dict("records")
        if each[pair[0]] in down and each[pair[1]] in across
    ]


def _values(rows: pd.DataFrame, key: str, most: int) -> list[Any]:
    return list(rows[key].unique()[:most])


def _panel(axes: Axes, here: pd.DataFrame, rows: pd.DataFrame, pair: tuple[str, str]) -> None:
    """Draws a cell for each configuration; the scale and the axes are those of all rows."""
    down, across = (_values(rows, key, most) for key, most in zip(pair, _MOST, strict=True))
    shade = _shades(rows)
    cells = _cells(here, rows, pair)
    for y, x, each in cells:
        seen = each["losses"] > 0
        colour = shade(each["high"]) if seen else to_rgb(_NONE_SEEN)
        cell = Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="white", linewidth=1.5)
        cell.set_gid("" if seen else BOUND)
        axes.add_patch(cell)
        ink = "white" if _luminance(colour) < _HALF_LIGHT else "black"
        if not seen:
            dashes: dict[str, Any] = {"linestyle": (0, (3, 2)), "linewidth": 0.8}
            axes.add_patch(Rectangle((x - 0.47, y - 0.42), 0.94, 0.84, fill=False, edgecolor=ink, **dashes))
        _numbers(axes, x, y, each, ink)
    for y, x in set(np.ndindex(len(down), len(across))) - {(y, x) for y, x, _ in cells}:
        empty = Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor="white", edgecolor=FAINT, hatch="////", linewidth=0)
        empty.set_gid(MISSING)
        axes.add_patch(empty)
    axes.set(xlim=(-0.5, len(across) - 0.5), ylim=(len(down) - 0.5, -0.5))
    axes.set_yticks(range(len(down)), [text.value(value) for value in down])
    axes.set_xticks(range(len(across)), [text.value(value) for value in across])
    axes.tick_params(length=0, labelsize=7.5)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def _numbers(axes: Axes, x: int, y: int, each: Mapping[str, Any], ink: str) -> None:
    estimate, below = numbers.probability(each), numbers.interval(each) or "none seen"
    axes.text(x, y - 0.14, estimate, ha="center", va="center", color=ink, size=8, weight="bold")
    size = 6.5 * min(1.0, _FULL_SIZE_CHARACTERS / len(below))
    axes.text(x, y + 0.2, below, ha="center", va="center", color=ink, size=size)


def _shades(rows: pd.DataFrame) -> Callable[[float], Sequence[float]]:
    """Returns a function from an interval's upper end to its colour; without any losses, the colour does not matter."""
    if not rows["losses"].any():
        return lambda _: to_rgb(_NONE_SEEN)
    norm, colours = LogNorm(*_scale(rows)), colormaps[_COLOURS]
    return lambda high: colours(norm(high))


def _luminance(colour: Sequence[float]) -> float:
    """WCAG's relative luminance, from 0 to 1. Source: Web Content Accessibility Guidelines 2.1, W3C (2018)."""
    parts = np.asarray(colour[:3])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def caption(rows: pd.DataFrame) -> str:
    """Model, faults, runs, intervals and assumptions of a figure."""
    return (
        f"{text.terms(rows)} Each cell has the estimate, and below it the interval; {text.intervals(rows)}. "
        "Shades: upper ends of the intervals. "
        "Dashed frame without a shade: no breach was seen, and this is an upper bound. Hatched: not in the grid. "
        f"{text.scheduler(rows)}"
    )
