#!/usr/bin/env python3
"""Draws the pictures of CONTRIBUTING.md from the imports: the house, and the way of an experiment from file to report.

Example: tests/pictures.py, which writes them where CONTRIBUTING.md has them.
"""

from collections import defaultdict
from importlib import import_module
from itertools import chain
from pathlib import Path

import grimp

PAGE = Path(__file__).parent.parent / "CONTRIBUTING.md"
FACE = "quorisk"
CONTRACT = "kernels/*.py"
"""Modules that lie in `kernels` itself: what protocols, engines and search agree on."""
LOOSE = "analysis/*.py"
EVERYWHERE = "say"
"""Imported by nearly every room, so its arrows would hide the others."""

WAY = (
    ("analysis.experiment.config", "load", "reads the file and its profile, and crosses the grid to points"),
    ("sparkjobs.plan", "cut_tasks", "cuts points into tasks of about equal time"),
    ("kernels.engines.points", "pack", "turns points into arrays"),
    ("kernels.engines.registry", "engine_of", "chooses the engine that makes the runs of a task"),
    ("kernels.engines.tally", "add_run", "adds each run up, in integers"),
    ("analysis.results.schema", "row", "writes a row of a task"),
    ("sparkjobs.merge", "merge", "adds up rows of the same point, whoever made them"),
    ("analysis.statistics.estimator", "Estimator", "chooses the interval"),
    ("analysis.results.frame", "frame", "says what rows say"),
    ("analysis.decision.verdict", "choice", "chooses the design"),
    ("plots.report", "report", "draws it"),
)
"""Module, function, and what it does: the stations of an experiment."""


def room(module: str) -> str | None:
    """The room of CONTRIBUTING.md's map that a module is in; None for the package itself."""
    parts = module.split(".")[1:]
    if not parts:
        return None
    if parts[0] in ("kernels", "analysis"):
        loose = CONTRACT if parts[0] == "kernels" else LOOSE
        return "/".join(parts[:2]) if (PAGE.parent / "/".join(parts[:2])).is_dir() and len(parts) > 1 else loose
    return parts[0] if parts[0] in ("plots", "say", "sparkjobs") else FACE


def imports() -> dict[str, set[str]]:
    """Which rooms each room imports."""
    graph, found = grimp.build_graph("quorisk"), defaultdict[str, set[str]](set)
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            above, below = room(module), room(other)
            if above and below and above != below and EVERYWHERE not in (above, below):
                found[above].add(below)
    return found


def reached(direct: dict[str, set[str]]) -> dict[str, set[str]]:
    """Which rooms each room imports, itself or through others."""
    found = {name: set(direct.get(name, ())) for name in {*direct, *chain.from_iterable(direct.values())}}
    for through, beyond in found.items():
        for below in found.values():
            if through in below:
                below.update(beyond)
    return found


def house() -> str:
    """Mermaid: rooms from the top, and an arrow to each that one imports and does not reach through another. Rooms that
    import each other share a box."""
    below = reached(imports())
    boxes = sorted({tuple(sorted({name} | {o for o in below[name] if name in below[o]})) for name in below})
    places = {name: place for place, box in enumerate(boxes) for name in box}
    arrows = {place: {places[o] for o in below[box[0]]} - {place} for place, box in enumerate(boxes)}
    lines = ["flowchart TD", *(f'    r{place}["{"<br>".join(box)}"]' for place, box in enumerate(boxes))]
    for above, under in sorted(arrows.items()):
        through = set().union(*(arrows[each] for each in under))
        lines += [f"    r{above} --> r{each}" for each in sorted(under - through)]
    return "\n".join(lines)


def way() -> str:
    """Mermaid: the stations of an experiment. Raises AttributeError if one of them is no longer there."""
    lines = ["flowchart LR", '    s0(["experiment.toml"])']
    for place, (module, function, does) in enumerate(WAY, 1):
        getattr(import_module(f"quorisk.{module}"), function)
        lines += [f'    s{place}["<b>{module}</b><br>{function}<br>{does}"]', f"    s{place - 1} --> s{place}"]
    last = len(WAY)
    return "\n".join([*lines, f'    s{last} --> s{last + 1}(["report.html"])'])


def drawn(page: str) -> str:
    """The page with its pictures as they are now; they lie between comments that name them."""
    for name, picture in (("house", house()), ("way", way())):
        begin, end = f"<!-- picture: {name} -->\n", f"<!-- end of {name} -->"
        before, rest = page.split(begin)
        page = f"{before}{begin}```mermaid\n{picture}\n```\n{end}{rest.split(end)[1]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
