"""Figure: what waiting for one bookie less costs in losses a year, and what those losses are made of."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quorisk.plots.canvas import framed, given_or_current, log_ticks
from quorisk.plots.style import quorisk_style, style_of
from quorisk.say import numbers
from quorisk.say.colours import INK

INDEPENDENT, OUTAGES, PROTOCOL = "disks one by one", "power outages", "messages lost"
TERMS = (INDEPENDENT, OUTAGES, PROTOCOL)
"""What losses a year add up from: those without lost messages and power outages; what outages add; what lost messages
add to both."""
_WIDTH_IN, _HEIGHT_IN = 8.5, 3.4


def ack_quorum_figure(curves: pd.DataFrame, budget: pd.DataFrame, title: str, caption: str) -> Figure:
    """Returns the figure of `curves` (see `curves_over_loss`) beside that of `budget` (see `budget_of`)."""
    with quorisk_style():
        figure, canvas = framed(title, caption, _WIDTH_IN, _HEIGHT_IN)
        left, right = canvas.subplots(1, 2, width_ratios=(1.2, 1))
        curves_over_loss(curves, left)
        budget_of(budget, right)
    return figure


def curves_over_loss(curves: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draws losses a year against message loss: columns `design`, `faults`, `message_loss` and `losses_per_year`.

    A message loss of 0, which a logarithmic axis lacks, is left out.
    """
    axes = given_or_current(ax)
    above = curves[curves["message_loss"] > 0]
    variations = list(above["faults"].unique())
    for index, design in enumerate(above["design"].unique()):
        for variation, faults in enumerate(variations):
            rows = above[(above["design"] == design) & (above["faults"] == faults)].sort_values("message_loss")
            look = style_of(index, variation)
            drawn = {"color": look.colour, "marker": look.marker, "fillstyle": look.fill, "markersize": 5}
            label = f"{design}, {faults}"
            axes.plot(
                rows["message_loss"],
                rows["losses_per_year"],
                linestyle=look.dashes,
                linewidth=1.2,
                label=label,
                **drawn,
            )
    axes.set(xscale="log", yscale="log", xlabel="probability that a message is lost", ylabel="losses a year")
    log_ticks(axes.xaxis)
    log_ticks(axes.yaxis)
    axes.legend(fontsize=7)
    return axes


def budget_of(budget: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draws the terms of losses a year as marks: columns `design`, and each of TERMS.

    A term that adds nothing, or takes away, has no mark, and says so.
    """
    axes = given_or_current(ax)
    rows: list[Mapping[str, float]] = budget.to_dict("records")
    reach = [row[term] for row in rows for term in TERMS if row[term] > 0]
    for index, row in enumerate(rows):
        look, shift = style_of(index), 0.16 * (index - (len(rows) - 1) / 2)
        for place, term in enumerate(TERMS):
            if row[term] > 0:
                axes.plot(row[term], place + shift, color=look.colour, marker=look.marker, linestyle="", markersize=6)
                axes.annotate(
                    numbers.plain(row[term], 2), (row[term], place + shift), (6, -3), textcoords="offset points", size=7
                )
            else:
                axes.annotate(
                    "adds nothing", (min(reach), place + shift), (6, -3), textcoords="offset points", size=7, color=INK
                )
    axes.set(xscale="log", xlabel="losses a year", ylim=(len(TERMS) - 0.5, -0.5))
    axes.set_xlim(min(reach) / 3, max(reach) * 30)
    axes.set_yticks(range(len(TERMS)), TERMS)
    log_ticks(axes.xaxis)
    axes.set_title("what they are made of")
    return axes
