"""Sweeps on Spark: the same tables whatever the partitions; what is in the folder before and after."""

import errno
import io
import math
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from matplotlib import pyplot
from rich.console import Console

import quorisk as q
from quorisk.analysis.estimate.estimate import estimate
from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.identity import point_id
from quorisk.analysis.results import provenance, schema, sealed, sweeps
from quorisk.analysis.results.frame import frame as frame_of
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.tally import named_tally
from quorisk.kernels.errors import ConfigError, RunError
from quorisk.sparkjobs import folder
from quorisk.sparkjobs.plan import cut_tasks
from quorisk.sparkjobs.run import Done, pieces_of, run
from quorisk.sparkjobs.state import SweepState
from quorisk.sparkjobs.sweep import Options, sweep, work_of
from tests.sparkjobs.small import AUTO, FILE, RUNS, directly
from tests.support import ROOT

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")

RESUMED = Options(resume=True)
TEN = ("run.runs=10", "run.confidence=0.9")


@pytest.fixture(scope="module")
def of_ten_runs(spark, tmp_path_factory):
    """The folder of a sweep with the overrides TEN, which tests leave as it is."""
    place = tmp_path_factory.mktemp("ten")
    path, out = place / "small.toml", place / "out"
    path.write_text(FILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quorisk.sparkjobs.draw.figures", lambda *_, **__: ())
        sweep(config.load(path, TEN), out, Options(), Console(file=io.StringIO()))
    return out


def reproducible(table):
    """Rows without what differs between two runs of the same."""
    return table.select(schema.REPRODUCIBLE).sort_by("point_id").to_pylist()


def on_spark(spark, experiment, cores):
    """The rows of a plan for so many cores, as they come, and the number of its tasks."""
    jobs = [Job(point, 0, RUNS) for point in range(len(experiment.points))]
    tasks = cut_tasks(jobs, np.array([1.0, 2.0, 3.0, 0.5]) / (RUNS * 65), cores)
    done: list[Done] = []
    assert run(spark, spark.broadcast(work_of(experiment)), tasks, math.inf, done.extend)
    return done, len(pieces_of(tasks, cores, range(4)))


def test_the_rows_of_any_partition_add_up_to_the_same(spark, load):
    experiment = load()
    expected = directly(experiment)
    assert sum(row["lost"] for row in reproducible(expected)) > 0
    assert reproducible(directly(experiment, threads=2)) == reproducible(expected)
    for cores in (1, 7):
        done, num_tasks = on_spark(spark, experiment, cores)
        assert num_tasks == cores
        for point, row in enumerate(expected.to_pylist()):
            sums = [each.sums for each in done if each.job.point == point]
            tally = named_tally(experiment.model, [sum(column) for column in zip(*sums, strict=True)])
            again = schema.row(
                schema.Identity(*(row[name] for name in schema.IDENTITY_COLUMNS)), experiment.model, 0, tally, AUTO, 0.0
            )
            assert pa.Table.from_pylist([again | {"stopped": ["runs"]}], schema=schema.SCHEMA).to_pylist() == [row]
        assert {each.attempt for each in done} == {0}


def test_an_interrupt_does_not_stop_halfway_what_keeps_rows(spark, load):
    experiment = load()
    tasks = cut_tasks([Job(point, 0, RUNS) for point in range(4)], np.ones(4), 4)
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


def test_a_sweep_leaves_results_figures_and_a_report(spark, load, console, tmp_path):
    experiment, out = load(), tmp_path / "a" / "b"
    sweep(experiment, out, Options(), console)
    table = folder.result_rows(out)
    assert reproducible(table) == reproducible(directly(experiment))
    assert table["point_id"].to_pylist() == [each.point_id for each in experiment.points]
    assert (out / folder.EXPERIMENT).read_text() == FILE
    assert {path.name for path in out.rglob("*.*g")} >= {"loss_data_loss.svg"}
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


def test_overrides_are_part_of_what_is_kept(of_ten_runs):
    kept = (of_ten_runs / folder.EXPERIMENT).read_text()
    assert kept == "# --set run.runs=10\n# --set run.confidence=0.9\n" + FILE
    html = (of_ten_runs / folder.REPORT).read_text()
    assert f"small.toml --out {of_ten_runs} --set run.runs=10 --set run.confidence=0.9" in html


def test_resuming_runs_what_is_missing_or_was_in_a_truncated_file_and_nothing_is_counted_twice(
    spark, no_figures, load, console, tmp_path, monkeypatch
):
    experiment, out = load(), tmp_path / "out"
    monkeypatch.setattr("quorisk.sparkjobs.folder.COMMIT_S", math.inf)  # all rows in one file
    sweep(experiment, out, Options(), console)
    whole = (out / folder.RESULTS).read_bytes()
    (out / folder.RESULTS).unlink()
    [file] = (out / folder.TASKS).iterdir()
    rows = sealed.read_sealed(file, sweeps.TASK_SCHEMA)
    sealed.write_sealed(rows.filter(pa.array([i % 3 != 1 for i in range(rows.num_rows)])), file)
    assert sweep(experiment, out, RESUMED, console).runs == 4 * RUNS
    assert (out / folder.RESULTS).read_bytes() == whole
    assert sum(folder.tasks(out)["num_runs"].to_pylist()) == 4 * RUNS
    with monkeypatch.context() as patch:
        patch.setattr("quorisk.sparkjobs.sweep._compute", None)  # nothing is missing now
        assert sweep(experiment, out, RESUMED, console).stopped == {"runs": 4}
    (out / folder.RESULTS).write_bytes(whole[:-100])  # made again from the tasks
    sweep(experiment, out, RESUMED, console)
    assert (out / folder.RESULTS).read_bytes() == whole
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(
        RunError, match=r"000001\.parquet: damaged, .*; delete this file, and `quorisk run --resume` repeats"
    ):
        sweep(experiment, out, RESUMED, console)
    assert (out / folder.RESULTS).read_bytes() == whole
    file.unlink()
    sweep(experiment, out, RESUMED, console)
    assert (out / folder.RESULTS).read_bytes() == whole


def test_a_sweep_is_loaded_and_drawn_and_another_target_is_judged_without_running_again(
    spark, no_figures, load, console, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    swept = q.sweep(load().path, out, {"run.runs": 150})
    assert len(swept.frame()) == 4 * 4
    assert swept.frame().equals(q.load(str(out)).frame())
    assert set(swept.histograms()["point_id"]) == set(swept.frame()["point_id"])
    for draw in (swept.loss, swept.heat_map):
        _, axes = pyplot.subplots()
        assert draw(ax=axes) is axes
        assert axes.has_data()
    pyplot.close("all")
    assert "150" in swept._repr_html_()
    assert "No target was set" in (out / folder.REPORT).read_text()
    monkeypatch.setattr("quorisk.sparkjobs.sweep._compute", None)
    monkeypatch.setattr("quorisk.sparkjobs.sweep.BREAK_EVEN_S", (0.0, 0.0))
    sweep(load("run.runs=150", "run.target=0.99"), out, RESUMED, console)
    assert "2 of 2 designs meet the target" in (out / folder.REPORT).read_text()
    assert provenance.experiment_of_folder(out).run.target == 0.99


@pytest.mark.sampled(1)
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
    assert provenance.experiment_of_folder(little_by_little).run.runs == 2 * RUNS


def test_results_that_are_there_are_not_overwritten(of_ten_runs, load, console, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(of_ten_runs, out)
    with pytest.raises(ConfigError, match="holds results of this experiment; `resume` keeps them"):
        sweep(load(*TEN), out, Options(), console)
    for other, said in (
        ("run.seed=6", "run.seed is 5 there and 6 here"),
        ("model.keys=2", "model.keys is 1 there and 2 here"),
        ("run.runs=9", r"run.runs is 10 there and 9 here \(runs can be added, but not removed\)"),
        ("rates.broker_crash=1", r"rates.broker_crash is \[0.1, 1.0\] there and 1.0 here"),
        ('grid.where=["broker_crash < 1"]', r"rates.broker_crash is \[0.1, 1.0\] there and 0.1 here"),
    ):
        with pytest.raises(ConfigError, match=f"holds results of another experiment: {said}; choose"):
            sweep(load(*TEN, other), out, RESUMED, console)
    (out / folder.EXPERIMENT).unlink()
    with pytest.raises(ConfigError, match="holds results of an unknown experiment"):
        sweep(load(*TEN), out, RESUMED, console)


def test_rates_in_which_experiments_differ_have_their_units():
    starter = ROOT / "configs" / "starters" / "bookkeeper.toml"
    before, now = (config.load(starter, [f"rates.bookie_is_lost={afr} % / year", "scenario=entry"]) for afr in (2, 4))
    said = "rates.bookie_is_lost is 2 % / year there and 4 % / year here"
    assert folder.differences(before, now, ["rates.bookie_is_lost"]) == said


def test_runs_of_another_version_of_the_model_or_of_another_seed_are_not_gone_on_with(of_ten_runs, load):
    experiment = load(*TEN)
    later = experiment.model._replace(version=experiment.model.version + 1)
    points = tuple(each._replace(point_id=point_id(later, each.point)) for each in experiment.points)
    state = experiment._replace(model=later, points=points)
    with pytest.raises(ConfigError, match="holds results of another version of this model"):
        SweepState(state, of_ten_runs)
    with pytest.raises(ConfigError, match="holds runs of another seed, "):
        SweepState(load(*TEN, "run.seed=77"), of_ten_runs)


def test_another_engine_may_go_on_and_of_another_protocol_no_other_key_is_told(load):
    assert folder.differences(load("run.engine=numba"), load("run.engine=auto")) == ""
    another = config.load(ROOT / "configs" / "defect1.toml")
    assert folder.differences(load(), another) == 'protocol is "compaction" there and "bookkeeper" here'


def test_two_at_once_do_not_share_a_folder(load, console, tmp_path):
    with folder.taken(tmp_path), pytest.raises(ConfigError, match="another quorisk process is writing there"):
        sweep(load(), tmp_path, Options(), console)


def test_a_folder_on_a_disk_without_locks_is_refused(load, console, tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("quorisk.sparkjobs.folder.fcntl.flock", no_locks)
    with pytest.raises(
        ConfigError, match=r"^out \S+: cannot be locked: Function not implemented; choose another folder$"
    ):
        sweep(load(), tmp_path / "out", Options(), console)


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
