"""Figure: how runs end, as a stacked bar for each configuration."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quorisk.plots.canvas import framed, given_or_current, width_beside
from quorisk.plots.style import MOST_ROWS, quorisk_style
from quorisk.plots.tables import OUTCOMES
from quorisk.say import choose, text
from quorisk.say.colours import INK

_LOOKS = {
    "completed": ("white", ""),
    "stuck": ("#dfe4e8", "////"),
    "horizon": ("#a9b3bd", "...."),
    "lost": (INK, ""),
    "unfinished": ("#e69f00", "xxxx"),
}
"""Face and hatch of an outcome: any one of the two tells it from its neighbours."""
_ALWAYS = ("lost", "unfinished")
"""Outcomes whose numbers stand beside the bars, since a bar may be too short to be seen."""


def outcomes_figure(frame: pd.DataFrame) -> Figure:
    """Returns the figure of a result frame (`results.frame`): at most its MOST_ROWS worst configurations."""
    rows = choose.of(frame, text.ANY_LOSS)
    num_shown = min(len(rows), MOST_ROWS)
    left_out = choose.left_out(num_shown, len(rows))
    with quorisk_style():
        width_in = width_beside(_labels(rows))
        figure, canvas = framed("How runs end", caption(rows) + left_out, width_in, 0.2 * num_shown + 1.1)
        axes = canvas.subplots()
        outcomes(frame, axes)
        handles, labels = axes.get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside lower left", ncols=len(labels))
    return figure


def outcomes(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draws a bar for each configuration: the shares of its runs by how they ended; beside it those that count most."""
    axes, rows = given_or_current(ax), choose.of(frame, text.ANY_LOSS)
    labels, rows = _labels(rows), choose.worst(rows, MOST_ROWS)
    y, left = np.arange(len(rows)), np.zeros(len(rows))
    said = {"horizon": text.ended_by(rows)}
    for name in OUTCOMES:
        share = (rows[name] / rows["runs"]).to_numpy()
        if name in _ALWAYS or share.any():
            face, hatch = _LOOKS[name]
            axes.barh(
                y, share, 0.75, left, label=said.get(name, name), color=face, hatch=hatch, edgecolor=INK, linewidth=0.5
            )
            left = left + share
    axes.set_yticks(y, labels, fontsize=7)
    axes.set(xlim=(0, 1), ylim=(len(rows) - 0.5, -1.2), xlabel="share of the runs")
    axes.set_xticks(np.linspace(0, 1, 6), [f"{share:.0%}" for share in np.linspace(0, 1, 6)])
    axes.grid(visible=False)
    for name, right in zip(_ALWAYS, (42, 92), strict=True):
        _beside(axes, -0.95, name, right)
        for place, count in enumerate(rows[name]):
            _beside(axes, place, f"{count:,}", right, weight="bold" if count else "normal")
    return axes


def _labels(rows: pd.DataFrame) -> list[str]:
    return choose.labels(choose.worst(rows, MOST_ROWS), text.independent(rows, text.varied(rows)))


def _beside(axes: Axes, place: float, said: str, right: float, weight: str = "normal") -> None:
    """Words to the right of a bar, that end this many points from the axes."""
    axes.annotate(
        said,
        (1.0, place),
        (right, 0),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=7,
        weight=weight,
        annotation_clip=False,
    )


def caption(rows: pd.DataFrame) -> str:
    """Model, faults, runs and assumptions of a figure; what the numbers are, as they have no interval."""
    return (
        f"{text.terms(rows)} Shares are counts divided by runs, without intervals; for lost runs the table has "
        f"{text.intervals(rows, of_runs=True)}. Beside the bars: numbers of runs. Unfinished runs reached the limit of "
        "steps; they count neither as lost nor as safe. "
        f"{text.scheduler(rows)}"
    )
