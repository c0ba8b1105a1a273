"""The losses of a cluster as people read them."""

import math
from collections.abc import Sequence

from rich.console import Console

from quorisk.analysis.cluster import sampled
from quorisk.analysis.cluster.answer import ClusterAnswer
from quorisk.analysis.cluster.availability import RackDown, Unavailable, Writing
from quorisk.analysis.cluster.figures import YearFigure
from quorisk.analysis.decision.years import AT_LEAST
from quorisk.command import show_year
from quorisk.command.show import make_table
from quorisk.say import numbers, text
from quorisk.say.quantities import YEAR_S, say_time

_METHODS = {
    "strata": "strata, solved or sampled, with a bound of what they leave out",
    sampled.METHOD: "{years:,} years of the cluster drawn at random",
}
_LARGEST = " The one of entries lost a year takes the largest incident that was drawn for the largest there is."
_UNTIL = "until other nodes take the places of those that are down"
_SAME = 0.999
"""Least ratio of the rate of ten times a size to the size's own for which the smaller size is not printed."""
_KNOWN = 2.0
"""Factor within which the low end of a rate's interval has to be, or else only the upper bound is printed."""


def print_clusters(found: Sequence[ClusterAnswer], confidence: float, out: Console) -> None:
    """Prints the losses of designs on their clusters: all details of a single design, or a line for each."""
    if len(found) == 1:
        _one(found[0], confidence, out)
    else:
        _several(found, out)
    _small_print(found, confidence, out)


def _one(found: ClusterAnswer, confidence: float, out: Console) -> None:
    losses = found.losses
    show_year.headline(losses.p_any, losses.incidents, out)
    if losses.in_entries:
        size = numbers.in_full(losses.in_entries["p50"].value)
        entries = "entry" if size == "1" else "entries"
        out.print(f"Lost at once{_of_own(found)}: {size} {entries} (median).", soft_wrap=True)
    table = make_table("", "", f"{numbers.percent(confidence)} interval")
    table.add_row("P(any loss in a year)", *_cells(losses.p_any))
    table.add_row("P(any loss in ten years)", *_cells(losses.p_any_in_ten_years))
    table.add_row("incidents a year", *_cells(losses.incidents))
    least = ", at least" if losses.entries.method.endswith(AT_LEAST) else ""
    table.add_row(f"entries lost a year{least}", *_cells(losses.entries))
    out.print(table)
    if losses.in_entries:
        _sizes(found, out)
        show_year.causes({name: cause.share for name, cause in losses.by_cause.items()}, out)
        out.print(f"So much at once, or more{_of_own(found)}: {_at_least(found)}.", soft_wrap=True)
    _availability(found, out)


def _several(found: Sequence[ClusterAnswer], out: Console) -> None:
    median = "median entries" if all(each.own_share == 1.0 for each in found) else "median entries\n(cluster alone)"
    headings = ("P(any loss)\na year", "once in", median, "p99", "entries a year")
    table = make_table("design", *headings)
    for each in found:
        losses = each.losses
        sizes = [numbers.in_full(losses.in_entries[name].value) for name in ("p50", "p99") if losses.in_entries]
        table.add_row(
            _settings(each),
            "\n".join(_cells(losses.p_any)),
            _between(losses.incidents).removeprefix("once in "),
            *(sizes or ["", ""]),
            _value(losses.entries),
        )
    out.print(table)
    show_year.disagreement({_settings(each): (each.losses.p_any, each.losses.entries) for each in found}, out)


def _settings(found: ClusterAnswer) -> str:
    """Returns a design's settings in words: a cluster's time is physical."""
    return text.settings({**found.design, text.TIME_UNIT: "s"}, found.design)


def _cells(figure: YearFigure) -> tuple[str, str]:
    return _value(figure), numbers.between(numbers.below(figure.low), numbers.above(figure.high))


def _value(figure: YearFigure) -> str:
    """Returns the figure in words; its upper bound if nothing else is known of it."""
    if figure.value == 0.0:
        return f"< {numbers.plain(numbers.above(figure.high))}" if figure.high > 0.0 else "0"
    return numbers.plain(figure.value)


def _between(incidents: YearFigure) -> str:
    if incidents.value == 0.0:
        return f"less than once in {say_time(YEAR_S / incidents.high)}" if incidents.high > 0.0 else "never"
    return f"once in {say_time(YEAR_S / incidents.value)}"


def _of_own(found: ClusterAnswer) -> str:
    return "" if found.own_share == 1.0 else f", in incidents of the cluster ({numbers.share(found.own_share)} of all)"


def _sizes(found: ClusterAnswer, out: Console) -> None:
    which = "an incident" if found.own_share == 1.0 else "an incident of the cluster"
    table = make_table(f"{which} loses", "median", "p90", "p99")
    losses = found.losses
    table.add_row("entries", *(numbers.in_full(size.value) for size in losses.in_entries.values()))
    if found.entry_bytes:
        sizes = (numbers.size(max(1.0, found.entry_bytes * size.value)) for size in losses.in_entries.values())
        table.add_row("bytes", *sizes)
    if losses.in_ledgers:
        table.add_row("ledgers with a loss", *(numbers.in_full(size.value) for size in losses.in_ledgers.values()))
    out.print(table)
    if unbounded := [name for name, size in losses.in_entries.items() if math.isinf(size.high)]:
        names = " and ".join(name.replace("p50", "the median") for name in unbounded)
        out.print(f"Too few incidents were drawn to tell how large {names} may be at most.", soft_wrap=True)


def _at_least(found: ClusterAnswer) -> str:
    """Returns how often each size or more is lost, without sizes that are reached as often as ten times as much. Rates
    of rarely drawn sizes are upper bounds."""
    rates = {size: rate for size, rate in found.losses.at_least.items() if rate.value > 0.0}
    told = {
        size: rate
        for size, rate in rates.items()
        if 10.0 * size not in rates or rates[10.0 * size].value < _SAME * rate.value
    }
    said = {
        numbers.counted(round(size), "entry", "entries"): f"once in {say_time(YEAR_S / rate.value)}"
        if rate.low >= rate.value / _KNOWN
        else f"less than once in {say_time(YEAR_S / rate.high)}"
        for size, rate in told.items()
    }
    return "; ".join(f"{size} {between}" for size, between in said.items())


def _availability(found: ClusterAnswer, out: Console) -> None:
    available = found.availability
    for verb, state in (("read", available.reading), ("closed", available.closing)):
        if state and state.part > 0.0:
            out.print(_unavailable(verb, state), soft_wrap=True)
    if available.outage_s_per_year:
        out.print(f"The whole cluster is out for {say_time(available.outage_s_per_year)} a year.", soft_wrap=True)
    if available.writing:
        out.print(_writing(available.writing), soft_wrap=True)
    if available.rack_down:
        out.print(_rack_down(available.rack_down), soft_wrap=True)


def _writing(writing: Writing) -> str:
    until = _UNTIL if writing.has_room else "as long as it lasts"
    part = f"{numbers.share(_whole(writing.node_down))} of ledgers take no writes {until}"
    said = f"While one node is down: {part if writing.node_down else 'all ledgers take writes'}."
    if writing.minutes_per_year is None:
        return said
    said += f" A ledger takes none for {numbers.plain(writing.minutes_per_year, 2)} minutes a year on average"
    if not writing.electing_minutes:
        return f"{said}."
    minutes, each = numbers.plain(writing.electing_minutes, 2), say_time(writing.leaderless_for_s)
    return f"{said}; in {minutes} of them it has no leader, {each} after each stop of one that does not hand over."


def _rack_down(down: RackDown) -> str:
    until = _UNTIL if down.has_room else "as long as it lasts"
    ways = [
        (down.reading, "all ledgers can be read", "cannot be read (entries in them are lost if it is gone for good)"),
        (down.closing, "all can be closed", "cannot be closed"),
        (down.writing, "all take writes", f"take no writes {until}"),
    ]
    said = [
        f"{numbers.share(_whole(part))} of ledgers {bad}" if part else good
        for part, good, bad in ways
        if part is not None
    ]
    return f"While one rack is down: {'; '.join(said)}."


def _whole(part: float) -> float:
    """Returns a part, as exactly 1 if only the rounding of sums keeps it from that."""
    return 1.0 if part > 1.0 - 1e-9 else part


def _unavailable(verb: str, state: Unavailable) -> str:
    many = f"{numbers.plain(state.ledgers)} on average at any time, each for {say_time(state.mean_s)}"
    return f"Ledgers that cannot be {verb}, as nodes do not answer: {many}."


def _small_print(found: Sequence[ClusterAnswer], confidence: float, out: Console) -> None:
    figures = [figure for each in found for figure in (each.losses.p_any, each.losses.incidents, each.losses.entries)]
    methods = dict.fromkeys(figure.method for figure in figures)
    assumed = {
        line: [each for each in found if line in each.assumptions] for each in found for line in each.assumptions
    }
    assumptions = [
        f"{line}." if len(of) == len(found) else f"With {'; '.join(map(_settings, of))}: {line[0].lower()}{line[1:]}."
        for line, of in assumed.items()
    ]
    years = max(each.years for each in found)
    known = [_METHODS.get(method, method) for each in methods for method in each.split(" and ")]
    by = "; ".join(dict.fromkeys(method.format(years=years) for method in known))
    said = f"By {by}; intervals hold with {numbers.percent(confidence)} confidence each."
    drawn = (each.losses.entries for each in found if each.losses.entries.method == sampled.METHOD)
    said += _LARGEST if any(entries.value for entries in drawn) else ""
    out.print(said, *(f"- {line}" for line in assumptions), sep="\n", style="dim", soft_wrap=True)
