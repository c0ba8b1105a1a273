"""The progress of a verb on stderr, and the time that the rest takes: bars on a terminal, else lines now and then."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from quorisk.analysis.decision.pace import rounded
from quorisk.command.show import console
from quorisk.kernels.progress import Progress
from quorisk.say import numbers
from quorisk.say.waiting import SOON_S, Tell, now_and_then, told_on

if TYPE_CHECKING:
    from quorisk.analysis.estimate import rare  # takes long to load


@contextmanager
def run_bar(num_runs: int, what: str = "runs") -> Iterator[Progress]:
    """Counts runs, or `what`, with the time left: yields a function to call with each number that ended."""
    with _progress() as bar:
        task = bar.add_task("", total=num_runs, what=what)
        yield lambda ended: bar.advance(task, ended)


@contextmanager
def estimate_bar(num_runs: int) -> Iterator[tuple[Progress, "rare.Solving"]]:
    """Counts runs as `run_bar`, with a second bar while the likeliest paths are solved: also yields a function to call
    as by `rare.solve_head`.
    """
    with _progress() as bar:
        preparing = "preparing; the first time, code is compiled"
        runs = bar.add_task(preparing, total=num_runs, what="runs")
        paths = bar.add_task("", total=None, visible=False, what="transitions")
        solved = bar.add_task("solving", start=False, total=None, visible=False, what="states")

        def solving(num: int, most: int | None) -> None:
            what = "following the likeliest paths" if num else preparing
            bar.update(paths, description=what, total=most, completed=min(num, most or num), visible=most is not None)
            bar.update(solved, total=num, visible=most is None)
            bar.reset(runs, visible=False, description="")

        def ended(num: int) -> None:
            bar.update(paths, visible=False)
            bar.update(solved, visible=False)
            bar.update(runs, description="", advance=num, visible=True)

        yield ended, solving


@contextmanager
def _progress() -> Iterator[Bar]:
    err, counted = console(stderr=True), TextColumn("of {task.total:,.0f} {task.fields[what]}")
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), counted, TimeRemainingColumn()
    bar = Bar(*columns, console=err, transient=True, disable=not err.is_terminal)
    with bar if err.is_terminal else now_and_then(err, lambda: _line(bar)):
        yield bar


def _line(bar: Bar) -> str:
    """The text of a bar, for a log; empty if there is none yet."""
    for task in reversed(bar.tasks):
        if task.visible:
            done = "all " if task.finished else f"{task.completed:,.0f} of " if task.completed else ""
            left = f"; about {rounded(task.time_remaining)} left" if task.time_remaining else ""
            told = f"{done}{task.total or 0:,.0f} {task.fields['what']}{left}"
            return f"{task.description} ({told})" if task.description else told
    return ""


def status() -> AbstractContextManager[Tell]:
    """Shows a line for work of unknown length: yields a function to call with its text."""
    return told_on(console(stderr=True))


@contextmanager
def status_with_designs() -> Iterator[tuple[Tell, Callable[[str], None]]]:
    """Shows progress as `waiting.told_on` stderr, with lines that stay: also yields a function to call with a line on
    each design that is known. These lines appear after SOON_S seconds, or when Ctrl-C interrupts the work."""
    err, due, held = console(stderr=True), time.monotonic() + SOON_S, list[str]()

    def known(line: str) -> None:
        held.append(line)
        if time.monotonic() >= due:
            show_held()

    def show_held() -> None:
        while held:
            err.print(held.pop(0), soft_wrap=True, markup=False)

    with told_on(err) as tell:
        try:
            yield tell, known
        except KeyboardInterrupt:
            show_held()
            raise


@contextmanager
def search_line() -> Iterator[Callable[[int, int], None]]:
    """Shows `status` of a search: yields a function to call with the number of states, and the depth."""
    with status() as tell:
        yield lambda states, depth: tell(f"{numbers.counted(states, 'state')}, depth {depth:,}")


@contextmanager
def chain_line() -> Iterator[Callable[[int, int, float], None]]:
    """Shows `status` of a chain that is built: yields a function to call with the numbers of states and transitions so
    far, and the number of states expected in all."""
    start = time.monotonic()

    def line(states: int, transitions: int, expected: float) -> str:
        so_far = f"{numbers.counted(states, 'state')} and {transitions:,} transitions so far"
        if not states < expected < math.inf:
            return f"{so_far}; no end in sight yet"
        left_s = (time.monotonic() - start) / states * (expected - states)
        return f"{so_far}; about {expected:.1g} states are to be expected, in about {rounded(left_s)} more"

    with status() as tell:
        yield lambda *found: tell(line(*found))
