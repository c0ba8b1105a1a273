"""Results as people read them: rich tables on a console."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from analysis.bench import Speed
from analysis.estimate import Estimate, Risk
from analysis.explore import NOTE
from kernels.search import Search

PIPED_WIDTH = 120


def console(stderr: bool = False) -> Console:
    """A console on stdout, or stderr; as wide as the terminal, or PIPED_WIDTH if there is none."""
    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    width = None if terminal else PIPED_WIDTH
    return Console(stderr=stderr, highlight=False, force_terminal=terminal, width=width)


@contextmanager
def run_bar(num_runs: int) -> Iterator[Callable[[int], None] | None]:
    """Counts runs on stderr, with the time left: yields what to call with each number of runs that have ended.

    None if stderr is no terminal.
    """
    err = console(stderr=True)
    if not err.is_terminal:
        yield None
        return
    columns = (BarColumn(), TaskProgressColumn(), TextColumn("of {task.total:,.0f} runs"), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("", total=num_runs)
        yield lambda ended: bar.advance(task, ended)


@contextmanager
def status() -> Iterator[Callable[[str], None] | None]:
    """A line on stderr for work whose end is not known: yields what to call with its text. None as with `run_bar`."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield None
        return
    with err.status("") as line:
        yield line.update


def estimate(result: Estimate, out: Console) -> None:
    """Prints an estimate."""
    marked = set(result.data_loss_invariants)
    rows = [(f"{name} *" if name in marked else name, risk) for name, risk in result.invariants.items()]
    table = _table("broken", "losses", "P", f"{100 * result.confidence:.10g}% interval")
    for name, risk in [("data loss: any *", result.data_loss), *rows]:
        interval = rf"\[{risk.low:.3g}, {risk.high:.3g}]"
        table.add_row(name, f"{risk.losses:,}", probability(risk), interval)
    out.print(table)
    outcomes = ", ".join(f"{name} {count:,}" for name, count in result.outcomes.items())
    out.print(f"{result.runs:,} runs: {outcomes}", soft_wrap=True)
    if result.mean_time_to_loss is not None:
        out.print(f"mean model time to data loss: {result.mean_time_to_loss:.4g}")
    out.print(
        f"{result.mean_steps:.4g} steps a run; {result.steps_per_s:.3g} steps/s and {result.runs_per_s:.3g} runs/s "
        f"in {result.seconds:.3g} s on {result.threads} threads; compiled or loaded in {result.compile_s:.3g} s",
        soft_wrap=True,
    )
    if result.outcomes["unfinished"]:
        _warn(out, f"{result.outcomes['unfinished']:,} unfinished runs (raise run.max_steps): upper bounds count them.")
    out.print(" ".join(["* data loss.", *result.assumptions]), style="dim", soft_wrap=True)


def probability(risk: Risk) -> str:
    """A probability; an upper bound if nothing was lost."""
    return f"{risk.p:.4g}" if risk.losses else f"< {risk.high:.3g}"


def explore(found: Search, seconds: float, out: Console) -> None:
    """Prints what a search found."""
    table = _table("broken", "breaking states", "first of all broken", "first depth")
    for name, states in found.breaking_states.items():
        table.add_row(name, f"{states:,}", f"{found.first_broken[name]:,}", str(found.first_depth[name] or "-"))
    out.print(table)
    out.print(
        f"{found.distinct_states:,} distinct states of {found.generated_states:,} generated, depth {found.depth}, "
        f"in {seconds:.3g} s",
        soft_wrap=True,
    )
    dead = [name for name, count in found.action_counts.items() if count == 0]
    if dead:
        out.print(f"enabled in none of them: {', '.join(dead)}", soft_wrap=True)
    if not found.complete:
        _warn(out, "incomplete: the memory is full (raise --memory). There are more states; unbroken proves nothing.")
    out.print(NOTE, style="dim", soft_wrap=True)


def bench(rows: Iterable[Speed], out: Console) -> None:
    """Prints measured speeds."""
    table = _table("model", "engine", "threads", "steps/s", "runs/s", "compile s")
    for row in rows:
        runs_per_s = "-" if row.runs_per_s is None else f"{row.runs_per_s:.3g}"
        speed = (f"{row.steps_per_s:.3g}", runs_per_s, f"{row.compile_s:.2f}")
        table.add_row(row.model, row.engine, str(row.threads), *speed)
    out.print(table)
    out.print("steps/s of a search: transitions; compile s: of the first call, from the cache on disk if it is there")


def _table(first: str, *columns: str) -> Table:
    table = Table()
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _warn(out: Console, text: str) -> None:
    out.print(f"warning: {text}", style="yellow", soft_wrap=True)
