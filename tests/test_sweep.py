"""Sweeps on Spark: the same tables whatever the partitions; what is in the folder before and after."""

import io
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from rich.console import Console

from analysis import config, results
from analysis.errors import ConfigError
from kernels.engines import Job
from kernels.numba_engine import simulate
from kernels.points import pack
from kernels.tally import read
from sparkjobs import folder, screen
from sparkjobs.merge import merge
from sparkjobs.plan import PLAN_SCHEMA, plan
from sparkjobs.run import LOSSES, Counts, run
from sparkjobs.session import interruptible, session
from sparkjobs.sweep import prepare, sweep

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")

RUNS = 300
FILE = """
protocol = "compaction"
[model]
messages = 3
compactions = 3
keys = 1
values = 1
max_crashes = 2
[run]
runs = 300
seed = 5
[grid]
"variant.persist_cursor_before_delete" = [true, false]
"rates.broker_crash" = [0.1, 1.0]
"""


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    log = tmp_path_factory.mktemp("spark") / folder.LOG
    with session("local[2]", log) as spark:
        yield spark
    assert log.stat().st_size > 0


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
    return table.drop_columns(["wall_s"]).sort_by("point_id").to_pylist()


def directly(experiment, threads=1, num_runs=RUNS):
    """The table that a sweep should give, from one call of the engine."""
    work = prepare(experiment)
    jobs = [Job(point, 0, num_runs) for point in range(len(work.identities))]
    tallies = simulate(experiment.model, work.points, jobs, work.seed, threads)
    rows = [
        results.row(identity, experiment.model, 0, read(experiment.model, sums.tolist()), 0.0)
        for identity, sums in zip(work.identities, tallies, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=results.SCHEMA)


def on_spark(spark, experiment, num_tasks):
    work = prepare(experiment)
    done = spark.sparkContext.accumulator(Counter(), Counts())
    ranges = [range(RUNS)] * len(work.identities)
    tasks = plan(ranges, np.array([1.0, 2.0, 3.0, 0.5]), num_tasks)
    assert len(set(tasks["task"].to_pylist())) == num_tasks
    return merge(run(spark, work, tasks, done)).toArrow().cast(results.SCHEMA), done.value


def test_the_table_does_not_depend_on_partitions_or_threads(spark, load):
    experiment = load()
    expected = reproducible(directly(experiment))
    assert sum(row["lost"] for row in expected) > 0
    assert reproducible(directly(experiment, threads=2)) == expected
    for num_tasks in (1, 3, 7):
        table, done = on_spark(spark, experiment, num_tasks)
        assert reproducible(table) == expected
        losses = sum(row["lost"] for row in expected)
        assert done == {LOSSES: losses} | dict.fromkeys(range(4), RUNS)


def test_a_batch_of_mixed_points_is_each_point_alone(load):
    experiment = load()
    together = directly(experiment).to_pylist()
    for index, (each, row) in enumerate(zip(experiment.points, together, strict=True)):
        alone = pack(experiment.model, [each.point])
        [sums] = simulate(experiment.model, alone, [Job(0, 0, RUNS)], experiment.run.seed)
        assert results.row(results.identity(row), experiment.model, 0, read(experiment.model, sums), 0.0) == row, index


@pytest.mark.parametrize("num_tasks", [1, 2, 10, 50])
@pytest.mark.parametrize("ranges", [[range(7)], [range(5, 9), range(0), range(100), range(3, 3), range(1)]])
def test_a_plan_covers_every_run_once(ranges, num_tasks):
    table = plan(ranges, np.linspace(0.1, 3.0, len(ranges)), num_tasks)
    assert table.schema == PLAN_SCHEMA
    rows = table.to_pylist()
    assert [row["task"] for row in rows] == sorted(row["task"] for row in rows)
    assert {row["task"] for row in rows} == set(range(rows[-1]["task"] + 1))
    covered = [(row["point"], row["first_run"] + i) for row in rows for i in range(row["num_runs"])]
    assert sorted(covered) == [(point, run) for point, runs in enumerate(ranges) for run in runs]


def test_tasks_cost_about_the_same():
    run_s = np.array([1.0, 10.0, 0.1])
    tasks = plan([range(1000)] * 3, run_s, 8).to_pandas()
    cost = (tasks["num_runs"] * run_s[tasks["point"]]).groupby(tasks["task"]).sum()
    assert len(cost) == 8
    assert cost.max() - cost.min() <= 2 * run_s.max()


def test_a_sweep_leaves_results_figures_and_a_report(spark, load, console, tmp_path):
    experiment, out = load(), tmp_path / "a" / "b"
    sweep(experiment, out, None, False, console)
    table = results.read(out / folder.RESULTS)
    assert reproducible(table) == reproducible(directly(experiment))
    assert table["point_id"].to_pylist() == [each.point_id for each in experiment.points]
    assert (out / folder.EXPERIMENT).read_text() == FILE
    assert {path.name for path in out.rglob("*.*g")} >= {"loss_data_loss.svg", "outcomes.svg"}
    html = (out / folder.REPORT).read_text()
    assert all(each.point_id in html for each in experiment.points)
    assert str(out / folder.REPORT) in console.file.getvalue()
    assert not list(out.rglob("*.part"))


def test_overrides_are_part_of_what_is_kept(spark, load, console, tmp_path):
    out = tmp_path / "out"
    sweep(load("run.runs=10", "rates.broker_crash=0.5"), out, None, False, console)
    assert (out / folder.EXPERIMENT).read_text() == "# --set run.runs=10\n# --set rates.broker_crash=0.5\n" + FILE
    html = (out / folder.REPORT).read_text()
    assert f"small.toml --out {out} --set run.runs=10 --set rates.broker_crash=0.5" in html


def test_a_seed_that_the_table_cannot_hold_is_refused(load, console, tmp_path):
    with pytest.raises(ConfigError, match=r"run\.seed = 9223372036854775808: at most 9223372036854775807"):
        sweep(load(f"run.seed={2**63}"), tmp_path / "out", None, False, console)
    assert not (tmp_path / "out").exists()


def test_resuming_runs_what_is_missing(spark, load, console, tmp_path, monkeypatch):
    sweep(load("run.runs=100"), tmp_path / "out", None, False, console)
    sweep(load("run.runs=300"), tmp_path / "out", None, True, console)
    table = results.read(tmp_path / "out" / folder.RESULTS)
    assert reproducible(table) == reproducible(directly(load()))
    monkeypatch.setattr("sparkjobs.sweep.compute", None)  # nothing is missing now
    sweep(load("run.runs=300"), tmp_path / "out", None, True, console)


def test_results_that_are_there_are_not_overwritten(spark, load, console, tmp_path):
    out = tmp_path / "out"
    sweep(load("run.runs=10"), out, None, False, console)
    with pytest.raises(ConfigError, match="holds results of this experiment; --resume keeps them"):
        sweep(load("run.runs=10"), out, None, False, console)
    for other in ("run.seed=6", "model.keys=2", "run.runs=9"):
        with pytest.raises(ConfigError, match="holds results of another experiment"):
            sweep(load("run.runs=10", other), out, None, True, console)
    (out / folder.RESULTS).write_bytes(b"?")
    with pytest.raises(ConfigError, match="not a Parquet file"):
        sweep(load("run.runs=10"), out, None, True, console)


def test_a_folder_that_cannot_be_used_is_refused(load, console, tmp_path):
    (tmp_path / "file").write_text("x")
    for out in ("file", "file/below"):
        with pytest.raises(ConfigError, match=r"^[^\n]*file is not a directory$"):
            sweep(load(), tmp_path / out, None, False, console)
    with pytest.raises(ConfigError, match="--out /proc/self/fdinfo/out: cannot be"):
        sweep(load(), Path("/proc/self/fdinfo/out"), None, False, console)
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.parametrize("master", ["foo", "local[2]x", "spark:/host", "local[2]\n"])
def test_a_master_that_is_none_is_refused_before_anything_is_written(load, console, tmp_path, master):
    with pytest.raises(ConfigError, match=r'--master ".*": local'):
        sweep(load(), tmp_path / "out", master, False, console)
    assert not (tmp_path / "out").exists()


def test_ctrl_c_is_an_interrupt_also_where_spark_says_otherwise():
    hidden, other = Py4JError("job cancelled"), Py4JError("something else")
    hidden.__context__ = KeyboardInterrupt()
    for error, seen in ((hidden, KeyboardInterrupt), (other, Py4JError)):
        with pytest.raises(seen), interruptible():
            raise error


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
        sweep(load(), tmp_path / "out", None, False, console)
    assert not (tmp_path / "out").exists()


def test_the_bar_counts_on_a_terminal_and_only_there(monkeypatch):
    monkeypatch.setattr(screen, "_POLL_S", 0.001)
    shown, piped = io.StringIO(), io.StringIO()
    done = {0: 10, 1: 5, LOSSES: 3}
    for file, is_terminal in ((shown, True), (piped, False)):
        console = Console(file=file, force_terminal=is_terminal, width=120)
        with screen.progress_bar(console, [range(10), range(10, 20)], np.array([1.0, 2.0]), lambda: done):
            deadline = time.monotonic() + (10 if is_terminal else 0.05)
            while "15 runs" not in file.getvalue() and time.monotonic() < deadline:
                time.sleep(0.01)
    assert "1 of 2 points 15 runs 3 losses" in shown.getvalue()
    assert piped.getvalue() == ""
