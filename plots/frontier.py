"""Figure: the frontier of designs: losses, write latency, writes that stop, and storage of each."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quorisk.analysis.decision import verdict
from quorisk.analysis.decision.designs import Design, ranked_designs
from quorisk.plots.canvas import framed, given_or_current, log_ticks, name_lines
from quorisk.plots.ranking import mark_style
from quorisk.plots.style import MOST_LINES, Style, quorisk_style
from quorisk.say import choose, numbers, text
from quorisk.say.colours import FAINT, INK

_TITLE = "Losses, latency, storage, and writes that stop"
LATENCY, STORED = "write_p99_ms", "stored"
UPPER_BOUND, PROVED, FRONTIER, ALLOWED = "upper bound", "proved", "frontier", "allowed"
"""Group ids: marks of designs without a loss in their runs, marks of those proved to lose nothing, rings around designs
that no other beats, and bars of uncertain rates."""
_OTHERS = Style("#8a949e", ".")
_ARROW, _MOST_OTHERS = 0.6, 40
"""End of an upper bound's arrow, as a part of the bound; the most designs without a name that have a mark."""
_SIZE, _A_COPY, _RING = 3.0, 1.5, 6.0
"""Points of a mark's diameter: of any, more for each copy stored, and more for the ring around it."""
_TARGET: dict[str, Any] = {"color": INK, "linewidth": 1.2, "linestyle": (0, (4, 2))}


def frontier_figure(frame: pd.DataFrame) -> Figure | None:
    """Returns the figure of a result frame, about any data loss: losses down, the 99th percentile of writes across
    (without [latency], the copies stored), and storage as the size of the mark. None if that says nothing: for one
    design, or for a protocol without copies.
    """
    rows = choose.rows_of(frame, text.ANY_LOSS)
    found = ranked_designs(rows)
    if len(found) < 2 or STORED not in rows:
        return None
    with quorisk_style():
        figure, canvas = framed(_TITLE, caption(rows, found), 6.4, 3.4)
        frontier(frame, canvas.subplots())
    return figure


def frontier(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draws a mark for each design, those with a mechanism off small and grey, and a ring around those that no other
    one beats in all of losses, latency and storage at once; dashed lines are the targets.
    """
    axes, rows = given_or_current(ax), choose.rows_of(frame, text.ANY_LOSS)
    found = ranked_designs(rows)
    across, floor, target = LATENCY if LATENCY in rows else STORED, _floor(found), float(rows["target"].iloc[0])
    for design in _others(found):
        _mark(axes, design, design.worst[across], floor, _OTHERS, 4.0)
    for design in _named(found):
        x, size = design.worst[across], _SIZE + _A_COPY * design.worst[STORED]
        _mark(axes, design, x, floor, mark_style(design, target), size)
        if not any(_beats(other, design, across) for other in found):
            ring: dict[str, Any] = {"color": INK, "mfc": "none", "markersize": size + _RING, "linewidth": 0.8}
            axes.plot(x, _height(design, floor), "o", gid=FRONTIER, **ring)
    axes.set(yscale="log", ylabel=text.measure(rows), xlabel="copies stored")
    if across == STORED:
        axes.set_xticks(sorted({int(each.worst[STORED]) for each in found}))
    else:
        axes.set(xscale="log", xlabel="p99 of a write, ms")
        log_ticks(axes.xaxis)
        if math.isfinite(wanted := rows["wants_write_p99_ms"].iloc[0]):
            axes.axvline(wanted, **_TARGET)
    if math.isfinite(target):
        axes.axhline(target, **_TARGET)
    if any(each.is_proved for each in found):
        axes.axhspan(floor / 4, 2 * floor, color=FAINT, alpha=0.35, linewidth=0)
    highest = max([_height(each, floor) for each in found] + [target] * math.isfinite(target))
    highest = max(highest, *(each.worst.get("allowed_high", 0.0) / 3.0 for each in found))
    axes.set_ylim(floor / 4, 4 * highest if text.is_yearly(rows) else min(4 * highest, 1.5))
    log_ticks(axes.yaxis)
    ends = [
        (each.worst[across], _height(each, floor), _label(each), mark_style(each, target).colour)
        for each in _named(found)
    ]
    name_lines(axes, ends)
    return axes


def _named(found: Sequence[Design]) -> list[Design]:
    """Returns the designs with a mark and a name of their own: those that may be chosen, MOST_LINES at most."""
    return [each for each in found if not each.is_changed][:MOST_LINES]


def _others(found: Sequence[Design]) -> list[Design]:
    """Returns the designs that have a mark but no name: the safest of the rest."""
    named = {each.settings for each in _named(found)}
    return [each for each in found if each.settings not in named][:_MOST_OTHERS]


def _height(design: Design, floor: float) -> float:
    """Returns the y of a design's mark: the estimate, or the upper end without losses, and `floor` at least."""
    worst = design.worst
    return max(worst["p"] if worst["losses"] else worst["high"], floor)


def _floor(found: Sequence[Design]) -> float:
    """Returns a value below all intervals and arrows: the place of designs that are proved to lose nothing."""
    ends = [each.worst["low"] or _ARROW * each.worst["high"] for each in found]
    ends += [10.0 * each.worst.get("allowed_low", 0.0) for each in found]
    return min((end for end in ends if end > 0), default=1.0) / 10.0


def _mark(axes: Axes, design: Design, x: float, floor: float, look: Style, size: float) -> None:
    worst = design.worst
    if (most := worst.get("allowed_high", 0.0)) > 0.0:
        axes.vlines(x, worst["allowed_low"], most, colors=look.colour, alpha=0.25, linewidth=5.0, gid=ALLOWED)
    drawn = look.marks(size)
    bars: dict[str, Any] = {"capsize": 2, "elinewidth": 0.9}
    if design.is_proved:
        axes.plot(x, floor, gid=PROVED, **drawn)
    elif worst["losses"]:
        reach = [[max(worst["p"] - worst["low"], 0.0)], [max(worst["high"] - worst["p"], 0.0)]]
        axes.errorbar(x, worst["p"], yerr=reach, **bars, **drawn)
    else:
        drawn |= {"fillstyle": "full", "mfc": "none"}
        bound = axes.errorbar(x, worst["high"], yerr=(1 - _ARROW) * worst["high"], uplims=True, **bars, **drawn)
        bound.lines[0].set_gid(UPPER_BOUND)


def _label(design: Design) -> str:
    worst = design.worst
    stores = numbers.size(worst["stored_bytes"]) if "stored_bytes" in worst else f"{worst[STORED]} copies"
    return f"{design.settings}, {stores}{', stops at any restart' if design.stops_writes else ''}"


def _beats(one: Design, other: Design, across: str) -> bool:
    """Whether one design is as good as another one in losses (upper ends), latency and storage, and better in one."""
    mine, theirs = ([each.worst["high"], each.worst[across], each.worst[STORED]] for each in (one, other))
    return not one.is_changed and mine != theirs and all(a <= b for a, b in zip(mine, theirs, strict=True))


def caption(rows: pd.DataFrame, found: Sequence[Design]) -> str:
    """Returns the caption of the figure of these rows and their designs."""
    said = [
        text.terms(rows),
        f"Each design is shown under its worst faults. Bars: {text.intervals(rows)}.",
        "Hollow marks with an arrow: no loss was seen, and this is the upper end of the interval. Larger marks store "
        "more: a name says how much.",
        "Ringed: no other design is as good in the upper end of the interval, in latency and in storage, and better in "
        "one of them. Dashed lines: targets.",
    ]
    if verdict.has_targets(list(found), float(rows["target"].iloc[0])):
        said.append(
            "Circles meet the targets, plus signs do so but stop writes at any restart, crosses lose too much, squares "
            "miss another one, diamonds are undecided."
        )
    if any(each.worst.get("allowed_high", 0.0) > 0.0 for each in found):
        said.append("Wide, pale bars: nine times in ten, with rates as uncertain as the file says.")
    if any(each.is_proved for each in found):
        said.append("On grey ground: proved to lose nothing.")
    if len(_named(found)) < len(found):
        said.append("Small and grey: a mechanism is off, a risky setting is on, or there is no room for a name.")
    num_shown = len(_named(found)) + len(_others(found))
    left_out = choose.left_out_note(num_shown, len(found), "designs that are named or the safest of the others").strip()
    return " ".join(filter(None, [*said, text.scheduler(rows), left_out]))
