"""Results as people read them: rich tables on a console."""

import re
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from quorisk.analysis.bench import Speed
from quorisk.analysis.calibrate import CONFIDENCE, COVERAGE_CONFIDENCE, Calibration
from quorisk.analysis.estimate.estimate import Estimate, MetFaults, Risk
from quorisk.analysis.estimate.rare import HeadPart
from quorisk.analysis.exact.exact import ExactResult
from quorisk.analysis.explore import NOTE
from quorisk.kernels.protocols import registry
from quorisk.kernels.states.search import Search
from quorisk.say import numbers
from quorisk.say.quantities import say_time

PIPED_WIDTH = 120
_MOST_RATES = 300
"""Most characters of a list of rates that is printed below a result."""
STOPPED = {
    "runs": "",
    "precision": " (the precision is reached)",
    "budget": " (spent without reaching the precision)",
    "certain": "",
}


def console(stderr: bool = False) -> Console:
    """Returns a console on stdout, or stderr; as wide as the terminal, or PIPED_WIDTH if there is none."""
    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    width = None if terminal else PIPED_WIDTH
    return Console(stderr=stderr, highlight=False, force_terminal=terminal, width=width)


def print_estimate(result: Estimate, out: Console) -> None:
    """Prints an estimate."""
    marked = set(result.data_loss_invariants)
    rows = [(f"{name} *" if name in marked else name, risk) for name, risk in result.invariants.items()]
    table = make_table("broken", "in runs", "P", f"{numbers.percent(result.confidence)} interval")
    for name, risk in [("data loss: any *", result.data_loss), *rows]:
        table.add_row(
            name, f"{risk.losses:,}", probability_text(risk), escape(numbers.in_brackets(risk.low, risk.high))
        )
    out.print(table)
    if result.head:
        _head(result.method, result.head, out)
        if result.data_loss.bounds:
            out.print(_what_would_help(result, result.head), soft_wrap=True, markup=False)
        if result.head.leaves and len(marked) < len(rows):
            first = f"the first {numbers.counted(result.runs, 'run')}"
            out.print(f"What is not data loss is counted in {first}, within the bounds of this head.", soft_wrap=True)
    outcomes = ", ".join(f"{name} {count:,}" for name, count in result.outcomes.items())
    out.print(f"{numbers.counted(result.runs, 'run')}{STOPPED[result.stopped]}: {outcomes}", soft_wrap=True)
    physical = "run.time_unit" in result.parameters
    if result.mean_time_to_loss is not None:
        out.print(f"mean time to data loss: {_time(result.mean_time_to_loss, physical)}")
    elif result.outcomes["lost"] and not result.head:
        counted = "a microsecond to two million years" if physical else "2^-20 to 2^46; scale the rates"
        out.print(f"mean {'' if physical else 'model '}time to data loss: outside {counted}")
    _amount(result, out)
    _faults_met(result, out)
    for name, exposure in result.exposures.items():
        if exposure.mean_time is not None:
            mean = _time(exposure.mean_time, physical)
            share = numbers.plain(exposure.runs / result.runs, 2)
            said = f"{name}: broken in {share} of runs, for {mean} on average, until it is repaired or the run ends"
            out.print(said, soft_wrap=True)
    if result.mean_steps is not None:
        out.print(
            f"{result.mean_steps:.4g} steps a run; {result.steps_per_s:.3g} steps/s and {result.runs_per_s:.3g} runs/s "
            f"in {result.seconds:.3g} s on {result.threads} threads; compiled or loaded in {result.compile_s:.3g} s",
            soft_wrap=True,
        )
    if unfinished := result.outcomes["unfinished"]:
        warn(out, f"{unfinished:,} unfinished runs count in upper bounds: raise run.max_steps or set run.lifetime.")
    out.print(" ".join(["* data loss.", *assumption_sentences(result.assumptions)]), style="dim", soft_wrap=True)


def _amount(result: Estimate | ExactResult, out: Console) -> None:
    if result.amount and result.expected_records:
        mean = f"{numbers.plain(result.amount.mean)} {numbers.in_brackets(*result.amount[1:3])}"
        counted = f"of those written in a run, if it loses any (counted in {result.amount.runs} runs)"
        expected = numbers.plain(result.expected_records)
        out.print(escape(f"records lost: {mean} {counted}; expected of a run: {expected}"), soft_wrap=True)


def _time(time: float, physical: bool) -> str:
    return say_time(time) if physical else f"{time:.4g} units of model time"


def _faults_met(result: Estimate, out: Console) -> None:
    """Prints the shares of losses by the kinds of faults that were met."""
    met = result.losses_by_faults
    title = "what losses are made of" + (" in the first runs" if result.head else "")
    if len(met) == 1:
        [only] = met
        out.print(f"{title}: all {only.losses:,} met {_kinds(only)}", soft_wrap=True)
    elif met:
        table = make_table(title, "losses", "share", f"{numbers.percent(result.confidence)} interval")
        for each in met:
            table.add_row(
                f"met {_kinds(each)}",
                f"{each.losses:,}",
                numbers.share(each.share),
                escape(numbers.in_brackets(each.low, each.high, numbers.share)),
            )
        out.print(table)


def _kinds(met: MetFaults) -> str:
    """Returns the kinds of faults, as people list them."""
    if not met.faults:
        return "no fault"
    return " and ".join(filter(None, [", ".join(met.faults[:-1]), met.faults[-1]]))


def _head(method: str, head: HeadPart, out: Console) -> None:
    """Prints the solved part of the answer, and the sampled part."""
    known = f"P(loss) on the likeliest paths is {numbers.plain(head.lost)}"
    beyond = f", and losing data then {numbers.bound(head.beyond, numbers.plain)}" * (head.beyond < head.leaves)
    out.print(f"{method}: {known}; P(leaving them) is {numbers.plain(head.leaves)}{beyond}", soft_wrap=True)
    out.print(f"solved with {head.states:,} states and {head.transitions:,} transitions", soft_wrap=True)
    if head.runs:
        sampled = f"{head.losses:,} of {head.runs:,} runs from the {head.exits:,} states where runs leave were lost"
        out.print(sampled, soft_wrap=True)
    if head.needed_runs:
        out.print(
            f"an interval of ±10 % would take about {numbers.plain(head.needed_runs, 2)} such runs", soft_wrap=True
        )


def _what_would_help(result: Estimate, head: HeadPart) -> str:
    """Returns a sentence on what to change where only bounds are known."""
    runs = f"run.runs={10 * max(head.runs, result.runs):.0e}".replace("e+0", "e")
    more = {
        "memory": "`quorisk estimate --memory` allows a larger head",
        "size": f"more runs allow a larger head: --set {runs}",
    }
    ways = [
        more.get(head.stopped_by, f"more runs: --set {runs}"),
        "`quorisk exact` answers if the whole chain fits into memory",
        "smaller sizes in [model] that can lose data in the same way",
    ]
    if registry.load(result.protocol).alike is None:
        ways.append("`alike` in the model, if some of its things are (docs/adding-a-protocol.md)")
    return f"only bounds are known; what would help: {'; '.join(ways)}"


def probability_text(risk: Risk) -> str:
    """Returns a probability; an upper bound if only that is known; marked if its bounds lie far apart, and if it is 0
    because all paths were solved and none loses data."""
    if risk.high == 0.0:
        return "0 (solved)"
    if risk.low == 0.0 and risk.losses == 0:
        return numbers.bound(risk.high, numbers.plain)
    return f"{numbers.plain(risk.p)}{' (bounds only)' if risk.bounds else ''}"


def print_search(found: Search, seconds: float, left_out: list[str], out: Console) -> None:
    """Prints the result of a search; `left_out` are the history switches that it had off."""
    if not found.complete:
        warn(out, "incomplete: at the limit of --memory or --max-depth. There are more states, which may break more.")
    table = make_table("invariant", "breaking states", "first of all broken", "first depth")
    unsure = left_out or not found.complete
    for name, states in found.breaking_states.items():
        counts = [f"{n:,}" if n or not unsure else "none found" for n in (states, found.first_broken[name])]
        table.add_row(name, *counts, str(found.first_depth[name] or "-"))
    out.print(table)
    out.print(
        f"{found.distinct_states:,} distinct states of {found.generated_states:,} generated, depth {found.depth}, "
        f"in {seconds:.3g} s",
        soft_wrap=True,
    )
    actions = make_table("action", "transitions")
    for name, count in found.action_counts.items():
        actions.add_row(name, f"{count:,}" if count else "never enabled" if found.complete else "not seen so far")
    out.print(actions)
    if left_out:
        what = f"the specification's own states, without {', '.join(left_out)}, which the file does not set"
        out.print(f"{what}: losses may be missed", soft_wrap=True)
    out.print(NOTE, style="dim", soft_wrap=True)


def print_exact(result: ExactResult, out: Console) -> None:
    """Prints exact probabilities."""
    table = make_table("broken", "probability", "")
    for name, certain in result.invariants.items():
        star = " *" if name in result.data_loss_invariants else ""
        table.add_row(name + star, f"{certain.p:.12g}", "proved impossible" if certain.proved_zero else "")
    out.print(table)
    out.print("outcomes: " + ", ".join(f"{name} {p:.10g}" for name, p in result.outcomes.items()), soft_wrap=True)
    physical = "run.time_unit" in result.parameters
    by = {f"{steps:,} steps": p for steps, p in result.p_by_steps.items()}
    by |= {_time(time, physical): p for time, p in result.p_by_time.items()}
    for bound, p in by.items():
        out.print(f"data loss within {bound}: {p:.12g}")
    _amount(result, out)
    expected = "a run may never end"
    if result.expected_steps is not None and result.expected_time is not None:
        expected = f"{result.expected_steps:.12g} steps and {_time(result.expected_time, physical)} a run"
    out.print(
        f"{expected}; {result.states:,} states, {result.transitions:,} transitions, built in {result.build_s:.3g} s, "
        f"solved in {result.solve_s:.3g} s",
        soft_wrap=True,
    )
    if result.storm_difference is not None:
        out.print(f"Storm's numbers differ by at most {result.storm_difference:.1e} (relative)")
    out.print(
        " ".join(["* data loss. Exact, no sampling.", *assumption_sentences(result.assumptions)]),
        style="dim",
        soft_wrap=True,
    )


def print_calibration(rows: Sequence[Calibration], out: Console) -> None:
    """Prints a calibration."""
    percent, brackets = numbers.percent(CONFIDENCE), numbers.percent(COVERAGE_CONFIDENCE)
    table = make_table("interval", "chain", "truth", "coverage", "mean runs", "mean width")
    for row in rows:
        width = "-" if row.mean_width is None else f"{row.mean_width:.3g}"
        coverage = rf"{row.coverage:.3f} \[{row.coverage_low:.3f}, {row.coverage_high:.3f}]"
        table.add_row(row.method, row.chain, f"{row.truth:.4g}", coverage, f"{row.mean_runs:,.0f}", width)
    out.print(table)
    out.print(
        f"{rows[0].repetitions:,} repetitions of {percent} intervals; in brackets, {brackets} intervals of coverage"
    )
    if short := [f"{row.method} at {row.truth:g}" for row in rows if row.coverage_high < CONFIDENCE]:
        warn(out, f"coverage below {percent}: {', '.join(short)}.")


def print_speeds(rows: Iterable[Speed], out: Console) -> None:
    """Prints measured speeds."""
    table = make_table("model", "engine", "threads", "steps/s", "runs/s", "compile s", "how")
    for row in rows:
        runs_per_s = "-" if row.runs_per_s is None else f"{row.runs_per_s:.3g}"
        speed = (f"{row.steps_per_s:.3g}", runs_per_s, f"{row.compile_s:.2f}")
        table.add_row(row.model, row.engine, str(row.threads), *speed, row.device or "")
    out.print(table)
    out.print("steps/s of a search are transitions; compile s is the first call, which may load from the cache on disk")


def make_table(first: str, *columns: str) -> Table:
    """Makes a table that cuts nothing: what does not fit in a narrow terminal continues on the next line."""
    table = Table()
    table.add_column(first, overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    return table


def assumption_sentences(assumptions: Iterable[str]) -> list[str]:
    """Returns the assumptions of numbers, in sentences; a long list of rates is left to --json."""
    return [re.sub(rf"rates: .{{{_MOST_RATES},}}", "rates; --json lists them.", each) for each in assumptions]


def warn(out: Console, text: str) -> None:
    """Prints a warning."""
    out.print(f"warning: {text}", style="yellow", soft_wrap=True)
