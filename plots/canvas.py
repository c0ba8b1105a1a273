"""The page that a figure is drawn on: its title, room for panels, and a caption that goes where the figure goes."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple
from xml.etree import ElementTree

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from quorisk.say import numbers

_LINE_IN, _CHARACTERS_IN = 0.16, 18
"""Inches of a line of the caption, and characters of it per inch."""
_TITLE_LINE_IN, _TITLE_CHARACTERS_IN = 0.2, 9
_GAP_IN, _POINTS_AN_INCH = 0.08, 72.0
_CAPTION = "caption"
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


class Frame(NamedTuple):
    """Overrides of a figure's title, size and caption, given by the caller."""

    title: str | None = None
    size_in: tuple[float, float] | None = None
    """Width and height of figure and caption together."""
    with_caption: bool = True


_FRAME: ContextVar[Frame | None] = ContextVar("_FRAME", default=None)


@contextmanager
def framing(frame: Frame) -> Iterator[None]:
    """Frames the figures made in the body: for a slide, say, without captions, as wide as it is."""
    token = _FRAME.set(frame)
    try:
        yield
    finally:
        _FRAME.reset(token)


def framed(title: str, caption: str, width_in: float, height_in: float) -> tuple[Figure, SubFigure]:
    """Returns a figure, and the part of it for panels and title, of this size; the caption has its room below."""
    wanted = _FRAME.get() or Frame()
    title = title if wanted.title is None else wanted.title
    width_in = wanted.size_in[0] if wanted.size_in else width_in
    lines = textwrap.wrap(caption, int(_CHARACTERS_IN * width_in)) if wanted.with_caption else []
    below_in = _LINE_IN * (len(lines) + 0.5) if lines else 0.01
    height_in = max(wanted.size_in[1] - below_in, 1.0) if wanted.size_in else height_in
    heading = textwrap.wrap(title, int(_TITLE_CHARACTERS_IN * width_in))
    if not wanted.size_in:
        height_in += _TITLE_LINE_IN * (len(heading) - 1)
    figure = Figure(figsize=(width_in, height_in + below_in), layout="constrained")
    canvas, foot = figure.subfigures(2, 1, squeeze=False, height_ratios=(height_in, below_in))[:, 0]
    canvas.suptitle("\n".join(heading), x=0.01, ha="left", weight="bold")
    foot.text(0.01, 1.0, "\n".join(lines), va="top", size=7.5, linespacing=1.3)
    figure.set_label(title)
    foot.set_label(caption)
    foot.set_gid(_CAPTION)
    return figure, canvas


def title_of(figure: Figure) -> str:
    """Returns the title of a framed figure."""
    return str(figure.get_label())


def caption_of(figure: Figure) -> str:
    """Returns the caption of a framed figure."""
    return str(figure.subfigs[1].get_label())


def without_caption(svg: bytes, figure: Figure) -> bytes:
    """Returns the SVG of a framed figure, cut off above its caption."""
    foot = figure.subfigs[1]
    below_in = figure.get_figheight() * foot.bbox_relative.height if foot.bbox_relative else 0.0
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    root = ElementTree.fromstring(svg)
    *corner, width, height = map(float, root.attrib["viewBox"].split())
    height -= _POINTS_AN_INCH * (below_in - _GAP_IN)
    root.attrib |= {"viewBox": " ".join(f"{each:g}" for each in (*corner, width, height)), "height": f"{height:g}pt"}
    for parent in list(root.iter()):
        for caption in parent.findall(f"{{{_SVG}}}g[@id='{_CAPTION}']"):
            parent.remove(caption)
    return ElementTree.tostring(root, "utf-8")


def given_or_current(ax: Axes | None) -> Axes:
    """Returns the axes to draw into: those given, else pyplot's current ones, as in a notebook."""
    if ax is not None:
        return ax
    from matplotlib import pyplot  # here, since it sets up a window system

    return pyplot.gca()


def log_ticks(axis: Axis) -> None:
    """Powers of ten in plain letters: no label is read as mathematics, whatever it holds.

    Where less than two decades are in view there are more of them, as one label alone is no scale.
    """
    low, high = axis.get_view_interval()
    few = MaxNLocator(5) if high < 10 * low else LogLocator(subs=(1, 2, 5))
    axis.set_major_locator(few if high < 100 * low else LogLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: numbers.short(value)))
    axis.set_minor_formatter(NullFormatter())


def beside(axes: Axes, labels: Sequence[str]) -> None:
    """Writes a label for each row to the right of the axes, where these have their ticks."""
    twin = axes.twinx()
    twin.set_ylim(axes.get_ylim())
    twin.set_yticks(axes.get_yticks(), labels, fontsize=7.5)
    twin.tick_params(length=0)
    twin.grid(visible=False)


def name_lines(axes: Axes, ends: Sequence[tuple[float, float, str, str]], size: float = 7.5) -> None:
    """Writes the names of lines to the right of the axes, each joined to the end of its line, none over another.

    `ends` are x, y, name and colour of each line's end, in data coordinates; the y axis is logarithmic.
    """
    low, high = (math.log(end) for end in axes.get_ylim())
    least = 0.075 * (high - low)
    placed: list[tuple[float, tuple[float, float, str, str]]] = []
    for end in sorted(ends, key=lambda end: -end[1]):
        y = math.log(end[1])
        placed.append((min(y, placed[-1][0] - least) if placed else y, end))
    over = max(low - placed[-1][0], 0.0) if placed else 0.0
    for y, (end_x, end_y, name, colour) in placed:
        axes.annotate(
            name, (end_x, end_y), (1.03, (y + over - low) / (high - low)), textcoords="axes fraction", size=size,
            va="center", color=colour, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "relpos": (0, 0.5), "color": colour, "lw": 0.5, "alpha": 0.6, "shrinkB": 2},
        )  # fmt: skip


def panel_columns(num_panels: int, most: int) -> int:
    """Returns the number of panels side by side, `most` at most, that makes rows as full as can be."""
    rows = math.ceil(num_panels / most)
    return math.ceil(num_panels / rows)


def width_beside(labels: Sequence[str]) -> float:
    """Returns the width in inches of a figure with these labels at its left, so that there is room for the rest."""
    return max(6.4, 4.0 + 0.065 * max(len(label) for label in labels))


def legend_columns(labels: Sequence[str], width_in: float) -> int:
    """Returns the number of legend entries that fit side by side."""
    longest = max(len(label) for label in labels)
    return max(1, int(width_in * _CHARACTERS_IN * 0.8 / (longest + 12)))
