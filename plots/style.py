"""The style of figures: legible in grey and to the colour-blind, and the same bytes from the same table."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, NamedTuple

from matplotlib import rcParams, style
from matplotlib.figure import Figure

from quorisk.say.colours import FAINT, INK

_SETTINGS = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "figure.dpi": 100,
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same letters everywhere
    "font.size": 9,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "savefig.dpi": 160,
    "svg.fonttype": "none",  # letters stay letters: they can be searched, and take little room
    "svg.hashsalt": "quorisk",
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a label is one
    "xtick.color": INK,
    "ytick.color": INK,
}
_FONT, _FONTS = b"'DejaVu Sans'", b"'DejaVu Sans', Verdana, sans-serif"  # Verdana's letters are as wide
_CLIP = re.compile(rb'(?:(?<=id=")|(?<=url\(#))p[0-9a-f]{10}')
# Okabe and Ito's palette, which the colour-blind tell apart; dark enough for white paper.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#000000", "#cc79a7", "#56b4e9", "#b8860b", "#7f7f7f")
_MARKERS = ("o", "s", "D", "^", "P", "X", "*", "h")
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
_FILLS = ("full", "left", "bottom", "top")
MOST_LINES = len(_COLOURS)
MOST_ROWS, MOST_PANELS, MOST_VALUES = 16, 6, 24
"""The most rows, panels and values along an axis of a figure, so that it can be read on half a page."""
KINDS: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""The kinds of file that a figure can be saved as, each with the metadata to leave out of it."""


class Style(NamedTuple):
    """The style of a series: marks tell it from others as well as colours do, fills as well as dashes."""

    colour: str
    marker: str
    dashes: object = "-"
    fill: Any = "full"
    """Filled part of a mark; hollow marks, "none", are reserved for points without losses."""

    def marks(self, size: float) -> dict[str, Any]:
        """Returns Matplotlib's arguments for marks of this size, without a line through them."""
        return {
            "color": self.colour, "marker": self.marker, "markersize": size, "fillstyle": self.fill,
            "markerfacecoloralt": "white", "linestyle": "none",
        }  # fmt: skip


def style_of(index: int, variation: int = 0) -> Style:
    """Returns the style of variation number `variation` of series number `index`. The mark changes once all colours, or
    all dashes and fills, have been used; dashes and fills change, too, once all colours have been.
    """
    lap, place = divmod(index, MOST_LINES)
    turn, way = divmod(variation, len(_DASHES))
    marker = _MARKERS[(place + 3 * (lap + turn)) % MOST_LINES]
    way = (way + lap) % len(_DASHES)
    return Style(_COLOURS[place], marker, _DASHES[way], _FILLS[way])


@contextmanager
def quorisk_style() -> Iterator[None]:
    """Applies Matplotlib's settings to figures that are drawn or saved in the body."""
    with style.context(_SETTINGS, after_reset=True):
        yield


def save(figure: Figure, kind: str) -> bytes:
    """Returns a figure as one of KINDS; the same figure gives the same bytes."""
    buffer = BytesIO()
    with quorisk_style():
        _lay_out(figure)
        figure.savefig(buffer, format=kind, metadata=KINDS[kind])
    return _steady(buffer.getvalue()).replace(_FONT, _FONTS) if kind == "svg" else buffer.getvalue()


def _lay_out(figure: Figure) -> None:
    """Settles where a figure's parts are, once: left to matplotlib, each saving would settle it twice.

    Letters are measured as they will be saved: at fewer dots an inch they are narrower, and labels touch the edge.
    """
    engine, shown_dpi = figure.get_layout_engine(), figure.dpi
    if engine is not None:
        figure.dpi = rcParams["savefig.dpi"]
        engine.execute(figure)
        figure.dpi = shown_dpi
        figure.set_layout_engine(None)


def _steady(svg: bytes) -> bytes:
    """Returns an SVG with numbered clip paths: Matplotlib's names for them depend on the last bits of the layout, in
    which two processes differ."""
    names: dict[bytes, bytes] = {}
    return _CLIP.sub(lambda name: names.setdefault(name[0], b"p%d" % len(names)), svg)
