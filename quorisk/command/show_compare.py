"""Comparisons as people read them."""

import math

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from quorisk.analysis.compare.compare import Result
from quorisk.analysis.estimate.estimate import Risk
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.statistics.estimator import Estimator
from quorisk.analysis.statistics.paired import PairedComparison
from quorisk.command.show import assumption_sentences, make_table, probability_text, warn
from quorisk.say import numbers


def print_comparison(result: Result, out: Console) -> None:
    """Prints a comparison: a table for any data loss, and for each invariant that broke, unless it alone is that."""
    data_loss = [pair.events[DATA_LOSS] for pair in result.pairs]
    for event in result.pairs[0].events:
        found = [pair.events[event] for pair in result.pairs]
        risks = [risk for label in result.variants if (risk := _risk(label, event, result))]
        broke = any(risk.low for risk in risks) if risks else any(each.p_variant or each.p_baseline for each in found)
        same = event in result.data_loss_invariants and found == data_loss
        if event == DATA_LOSS or (broke and not same):
            out.print(_comparisons(event, result))
    out.print(f"{numbers.counted(result.runs, 'run')} of each variant, with the same random numbers", soft_wrap=True)
    cut_off = ", ".join(f"{label} {count:,}" for label, count in result.cut_off.items() if count)
    if cut_off:
        warn(out, f"runs that were cut off and may hide a loss: {cut_off}. Intervals and p allow for them.")
    hold = f"hold together for all {len(result.pairs)} pairs" if len(result.pairs) > 1 else "hold"
    if result.alone:
        out.print(_alone(result), soft_wrap=True)
    if result.small_cases:
        out.print(_in_small_cases(result), soft_wrap=True)
    note = f"The intervals of a column {hold} with {numbers.percent(result.confidence)} confidence."
    test = "p: exact McNemar test, adjusted for the number of pairs (Holm)."
    tested = [each for pair in result.pairs for each in pair.events.values() if each.paired]
    differ = [each for each in tested if each.p_adjusted < 1 - result.confidence]
    if any(each.difference_low <= 0 <= each.difference_high for each in differ):
        test += (
            " If p is small although the interval of the difference contains 0, both are right: the test only asks "
            "whether they differ, while the interval also says by how much, and is wider for it."
        )
    out.print(" ".join([note, test, *assumption_sentences(result.assumptions)]), style="dim", soft_wrap=True)


def _alone(result: Result) -> str:
    """Returns sentences on variants that were estimated alone."""
    by_method: dict[str, list[str]] = {}
    for label, each in result.alone.items():
        by_method.setdefault(each.method, []).append(label)
    how = "; ".join(f"{method}: {', '.join(labels)}" for method, labels in by_method.items())
    said = f"Some lose data too seldom to be seen in these runs, so each variant was estimated alone ({how})."
    shared = [pair for pair in result.pairs if pair.events[DATA_LOSS].from_exits]
    if len(shared) < len(result.pairs):
        said += " Differences and ratios follow from two intervals each."
    if shared:
        names = ", ".join(f"{pair.variant} ({pair.baseline})" for pair in shared)
        said += f" These share a head with their baseline, and the same runs from its exits are compared: {names}."
    return said


def _in_small_cases(result: Result) -> str:
    """Returns sentences on mechanisms without which no run lost data, although data can be lost."""
    found = result.small_cases
    steps = "; ".join(f"{label}: {each.steps} steps" for label, each in found.items())
    sizes = ", ".join(f"{name} {value}" for name, value in next(iter(found.values())).parameters.items())
    return (
        f"No loss was seen without some mechanisms that are needed: an exhaustive search of a small case ({sizes}) "
        f"finds ways to lose data without them ({steps}), and none with all on. These runs do not meet one."
    )


def _comparisons(event: str, result: Result) -> Table:
    """Returns the table of comparisons in one event; the baseline's row is above those of its variants."""
    table, baseline = make_table("variant", "P", "difference", "ratio", "p"), result.pairs[0].baseline
    counted = ", counted in these runs" if result.alone and not _risk(baseline, event, result) else ""
    table.title, table.title_justify = f"{event}{counted}", "left"
    table.add_row(baseline, _probability(result.pairs[0].events[event].p_baseline, baseline, event, result), "baseline")
    for pair in result.pairs:
        each = pair.events[event]
        risks = (_risk(label, event, result) for label in (pair.variant, baseline))
        ratio = _ratio(each, *(risk is not None and risk.high == 0.0 for risk in risks))
        table.add_row(pair.variant, _probability(each.p_variant, pair.variant, event, result), *_cells(each, ratio))
    return table


def _risk(label: str, event: str, result: Result) -> Risk | None:
    """The risk of a variant that was estimated alone; None if all that is known are the counted runs."""
    is_loss = event in (DATA_LOSS, *result.data_loss_invariants)
    return result.alone[label].of(event) if result.alone and is_loss else None


def _probability(p: float, label: str, event: str, result: Result) -> str:
    if risk := _risk(label, event, result):
        return probability_text(risk).replace(" (", "\n(") if risk.high else "0"
    high = Estimator(result.confidence).interval(0, result.runs, result.cut_off[label])[1]
    return numbers.plain(p) if p else numbers.bound(high, numbers.plain)


def _ratio(each: PairedComparison, never: bool, baseline_never: bool) -> str:
    """Returns the ratio with its interval; where a 0 is proved, a word or "0" instead."""
    if baseline_never:
        return "" if never else "baseline never"
    if never:
        return "0"
    most = math.inf if each.ratio_high is None else each.ratio_high
    value = f"{numbers.plain(each.ratio)}\n" if each.ratio else ""
    return value + numbers.in_brackets(each.ratio_low, most)


def _cells(each: PairedComparison, ratio: str) -> list[str]:
    """Returns difference, ratio and p-value. Where no run differed, or two estimates do not, words say so, and what is
    known is the interval. Estimates have no p-value."""
    low, high = each.difference_low, each.difference_high
    differs = each.table.only_variant or each.table.only_baseline if each.paired else low > 0.0 or high < 0.0
    difference = numbers.with_sign(each.difference) if differs else "none seen" if each.paired else "not told apart"
    return [
        escape(f"{difference}\n{numbers.in_brackets(low, high, numbers.with_sign)}"),
        escape(ratio),
        "" if not each.paired else f"{each.p_adjusted:.2g}" if each.p_adjusted >= 1e-99 else "< 1e-99",
    ]
