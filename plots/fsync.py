"""Figure: what a power failure takes of an acknowledged record, by how often brokers flush."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quorisk.plots.canvas import framed, given_or_current, log_ticks
from quorisk.plots.style import quorisk_style, style_of
from quorisk.say import numbers
from quorisk.say.colours import INK

_WIDTH_IN, _HEIGHT_IN = 7.5, 3.4


def fsync_figure(losses: pd.DataFrame, flushes: Sequence[str], title: str, caption: str) -> Figure:
    """Returns the figure of `losses`; see `losses_by_flush`."""
    with quorisk_style():
        figure, canvas = framed(title, caption, _WIDTH_IN, _HEIGHT_IN)
        losses_by_flush(losses, flushes, canvas.subplots())
    return figure


def losses_by_flush(losses: pd.DataFrame, flushes: Sequence[str], ax: Axes | None = None) -> Axes:
    """Draws P(loss) against how often brokers flush: columns `flushes`, `what` and `p`, a row for each mark.

    A probability of 0, which a logarithmic axis lacks, is a hollow mark below, with its name.
    """
    axes = given_or_current(ax)
    floor = losses.loc[losses["p"] > 0, "p"].min() / 30
    places = {each: place for place, each in enumerate(flushes)}
    for index, what in enumerate(losses["what"].unique()):
        rows = losses[losses["what"] == what]
        look, x = style_of(index, index), rows["flushes"].map(places) + 0.09 * (index - 1)
        drawn: dict[str, Any] = {"color": look.colour, "marker": look.marker, "markersize": 6}
        above = rows["p"] > 0
        names = (what, "") if above.any() else ("", what)
        axes.plot(x[above], rows["p"][above], linestyle=look.dashes, linewidth=1.2, label=names[0], **drawn)
        axes.plot(x[~above], [floor] * sum(~above), linestyle="", fillstyle="none", label=names[1], **drawn)
        for place, p in zip(x[above], rows["p"][above], strict=True):
            axes.annotate(numbers.plain(p, 3), (place, p), (6, 3), textcoords="offset points", size=7)
    axes.annotate("0, proved", (-0.45, floor), (0, 6), textcoords="offset points", size=7, color=INK)
    axes.set(yscale="log", xlabel="brokers flush", ylabel="P(an acknowledged record is lost)")
    axes.set_ylim(floor / 3, 3)
    axes.set_xlim(-0.5, len(flushes) - 0.5)
    axes.set_xticks(range(len(flushes)), flushes)
    log_ticks(axes.yaxis)
    axes.legend(fontsize=7, loc="center right", bbox_to_anchor=(1.0, 0.75))
    return axes
