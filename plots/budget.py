"""Figure: the parts of losses, a stacked bar for each design: on a cluster by the cause of incidents, else by scenario,
or without any by the kinds of faults met."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quorisk.analysis.decision.designs import Design, losses_in_words, ranked_designs
from quorisk.plots.canvas import beside, framed, legend_columns
from quorisk.plots.style import MOST_ROWS, quorisk_style
from quorisk.say import choose, text
from quorisk.say.colours import INK

_LOOKS = (
    ("#0072b2", ""), ("#e69f00", "////"), ("#9fb4c4", "...."), ("#d55e00", "xxxx"),
    ("#ffffff", "\\\\\\\\"), ("#56b4e9", "++++"), ("#3c4650", ""),
)  # fmt: skip
"""Faces and hatches, the largest share first; THE_REST has the last."""
NO_FAULT, THE_REST = "no fault", "others"
_WIDTH_IN, _ROW_IN = 6.4, 0.26
_AROUND_IN, _LEGEND_LINE_IN = 1.05, 0.15
"""Inches above and below the bars, without the legend; inches of a line of the legend."""


class BudgetPart(NamedTuple):
    """A share of a design's losses."""

    of: str
    share: float


def budget_figure(frame: pd.DataFrame, losses_by_faults: pd.DataFrame | None = None) -> Figure | None:
    """Returns the figure of a result frame and of its losses by kinds of faults (`shares_by_faults`). None if nothing
    was lost, or there are neither scenarios nor faults to tell losses apart by.
    """
    rows = choose.rows_of(frame, text.ANY_LOSS)
    found = [each for each in ranked_designs(rows) if each.worst["losses"]]
    shown = sorted(found, key=lambda each: -each.worst["high"])[:MOST_ROWS]
    parts, title, clustered = dict[str, list[BudgetPart]](), "by the faults that were met", text.is_clustered(rows)
    if clustered or (text.is_yearly(rows) and rows[text.SCENARIO].nunique() > 1):
        title = "by cause" if clustered else "by scenario"
        parts = {each.settings: _shares({text.cause(of): n for of, n in each.by_cause.items()}) for each in shown}
    elif losses_by_faults is not None and losses_by_faults["faults"].map(bool).any():
        parts = {each.settings: shares_by_faults(each, losses_by_faults) for each in shown}
    if not any(parts.values()):
        return None
    left_out = choose.left_out_note(len(shown), len(found), "designs that lose most")
    with quorisk_style():
        names, _ = _told_apart(parts)
        columns = legend_columns(names, _WIDTH_IN)
        height_in = _ROW_IN * len(shown) + _AROUND_IN + _LEGEND_LINE_IN * math.ceil(len(names) / columns)
        figure, canvas = framed("What losses are made of", caption(rows) + left_out, _WIDTH_IN, height_in)
        axes = canvas.subplots()
        _stack(axes, parts, "share of the incidents" if clustered else "share of the losses")
        axes.set_title(title)
        canvas.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=columns, fontsize=7)
        axes.set_yticks(range(len(shown)), [each.settings for each in shown], fontsize=7.5)
        beside(axes, [losses_in_words(each.worst) for each in shown])
    return figure


def shares_by_faults(design: Design, losses_by_faults: pd.DataFrame) -> list[BudgetPart]:
    """Returns the shares of a design's losses by set of kinds of faults, under the faults that are worst for it.

    `losses_by_faults` has a row for each point and set that came up: `point_id`, `faults` (names of kinds, none if the
    run met no fault) and `p`, the probability that a run loses data and met just these.
    """
    amounts: dict[str, float] = defaultdict(float)
    for row in design.worst.get("parts", [design.worst]):
        met = losses_by_faults[losses_by_faults["point_id"] == row["point_id"]]
        for faults, p in zip(met["faults"], met["p"], strict=True):
            amounts[" + ".join(faults) or NO_FAULT] += row.get("per_year", 1.0) * row.get("hits", 1.0) * p
    return _shares(amounts)


def _shares(amounts: Mapping[str, float]) -> list[BudgetPart]:
    total = math.fsum(amounts.values())
    return [BudgetPart(of, amount / total) for of, amount in amounts.items() if amount > 0]


def _stack(axes: Axes, parts: Mapping[str, Sequence[BudgetPart]], of: str) -> None:
    """Draws a stacked bar for each design; shares that are small everywhere are joined. `of` labels the axis."""
    names, rest = _told_apart(parts)
    left = np.zeros(len(parts))
    for name, (face, hatch) in zip(names, _LOOKS, strict=False):
        these = rest if name == THE_REST else [name]
        share = np.array([math.fsum(part.share for part in each if part.of in these) for each in parts.values()])
        look: dict[str, Any] = {"color": face, "hatch": hatch, "edgecolor": INK, "linewidth": 0.5}
        axes.barh(range(len(parts)), share, 0.7, left, label=name, **look)
        left += share
    for y, each in enumerate(parts.values()):
        if not each:
            axes.annotate("causes not recorded", (0, y), (4, 0), textcoords="offset points", va="center", size=7)
    axes.set(xlim=(0, 1), ylim=(len(parts) - 0.5, -0.5), xlabel=of)
    axes.set_xticks(np.linspace(0, 1, 6), [f"{share:.0%}" for share in np.linspace(0, 1, 6)])
    axes.grid(visible=False)


def _told_apart(parts: Mapping[str, Sequence[BudgetPart]]) -> tuple[list[str], list[str]]:
    """Returns the names that a panel shows, the largest share first, and the names that THE_REST stands for, if any."""
    weights: dict[str, float] = defaultdict(float)
    for each in parts.values():
        for part in each:
            weights[part.of] += part.share
    names = sorted(weights, key=lambda of: -weights[of])
    if len(names) <= len(_LOOKS):
        return names, []
    return [*names[: len(_LOOKS) - 1], THE_REST], names[len(_LOOKS) - 1 :]


def caption(rows: pd.DataFrame) -> str:
    """Returns the caption of the figure of these rows."""
    if text.is_clustered(rows):
        return (
            "The incidents of each design, by what they are put down to, with those of scenarios beside the cluster. "
            "Shares have no intervals; the table of designs has those of P(any loss in a year), which is on the right."
        )
    solved = "Where losses were solved, these shares were, too. " if (rows["inside"] > 0.0).any() else ""
    what = "its losses a year" if text.is_yearly(rows) else "its probability of data loss"
    met = "Before a run lost data, it met each of the faults named at least once, and no others. "
    return (
        f"{text.terms(rows)} Each design that lost data is shown under its worst faults; on the right is the estimate "
        f"of {what}. {'' if text.is_yearly(rows) else met}{solved}{text.scheduler(rows)}"
    )
