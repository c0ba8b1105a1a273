"""Rates from data as people read them."""

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape

from quorisk.analysis.experiment import known
from quorisk.analysis.experiment.known import Stated
from quorisk.analysis.rates.answer import RatesAnswer, of_drives
from quorisk.analysis.rates.findings import Finding
from quorisk.analysis.rates.fleet import Fleet
from quorisk.command import show
from quorisk.say.numbers import counted, plain, share
from quorisk.say.quantities import say_rate

_MOST_MODELS = 12
_LEAST_SHARE = 1e-4
"""Least probability that is printed in percent."""


def print_rates(answer: RatesAnswer, out: Console) -> None:
    """Prints the findings on each key and on drives' models, and all oddities in the data."""
    if answer.fleet and answer.fleet.groups:
        _models(answer.fleet, out)
    table = show.make_table("key", "from the data", "90 %", answer.base.name)
    table.columns[0].no_wrap = 3 * max((len(each.key) for each in answer.findings), default=0) < out.width
    for each in answer.findings:
        if each.key:
            default = _default(each, each.default) if each.default else ""
            table.add_row(each.key, *_known(each), escape(default))
    if any(each.key for each in answer.findings):
        out.print(table)
    for each in answer.findings:
        observed = each.observed
        part = f": {_interval(each)} (90 %)" if observed.kind.in_trials and not each.key else ""
        said = f"{observed.kind.name}: {observed.events:,} in {observed.amount}{part} ({observed.source}); {each.why}."
        out.print(escape(said), soft_wrap=True)
    for line in odd(answer):
        out.print(escape(line), style="yellow", soft_wrap=True)


def odd(answer: RatesAnswer) -> Iterator[str]:
    """Yields a line for each kind of oddity in the data."""
    for odd, seen in answer.oddities.items():
        yield f"{odd.what}: {seen.times:,}, {odd.done}{f' (first: {seen.where})' if seen.where else ''}"


def _models(fleet: Fleet, out: Console) -> None:
    drives = of_drives(fleet)
    table = show.make_table("model", "TB", "drive-days", "failures", "a year", "90 %")
    models = sorted(drives["models"], key=lambda each: -each["drive_days"])
    for each in models[:_MOST_MODELS]:
        size = f"{each['capacity_bytes'] / 1e12:.3g}" if each["capacity_bytes"] else "?"
        table.add_row(escape(each["model"]), size, *_counts(each))
    if len(models) > _MOST_MODELS:
        rest = f"{len(models) - _MOST_MODELS:,} other models"
        table.caption = f"{rest} have fewer drive-days: --json lists all"
    table.add_row("all together", "", *_counts(drives), style="bold")
    out.print(table)
    another = drives["another_model"]
    if len(models) > 1:
        out.print(
            f"Another model, of which nothing is known: {share(another['median'])} a year, 90 %: "
            f"{share(another['low'])} to {share(another['high'])}, as models differ.",
            soft_wrap=True,
        )
    out.print(f"{counted(drives['drives'], 'drive')}, {counted(drives['rows'], 'row')}; a year has 365 days here.")


def _counts(each: dict[str, float]) -> tuple[str, ...]:
    interval = f"{share(each['low'])} to {share(each['high'])}"
    return f"{each['drive_days']:,}", f"{each['failures']:,}", share(each["afr"]), interval


def _said(found: Finding, value: float) -> str:
    if not found.observed.kind.in_trials:
        return say_rate(value)
    return share(value) if value >= _LEAST_SHARE else plain(value)


def _known(found: Finding) -> tuple[str, str]:
    """Returns the figure and its 90 % interval; where nothing happened, an upper bound."""
    if found.observed.events:
        return _said(found, found.known.median), _interval(found)
    return f"below {_said(found, float(found.known.quantile(0.95)))}", "none seen: 95 %"


def _interval(found: Finding) -> str:
    """Returns the 90 % interval; a unit of both ends is written once: 0.9 to 2.1 % / year."""
    low, high = (_said(found, float(found.known.quantile(level))) for level in (0.05, 0.95))
    amount, _, unit = low.partition(" ")
    return f"{amount} to {high}" if unit == high.partition(" ")[2] else f"{low} to {high}"


def _default(found: Finding, default: Stated) -> str:
    said = _said(found, float(default.value))
    return f"{said} ({known.say(default.known)})" if default.known else said
