"""Choices as people read them: rich tables on a console."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from quorisk.analysis.decision.designs import Design, loses_at_least
from quorisk.analysis.decision.diff import NOT_SHOWN, Change, Diff, Side
from quorisk.analysis.decision.flips import is_flip
from quorisk.analysis.decision.recommend import Advice
from quorisk.analysis.decision.summary import summary
from quorisk.analysis.experiment.config import Experiment
from quorisk.command.show import console, make_table
from quorisk.say import numbers, text

MOST_LINES, _A_SCREEN = 40, 5
"""The most designs that are printed: with all details, and on a screen of 25 lines."""
_IN_TABLE = ("it stores", "it survives", "a write takes")
"""Facts that the table of designs has as well."""
DESIGN, MEETS, STUCK = "design", "targets", "gets stuck"
_PROMISED = ("interval", "an incident", "entries a year", "copies", "survives", "p99, ms", "no writes, min", "stores")
_DETAILS = ("entries a year", "survives")
"""Headings of columns that are details."""
_NEEDED = ("stores", "no writes, min", "interval", "entries a year", "copies", "survives", "p99, ms")
"""Headings of columns that may be left out, the least needed first."""
_MORE = ("--break-even", "all")
_NARROWEST = 14
"""The least width of the column of designs, in characters, if a name is as long."""


def print_advice(
    advice: Advice,
    experiment: Experiment,
    more: Sequence[str] = _MORE,
    details: bool = False,
    out: Console | None = None,
) -> None:
    """Prints the choice, its risk with both kinds of error and the designs, in a screen's lines.

    Args:
        advice: the recommendation, with the designs.
        experiment: the file that they are in.
        more: the options that try figures for which there was no time.
        details: whether to print the reasons, all designs, the scenarios and the model's limits as well.
        out: where to print.
    """
    out = out or console()
    out.print(advice.words.headline, style="bold", soft_wrap=True, markup=False)
    flips = [*advice.words.flips, *([] if advice.is_asked else filter(is_flip, advice.search.told()))]
    said = summary(advice.designs, advice.target, advice.doubt, flips)
    out.print(f"{said.measure} {said.risk}: {said.standing}", soft_wrap=True, markup=False)
    facts = Table.grid(padding=(0, 2))
    for about, fact in said.facts:
        if about not in _IN_TABLE:
            facts.add_row(escape(about), escape(fact))
    out.print(facts)
    for sentence in advice.asked_for if not details else ():
        out.print(f"- {sentence}", soft_wrap=True, markup=False)
    if details:
        for sentence in advice.words.sentences:
            out.print(f"- {sentence}", soft_wrap=True, markup=False)
    left_out = _designs(advice, experiment, details, out)
    if details:
        if left_out:
            out.print(f"Left out for lack of room, see --json: {', '.join(left_out)}", style="dim", soft_wrap=True)
        _details(advice, experiment, more, out)
    else:
        columns = f"{', '.join(left_out)} (--json); " if left_out else ""
        others = len(advice.designs) - _A_SCREEN
        designs = f"{numbers.counted(others, 'more design')}, " if others > 0 else ""
        rest = f"{columns}{designs}reasons, scenarios and what is not modelled (--details)"
        out.print(f"Not shown: {rest}", style="dim", soft_wrap=True)


def _designs(advice: Advice, experiment: Experiment, details: bool, out: Console) -> list[str]:
    """Prints the designs by rank, as many as a screen has room for unless details are wanted; the choice and the
    runner-up are among them. Returns the headings of the columns that there was no room for."""
    most = MOST_LINES if details else _A_SCREEN
    columns = _columns(advice, _losses_heading(advice, experiment), most)
    for heading in () if details else _DETAILS:
        columns.pop(heading, None)
    left_out, widths = _fitting(columns, out.width)
    table = Table()
    for heading in columns:
        justify: Literal["left", "right"] = "left" if heading in ("", DESIGN) else "right"
        table.add_column(heading, justify=justify, overflow="fold", width=widths.get(heading))
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(escape, row))
    out.print(table)
    if details and len(advice.designs) > most:
        out.print(f"{numbers.counted(len(advice.designs) - most, 'more design')}: --json", style="dim")
    return left_out


def _details(advice: Advice, experiment: Experiment, more: Sequence[str], out: Console) -> None:
    """Prints what would change the choice, the scenarios, and the limits of the model."""
    for sentence in (*advice.words.flips, *advice.search.told()):
        out.print(f"- {sentence}", soft_wrap=True, markup=False)
    if advice.search.untried:
        out.print(f"  {experiment.command('recommend', *more)}", soft_wrap=True, markup=False)
    for scenario in advice.scope.scenarios:
        words = [f"{text.cause(scenario.name)}: {scenario.about}".rstrip(": ") + ".", *scenario.simplifications]
        out.print(" ".join(words), style="dim", soft_wrap=True, markup=False)
    limits = [f"- {each}" for each in (*advice.scope.limits, *advice.scope.latency)]
    out.print("Not modelled:", *limits, sep="\n", style="dim", soft_wrap=True, markup=False)


def _losses_heading(advice: Advice, experiment: Experiment) -> str:
    if advice.designs[0].is_clustered:
        return "P(any loss) a year"
    return "losses a year" if experiment.scenarios else "P(data loss)"


def _columns(advice: Advice, losses: str, most: int) -> dict[str, list[str]]:
    """Returns the cells of each column by its heading, without empty columns."""
    first = {each.settings for each in advice.choice[:2]}
    others = [each for each in advice.designs if each.settings not in first][: most - len(first)]
    shown = first | {each.settings for each in others}
    columns: dict[str, list[str]] = {heading: [] for heading in ("", DESIGN, losses, *_PROMISED, MEETS, STUCK)}
    for design in (each for each in advice.designs if each.settings in shown):
        worst = design.worst
        interval = "exact" if worst["low"] == worst["high"] else numbers.in_brackets(worst["low"], worst["high"])
        cells = {
            "": f"{design.rank}.",
            DESIGN: design.settings,
            losses: _losses(design),
            "interval": interval,
            "an incident": _incident(worst) if design.is_clustered else "",
            "entries a year": numbers.plain(worst["entries"]) if design.is_clustered else "",
            "copies": f"{worst['copies']} of {worst['stored']}" if "copies" in worst else "",
            "stores": numbers.size(worst["stored_bytes"]) if "stored_bytes" in worst else "",
            "survives": worst.get("survives", ""),
            "p99, ms": numbers.plain(worst["write_p99_ms"]) if "write_p99_ms" in worst else "",
            "no writes, min": _minutes(worst),
            MEETS: design.verdict(advice.target) if advice.has_targets else "",
            STUCK: "" if advice.has_targets else numbers.plain(design.p_stuck()),
        }
        for heading, cell in cells.items():
            columns[heading].append(cell)
    return {heading: cells for heading, cells in columns.items() if any(cells)}


def _fitting(columns: dict[str, list[str]], width: int) -> tuple[list[str], dict[str, int]]:
    """Takes out the columns that there is no room for, the least needed first. Returns their headings, and the widths
    of the others if designs, verdicts and headings have to take several lines."""

    def wanted(widths: dict[str, int]) -> int:
        return sum(widths.values()) + 3 * len(widths) + 1

    def narrow() -> dict[str, int]:
        widths = {heading: _longest(heading.split(), cells) for heading, cells in columns.items()}
        widths[DESIGN] = min(widths[DESIGN], _NARROWEST)
        if MEETS in widths:
            widths[MEETS] = min(widths[MEETS], len("undecided"))
        return widths

    if wanted({heading: _longest([heading], cells) for heading, cells in columns.items()}) <= width:
        return [], {}
    left_out = []
    for heading in _NEEDED:
        if wanted(narrow()) > width and heading in columns:
            del columns[heading]
            left_out.append(heading)
    widths = narrow()
    return left_out, {**widths, DESIGN: max(widths[DESIGN], widths[DESIGN] + width - wanted(widths))}


def _longest(*texts: Sequence[str]) -> int:
    return max(len(each) for some in texts for each in some or [""])


def _incident(worst: Mapping[str, Any]) -> str:
    return f"{'≥ ' if loses_at_least(worst) else ''}{numbers.in_full(worst['incident_p50'])}"


def _minutes(worst: Mapping[str, Any]) -> str:
    """Returns the minutes of a year for which a ledger takes no writes; empty if there are none, or not known."""
    minutes = worst.get("write_minutes_lost_per_year", 0.0)
    return numbers.plain(minutes, 2) if 0.0 < minutes < math.inf else ""


def _losses(design: Design) -> str:
    if design.is_proved:
        return "0 (proved)"
    worst = design.worst
    return numbers.plain(worst["p"]) if worst["losses"] else f"< {numbers.plain(numbers.above(worst['high']))}"


def print_diff(found: Diff, invariant: str) -> None:
    """Prints the comparison of two sweeps: configurations that differ first, by the size of the difference."""
    out = console()
    changes = sorted(found.changes, key=lambda each: (each.verdict == NOT_SHOWN, -abs(each.difference)))
    if found.p_any_loss_per_year:
        out.print("P(any loss in a year) of a design", soft_wrap=True)
        _changes(found.p_any_loss_per_year, found.physical, out)
    out.print(f"P(a run {text.event(invariant)})", soft_wrap=True)
    _changes(changes, found.physical, out)
    differ = sum(each.verdict != NOT_SHOWN for each in changes)
    verb = "differs" if differ == 1 or len(changes) == 1 else "differ"
    out.print(f"{differ:,} of {numbers.counted(len(changes), 'configuration')} {verb}.", soft_wrap=True)
    for key, values in found.settings.items():
        before, after = (text.said(key, value, found.physical) for value in values)
        out.print(f"{key}: {before} before, {after} after", soft_wrap=True, markup=False)
    if found.only_before or found.only_after:
        out.print(f"configurations in one sweep only: {found.only_before:,} before, {found.only_after:,} after")
    percent = numbers.percent(found.confidence)
    said = f"All differences lie in their brackets with {percent} confidence. Without a loss, upper bounds are shown."
    out.print(said, style="dim", soft_wrap=True)


def _changes(changes: Sequence[Change], physical: bool, out: Console) -> None:
    table = make_table("configuration", "before", "after", "difference", "")
    for each in changes[:MOST_LINES]:
        span = numbers.in_brackets(each.difference_low, each.difference_high, numbers.with_sign)
        unseen = any(side.high > side.p == 0.0 for side in (each.before, each.after))
        difference = f"{'not told apart' if unseen else numbers.with_sign(each.difference)} {span}"
        unit = {text.TIME_UNIT: "s"} if physical else {}
        settings = text.settings(each.settings | unit, each.settings) or "the one configuration"
        table.add_row(settings, _side(each.before), _side(each.after), escape(difference), each.verdict)
    out.print(table)
    if len(changes) > MOST_LINES:
        out.print(f"{len(changes) - MOST_LINES:,} more with --json")


def _side(side: Side) -> str:
    return numbers.plain(side.p) if side.losses else numbers.bound(side.high, numbers.plain)
