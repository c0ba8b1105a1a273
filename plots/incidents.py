"""Figure: how many incidents a year a cluster has, against the entries lost at once."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from quorisk.plots.canvas import framed, log_ticks, name_lines
from quorisk.plots.style import MOST_LINES, Style, quorisk_style
from quorisk.say import choose

_WIDTH_IN, _HEIGHT_IN = 6.4, 3.4
_ROOM = 3.0
"""Room above the highest line and below the lowest one, as a factor."""


def sizes_figure(curves: pd.DataFrame, looks: Mapping[str, Style]) -> Figure | None:
    """Returns the figure of frequency against size (`curves.curve_rows`): each line falls from how often
    anything is lost to how often a whole cluster's worth is; `looks` has the design's style. None if nothing is lost.
    """
    title = "How often at least so many entries are lost at once"
    said = (
        "A point: incidents a year in which at least so many acknowledged entries are lost at once. Further left and "
        "lower is better; a flat line means that an incident, if it comes, is a large one. Bars are intervals, where "
        "these are wider than the marks; of large incidents few may have been drawn."
    )
    names = list(dict.fromkeys(curves["design"]))
    shown = curves[curves["design"].isin(names[:MOST_LINES]) & (curves["per_year"] > 0.0)]
    if not len(shown):
        return None
    left_out = choose.left_out_note(min(len(names), MOST_LINES), len(names), "designs that lose least")
    with quorisk_style():
        figure, canvas = framed(title, said + left_out, _WIDTH_IN, _HEIGHT_IN)
        axes, named = canvas.subplots(), []
        for name in names[:MOST_LINES]:
            line, look = shown[shown["design"] == name].sort_values("entries"), looks[name]
            if not len(line):
                continue
            x, y = line["entries"], line["per_year"]
            named.append((x.iloc[-1], y.iloc[-1], name, look.colour))
            drawn: dict[str, Any] = look.marks(4.5) | {"linestyle": look.dashes}
            axes.errorbar(x, y, [y - line["low"], line["high"] - y], label=name, linewidth=1.2, capsize=2, **drawn)
        axes.set(xscale="log", yscale="log", xlabel="entries lost at once, at least", ylabel="incidents a year")
        axes.set_ylim(shown["per_year"].min() / _ROOM, shown["per_year"].max() * _ROOM)
        log_ticks(axes.yaxis)
        log_ticks(axes.xaxis)
        name_lines(axes, named)
    return figure
