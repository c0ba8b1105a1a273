"""What a sweep shows on screen: how far it is, and what came out."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from plots import tables, text
from sparkjobs.run import LOSSES

MOST_LINES = 40

_POLL_S = 0.5
_COLUMNS = (
    BarColumn(),
    TextColumn("{task.fields[points]} of {task.fields[num_points]} points"),
    TextColumn("{task.fields[runs]:,} runs"),
    TextColumn("{task.fields[losses]:,} losses"),
    TimeRemainingColumn(elapsed_when_finished=True),
)


@contextmanager
def progress_bar(
    console: Console, ranges: Sequence[range], run_s: np.ndarray, done: Callable[[], Mapping[int, int]]
) -> Iterator[None]:
    """Shows a bar while the body runs, if `console` is a terminal.

    Point i has the runs in `ranges[i]`, of `run_s[i]` seconds each; `done` says what is finished, as `run.run` does.
    """
    num_runs = np.array([len(runs) for runs in ranges])
    bar = Progress(
        *_COLUMNS, console=console, disable=not console.is_terminal, transient=True, speed_estimate_period=120
    )
    task = bar.add_task("", total=float(num_runs @ run_s), num_points=len(num_runs), points=0, runs=0, losses=0)
    ended = threading.Event()

    def poll() -> None:
        while not ended.wait(_POLL_S):
            now = dict(done())
            finished = np.array([now.get(point, 0) for point in range(len(num_runs))])
            points, runs = int((finished == num_runs).sum()), int(finished.sum())
            completed = float(finished @ run_s)
            bar.update(task, completed=completed, points=points, runs=runs, losses=now.get(LOSSES, 0))

    poller = threading.Thread(target=poll, daemon=True)
    with bar:
        poller.start()
        try:
            yield
        finally:
            ended.set()
            poller.join()


def summary(frame: pd.DataFrame) -> Table:
    """The probabilities that a report shows, by configuration, with their intervals; the worst MOST_LINES."""
    lines, keys = tables.lines(frame, MOST_LINES, text.plain), text.varied(frame)
    more = frame["point_id"].nunique() - len(lines)
    table = Table(caption=f"{more} more configurations in the report" if more > 0 else None)
    for heading in (*(text.name(key) for key in keys), "runs", "unfinished"):
        table.add_column(heading, justify="right")
    for invariant in text.shown(frame):
        table.add_column(f"P({invariant})", justify="right", overflow="fold")
    for line in lines:
        risks = [f"{risk.p} ({risk.interval})" if risk.interval else risk.p for risk in line.risks]
        table.add_row(*line.settings, line.runs, line.outcomes["unfinished"], *risks)
    return table
