"""The screen of a sweep: its progress and its results."""

from contextlib import ExitStack
from itertools import accumulate
from typing import TYPE_CHECKING, Self

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from quorisk.analysis.decision.pace import Pace
from quorisk.analysis.experiment.config import Experiment
from quorisk.say.waiting import Tell, told_on
from quorisk.sparkjobs.folder import PLAN, REPORT, RESULTS

if TYPE_CHECKING:
    import pandas as pd

    from quorisk.analysis.decision.advice import Recommendation

MOST_LINES = 40
_COLUMNS = (
    BarColumn(),
    TextColumn("{task.fields[points]} of {task.fields[num_points]} points"),
    TextColumn("{task.fields[runs]:,} runs"),
    TextColumn("{task.fields[losses]:,} losses"),
    TimeRemainingColumn(elapsed_when_finished=True),
)


class Bar:
    """Shows a sweep's progress from `with` on: as a bar, or where `console` is no terminal as lines now and then."""

    def __init__(self, console: Console, num_points: int) -> None:
        self._lines = ExitStack()
        self._tell: Tell = lambda text, left=str: None
        self._console, self._pace = console, Pace(0.0)
        self._progress = Progress(
            *_COLUMNS, console=console, disable=not console.is_terminal, transient=True, speed_estimate_period=120
        )
        self._task = self._progress.add_task("", total=0.0, num_points=num_points, points=0, runs=0, losses=0)

    def __enter__(self) -> Self:
        self._lines.enter_context(self._progress)
        if not self._console.is_terminal:
            self._tell = self._lines.enter_context(told_on(self._console))
        return self

    def __exit__(self, *ended: object) -> None:
        self._lines.close()

    def expect(self, left_s: float) -> None:
        """Sets the work that is left, in seconds on one core."""
        self._pace.left = left_s
        self._progress.update(self._task, total=self._progress.tasks[0].completed + left_s)

    def advance(self, done_s: float, runs: int, losses: int, points: int) -> None:
        """Adds the expected seconds, runs and losing runs since the last call; `points` have ended in all."""
        fields = self._progress.tasks[0].fields
        if done_s and not fields["runs"]:  # before these, code was compiled
            self._pace = Pace(self._pace.left - done_s)
        elif done_s:
            self._pace.took(part=done_s)
        runs, losses = fields["runs"] + runs, fields["losses"] + losses
        self._progress.update(self._task, advance=done_s, runs=runs, losses=losses, points=points)
        line = f"{points:,} of {fields['num_points']:,} points, {runs:,} runs, {losses:,} losses"
        self._tell(line, self._pace.told)


def plan_summary(table: pa.Table, experiment: Experiment) -> Table:
    """Returns the costliest points of a plan, the first MOST_LINES."""
    from quorisk.say import text

    points = table.group_by("point").aggregate([("num_runs", "sum"), ("expected_s", "sum"), ("task", "count_distinct")])
    rows = points.sort_by([("expected_s_sum", "descending")]).slice(0, MOST_LINES).to_pylist()
    more = points.num_rows - len(rows)
    shown = Table(caption=f"{more} cheaper points in {PLAN}" if more else None)
    for heading in (*(text.name(key) for key in experiment.varied), "runs", "tasks", "core seconds"):
        shown.add_column(heading, justify="right", overflow="fold")
    for row in rows:
        values = (text.value(value) for value in experiment.points[row["point"]].varied.values())
        numbers = (f"{row['num_runs_sum']:,}", f"{row['task_count_distinct']:,}", f"{row['expected_s_sum']:.3g}")
        shown.add_row(*values, *numbers)
    return shown


def print_results(frame: "pd.DataFrame", words: "Recommendation", console: Console) -> None:
    """Prints the probabilities of the configurations, and the recommendation among them."""
    console.print(probability_table(frame, console.width))
    console.print(words.headline, style="bold", soft_wrap=True, markup=False)
    for sentence in words.sentences:
        console.print(f"- {sentence}", soft_wrap=True, markup=False)


def probability_table(frame: "pd.DataFrame", width: int) -> Table:
    """Returns the probabilities that a report shows, by configuration, with their intervals; the worst MOST_LINES.

    Data loss always has a column; what else breaks has one while the table is no wider than `width` characters.
    """
    from quorisk.plots import tables  # here, since pandas takes its time to load
    from quorisk.say import numbers, text  # here, since pandas takes its time to load

    lines, keys = tables.lines(frame, MOST_LINES, numbers.plain), text.varied(frame)
    columns = [[text.name(key), *(line.settings[i] for line in lines)] for i, key in enumerate(keys)]
    columns += [["runs", *(line.runs for line in lines)]]
    columns += [["unfinished", *(line.outcomes["unfinished"] for line in lines)]]
    least = len(columns) + 1
    for i, invariant in enumerate(text.shown(frame)):
        risks = (line.risks[i] for line in lines)
        cells = [f"{risk.p} ({risk.interval})" if risk.interval else risk.p for risk in risks]
        columns.append([f"P({invariant})", *cells])
    num_shown = max(least, sum(end < width for end in accumulate(3 + max(map(len, each)) for each in columns)))
    notes = []
    if (more := frame["point_id"].nunique() - len(lines)) > 0:
        notes.append(f"{more:,} more configurations in {RESULTS}")
    if left_out := [heading for heading, *_ in columns[num_shown:]]:
        notes.append(f"Not enough room here; see {REPORT} for {', '.join(left_out)}")
    table = Table(caption=". ".join(notes) if notes else None)
    for heading, *_ in columns[:num_shown]:
        table.add_column(heading, justify="right", overflow="fold")
    for row in zip(*(cells for _, *cells in columns[:num_shown]), strict=True):
        table.add_row(*row)
    return table
