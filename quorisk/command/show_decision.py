"""Choices as people read them: rich tables on a console."""

from rich.markup import escape
from rich.table import Table

from quorisk.analysis.decision.diff import NOT_SHOWN, Diff, Side
from quorisk.command.show import console
from quorisk.plots import numbers, text

MOST_LINES = 40


def diff(found: Diff, invariant: str) -> None:
    """Prints how two sweeps compare: what differs first, the largest difference before all."""
    out = console()
    changes = sorted(found.changes, key=lambda each: (each.verdict == NOT_SHOWN, -abs(each.difference)))
    table = Table()
    table.add_column("configuration")
    for heading in ("before", "after", "difference", ""):
        table.add_column(heading, justify="right")
    for each in changes[:MOST_LINES]:
        span = numbers.span(each.difference_low, each.difference_high, numbers.signed)
        difference = f"{numbers.signed(each.difference)} {span}"
        settings = text.settings(each.settings, each.settings) or "the one configuration"
        table.add_row(settings, _side(each.before), _side(each.after), escape(difference), each.verdict)
    out.print(f"P(a run {text.event(invariant)})", soft_wrap=True)
    out.print(table)
    if len(changes) > MOST_LINES:
        out.print(f"{len(changes) - MOST_LINES:,} more with --json")
    differ = sum(each.verdict != NOT_SHOWN for each in changes)
    out.print(f"{differ:,} of {len(changes):,} configurations differ.", soft_wrap=True)
    for key, (before, after) in found.settings.items():
        out.print(f"{key}: {text.value(before)} before, {text.value(after)} after", soft_wrap=True, markup=False)
    if found.only_before or found.only_after:
        out.print(f"not in both: {found.only_before:,} before, {found.only_after:,} after")
    percent = numbers.percent(found.confidence)
    said = f"All differences lie in their brackets together with {percent} confidence. No losses: upper bounds."
    out.print(said, style="dim", soft_wrap=True)


def _side(side: Side) -> str:
    return numbers.plain(side.p) if side.losses else numbers.bound(side.high, numbers.plain)
