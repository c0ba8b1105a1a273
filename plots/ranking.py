"""Figure: the designs on one line of losses, with both kinds of error, the targets and the choice."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from quorisk.analysis.decision import verdict
from quorisk.analysis.decision.designs import Design, losses_in_words
from quorisk.analysis.decision.doubt import Doubt
from quorisk.analysis.decision.judging import MEETS, UNDECIDED
from quorisk.analysis.statistics.estimator import Estimator
from quorisk.plots.canvas import beside, framed, given_or_current, log_ticks
from quorisk.plots.style import MOST_ROWS, Style, quorisk_style
from quorisk.say import choose, numbers
from quorisk.say.colours import FAINT, INK

ALLOWED, COMPUTED, UPPER_BOUND, CHOSEN = "allowed", "computed", "upper bound", "chosen"
"""Group ids: bars of uncertain rates, intervals at the rates given, marks of upper bounds, the choice."""
_BLUE, _GREY, _RED = "#0072b2", "#6b7785", "#d55e00"
_RISKY = "a mechanism off, or a risky setting on"
_MEETS, _STOPS = "meets the targets", "meets them, but any restart stops writes"
_SHAPES = {
    _MEETS: ("o", _BLUE),
    _STOPS: ("P", _BLUE),
    "loses more than the target": ("X", _RED),
    "misses another target": ("s", _RED),
    "undecided": ("D", INK),
    _RISKY: ("^", _GREY),
}
"""Marker and colour of each standing of a design; the shape alone tells them apart in grey."""
_WITHOUT_TARGET = {_MEETS: "no target was set", _STOPS: "no target was set; any restart stops writes"}
_ROW_IN, _AROUND_IN, _WIDTH_IN = 0.31, 1.25, 7.6
_ARROW = 0.55
"""End of an upper bound's arrow, as a part of the bound."""
_SHORTEST_IN, _NARROWEST = 3.0, 2.0
"""Least height of the figure, and the least ratio of the axis' ends."""


def ranking_figure(
    found: Sequence[Design], target: float, measure: str, caption: str, sure: Doubt | None = None
) -> Figure | None:
    """Returns the figure of designs by rank: a row each.

    Args:
        found: the designs, by rank.
        target: the largest loss that is allowed, in the unit of `measure`; infinite without a target.
        measure: the label of the axis, such as "P(any loss in a year)".
        caption: model, runs and intervals, in sentences.
        sure: what is known of the rates, drawn as wide pale bars; None if nothing is.

    Returns:
        The figure; None if every design is proved to lose nothing, which has no place on a logarithmic axis.
    """
    shown = _shown(found, target)
    if not any(each.worst["high"] > 0.0 for each in shown):
        return None
    left_out = choose.left_out_note(len(shown), len(found), "the choice and the safest of the other designs")
    height_in = max(_SHORTEST_IN, _AROUND_IN + _ROW_IN * len(shown))
    with quorisk_style():
        figure, canvas = framed(_TITLE, f"{_HOW} {caption}{left_out}", _WIDTH_IN, height_in)
        ranking(shown, target, measure, sure, canvas.subplots())
        canvas.legend(handles=_legend(shown, target, sure), loc="outside lower left", ncols=3, fontsize=7.5)
    return figure


_TITLE = "Designs, ranked by the upper end of their interval"
_HOW = (
    "Further left is better. Dark bars: intervals, at the rates given. Wide, pale bars: nine times in ten, with rates "
    "as uncertain as the file says. Hollow marks with an arrow: no loss was seen, and this is the interval's upper end."
)


def ranking(
    found: Sequence[Design], target: float, measure: str, sure: Doubt | None = None, ax: Axes | None = None
) -> Axes:
    """Draws a row for each design: its estimate, both kinds of error, its standing by shape; the choice is ringed."""
    axes = given_or_current(ax)
    picks = verdict.choice(list(found), target)
    for y, design in enumerate(found):
        if sure is not None and (known := sure.allowed.get(design.settings)):
            axes.barh(y, known.high - known.low, 0.62, known.low, color=FAINT, gid=ALLOWED, zorder=1)
        if picks and design.settings == picks[0].settings and _at(design) > 0.0:
            axes.plot(_at(design), y, "o", color=INK, mfc="none", markersize=14, gid=CHOSEN, zorder=4)
        _mark(axes, y, design, standing(design, target))
    if math.isfinite(target):
        axes.axvline(target, color=INK, linewidth=1.2, linestyle=(0, (4, 2)), zorder=2)
        axes.annotate(f"target {numbers.short(target)}", (target, 1.0), (3, 2), xycoords=("data", "axes fraction"),
                      textcoords="offset points", size=8)  # fmt: skip
    axes.set(xscale="log", xlabel=measure, ylim=(len(found) - 0.4, -0.6))
    axes.set_yticks(range(len(found)), [each.settings for each in found])
    for label, design in zip(axes.get_yticklabels(), found, strict=True):
        label.set_fontweight("bold" if picks and design.settings == picks[0].settings else "normal")
    axes.grid(axis="y", visible=False)
    low, high = axes.get_xlim()
    if high < _NARROWEST * low:
        middle = math.sqrt(low * high)
        axes.set_xlim(middle / _NARROWEST, middle * _NARROWEST)
    log_ticks(axes.xaxis)
    beside(axes, [_note(design, picks) for design in found])
    return axes


def standing(design: Design, target: float) -> str:
    """Returns a design's standing to the targets: a label of the legend."""
    if design.is_changed:
        return _RISKY
    said = design.verdict(target)
    if said == MEETS:
        return _STOPS if design.stops_writes else _MEETS
    if said == UNDECIDED:
        return "undecided"
    return "misses another target" if design.shortfalls() else "loses more than the target"


def mark_style(design: Design, target: float) -> Style:
    """Returns the style of a design's mark, wherever marks say how designs stand to the targets."""
    marker, colour = _SHAPES[standing(design, target)]
    return Style(colour, marker)


def _shown(found: Sequence[Design], target: float) -> list[Design]:
    """The designs that have a row: the choice, and the safest of the others."""
    picks = {each.settings for each in verdict.choice(list(found), target)[:1]}
    others = [each for each in found if each.settings not in picks][: MOST_ROWS - len(picks)]
    kept = picks | {each.settings for each in others}
    return [each for each in found if each.settings in kept]


def _at(design: Design) -> float:
    """Returns the x of a design's mark: its estimate, or the upper end of its interval if no run lost data."""
    return float(design.worst["p"] if design.worst["losses"] else design.worst["high"])


def _mark(axes: Axes, y: int, design: Design, stands: str) -> None:
    (marker, colour), worst, at = _SHAPES[stands], design.worst, _at(design)
    if at <= 0.0:  # proved: it has no place on this axis
        return
    drawn: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 7, "capsize": 3, "zorder": 3}
    if worst["losses"]:
        low = max(worst["low"], at * 1e-6)
        bars = axes.errorbar(at, y, xerr=[[max(at - low, 0.0)], [max(worst["high"] - at, 0.0)]], **drawn)
        bars.lines[0].set_gid(COMPUTED)
    else:
        bars = axes.errorbar(at, y, xerr=(1 - _ARROW) * at, xuplims=True, mfc="white", **drawn)
        bars.lines[0].set_gid(UPPER_BOUND)


def _note(design: Design, picks: Sequence[Design]) -> str:
    """Returns the estimate, and what the mark alone does not say. Where ends are far apart, an estimate alone would
    look better than another design's bound."""
    said, worst = [losses_in_words(design.worst)], design.worst
    if worst["losses"] and Estimator.far_apart(worst["low"], worst["high"]):
        said.append(f"up to {numbers.number(numbers.above(worst['high']))}")
    if picks and design.settings == picks[0].settings:
        said.append("the choice")
    elif picks and any(each.settings == design.settings for each in picks):
        said += filter(None, [design.tie(picks[0]).partition(":")[0]])  # the first screen says why
    said += design.shortfalls()[:1]
    if design.stops_writes:
        said.append("any restart stops writes")
    return ", ".join(said)


def _legend(found: Sequence[Design], target: float, sure: Doubt | None) -> list[Any]:
    """A mark for each standing that occurs, the ring and the bars."""
    stands = {standing(each, target) for each in found}
    is_bounded = math.isfinite(target) or found[0].wanted()
    handles: list[Any] = [
        Line2D([], [], label=name if is_bounded else _WITHOUT_TARGET.get(name, name), **Style(colour, marker).marks(6))
        for name, (marker, colour) in _SHAPES.items()
        if name in stands
    ]
    if verdict.choice(list(found), target):
        handles.append(Line2D([], [], label="the choice", mfc="none", **Style(INK, "o").marks(11)))
    lossless = [not each.worst["losses"] for each in found if each.worst["high"] > 0.0]
    if not all(lossless):
        handles.append(Line2D([], [], color=_GREY, marker="|", markersize=6, label="interval, at the rates given"))
    if any(lossless):
        handles.append(Line2D([], [], label="hollow: at most", mfc="white", **Style(_GREY, "o").marks(6)))
    if sure is not None and any(each.settings in sure.allowed for each in found):
        handles.append(Patch(color=FAINT, label="uncertain rates (90 %)"))
    return handles
