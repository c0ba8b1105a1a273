"""A parameter sweep from the experiment to its report: plan -> run -> merge -> draw."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkContext
from rich.console import Console
from rich.table import Table

from quorisk.analysis.cluster.answer import placed_designs
from quorisk.analysis.cluster.joined import surely_with_head
from quorisk.analysis.estimate.ahead import compiling_for_exits
from quorisk.analysis.experiment.config import Experiment, RunSettings
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.results import heads, schema
from quorisk.kernels.cores import num_cores
from quorisk.kernels.engines.points import pack
from quorisk.kernels.errors import RunError
from quorisk.kernels.model import LOST, OUTCOMES
from quorisk.say.numbers import counted
from quorisk.say.waiting import told_on
from quorisk.sparkjobs import folder, screen, session, spark_conf
from quorisk.sparkjobs.ledger import SPENT, PointEnd
from quorisk.sparkjobs.merge import merge
from quorisk.sparkjobs.plan import cost_s, cut_tasks, join_plans, leading_runs, pilot, solving
from quorisk.sparkjobs.run import Done, Work, run
from quorisk.sparkjobs.state import OUT_OF_TIME, SweepState
from quorisk.sparkjobs.watch import LOG, Watch, log_to

ROUND_S, SHORTEST_ROUND_S = 600.0, 1.0
"""Seconds that a round of tasks is planned to take at most; with a budget it may be as short as the latter."""
FIRST_PART, LATER_PART = 1 / 16, 1 / 4
"""Parts of a budget's remaining seconds for the first round, which has to reach all points, and for later ones."""
BREAK_EVEN_PART, BREAK_EVEN_S = 1 / 5, (3.0, 300.0)
"""Part of the time of the runs for the search for break-even points, and the limits of that search in seconds."""


class Options(NamedTuple):
    """Options of a sweep; its results depend on `budget_s` alone among them."""

    master: str | None = None
    """Spark master URL; None for all cores of this machine."""
    conf: Sequence[str] = ()
    """Spark's settings, as spark.KEY=VALUE."""
    resume: bool = False
    """Whether to keep the results of an earlier run of the same experiment."""
    budget_s: float = math.inf
    """Seconds after which computing stops."""


class SweepSummary(NamedTuple):
    """Counts of a sweep's results."""

    points: int
    """The number of points with results."""
    runs: int
    losses: int
    """Runs that lost data."""
    stopped: dict[str, int]
    """The number of points by the reason of their end, as in the column `stopped` of the results."""


class Expected(NamedTuple):
    """The first tasks of a sweep, before anything runs."""

    tasks: int
    runs: int
    core_s: float
    """Seconds that these tasks take on one core."""
    most_core_s: float
    """Seconds if every point takes all its runs."""
    cores: int
    """The cores of this machine."""


def sweep(experiment: Experiment, out: Path, options: Options, console: Console) -> SweepSummary:
    """Computes on Spark the runs of an experiment that a folder lacks; leaves results, figures and a report there, and
    returns the counts of the results. Progress and results are printed on `console`.

    Raises ConfigError before anything is written, if `out` cannot be used or there is no Java that Spark runs on, and
    later, if the runs in the folder can never be finished; RunError if they cannot go on now, with results kept.
    """
    deadline = time.monotonic() + options.budget_s
    folder.check_can_hold(out, experiment, options.resume)
    if experiment.clusters:
        placed_designs(experiment)  # what cannot be told of a cluster is said before hours of runs
    conf = spark_conf.checked_settings(options.master, options.conf)
    with folder.taken(out), log_to(out / folder.LOG), ThreadPoolExecutor(1) as pool:
        folder.check_can_hold(out, experiment, options.resume)  # another process may have left results until just now
        LOG.info("started: %s", experiment.command("run", "--out", str(out)))
        try:
            folder.keep_experiment(out, experiment, folder.as_run(experiment))
            with compiling_for_exits(experiment.protocol, [each.point for each in surely_with_head(experiment)]):
                state = SweepState(experiment, out, options.budget_s)
                if any(state.ledger.left()) or not state.is_written():
                    name = f"quorisk: {Path(experiment.path).name}"
                    spark = session.spark(options.master, conf, out / folder.SPARK_LOG, pool, name)
                    _compute(state, experiment, spark, pool, out, deadline, console)
            summary = _show(experiment, out, console, deadline)
        except KeyboardInterrupt:
            LOG.warning("interrupted")
            console.print(
                f"to continue: {experiment.command('run', '--out', str(out))} --resume", soft_wrap=True, markup=False
            )
            raise
        except RunError as error:
            LOG.error("failed: %s", error)
            raise RunError(f"{error}; `resume` continues from there") from None
        LOG.info("finished: %s", summary)
    return summary


def dry_run(experiment: Experiment, out: Path, resume: bool, tell: Callable[[str], None]) -> tuple[Expected, Table]:
    """Writes a plan to `out`; returns its cost, and a table of it; `tell` is called with lines of progress. Raises
    ConfigError and RunError as `sweep`."""
    folder.check_can_hold(out, experiment, resume)
    with folder.taken(out):
        state = SweepState(experiment, out)
        tell("compiling the model, if need be, and timing a few runs")
        timed, all_points = "timed a few runs of", counted(len(experiment.points), "point")
        run_s = pilot(work_of(experiment), lambda num: tell(f"{timed} {num:,} of {all_points}"))
        tell("planning")
        jobs = leading_runs(state.ledger.wanted(), run_s, ROUND_S * num_cores())
        table = cut_tasks(jobs, run_s, num_cores())
        folder.write_table(out / folder.PLAN, table)
    expected = Expected(
        tasks=len(pc.unique(table["task"])),
        runs=pc.sum(table["num_runs"]).as_py() or 0,
        core_s=pc.sum(table["expected_s"]).as_py() or 0.0,
        most_core_s=float(run_s.sum()) * experiment.run.runs,
        cores=num_cores(),
    )
    return expected, screen.plan_summary(table, experiment)


def work_of(experiment: Experiment, enough: tuple[float, ...] = ()) -> Work:
    """Returns the data that the tasks of an experiment share; `enough` is as in `State`."""
    points = pack(experiment.model, [each.point for each in experiment.points])
    enough = enough or (0.0,) * len(experiment.points)
    return Work(experiment.protocol, experiment.run, points, experiment.points, enough)


def _compute(
    state: SweepState,
    experiment: Experiment,
    spark: AbstractContextManager[SparkContext],
    pool: Executor,
    out: Path,
    deadline: float,
    console: Console,
) -> None:
    """Computes rounds of runs until no more are wanted, or time is up; leaves the merged results in the folder."""
    work = work_of(experiment, state.enough)
    timing = pool.submit(pilot, work)  # Spark starts meanwhile
    pool.submit(import_module, "quorisk.sparkjobs.draw")  # takes its time, too
    with spark as context:
        if context.uiWebUrl:
            console.print(f"Spark UI: {context.uiWebUrl}", soft_wrap=True, markup=False)
        try:
            _rounds(context, state, experiment.run, work, timing, out, deadline, console)
        finally:
            state.commit()
        LOG.info("computed: %d of %d points have ended", state.ledger.num_stopped, len(experiment.points))
        ends = dict(zip((each.point_id for each in experiment.points), state.ends(), strict=True))
        if not any(end.num_runs for end in ends.values()):
            raise RunError("`budget_s`: too short; no point has any runs yet")
        rows = _within(folder.tasks(out), ends, experiment.run.first_run)
        table = _in_order(merge(context, rows), ends)
    folder.write_results(out, table)
    LOG.info("merged: %d rows into %d", rows.num_rows, table.num_rows)


def _rounds(
    context: SparkContext,
    state: SweepState,
    asked: RunSettings,
    work: Work,
    timing: "Future[np.ndarray]",
    out: Path,
    deadline: float,
    console: Console,
) -> None:
    """Has the wanted runs computed, round by round; `timing` is the pilot's."""
    shared, watch = context.broadcast(work), Watch(context)
    with told_on(console) as tell:
        tell("compiling the model, if need be, and timing a few runs")
        run_s = timing.result()
    with screen.Bar(console, len(run_s)) as bar:

        def take(done: list[Done]) -> None:
            state.take(done)
            watch.poll(done)
            lost = sum(heads.runs_broken(each.head, DATA_LOSS) if each.head else each.sums[LOST] for each in done)
            done_s = sum(expected_s[each.job.point, each.job.first_run] for each in done)
            bar.advance(done_s, sum(each.job.num_runs for each in done), lost, state.ledger.num_stopped)

        cores, part, expected_s = context.defaultParallelism, FIRST_PART, {}
        while any(left := state.ledger.left()):
            jobs, unsolved, tails = left
            left_s = max(0.0, deadline - time.monotonic())
            solved = solving(unsolved, asked, run_s, left_s)
            bar.expect(min(cost_s(jobs, run_s) + (pc.sum(solved["expected_s"]).as_py() or 0.0), left_s * cores))
            shared_jobs = leading_runs(jobs, run_s, min(ROUND_S, max(left_s * part, SHORTEST_ROUND_S)) * cores)
            tasks = join_plans(solved, cut_tasks(shared_jobs, run_s, cores, tails))
            part, expected_s = LATER_PART, _expected_s(tasks)
            folder.write_table(out / folder.PLAN, tasks)
            num_points, num_tasks = len(pc.unique(tasks["point"])), len(pc.unique(tasks["task"]))
            what = f"{counted(num_points, 'point')}, {counted(num_tasks, 'task')}"
            round_of = f"{what}, {sum(expected_s.values()):.3g} core seconds expected"
            LOG.info("to run: %s", round_of)
            if not run(context, shared, tasks, deadline, take, round_of):
                LOG.warning("time is up")
                break
            if state.ledger.left() == left:
                raise RunError(f"Spark ended its job without results (see {out / folder.SPARK_LOG})")


def _expected_s(tasks: pa.Table) -> dict[tuple[int, int], float]:
    """Returns the seconds that the pieces of a plan take on one core, by point and first run."""
    columns = (tasks[name].to_pylist() for name in ("point", "first_run", "expected_s"))
    return {(point, first_run): expected for point, first_run, expected in zip(*columns, strict=True)}


def _within(rows: pa.Table, ends: Mapping[str, PointEnd], first_run: int) -> pa.Table:
    """Returns the rows of the runs that count: from the beginning, and from the exits of the head that counts."""
    at = pc.index_in(rows["point_id"], pa.array(ends))
    limits = pa.array([first_run + end.num_runs for end in ends.values()]).take(at)
    within = pc.less_equal(pc.add(rows["first_run"], rows["num_runs"]), limits)
    of_heads = [
        head is None or _counts(head, ends[point_id], first_run)
        for point_id, head in zip(rows["point_id"].to_pylist(), rows["head"].to_pylist(), strict=True)
    ]
    return rows.filter(pc.and_(within, pa.array(of_heads, pa.bool_()))).select(schema.SCHEMA.names)


def _counts(head: Mapping[str, Any], end: PointEnd, first_run: int) -> bool:
    """Whether a row's head, and the runs from its exits, are among those that count."""
    if end.head is None:
        return False
    same = all(head[name] == end.head[name] for name in ("digest", "most_transitions"))
    limit = first_run + end.tail_runs
    return same and all(part["first_run"] + part["num_runs"] <= limit for part in head["runs"])


def _in_order(table: pa.Table, ends: Mapping[str, PointEnd]) -> pa.Table:
    """Returns a merged table in the order of the experiment's points, with the reason why each has no more runs."""
    table = table.take(pc.sort_indices(pc.index_in(table["point_id"], pa.array(ends))))
    stopped = pa.array([[ends[point_id].why] for point_id in table["point_id"].to_pylist()])
    place = table.schema.get_field_index("stopped")
    return table.set_column(place, schema.SCHEMA.field("stopped"), stopped)


def _show(experiment: Experiment, out: Path, console: Console, deadline: float) -> SweepSummary:
    """Draws figures and the report of the folder's results, and prints a summary."""
    from quorisk.sparkjobs.draw import draw_report

    table = folder.result_rows(out)
    summary = summarized(table)
    source = folder.as_run(experiment)
    late = (
        (summary.stopped.get(OUT_OF_TIME, 0), "before all runs were done"),
        (len(experiment.points) - summary.points, "before any run was done"),
    )
    if any(number for number, _ in late):
        said = "time was up at " + ", and at ".join(f"{counted(n, 'point')} {when}" for n, when in late if n)
        warning = (
            f"{said}: how many runs there are depends on the speed of the machines. `quorisk run --resume` continues."
        )
        LOG.warning(warning)
        console.print(f"warning: {warning}", style="yellow", soft_wrap=True)
        source = f"# {warning}\n{source}"
    share_s = BREAK_EVEN_PART * pc.sum(table["wall_s"]).as_py() / num_cores()
    within_s = min(max(BREAK_EVEN_S[0], share_s), BREAK_EVEN_S[1], deadline - time.monotonic())
    with told_on(console) as tell:
        tell("drawing figures and the report; the results are there")
        drawn = draw_report(table, [experiment], source, out, None, within_s, tell)
    screen.print_results(drawn.frame, drawn.words, console)
    if SPENT in summary.stopped:
        warning = f"{counted(summary.stopped[SPENT], 'point')} made all runs but did not reach the precision"
        LOG.warning(warning)
        console.print(f"warning: {warning}; raise run.runs", style="yellow", soft_wrap=True)
    console.print(f"report: {out / folder.REPORT}", soft_wrap=True, markup=False)
    return summary


def summarized(table: pa.Table) -> SweepSummary:
    """Returns the counts of a table of results."""
    stopped = Counter(why for reasons in table["stopped"].to_pylist() for why in reasons)
    runs, losses = (pc.sum(table[name]).as_py() for name in ("num_runs", OUTCOMES[LOST]))
    return SweepSummary(table.num_rows, runs, losses, dict(stopped))
