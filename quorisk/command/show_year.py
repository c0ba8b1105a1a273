"""Losses of designs in a year as people read them: the line that every verb prints first, and its details."""

import math
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape

from quorisk.analysis.cluster.figures import YearFigure
from quorisk.analysis.decision.whole import Whole
from quorisk.analysis.decision.years import AT_LEAST
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.statistics.estimator import Estimator
from quorisk.analysis.statistics.yearly import FATES, Ends, disagree
from quorisk.command import show
from quorisk.say import numbers, text
from quorisk.say.quantities import YEAR_S, say_time


def headline(p: YearFigure, incidents: YearFigure, out: Console) -> None:
    """Prints P(any loss in a year), its interval, how often that is, and the method."""
    between = f", once in {say_time(YEAR_S / incidents.value)}" if incidents.value else ""
    ends = "" if p.low == p.high else f" {numbers.in_brackets(p.low, p.high)}"
    out.print(escape(f"P(any loss in a year) {_p(p)}{ends}{between}; {p.method}"), style="bold", soft_wrap=True)


def print_p_any(found: Whole, out: Console) -> None:
    """Prints P(any loss in a year), which every verb prints first."""
    headline(found.p_any, found.incidents, out)
    either = [numbers.plain(found.either[fates]) for fates in FATES if found.either]
    if len(set(either)) > 1:
        out.print(
            f"{either[0]} if all that an event touches shares one fate, {either[1]} if each object has its own: the "
            'file does not say which (fates = "shared" or "independent" in a scenario).',
            soft_wrap=True,
        )


def print_year(found: Whole, experiment: Experiment, out: Console) -> None:
    """Prints the losses of a design in a year, their causes, and the simplifications of its scenarios."""
    print_p_any(found, out)
    lost = found.entries
    what = "entries" if experiment.clusters else "objects, counted one by one"
    what += f" ({AT_LEAST})" if lost.method.endswith(AT_LEAST) else ""
    if lost.value:
        ends = "" if lost.low == lost.high else f" {numbers.in_brackets(lost.low, lost.high)}"
        out.print(escape(f"Lost in a year, on average: {numbers.plain(lost.value)}{ends} {what}."), soft_wrap=True)
    if experiment.clusters and found.by_cause:
        causes(found.by_cause, out)
    if not found.scenarios:
        return
    written = ["writing lost a year"] if any("amount" in row for row in found.scenarios.values()) else []
    table = show.make_table("scenario", "events a year", "hits", "P(loss) of one", "lost a year", *written, "method")
    for name, row in found.scenarios.items():
        solved = row["low"] == row["high"]
        p = "0 (proved)" if row["high"] == 0.0 else numbers.plain(row["p"], 6 if solved else 3) if row["p"] else ""
        p = p or numbers.bound(row["high"], numbers.plain)
        p += " (bounds only)" if row["p"] and Estimator.far_apart(row["low"], row["high"]) else ""
        objects = row["per_year"] * row["hits"]
        bound = numbers.bound(objects * row["high"], numbers.plain, math.inf)
        lost_here = numbers.plain(objects * row["p"]) if row["low"] or solved else bound
        ends = "" if solved else f" {numbers.in_brackets(row['low'], row['high'])}"
        happens = f"{row['per_year']:,.12g}", f"{row['hits']:,.12g}"
        time = say_time(row["writing_s_per_year"]) if "amount" in row else "not known" if row["high"] else "0"
        time += f": {numbers.plain(row['records_per_year'])} records" if "records_per_year" in row else ""
        how = row["method"] + (f", {row['runs']:,} runs" if row["runs"] else "")
        table.add_row(name, *happens, escape(p + ends), lost_here, *(time for _ in written), how)
    out.print(table)
    for name in found.scenarios:
        scenario = experiment.scenarios[name]
        words = [f"{name}: {scenario.about}".rstrip(": "), *scenario.simplifications]
        out.print(escape(" ".join(f"{sentence.rstrip('.')}." for sentence in words)), style="dim", soft_wrap=True)


def causes(rates: Mapping[str, float], out: Console) -> None:
    """Prints the causes of lost last copies, the most frequent first; `rates` are incidents by cause, in any unit."""
    total, ranked = math.fsum(rates.values()), sorted(rates, key=lambda cause: -rates[cause])
    said = (f"{text.cause(cause)} ({numbers.share(rates[cause] / total)})" for cause in ranked if rates[cause])
    out.print(f"What took the last copy: {', '.join(said)}; those lost before had not been made again.", soft_wrap=True)


def variants(found: Mapping[str, Whole], out: Console) -> None:
    """Prints P(any loss in a year) of the variants of a comparison, the baseline first."""
    baseline = next(iter(found.values())).p_any
    table = show.make_table("variant", "P(any loss) a year", "difference", "ratio", "lost a year")
    for label, each in found.items():
        p = each.p_any
        ends = "exact" if p.low == p.high else numbers.in_brackets(p.low, p.high)
        difference = numbers.in_brackets(p.low - baseline.high, p.high - baseline.low, numbers.with_sign)
        difference = f"{numbers.with_sign(p.value - baseline.value)}\n{difference}"
        ratio = numbers.plain(p.value / baseline.value) if baseline.value else ""
        others = ("baseline", "") if p is baseline else (escape(difference), ratio)
        table.add_row(label, f"{_p(p)}\n{escape(ends)}", *others, _p(each.entries))
    out.print(table)
    disagreement({label: (each.p_any, each.entries) for label, each in found.items()}, out)
    out.print(
        "Differences follow from two intervals each. One scenario is compared run by run with --scenario NAME.",
        style="dim",
        soft_wrap=True,
    )


def disagreement(found: Mapping[str, tuple[YearFigure, YearFigure]], out: Console) -> None:
    """Prints two designs, if there are such, the first of which loses anything less often in a year, while the second
    loses less. Each design comes with P(any loss in a year) and its losses."""
    ends = {name: (Ends(*p_any[:3]), Ends(*losses[:3])) for name, (p_any, losses) in found.items()}
    rarest, fewest = (sorted(ends, key=lambda name: ends[name][i].value) for i in (0, 1))
    pairs = [(rarer, fewer) for rarer in rarest for fewer in fewest if disagree(ends[rarer], ends[fewer])]
    for rarer, fewer in pairs[:1]:
        more, less = (numbers.plain(ends[name][1].value) for name in (rarer, fewer))
        said = f"{rarer} loses anything less often than {fewer}, but more on average: {more} a year against {less}."
        out.print(escape(said), soft_wrap=True)
    if len(pairs) > 1:
        out.print(f"P(any loss) and losses a year disagree on {numbers.counted(len(pairs) - 1, 'other pair')} as well.")


def print_losses_and_cause(found: Whole, experiment: Experiment, is_shown: bool, out: Console) -> None:
    """Prints the losses of a design in a year, their likeliest cause, and which part of that is shown, if any."""
    print_p_any(found, out)
    total = math.fsum(found.by_cause.values())
    if not total:
        return
    cause = max(found.by_cause, key=lambda each: found.by_cause[each])
    shown = experiment.points[0].scenario
    where = f"one entry{f' in scenario {shown}' if shown else ''}"
    how = f" Shown for {where}:" if is_shown else f" It has no trace of its own. For {where}:"
    how = "" if shown == cause else how
    share = numbers.share(found.by_cause[cause] / total)
    of = f"likeliest incident ({share} of them)" if experiment.clusters else f"cause of most losses ({share})"
    out.print(f"The {of}: {text.cause(cause)}.{how}")


def _p(p: YearFigure) -> str:
    return numbers.plain(p.value) if p.value else numbers.bound(p.high, numbers.plain)
