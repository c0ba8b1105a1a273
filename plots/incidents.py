"""Figures of a cluster's incidents: how often so much is lost at once, and P(any loss in a year) over its size."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from quorisk.plots.canvas import framed, log_ticks, name_lines
from quorisk.plots.style import MOST_LINES, Style, quorisk_style
from quorisk.say import choose, numbers

_WIDTH_IN, _HEIGHT_IN = 6.4, 3.4
_ROOM = 3.0
"""Above the highest line and below the lowest one, as a factor."""


def sizes_figure(curves: pd.DataFrame, looks: Mapping[str, Style]) -> Figure | None:
    """Returns the figure of frequency against size (`analysis.cluster.curves.at_least`): each line falls from how often
    anything is lost to how often a whole cluster's worth is; `looks` has the design's style. None if nothing is lost.
    """
    title = "How often at least so many entries are lost at once"
    said = (
        "A point: incidents a year in which at least so many acknowledged entries are lost at once. Further left and "
        "lower is better; a flat line means that an incident, if it comes, is a large one. Bars are intervals, where "
        "these are wider than the marks; of large incidents few may have been drawn."
    )
    labels = "entries lost at once, at least", "incidents a year"
    return _figure(curves, looks, ("entries", "per_year"), labels, title, said)


def nodes_figure(curves: pd.DataFrame, looks: Mapping[str, Style]) -> Figure | None:
    """Returns the figure of P(any loss in a year) against the number of nodes (`analysis.cluster.curves.over_nodes`).
    None if there is none, or only one size of cluster.
    """
    if curves["nodes"].nunique() < 2:
        return None
    title = "P(any loss in a year) of larger and smaller clusters"
    said = (
        "The same entries on more or fewer nodes, each of which fails as often as before. What a node stores is what "
        "the file says, or follows from the entries: then each stores less, the more there are. Lower is better. "
        "Bars are intervals, where these are wider than the marks."
    )
    return _figure(curves, looks, ("nodes", "p"), ("nodes", "P(any loss in a year)"), title, said)


def _figure(
    curves: pd.DataFrame,
    looks: Mapping[str, Style],
    columns: tuple[str, str],
    labels: tuple[str, str],
    title: str,
    said: str,
) -> Figure | None:
    (x, y), names = columns, list(dict.fromkeys(curves["design"]))
    shown = curves[curves["design"].isin(names[:MOST_LINES]) & (curves[y] > 0.0)]
    if not len(shown):
        return None
    left_out = choose.left_out(min(len(names), MOST_LINES), len(names), "designs that lose least")
    with quorisk_style():
        figure, canvas = framed(title, said + left_out, _WIDTH_IN, _HEIGHT_IN)
        axes, named = canvas.subplots(), []
        for name in names[:MOST_LINES]:
            line, look = shown[shown["design"] == name].sort_values(x), looks[name]
            if not len(line):
                continue
            named.append((line[x].iloc[-1], line[y].iloc[-1], name, look.colour))
            drawn: dict[str, Any] = look.marks(4.5) | {"linestyle": look.dashes}
            if "low" in line:
                ends = [line[y] - line["low"], line["high"] - line[y]]
                axes.errorbar(line[x], line[y], ends, label=name, linewidth=1.2, capsize=2, **drawn)
            else:
                axes.plot(line[x], line[y], label=name, linewidth=1.2, **drawn)
        axes.set(xscale="log", yscale="log", xlabel=labels[0], ylabel=labels[1])
        axes.set_ylim(shown[y].min() / _ROOM, shown[y].max() * _ROOM)
        log_ticks(axes.yaxis)
        if x == "nodes":
            axes.set_xticks(sorted(set(shown[x])), [numbers.short(each) for each in sorted(set(shown[x]))])
            axes.minorticks_off()
        else:
            log_ticks(axes.xaxis)
        name_lines(axes, named)
    return figure
