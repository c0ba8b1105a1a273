#!/usr/bin/env python3
"""Draws where a command's time goes, of stacks that py-spy samples: wide is long, and what a function calls is below.

    py-spy record --rate 50 --subprocesses --format raw --output run.raw -- quorisk run configs/pulsar.toml --out DIR
    python scripts/flame.py run.raw docs/gallery/flame_run.svg --rate 50

Of each stack only Quorisk's own functions are shown, and that it imports or compiles. Threads and processes lie side
by side, so widths are seconds of all of them together, waiting left out.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parent.parent))

from quorisk.plots.style import quorisk_style, save
from quorisk.say.colours import INK

OURS = re.compile(r"^(?P<name>.*) \(quorisk/(?P<room>\w+)/.*?(?P<module>\w+)\.py:\d+\)$")
OTHERS = (("numba/core/compiler", "compiling"), ("<frozen importlib", "imports"), ("llvmlite/binding", "compiling"))
ROOMS = {"kernels": "#9cc9e8", "analysis": "#f3c58b", "sparkjobs": "#a8d8b9", "plots": "#e3b7d2", "command": "#e8e8e8"}
OTHERWISE = "#bdbdbd"
HIDDEN = ("wrapper", "<lambda>", "main", "<module>")
LEAST, DEEPEST = 0.004, 14
"""The narrowest box that is drawn, as a share of the whole; and the deepest."""
LETTER = 0.0053
"""Width of a letter, as a share of the whole."""


class Box(NamedTuple):
    """A function, where it was called from that place."""

    name: str
    room: str
    samples: int
    below: list["Box"]


def frames(stack: str) -> Iterator[tuple[str, str]]:
    """(function, room) of what is shown of a stack, outermost first."""
    last = ""
    for frame in stack.split(";"):
        if found := OURS.match(frame):
            function = found["name"].rpartition(".")[2]
            name = f"{found['module']}.{function.lstrip('_')}"
            if function not in HIDDEN and name != last:
                yield name, found["room"]
                last = name
        elif other := next((word for place, word in OTHERS if place in frame), ""):
            if other != last:
                yield other, ""
            return  # whatever comes below is Numba's, or a module's own


def tree(stacks: list[tuple[list[tuple[str, str]], int]], depth: int = 0) -> list[Box]:
    """The boxes of stacks that begin alike, the widest first."""
    groups: dict[tuple[str, str], list[tuple[list[tuple[str, str]], int]]] = {}
    for stack, samples in stacks:
        if len(stack) > depth:
            groups.setdefault(stack[depth], []).append((stack, samples))
    found = [Box(*frame, sum(samples for _, samples in its), tree(its, depth + 1)) for frame, its in groups.items()]
    return sorted(found, key=lambda box: -box.samples)


def draw(axes: Axes, boxes: list[Box], left: float, whole: int, depth: int, rate: float) -> None:
    """Draws boxes side by side from `left` on, and below each what it calls."""
    for box in boxes:
        width = box.samples / whole
        if width >= LEAST and depth < DEEPEST:
            colour = ROOMS.get(box.room, OTHERWISE)
            axes.barh(-depth, width, left=left, height=0.92, align="center", color=colour, edgecolor=INK, linewidth=0.4)
            told = f"{box.name} {box.samples / rate:.1f} s"
            shorter = (told, box.name, box.name.rpartition(".")[2], "")
            if told := next(each for each in shorter if len(each) * LETTER < width):
                axes.text(left + width / 2, -depth, told, ha="center", va="center", fontsize=6)
            draw(axes, box.below, left, whole, depth + 1, rate)
        left += width


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stacks", type=Path, help="py-spy's, in its raw format")
    parser.add_argument("figure", type=Path, help="where to draw it (.svg or .png)")
    parser.add_argument("--rate", type=float, default=100.0, help="samples a second")
    given = parser.parse_args()
    if not given.stacks.is_file():
        parser.error(f"{given.stacks}: no such file")
    lines = [line.rsplit(" ", 1) for line in given.stacks.read_text().splitlines()]
    stacks = [(list(frames(stack)), int(samples)) for stack, samples in lines]
    boxes = tree([(stack, samples) for stack, samples in stacks if stack])
    if not boxes:
        parser.error(f"{given.stacks}: no function of Quorisk's in it; was it recorded with --format raw?")
    whole = sum(box.samples for box in boxes)
    with quorisk_style():
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        axes = figure.add_subplot()
        draw(axes, boxes, 0.0, whole, 0, given.rate)
        axes.set_axis_off()
        axes.set_xlim(0, 1)
        for room, colour in ROOMS.items():
            axes.barh(0, 0, color=colour, edgecolor=INK, linewidth=0.4, label=room)
        axes.legend(loc="lower right", ncols=len(ROOMS), fontsize=7)
        given.figure.write_bytes(save(figure, given.figure.suffix.removeprefix(".")))


if __name__ == "__main__":
    main()
