"""Sequence diagrams as SVG: participants side by side, time downwards. Legible in grey and at half a page's width."""

from collections.abc import Mapping
from typing import NamedTuple
from xml.etree import ElementTree as ET

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from quorisk.say.colours import FAINT, INK

ARRIVED, LOST, UNDELIVERED = "arrived", "lost", "undelivered"
"""Fates of a message. Lost ones are dashed and crossed, undelivered ones dashed with an open head."""


class Arrow(NamedTuple):
    """A message from one participant to another, drawn at the step at which it arrived, or was sent if it never did."""

    step: int
    sender: str
    receiver: str
    label: str
    fate: str = ARRIVED
    sent_step: int | None = None
    """The step of its sending, if that was long before its arrival."""


class NoteBox(NamedTuple):
    """A box over one participant, or from the first to the last named."""

    step: int
    over: tuple[str, ...]
    text: str
    strong: bool = False
    """Whether it is the subject of the diagram."""


class Diagram(NamedTuple):
    """Contents of a sequence diagram, from top to bottom."""

    title: str
    caption: str
    participants: tuple[str, ...]
    rows: tuple[Arrow | NoteBox, ...]


FONT_STACK = "DejaVu Sans, Verdana, Geneva, Arial, sans-serif"
_FONT = FontProperties(family="DejaVu Sans", size=12)  # the widest of the stack, so that others fit too
_SIZE, _LINE, _SMALL = 12, 15, 10
_LEFT, _PAD, _GAP, _LEAST = 30, 6, 66, 460
_HEAD, _CROSS = 7, 4.5
_COLOURS = {ARRIVED: INK, LOST: "#d55e00", UNDELIVERED: "#6b7280"}
_FATES = {LOST: "crossed: it is lost", UNDELIVERED: "dashed: it is not received before the end"}
_PAPER, _NOTE, _STRONG = "#ffffff", "#f3f4f6", "#fde68a"


def sequence_svg(diagram: Diagram) -> str:
    """Returns the diagram as the text of an SVG file; the same diagram gives the same text."""
    return _Drawing(diagram).svg()


def _width(text: str, size: float = _SIZE) -> float:
    """Width in pixels."""
    return float(text_to_path.get_text_width_height_descent(text, _FONT, False)[0]) * size / _SIZE


def _wrapped(text: str, width: float, size: float = _SIZE) -> list[str]:
    """Lines of at most that width, if no word is longer."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            longer = f"{line} {word}" if line else word
            if line and _width(longer, size) > width:
                lines.append(line)
                longer = word
            line = longer
        lines.append(line)
    return lines


class _Drawing:
    """An SVG that grows downwards; `_y` is where the next row begins."""

    def __init__(self, diagram: Diagram) -> None:
        self._diagram = diagram
        gap = max([_GAP, *map(_least_gap, diagram.rows)])
        names = diagram.participants
        self._gap = max(gap, (_LEAST - _LEFT) / len(names), *(_width(name) + 2 * _PAD + 8 for name in names))
        self._x: Mapping[str, float] = {name: _LEFT + self._gap * (i + 0.5) for i, name in enumerate(names)}
        self._width = _LEFT + self._gap * len(names)
        self._y = 0.0
        self._lines: list[ET.Element] = []
        self._shapes: list[ET.Element] = []

    def svg(self) -> str:
        self._heading(self._diagram.title, _SIZE, bold=True)
        self._heading(self._diagram.caption, _SMALL)
        self._y += 6
        top = self._y + _LINE
        self._participants()
        step = None
        for row in self._diagram.rows:
            number = row.step if row.step != step and not (isinstance(row, NoteBox) and row.strong) else None
            step = row.step
            if isinstance(row, Arrow):
                self._arrow(row, number)
            else:
                self._note(row, number)
        self._y += 8
        bottom = self._y
        self._participants()
        self._legend()
        lifelines = [self._line(x, top, x, bottom, FAINT) for x in self._x.values()]
        size = f"{self._width:.0f}", f"{self._y + 4:.0f}"
        root = ET.Element(
            "svg",
            {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {size[0]} {size[1]}", "width": size[0]}
            | {"height": size[1], "font-family": FONT_STACK, "font-size": str(_SIZE), "role": "img"},
        )
        ET.SubElement(root, "title").text = self._diagram.title
        ET.SubElement(root, "rect", {"width": "100%", "height": "100%", "fill": _PAPER})
        root.extend([*lifelines, *self._shapes])
        ET.indent(root, "")
        return ET.tostring(root, encoding="unicode") + "\n"

    def _heading(self, text: str, size: int, bold: bool = False) -> None:
        for line in _wrapped(text, (self._width - 2 * _PAD) / (1.12 if bold else 1), size):
            self._y += size + 4
            self._text(line, _PAD, self._y, anchor="start", size=size, bold=bold)

    def _participants(self) -> None:
        for name, x in self._x.items():
            half = _width(name) / 2 + _PAD
            self._box(x - half, self._y, 2 * half, _LINE + 6, _PAPER)
            self._text(name, x, self._y + _LINE)
        self._y += _LINE + 6

    def _arrow(self, arrow: Arrow, number: int | None) -> None:
        start, end = self._x[arrow.sender], self._x[arrow.receiver]
        lines = _wrapped(_label(arrow), abs(end - start) - 2 * _PAD)
        self._y += 5
        self._number(number, self._y + _LINE * len(lines) + 4)
        for line in lines:
            self._y += _LINE
            self._text(line, (start + end) / 2, self._y - 2, halo=True)
        self._y += 4
        colour, side = _COLOURS[arrow.fate], 1 if end > start else -1
        dashes = {} if arrow.fate == ARRIVED else {"stroke-dasharray": "5 3"}
        tip = end - side * (0 if arrow.fate == ARRIVED else 12)
        self._shapes.append(self._line(start, self._y, tip, self._y, colour, **dashes))
        self._shapes.append(_HEADS[arrow.fate](tip, self._y, side, colour))

    def _note(self, note: NoteBox, number: int | None) -> None:
        first, last = self._x[note.over[0]], self._x[note.over[-1]]
        if len(note.over) > 1:
            left, right = first - self._gap * 0.4, last + self._gap * 0.4
            lines = _wrapped(note.text, right - left - 2 * _PAD)
        else:
            lines = _wrapped(note.text, 1.7 * self._gap)
            half = max(map(_width, lines)) / 2 + _PAD
            middle = min(max(first, half + _LEFT - 4), self._width - half - 2)
            left, right = middle - half, middle + half
        self._y += 6
        self._number(number, self._y + _LINE)
        height = _LINE * len(lines) + 6
        self._box(left, self._y, right - left, height, _STRONG if note.strong else _NOTE)
        for i, line in enumerate(lines, 1):
            self._text(line, (left + right) / 2, self._y + _LINE * i)
        self._y += height + 2

    def _legend(self) -> None:
        fates = {row.fate for row in self._diagram.rows if isinstance(row, Arrow)}
        said = [text for fate, text in _FATES.items() if fate in fates]
        if said:
            self._heading("; ".join(["Arrows are drawn where a message is received", *said]) + ".", _SMALL)

    def _number(self, number: int | None, y: float) -> None:
        if number:
            self._text(str(number), _LEFT - 10, y, anchor="end", size=_SMALL)

    def _text(
        self, text: str, x: float, y: float, anchor: str = "middle", size: int = _SIZE, bold: bool = False,
        halo: bool = False,
    ) -> None:  # fmt: skip
        given = {"x": f"{x:.1f}", "y": f"{y:.1f}", "fill": INK}
        given |= {} if anchor == "start" else {"text-anchor": anchor}
        given |= {} if size == _SIZE else {"font-size": str(size)}
        given |= {"font-weight": "bold"} if bold else {}
        given |= {"stroke": _PAPER, "stroke-width": "4", "paint-order": "stroke"} if halo else {}
        element = ET.Element("text", given)
        element.text = text
        self._shapes.append(element)

    def _box(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
        self._shapes.append(ET.Element("rect", place | {"fill": fill, "stroke": INK, "rx": "2"}))

    def _line(self, x1: float, y1: float, x2: float, y2: float, colour: str, **more: str) -> ET.Element:
        ends = {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}"}
        return ET.Element("line", ends | {"stroke": colour, "stroke-width": "1.3"} | more)


def _label(arrow: Arrow) -> str:
    return f"{arrow.label} (sent at {arrow.sent_step})" if arrow.sent_step else arrow.label


def _least_gap(row: Arrow | NoteBox) -> float:
    """Least distance between neighbours at which the longest word of a label fits."""
    if isinstance(row, NoteBox):
        return 0
    return max(_width(word) for word in _label(row).split()) + 2 * _PAD


def _path(d: str, colour: str, fill: str) -> ET.Element:
    return ET.Element("path", {"d": d, "stroke": colour, "stroke-width": "1.3", "fill": fill})


def _full_head(x: float, y: float, side: int, colour: str) -> ET.Element:
    back = x - side * _HEAD
    return _path(f"M{back:.1f} {y - 3.5:.1f}L{x:.1f} {y:.1f}L{back:.1f} {y + 3.5:.1f}Z", colour, colour)


def _open_head(x: float, y: float, side: int, colour: str) -> ET.Element:
    back = x - side * _HEAD
    return _path(f"M{back:.1f} {y - 3.5:.1f}L{x:.1f} {y:.1f}L{back:.1f} {y + 3.5:.1f}", colour, "none")


def _cross(x: float, y: float, side: int, colour: str) -> ET.Element:
    low, high, left, right = y - _CROSS, y + _CROSS, x - _CROSS, x + _CROSS
    d = f"M{left:.1f} {low:.1f}L{right:.1f} {high:.1f}M{left:.1f} {high:.1f}L{right:.1f} {low:.1f}"
    return _path(d, colour, "none")


_HEADS = {ARRIVED: _full_head, LOST: _cross, UNDELIVERED: _open_head}
