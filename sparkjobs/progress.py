"""A sweep's progress, for people: points, runs, losses found, time left."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sparkjobs.run import LOSSES

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
    console: Console, num_runs: np.ndarray, run_s: np.ndarray, done: Callable[[], Mapping[int, int]]
) -> Iterator[None]:
    """Shows a bar while the body runs, if `console` is a terminal.

    Point i has `num_runs[i]` runs of `run_s[i]` seconds each; `done` says what is finished, as `run.run` counts it.
    """
    bar = Progress(*_COLUMNS, console=console, disable=not console.is_terminal, transient=True, speed_estimate_period=120)
    counts = {"num_points": len(num_runs), "points": 0, "runs": 0, "losses": 0}
    task = bar.add_task("", total=float(num_runs @ run_s), **counts)
    ended = threading.Event()

    def poll() -> None:
        while not ended.wait(_POLL_S):
            now = dict(done())
            finished = np.array([now.get(point, 0) for point in range(len(num_runs))])
            counts = {"points": int((finished == num_runs).sum()), "runs": int(finished.sum())}
            bar.update(task, completed=float(finished @ run_s), losses=now.get(LOSSES, 0), **counts)

    poller = threading.Thread(target=poll, daemon=True)
    with bar:
        poller.start()
        try:
            yield
        finally:
            ended.set()
            poller.join()
