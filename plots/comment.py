"""A comment for a pull request, in Markdown: the choice, or what a change does to it, in ten lines and a fold."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from quorisk.analysis.decision import verdict
from quorisk.analysis.decision.designs import Design, losses_in_words, measure_of
from quorisk.analysis.decision.judging import MEETS, UNDECIDED
from quorisk.say import numbers
from quorisk.say.templates import templates

_MOST_ROWS = 5
_TEMPLATES = Path(__file__).parent / "templates"
_SAME = "no difference shown"
_ALONE = "Estimates are followed by their intervals."
_NOTE = (
    "Estimates are followed by their intervals. A change is named only if the intervals of all designs, which hold "
    "together with {percent} confidence, say so."
)


class Judged(NamedTuple):
    """The designs of one file or one sweep, as they are judged."""

    designs: Sequence[Design]
    """The designs, by rank."""
    target: float
    """The most that may be lost; infinite without a target."""

    def chosen(self) -> str:
        """Returns the short name of the design to choose; empty if there is none."""
        return verdict.chosen(list(self.designs), self.target)

    def headline(self) -> str:
        """Returns the choice in words or, where there is none, what the verdicts on all designs come to."""
        if chosen := self.chosen():
            return f"run {_plain(chosen)}"
        verdicts = {design.verdict(self.target) for design in self.designs}
        if MEETS in verdicts:
            return "no design is recommended"
        return f"{'it is undecided whether a' if UNDECIDED in verdicts else 'no'} design meets the targets"


def comment(after: Judged, sentences: Sequence[str], before: Judged | None = None, confidence: float = 0.95) -> str:
    """Returns a comment in Markdown: a heading, a table of five designs at most, and the rest in a fold.

    Args:
        after: the designs that the comment is about.
        sentences: further sentences, for the fold.
        before: the designs before a change; None if there is no change to tell.
        confidence: confidence with which all intervals hold together, if there is a `before`.
    """
    old = {each.settings: each for each in before.designs} if before else {}
    shown = _shown(after, old)
    left_out = len(after.designs) - len(shown)
    headline, was = after.headline(), before.headline() if before else ""
    if was:
        headline += ", as before" if was == headline else f" (before: {was.removeprefix('run ')})"
    said = (
        templates(_TEMPLATES)
        .get_template("comment.md.j2")
        .render(
            headline=headline,
            measure=measure_of(after.designs[0]),
            rows=[[_plain(cell) for cell in _row(each, old.get(each.settings), after, before)] for each in shown],
            summary=f"Reasons, and {numbers.counted(left_out, 'more design')}" if left_out else "Reasons",
            sentences=[_plain(each) for each in sentences],
            note=_NOTE.format(percent=numbers.percent(confidence)) if before else _ALONE,
        )
    )
    return f"{said.rstrip()}\n"


def change(before: Design, after: Design) -> str:
    """Returns the change of a design's losses: more, fewer, or no difference shown by the intervals."""
    (low, high), (old_low, old_high) = after.interval, before.interval
    return "fewer losses" if high < old_low else "more losses" if low > old_high else _SAME


def _shown(after: Judged, old: dict[str, Design]) -> list[Design]:
    """The choice, then designs whose losses changed, then the safest."""
    chosen = after.chosen()

    def order(design: Design) -> tuple[bool, bool, int]:
        before = old.get(design.settings)
        same = before is None or change(before, design) == _SAME
        return design.settings != chosen, same, design.rank

    return sorted(after.designs, key=order)[:_MOST_ROWS]


def _row(design: Design, before: Design | None, after: Judged, sweep: Judged | None) -> list[str]:
    name = f"**{design.settings}**" if design.settings == after.chosen() else design.settings
    target = design.verdict(after.target) if math.isfinite(after.target) or design.wanted() else ""
    cells = [name, _risk(design), _size(design), _stores(design), _p99(design), target]
    if sweep is None:
        return cells
    if before is None:
        return [f"{name} (new)", *cells[1:]]
    old = [_risk(before), _size(before), _stores(before), _p99(before), before.verdict(sweep.target) if target else ""]
    pairs = zip(old, cells[1:], strict=True)
    both = [new if new == was else f"{was or 'none'} → {new or 'none'}" for was, new in pairs]
    return [name, f"{both[0]}: {change(before, design)}", *both[1:]]


def _risk(design: Design) -> str:
    interval = numbers.interval(design.worst)
    return f"{losses_in_words(design.worst)}{f' ({interval})' if interval else ''}"


def _size(design: Design) -> str:
    worst: dict[str, Any] = design.worst
    if not design.is_clustered or not worst["incidents"]:
        return ""
    return numbers.entries(numbers.in_full(worst["incident_p50"]))


def _stores(design: Design) -> str:
    worst = design.worst
    if "stored_bytes" in worst:
        return numbers.size(worst["stored_bytes"])
    return numbers.counted(int(worst["stored"]), "copy", "copies") if "stored" in worst else ""


def _p99(design: Design) -> str:
    return f"{numbers.number(design.worst['write_p99_ms'])} ms" if "write_p99_ms" in design.worst else ""


def _plain(given: str) -> str:
    """Returns a text with Markdown and HTML escaped; a bold text stays bold."""
    bold = given.startswith("**") and given.endswith("**") and len(given) > 4
    inner = given[2:-2] if bold else given
    safe = re.sub(r"([\\`*_{}\[\]<>|#!@])", r"\\\1", " ".join(inner.split()))
    return f"**{safe}**" if bold else safe
