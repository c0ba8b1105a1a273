"""A design's year as people read it."""

import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from quorisk.analysis.compare.by_year import Years
from quorisk.analysis.compare.compare import Result
from quorisk.analysis.estimate.estimate import Estimate
from quorisk.analysis.statistics.estimator import Estimator
from quorisk.analysis.statistics.yearly import METHOD, Losses
from quorisk.analysis.year import Year
from quorisk.command import show, show_compare
from quorisk.say import numbers
from quorisk.say.quantities import YEAR_S, say_time


def year(result: Year[Any], out: Console) -> None:
    """Prints what a design loses in a year, by scenario and in all, and what the scenarios leave out."""
    table = show.make_table("scenario", "times a year", "P(loss)", "losses a year", "share")
    for name, found in result.scenarios.items():
        risk, per_year = found.data_loss, result.per_year[name]
        if isinstance(found, Estimate):
            p = show.probability(risk) + (f" {numbers.span(risk.low, risk.high)}" if risk.high else "")
            losses = numbers.plain(per_year * risk.p) if risk.low > 0 else _bound(per_year * risk.high)
        else:
            p = "0 (proved)" if risk.proved_zero else f"{risk.p:.12g}"
            losses = numbers.plain(per_year * risk.p)
        share = result.share(name)
        table.add_row(
            name,
            _times(per_year),
            escape(p),
            losses,
            "" if share is None else numbers.share(share),
        )
    out.print(table)
    out.print(escape(said(result.losses, result.unseen)), soft_wrap=True)
    for name, found in result.scenarios.items():
        scenario = result.of[name]
        words = [f"{name}: {scenario.about}".rstrip(": "), *scenario.simplifications, *show.assumed(found.assumptions)]
        out.print(escape(" ".join(f"{sentence.rstrip('.')}." for sentence in words)), style="dim", soft_wrap=True)


def differences(years: Years, out: Console) -> None:
    """Prints by how many losses a year variants differ from their baselines, and in which scenarios."""
    table = show.make_table("variant", "baseline", "losses a year", "of the baseline", "difference")
    for pair in years.pairs:
        difference = f"{numbers.signed(pair.difference)} {numbers.span(pair.low, pair.high, numbers.signed)}"
        of_both = (_seen(pair.of_variant, pair.variant, years), _seen(pair.of_baseline, pair.baseline, years))
        table.add_row(pair.variant, pair.baseline, *of_both, escape(difference))
    out.print(table)
    for name, result in years.scenarios.items():
        out.print(escape(f"{name}, {_times(years.per_year[name])} times a year:"))
        show_compare.compare(result, out)
    hold = f"hold together for all pairs with {numbers.percent(years.confidence)} confidence"
    out.print(f"The differences in losses a year {hold}: {METHOD}.", style="dim", soft_wrap=True)


def _times(per_year: float) -> str:
    return f"{per_year:,.12g}"


def _seen(losses: float, label: str, years: Years) -> str:
    """Losses a year, or the sum of what they may be in each scenario at most."""
    if losses:
        return numbers.plain(losses)
    return _bound(math.fsum(years.per_year[name] * _high(label, result) for name, result in years.scenarios.items()))


def _high(label: str, result: Result) -> float:
    """How likely a variant loses data at most, of which no loss was seen."""
    if label in result.alone:
        return result.alone[label].risk.high
    return Estimator(result.confidence).interval(0, result.runs, result.cut_off[label])[1]


def said(losses: Losses, unseen: Sequence[str] = ()) -> str:
    """Losses a year and the mean time between them, with their interval, in a line.

    `unseen` are scenarios without a loss in their runs that may have more than all others together.
    """
    between_s, least_s, most_s = (YEAR_S * years for years in losses.years_between)
    if losses.low == losses.high:
        return f"{numbers.plain(losses.p, 6)} losses a year (exact){_every(between_s)}"
    interval = f"{numbers.percent(losses.confidence)} interval {numbers.span(losses.low, losses.high)}"
    if unseen or losses.p == 0:
        seen = f"none seen in {', '.join(unseen)}; more runs or `quorisk exact` would decide"
        apart = f"at least {say_time(least_s)} between two losses, on average"
        return f"losses a year {_bound(losses.high)} ({interval}): {seen}; {apart}"
    bounds = f"{say_time(least_s)} to {say_time(most_s) if most_s < math.inf else 'for ever'}"
    return f"{numbers.plain(losses.p)} losses a year ({interval}){_every(between_s)} ({bounds}); {losses.method}"


def _bound(high: float) -> str:
    return numbers.bound(high, numbers.plain, math.inf)


def _every(between_s: float) -> str:
    return f", counted one by one: on average one every {say_time(between_s)}" if between_s < math.inf else ""
