"""Elasticities of losses as people read them."""

import math

from rich.console import Console
from rich.markup import escape

from quorisk.analysis.decision.depends import YearlyElasticities
from quorisk.analysis.rates.sensitivity import UNKNOWN, Sensitivity
from quorisk.analysis.statistics.estimator import Estimator
from quorisk.command import show, show_year
from quorisk.say import elasticities, numbers, text

_SAME = 1e-8
"""Relative distance of two ends up to which they are not printed as an interval."""
_SHARE = 0.05
"""Least share of the incidents for which a scenario's losing runs are described."""
_MOST_SETS = 5
"""The most sets of kinds of faults that are printed with their shares of losses."""
_FLAT = 5e-5
"""Absolute elasticity below which it is printed as 0."""
_MOST_ROWS = 12
"""The most rows of a table: figures that matter less are counted in a line."""


def print_sensitivity(found: Sensitivity | YearlyElasticities, out: Console) -> None:
    """Prints the dependence of one design's losses on its figures."""
    if isinstance(found, YearlyElasticities):
        _year(found, out)
        return
    out.print(escape(f"P(loss) {_risk(found)}; {found.method}"), soft_wrap=True)
    if found.method == UNKNOWN:
        out.print("Too few of the runs lost data to tell what losses depend on, and not enough could be solved.")
    elif not any(value is not None for value in found.elasticities.values()):
        out.print("No run can lose data: there is nothing that losses could depend on.")
    else:
        _table(found.values, found.elasticities, found.intervals, "run.time_unit" in found.parameters, out)
        _words(found.elasticities, out)
        _losing_run(found, out)
    for sentence in show.assumption_sentences(found.assumptions):
        out.print(escape(sentence), style="dim", soft_wrap=True)


def _year(found: YearlyElasticities, out: Console) -> None:
    show_year.print_p_any(found.whole, out)
    physical = any("run.time_unit" in each.parameters for each in found.scenarios.values())
    out.print("Losses are P(any loss in a year) here; elasticities_of in --json has others.", soft_wrap=True)
    _table(found.values, found.elasticities, {}, physical, out)
    _words(found.elasticities, out)
    rates = {name: found.whole.by_cause.get(name, 0.0) for name in found.scenarios}
    total = math.fsum(found.whole.by_cause.values())
    for name in found.taken_as_0:
        part = numbers.share(rates[name] / (total or 1.0))
        said = f"How {name}, with a share of {part}, depends on some figures is not known, and counts as 0."
        out.print(escape(said), soft_wrap=True)
    for name, each in found.scenarios.items():
        out.print(escape(f"{name}: P(loss) {_risk(each)}; {each.method}"), soft_wrap=True)
        if rates[name] >= _SHARE * total > 0.0:
            _losing_run(each, out)


def _risk(found: Sensitivity) -> str:
    if found.high - found.low <= _SAME * found.p:
        return numbers.plain(found.p, 6)
    only = " (bounds only)" if Estimator.far_apart(found.low, found.high) else ""
    return f"{numbers.plain(found.p)}{only} {numbers.in_brackets(found.low, found.high)}"


def _table(
    values: dict[str, float],
    of: dict[str, float | None],
    intervals: dict[str, tuple[float, float] | None],
    physical: bool,
    out: Console,
) -> None:
    ranked = sorted(of, key=lambda key: -abs(of[key] or 0.0))
    shown = ranked[:_MOST_ROWS]
    table = show.make_table("of", "value", "elasticity", "about, if doubled")
    for key in shown:
        value, interval = of[key], intervals.get(key)
        said = "not known" if value is None else _signed(value)
        if interval and interval[0] < interval[1]:
            said += f" {_signed(interval[0])} to {_signed(interval[1])}"
        twice = "" if value is None else f"× {numbers.plain(2**value) if abs(value) >= _FLAT else 1}"
        table.add_row(key, text.said(key, values[key], physical), said, twice)
    out.print(table)
    if more := len(ranked) - len(shown):
        out.print(f"{numbers.counted(more, 'other')}: --json has them all.", style="dim")


def _signed(value: float) -> str:
    return f"{value:+.4f}".replace("-", "−") if abs(value) >= _FLAT else "0"


def _words(of: dict[str, float | None], out: Console) -> None:
    for sentence in elasticities.elasticity_sentences(of):
        out.print(escape(sentence), soft_wrap=True)


def _losing_run(found: Sensitivity, out: Console) -> None:
    if found.faults:
        out.print(escape(f"A run that loses data meets: {elasticities.fault_times(found.faults)}."), soft_wrap=True)
    if found.losses_by_faults:
        parts = ", ".join(
            f"{' + '.join(each.faults) or 'no fault'} {numbers.share(each.share)}"
            for each in found.losses_by_faults[:_MOST_SETS]
        )
        out.print(escape(f"What losses are made of, by the faults that were met: {parts}."), soft_wrap=True)
    if found.likeliest_path:
        path = found.likeliest_path
        out.print(f"The likeliest path to a loss, {numbers.share(path.share)} of them:")
        for line in elasticities.path(path.steps):
            out.print(escape(f"  {line}"), soft_wrap=True)
        out.print(escape(f"  {path.verdict}"), soft_wrap=True)
