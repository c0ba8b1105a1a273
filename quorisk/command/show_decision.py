"""Choices as people read them: rich tables on a console."""

from rich.markup import escape
from rich.table import Table

from quorisk.analysis.decision.diff import NOT_SHOWN, Diff, Side
from quorisk.analysis.decision.recommend import Advice
from quorisk.analysis.experiment.config import Experiment
from quorisk.command.show import console
from quorisk.plots import numbers, text
from quorisk.plots.designs import Design

MOST_LINES = 40


def recommend(advice: Advice, experiment: Experiment) -> None:
    """Prints the designs by rank, what to choose and why, and what would change that."""
    out = console()
    table = Table()
    for heading in ("", "design", "losses a year" if experiment.scenarios else "P(data loss)", "interval"):
        table.add_column(heading, justify="left" if heading in ("", "design") else "right", overflow="fold")
    promised = [name for name in _PROMISED if any(name in design.worst for design in advice.designs)]
    for name in promised:
        table.add_column(_PROMISED[name], justify="right", overflow="fold")
    table.add_column("meets the targets" if advice.has_targets else "gets stuck", justify="right", overflow="fold")
    for design in advice.designs[:MOST_LINES]:
        worst = design.worst
        interval = "exact" if worst["low"] == worst["high"] else numbers.span(worst["low"], worst["high"])
        last = design.verdict(advice.target) if advice.has_targets else numbers.plain(design.p_stuck())
        cells = [numbers.size(worst[name]) if name == "stored_bytes" else _cell(worst[name]) for name in promised]
        table.add_row(f"{design.rank}.", design.settings, _losses(design), escape(interval), *cells, last)
    out.print(table)
    if len(advice.designs) > MOST_LINES:
        out.print(f"{len(advice.designs) - MOST_LINES:,} more with --json")
    out.print(advice.words.headline, style="bold", soft_wrap=True)
    for sentence in advice.words.sentences:
        out.print(f"- {sentence}", soft_wrap=True, markup=False)
    for sentence in advice.words.flips:
        out.print(f"- {sentence}", soft_wrap=True, markup=False)
    for sentence in advice.search.told():
        out.print(f"- {sentence}", soft_wrap=True, markup=False)
    if advice.search.untried:
        out.print(f"  {experiment.command('recommend', '--break-even', 'all')}", soft_wrap=True, markup=False)
    for scenario in advice.scope.scenarios:
        words = [f"{scenario.name}: {scenario.about}".rstrip(": ") + ".", *scenario.simplifications]
        out.print(" ".join(words), style="dim", soft_wrap=True, markup=False)
    out.print("Not modelled:", *advice.scope.limits, *advice.scope.latency, style="dim", soft_wrap=True, markup=False)


_PROMISED = {
    "copies": "copies when acknowledged",
    "stored": "stored",
    "stored_bytes": "stores",
    "survives": "survives",
    "write_p99_ms": "p99 of a write, ms",
}


def _cell(value: object) -> str:
    return numbers.plain(value) if isinstance(value, float) else str(value)


def _losses(design: Design) -> str:
    if design.is_proved:
        return "0 (proved)"
    worst = design.worst
    return numbers.plain(worst["p"]) if worst["losses"] else f"< {numbers.plain(numbers.above(worst['high']))}"


def diff(found: Diff, invariant: str) -> None:
    """Prints how two sweeps compare: what differs first, the largest difference before all."""
    out = console()
    changes = sorted(found.changes, key=lambda each: (each.verdict == NOT_SHOWN, -abs(each.difference)))
    table = Table()
    table.add_column("configuration", overflow="fold")
    for heading in ("before", "after", "difference", ""):
        table.add_column(heading, justify="right", overflow="fold")
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
        out.print(f"configurations in only one: {found.only_before:,} before, {found.only_after:,} after")
    percent = numbers.percent(found.confidence)
    said = f"With {percent} confidence, all differences lie within their brackets. Where none was lost: upper bounds."
    out.print(said, style="dim", soft_wrap=True)


def _side(side: Side) -> str:
    return numbers.plain(side.p) if side.losses else numbers.bound(side.high, numbers.plain)
