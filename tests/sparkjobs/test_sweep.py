"""Sweeps on Spark: the same tables whatever the partitions; what is in the folder before and after."""

import io
import math
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import numba
import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from quorisk.analysis import kept, results, stored, tidy
from quorisk.analysis.estimate import estimate
from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.identity import point_id
from quorisk.analysis.frame import frame as frame_of
from quorisk.kernels.engines import registry
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.numba_engine import simulate
from quorisk.kernels.engines.points import pack
from quorisk.kernels.engines.tally import read
from quorisk.kernels.errors import ConfigError, RunError
from quorisk.kernels.model import OUTCOMES
from quorisk.sparkjobs import folder, screen
from quorisk.sparkjobs.plan import PLAN_SCHEMA, plan
from quorisk.sparkjobs.run import Done, Piece, compile_once, pieces_of, run, run_piece
from quorisk.sparkjobs.state import State, identities
from quorisk.sparkjobs.sweep import Options, sweep, work_of
from tests.support import SMALL_FILE

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")

RESUMED = Options(resume=True)
RUNS = 300
AUTO = registry.choose("auto").NAME
FILE = f"""{SMALL_FILE}[run]
runs = 300
seed = 5
[grid]
"variant.persist_cursor_before_delete" = [true, false]
"rates.broker_crash" = [0.1, 1.0]
"""


@pytest.fixture
def load(tmp_path):
    """Loads FILE, with overrides."""
    path = tmp_path / "small.toml"
    path.write_text(FILE)
    return lambda *overrides: config.load(path, overrides)


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=200)


def reproducible(table):
    """Rows without what differs between two runs of the same."""
    return table.select(results.REPRODUCIBLE).sort_by("point_id").to_pylist()


def directly(experiment, threads=1):
    """The table that a sweep should give, from one call of the engine."""
    work, num_runs = work_of(experiment), experiment.run.runs
    jobs = [Job(point, experiment.run.first_run, num_runs) for point in range(len(experiment.points))]
    tallies = simulate(experiment.model, work.points, jobs, work.seed, threads)
    rows = [
        results.row(identity, experiment.model, experiment.run.first_run, read(experiment.model, sums), AUTO, 0.0)
        for identity, sums in zip(identities(experiment), tallies.tolist(), strict=True)
    ]
    return pa.Table.from_pylist([row | {"stopped": ["runs"]} for row in rows], schema=results.SCHEMA)


def on_spark(spark, experiment, cores):
    """The rows of a plan for so many cores, as they come, and the number of its tasks."""
    jobs = [Job(point, 0, RUNS) for point in range(len(experiment.points))]
    tasks = plan(jobs, np.array([1.0, 2.0, 3.0, 0.5]) / (RUNS * 65), cores)
    done: list[Done] = []
    assert run(spark, spark.broadcast(work_of(experiment)), tasks, math.inf, done.extend)
    return done, len(pieces_of(tasks, cores, range(4)))


def test_the_rows_of_any_partition_add_up_to_the_same(spark, load):
    experiment = load()
    expected = directly(experiment)
    assert sum(row["lost"] for row in reproducible(expected)) > 0
    assert reproducible(directly(experiment, threads=2)) == reproducible(expected)
    for cores in (1, 3, 7):
        done, num_tasks = on_spark(spark, experiment, cores)
        assert num_tasks == cores
        for point, row in enumerate(expected.to_pylist()):
            sums = [each.sums for each in done if each.job.point == point]
            tally = read(experiment.model, [sum(column) for column in zip(*sums, strict=True)])
            again = results.row(results.identity(row), experiment.model, 0, tally, AUTO, 0.0)
            assert pa.Table.from_pylist([again | {"stopped": ["runs"]}], schema=results.SCHEMA).to_pylist() == [row]
        assert {each.attempt for each in done} == {0}


def test_an_interrupt_does_not_stop_halfway_what_keeps_rows(spark, load):
    experiment = load()
    tasks = plan([Job(point, 0, RUNS) for point in range(4)], np.ones(4), 4)
    given, taken = list[Done](), list[Done]()

    def take(done):
        if done and not given:
            os.kill(os.getpid(), signal.SIGINT)
        given.extend(done)
        assert spark.defaultParallelism == 2  # Java is asked
        taken.extend(done)

    with pytest.raises(KeyboardInterrupt):
        run(spark, spark.broadcast(work_of(experiment)), tasks, math.inf, take)
    assert 0 < len(taken) == len(given) == len({each.job for each in taken})
    assert sum(spark.parallelize([1, 2], 2).collect()) == 3


def test_a_batch_of_mixed_points_is_each_point_alone(load):
    experiment = load()
    together = directly(experiment).to_pylist()
    for index, (each, row) in enumerate(zip(experiment.points, together, strict=True)):
        alone = pack(experiment.model, [each.point])
        [sums] = simulate(experiment.model, alone, [Job(0, 0, RUNS)], experiment.run.seed)
        assert [sums[i] for i in range(5)] == [row[name] for name in OUTCOMES], index


@pytest.mark.parametrize("cores", [1, 2, 10, 50])
@pytest.mark.parametrize("ranges", [[range(7)], [range(5, 9), range(0), range(100), range(3, 3), range(1)]])
def test_a_plan_covers_every_run_once(ranges, cores):
    jobs = [Job(point, runs.start, len(runs)) for point, runs in enumerate(ranges)]
    table = plan(jobs, np.linspace(0.1, 3.0, len(ranges)), cores)
    assert table.schema.equals(PLAN_SCHEMA, check_metadata=True)
    rows = table.to_pylist()
    assert [row["task"] for row in rows] == sorted(row["task"] for row in rows)
    assert {row["task"] for row in rows} == set(range(rows[-1]["task"] + 1))
    covered = [(row["point"], row["first_run"] + i) for row in rows for i in range(row["num_runs"])]
    assert sorted(covered) == [(point, run) for point, runs in enumerate(ranges) for run in runs]


def test_tasks_cost_about_the_same():
    run_s = np.array([1.0, 10.0, 0.1]) / 10_000
    tasks = plan([Job(point, 0, 1000) for point in range(3)], run_s, 8).to_pandas()
    cost = (tasks["num_runs"] * run_s[tasks["point"]]).groupby(tasks["task"]).sum()
    assert len(cost) == 8
    assert cost.max() - cost.min() <= 2 * run_s.max()
    assert tasks["expected_s"].sum() == pytest.approx(1.11)


def test_tasks_are_neither_too_short_nor_too_long():
    def num_tasks(total_s):
        return len(pieces_of(plan([Job(0, 0, 10**6)], np.array([total_s / 10**6]), 2), 2, [0]))

    assert [num_tasks(total_s) for total_s in (0.1, 5.0, 100.0, 10_000.0)] == [2, 20, 48, 1000]


def test_a_core_is_told_how_many_runs_of_a_point_are_left_for_it():
    """Of runs from the exits of a head it is told nothing, as they need no kernel."""
    jobs = [Job(0, 0, 1000), Job(1, 0, 600), Job(2, 5, 90), Job(3, 0, 400)]
    tasks = pieces_of(plan(jobs, np.full(4, 1e-3), 4, {1: 50}), 4, [0, 1, 2, 0])
    pieces = [piece for task in tasks for piece in task]
    assert len(pieces) > 6
    assert {later for job, _, later in pieces if job.point == 1} == {0}
    of_kin = [(job.num_runs, later) for job, _, later in pieces if job.point in (0, 3)]
    assert [later for _, later in of_kin] == [sum(num for num, _ in of_kin[i + 1 :]) // 4 for i in range(len(of_kin))]
    assert of_kin[0][1] > 200


def test_what_is_left_for_a_core_reaches_the_engine(monkeypatch, load):
    told, numba = list[int](), registry.choose("numba")

    def simulate(*given):
        *others, later = given
        told.append(later)
        return numba.simulate(*others)

    engine = SimpleNamespace(NAME="numba", simulate=simulate)
    monkeypatch.setattr("quorisk.sparkjobs.run.choose", lambda name: engine)
    monkeypatch.setattr("quorisk.sparkjobs.run.compile_once", lambda *given: None)
    run_piece(work_of(load()), Piece(Job(0, 0, 10), later=1234), 0)
    assert told == [1234]


def test_a_sweep_leaves_results_figures_and_a_report(spark, load, console, tmp_path):
    experiment, out = load(), tmp_path / "a" / "b"
    sweep(experiment, out, Options(), console)
    table = folder.result_rows(out)
    assert reproducible(table) == reproducible(directly(experiment))
    assert table["point_id"].to_pylist() == [each.point_id for each in experiment.points]
    assert (out / folder.EXPERIMENT).read_text() == FILE
    assert {path.name for path in out.rglob("*.*g")} >= {"loss_data_loss.svg", "outcomes.svg"}
    html = (out / folder.REPORT).read_text()
    assert all(each.point_id in html for each in experiment.points)
    assert str(out / folder.REPORT) in console.file.getvalue()
    assert not list(out.rglob("*.part"))


def test_with_a_precision_each_point_reports_what_an_estimate_of_it_does(spark, no_figures, load, console, tmp_path):
    leak, out = "CompactedLedgerLeak", tmp_path / "out"
    experiment = load("run.runs=20000", "run.precision=0.02", f"run.precision_of={leak}")
    sweep(experiment, out, Options(), console)
    whole = (out / folder.RESULTS).read_bytes()
    frame = frame_of(folder.result_rows(out), 0.95)
    for point in experiment.points:
        expected = estimate(experiment._replace(points=(point,)), 1)
        rows = frame[frame["point_id"] == point.point_id].set_index("invariant")
        assert set(zip(rows["runs"], rows["stopped"], rows["method"], strict=True)) == {
            (expected.runs, "precision", expected.method)
        }
        for name, risk in {"data loss": expected.data_loss, **expected.invariants}.items():
            assert tuple(rows.loc[name, ["losses", "p", "low", "high"]]) == risk[:4]
    assert 'id="spent"' not in (out / folder.REPORT).read_text()
    assert "warning" not in console.file.getvalue()
    first, *_ = sorted((out / folder.TASKS).iterdir())
    first.unlink()
    sweep(experiment, out, RESUMED, console)
    assert (out / folder.RESULTS).read_bytes() == whole


def test_a_precision_that_is_not_reached_is_told(spark, no_figures, load, console, tmp_path):
    out = tmp_path / "out"
    summary = sweep(load("run.runs=200", "run.precision=0.001"), out, Options(), console)
    assert summary.stopped == {"budget": 4}
    said = "4 points made all runs but did not reach the precision"
    assert f"warning: {said}; raise run.runs\n" in console.file.getvalue()
    assert f"WARNING {said}\n" in (out / folder.LOG).read_text()
    assert "4 of 4 configurations used up all their runs before" in (out / folder.REPORT).read_text()


def test_overrides_are_part_of_what_is_kept(spark, no_figures, load, console, tmp_path):
    out = tmp_path / "out"
    sweep(load("run.runs=10", "rates.broker_crash=0.5"), out, Options(), console)
    assert (out / folder.EXPERIMENT).read_text() == "# --set run.runs=10\n# --set rates.broker_crash=0.5\n" + FILE
    html = (out / folder.REPORT).read_text()
    assert f"small.toml --out {out} --set run.runs=10 --set rates.broker_crash=0.5" in html


def test_resuming_runs_what_is_missing(spark, no_figures, load, console, tmp_path, monkeypatch):
    experiment, out = load(), tmp_path / "out"
    monkeypatch.setattr("quorisk.sparkjobs.state.COMMIT_S", math.inf)  # all rows in one file
    sweep(experiment, out, Options(), console)
    whole = (out / folder.RESULTS).read_bytes()
    (out / folder.RESULTS).unlink()
    [file] = (out / folder.TASKS).iterdir()
    rows = stored.read(file, tidy.TASK_SCHEMA)
    stored.write(rows.filter(pa.array([i % 3 != 1 for i in range(rows.num_rows)])), file)
    assert sweep(experiment, out, RESUMED, console).runs == 4 * RUNS
    assert (out / folder.RESULTS).read_bytes() == whole
    assert sum(folder.tasks(out)["num_runs"].to_pylist()) == 4 * RUNS
    monkeypatch.setattr("quorisk.sparkjobs.sweep._compute", None)  # nothing is missing now
    assert sweep(experiment, out, RESUMED, console).stopped == {"runs": 4}


def test_another_target_is_judged_without_running_again(spark, no_figures, load, console, tmp_path, monkeypatch):
    out = tmp_path / "out"
    sweep(load(), out, Options(), console)
    assert "No target was set" in (out / folder.REPORT).read_text()
    monkeypatch.setattr("quorisk.sparkjobs.sweep._compute", None)
    sweep(load("run.target=0.99"), out, RESUMED, console)
    assert "2 of 2 designs meet the target" in (out / folder.REPORT).read_text()
    assert kept.load(out).run.target == 0.99


@pytest.mark.parametrize("rule", [(), ("run.relative_precision=0.05",)])
def test_runs_that_are_added_give_what_asking_for_all_at_once_gives(spark, no_figures, load, console, tmp_path, rule):
    little_by_little, at_once = tmp_path / "a", tmp_path / "b"
    sweep(load(f"run.runs={RUNS // 3}", *rule), little_by_little, Options(), console)
    made = folder.tasks(little_by_little)
    summary = sweep(load(f"run.runs={2 * RUNS}", *rule), little_by_little, RESUMED, console)
    sweep(load(f"run.runs={2 * RUNS}", *rule), at_once, Options(), console)
    assert (little_by_little / folder.RESULTS).read_bytes() == (at_once / folder.RESULTS).read_bytes()
    assert folder.tasks(little_by_little).slice(0, made.num_rows) == made
    assert sum(folder.tasks(little_by_little)["num_runs"].to_pylist()) >= summary.runs
    if not rule:  # none is made twice
        assert sum(folder.tasks(little_by_little)["num_runs"].to_pylist()) == summary.runs == 8 * RUNS
    assert kept.load(little_by_little).run.runs == 2 * RUNS


def test_results_that_are_there_are_not_overwritten(spark, no_figures, load, console, tmp_path):
    out = tmp_path / "out"
    sweep(load("run.runs=10"), out, Options(), console)
    with pytest.raises(ConfigError, match="holds results of this experiment; `resume` keeps them"):
        sweep(load("run.runs=10"), out, Options(), console)
    for other, said in (
        ("run.seed=6", "run.seed is 5 there and 6 here"),
        ("model.keys=2", "model.keys is 1 there and 2 here"),
        ("run.runs=9", r"run.runs is 10 there and 9 here \(runs can be added, but not removed\)"),
        ("rates.broker_crash=1", r"rates.broker_crash is \[0.1, 1.0\] there and 1.0 here"),
        ('grid.where=["broker_crash < 1"]', r"rates.broker_crash is \[0.1, 1.0\] there and 0.1 here"),
    ):
        with pytest.raises(ConfigError, match=f"holds results of another experiment: {said}; choose"):
            sweep(load("run.runs=10", other), out, RESUMED, console)
    (out / folder.EXPERIMENT).unlink()
    with pytest.raises(ConfigError, match="holds results of an unknown experiment"):
        sweep(load("run.runs=10"), out, RESUMED, console)


def test_results_of_another_version_of_the_model_are_not_gone_on_with(spark, no_figures, load, console, tmp_path):
    experiment, out = load("run.runs=10"), tmp_path / "out"
    sweep(experiment, out, Options(), console)
    later = experiment.model._replace(version=experiment.model.version + 1)
    points = tuple(each._replace(point_id=point_id(later, each.point)) for each in experiment.points)
    state = experiment._replace(model=later, points=points)
    with pytest.raises(ConfigError, match="holds results of another version of this model"):
        State(state, out)


def test_runs_of_another_seed_are_not_taken_for_those_of_this_one(spark, no_figures, load, console, tmp_path):
    sweep(load("run.runs=10"), tmp_path / "out", Options(), console)
    with pytest.raises(ConfigError, match="holds runs of another seed, "):
        State(load("run.runs=10", "run.seed=77"), tmp_path / "out")


def test_another_engine_may_go_on(load):
    assert folder.differences(load("run.engine=numba"), load("run.engine=auto")) == ""


def test_a_truncated_file_is_named_and_nothing_is_counted_twice(
    spark, no_figures, load, console, tmp_path, monkeypatch
):
    experiment, out = load(), tmp_path / "out"
    monkeypatch.setattr("quorisk.sparkjobs.state.COMMIT_S", math.inf)  # all rows in one file
    sweep(experiment, out, Options(), console)
    whole = (out / folder.RESULTS).read_bytes()
    (out / folder.RESULTS).write_bytes(whole[:-100])  # made again from the tasks
    sweep(experiment, out, RESUMED, console)
    assert (out / folder.RESULTS).read_bytes() == whole
    [file] = (out / folder.TASKS).iterdir()
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(
        RunError, match=r"000001\.parquet: damaged, .*; delete this file, and `quorisk run --resume` repeats"
    ):
        sweep(experiment, out, RESUMED, console)
    assert (out / folder.RESULTS).read_bytes() == whole
    file.unlink()
    sweep(experiment, out, RESUMED, console)
    assert (out / folder.RESULTS).read_bytes() == whole


def test_one_worker_of_a_machine_compiles_while_the_others_wait(load, tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("quorisk.sparkjobs.run._COMPILED", set())
    busy: list[int] = []
    others = []

    def simulate(*_):
        others.append(len(busy))
        busy.append(1)
        time.sleep(0.1)
        busy.pop()

    engine, work, start = SimpleNamespace(NAME="numba", simulate=simulate), work_of(load()), Barrier(3)

    def worker(_):
        start.wait()
        compile_once(engine, work)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(worker, range(3)))
    assert set(others) == {0}
    compile_once(engine, work)
    assert len(others) <= 3


def test_two_at_once_do_not_share_a_folder(load, console, tmp_path):
    with folder.taken(tmp_path), pytest.raises(ConfigError, match="another quorisk process is writing there"):
        sweep(load(), tmp_path, Options(), console)


def test_a_folder_that_cannot_be_used_is_refused(load, console, tmp_path):
    (tmp_path / "file").write_text("x")
    for out in ("file", "file/below"):
        with pytest.raises(ConfigError, match=r"^[^\n]*file is not a directory$"):
            sweep(load(), tmp_path / out, Options(), console)
    with pytest.raises(ConfigError, match="out /proc/self/fdinfo/out: cannot be"):
        sweep(load(), Path("/proc/self/fdinfo/out"), Options(), console)
    with pytest.raises(ConfigError, match=r"^out s3a://x/y: must be on this machine"):
        sweep(load(), Path("s3a://x/y"), Options(), console)
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.parametrize("conf", ["spark.a", "a=b", "spark.a b=c", "spark.=", "=x"])
def test_a_setting_of_spark_that_is_none_is_refused(load, console, tmp_path, conf):
    with pytest.raises(ConfigError, match=r"conf \".*\": written as spark.KEY=VALUE"):
        sweep(load(), tmp_path / "out", Options(conf=[conf]), console)
    with pytest.raises(ConfigError, match=r'conf "spark.a=2": .*each key once'):
        sweep(load(), tmp_path / "out", Options(conf=["spark.a=1", "spark.a=2"]), console)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("master", ["foo", "local[2]x", "spark:/host", "local[2]\n"])
def test_a_master_that_is_none_is_refused_before_anything_is_written(load, console, tmp_path, master):
    with pytest.raises(ConfigError, match=r'^master ".*": local'):
        sweep(load(), tmp_path / "out", Options(master), console)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("java", "message"),
    [
        (None, "there is no java on PATH"),
        ("echo 'openjdk version \"11.0.2\"' >&2", "is Java 11"),
        ("echo 'java version \"1.8.0_392\"' >&2", "is Java 8"),
        ("exit 1", "there is no java on PATH"),
    ],
)
def test_without_java_17_nothing_is_written(load, console, tmp_path, monkeypatch, java, message):
    (tmp_path / "bin").mkdir()
    if java:
        path = tmp_path / "bin" / "java"
        path.write_text(f"#!/bin/sh\n{java}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ConfigError, match=f"Spark needs Java 17 or newer; .*{message}"):
        sweep(load(), tmp_path / "out", Options(), console)
    assert not (tmp_path / "out").exists()


def test_the_bar_counts_on_a_terminal_and_only_there():
    shown, piped = io.StringIO(), io.StringIO()
    for file, is_terminal in ((shown, True), (piped, False)):
        console = Console(file=file, force_terminal=is_terminal, width=120)
        with screen.Bar(console, 2) as bar:
            bar.expect(30.0)
            bar.advance(10.0, 10, 1, 0)
            bar.advance(10.0, 5, 2, 1)
    assert "1 of 2 points 15 runs 3 losses" in shown.getvalue()
    assert piped.getvalue() == ""
