"""What a sweep leaves when it is cut short, by a full disk, by the clock or by Ctrl-C, and how it goes on."""

import errno
import io
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from quorisk.analysis.experiment import config
from quorisk.analysis.results.frame import frame as frame_of
from quorisk.analysis.statistics import sequential
from quorisk.kernels.errors import RunError
from quorisk.sparkjobs import folder
from quorisk.sparkjobs.run import run
from quorisk.sparkjobs.sweep import Options, sweep
from tests.support import ROOT, SMALL_FILE

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.usefixtures("spark"),
]

RUNS = 500_000
FILE = f"""{SMALL_FILE}[run]
runs = {RUNS}
seed = 5
method = "count"
[grid]
"variant.persist_cursor_before_delete" = [true, false]
"rates.broker_crash" = [0.1, 1.0]
"""


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    path = tmp_path_factory.mktemp("experiment") / "small.toml"
    path.write_text(FILE)
    return config.load(path)


@pytest.fixture(scope="module")
def whole(experiment, tmp_path_factory):
    """The table of an undisturbed run."""
    out = tmp_path_factory.mktemp("whole") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quorisk.sparkjobs.draw.figures", lambda *_, **__: ())
        sweep(experiment, out, Options(), Console(file=io.StringIO()))
    return (out / folder.RESULTS).read_bytes()


@pytest.fixture
def time_is_up_after_the_first_rows(monkeypatch):
    taken: list[dict[str, object]] = []
    append = folder.append

    def note(place, rows, schema):
        taken.extend(row for row in rows if row["first_run"] == 0)
        append(place, rows, schema)

    clock = SimpleNamespace(monotonic=lambda: math.inf if taken else 0.0)
    monkeypatch.setattr("quorisk.sparkjobs.run.time", clock)
    monkeypatch.setattr("quorisk.sparkjobs.run.POLL_S", 0.01)
    monkeypatch.setattr("quorisk.sparkjobs.folder.COMMIT_S", 0.0)
    monkeypatch.setattr(folder, "append", note)
    yield
    assert taken


def test_a_full_disk_is_told_in_a_line_and_loses_nothing(no_figures, experiment, whole, console, tmp_path, monkeypatch):
    out, written = tmp_path / "out", list[object]()
    write_table = pq.write_table

    def fails_the_second_time(table, file, **options):
        if "host" in table.schema.names:
            if written:
                file.write(b"PAR1")
                raise OSError(errno.ENOSPC, "[Errno 28] Error writing bytes to file")
            written.append(file)
        write_table(table, file, **options)

    monkeypatch.setattr("quorisk.sparkjobs.folder.COMMIT_S", 0.0)
    monkeypatch.setattr(pq, "write_table", fails_the_second_time)
    why = "cannot be written: No space left on device; `resume` continues from there"
    with pytest.raises(RunError, match=rf"^[^\n]*000002.parquet: {why}$"):
        sweep(experiment, out, Options(), console)
    assert [path.name for path in (out / folder.TASKS).iterdir()] == ["000001.parquet"]
    assert "ERROR failed: " in (out / folder.LOG).read_text()
    kept = sum(folder.tasks(out)["num_runs"].to_pylist())
    monkeypatch.setattr(pq, "write_table", write_table)
    assert sweep(experiment, out, Options(resume=True), console).runs == 4 * RUNS
    assert (out / folder.RESULTS).read_bytes() == whole
    assert 0 < kept < sum(folder.tasks(out)["num_runs"].to_pylist()) == 4 * RUNS


def test_results_that_the_clock_ended_say_so_and_can_be_resumed(
    no_figures, experiment, whole, console, tmp_path, monkeypatch, time_is_up_after_the_first_rows
):
    out = tmp_path / "out"
    summary = sweep(experiment, out, Options(budget_s=1000.0), console)
    assert set(summary.stopped) <= {"time", "runs"}
    assert summary.stopped["time"] > 0
    assert summary.runs < 4 * RUNS
    said = "how many runs there are depends on the speed of the machines"
    points = "1 point" if summary.stopped["time"] == 1 else f"{summary.stopped['time']} points"
    assert f"warning: time was up at {points} before all runs were done" in console.file.getvalue()
    assert said in console.file.getvalue()
    assert said in (out / folder.REPORT).read_text()
    frame = frame_of(folder.result_rows(out), 0.95)
    assert set(frame["method"][frame["stopped"] == "time"]) == {sequential.METHOD}
    monkeypatch.setattr("quorisk.sparkjobs.run.time", time)
    assert sweep(experiment, out, Options(resume=True), console).stopped == {"runs": 4}
    assert (out / folder.RESULTS).read_bytes() == whole


def test_a_budget_far_too_small_for_the_runs_reaches_every_point(
    no_figures, experiment, console, tmp_path, monkeypatch
):
    many, rounds = config.load(Path(experiment.path), ["run.runs=1_000_000_000_000"]), list[int]()

    def run_one_round(context, work, plan, deadline, take, description):
        rounds.append(plan.num_rows)
        return len(rounds) == 1 and run(context, work, plan, math.inf, take)

    monkeypatch.setattr("quorisk.sparkjobs.sweep.run", run_one_round)
    summary = sweep(many, tmp_path / "out", Options(budget_s=10.0), console)
    assert (summary.points, summary.stopped) == (4, {"time": 4})
    assert max(rounds) < 1000


def test_points_that_the_time_did_not_reach_are_told_even_if_all_others_made_their_runs(
    no_figures, experiment, console, tmp_path, monkeypatch
):
    def run_one_point(context, work, plan, deadline, take, description):
        return run(context, work, plan.filter(pc.equal(plan["point"], 0)), math.inf, take) and False

    monkeypatch.setattr("quorisk.sparkjobs.sweep.run", run_one_point)
    assert sweep(experiment, tmp_path / "out", Options(budget_s=1000.0), console).stopped == {"runs": 1}
    assert "warning: time was up at 3 points before any run was done: how many runs" in console.file.getvalue()


def test_no_time_at_all_is_an_error(experiment, console, tmp_path, monkeypatch):
    monkeypatch.setattr("quorisk.sparkjobs.run.POLL_S", 10.0)  # in which tasks would end, were there any
    with pytest.raises(RunError, match=r"`budget_s`: too short; no point has any runs yet"):
        sweep(experiment, tmp_path / "out", Options(budget_s=0.0), console)


def test_ctrl_c_says_how_to_go_on(experiment, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "quorisk", "run", experiment.path, "--out", str(out)]
    running = subprocess.Popen(
        [*command, "--set", "run.runs=20000000", "--master", "local[1]"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 900
    while not (out / folder.TASKS).exists():
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does
    said, err = running.communicate(timeout=300)
    hint = f"to continue: quorisk run {experiment.path} --out {out} --set run.runs=20000000 --resume"
    *how_far, last, end = err.splitlines()
    assert (running.returncode, said, last, end) == (130, "", hint, "interrupted")
    assert all(" of 4 points, " in line or line.startswith("compiling the model") for line in how_far)
    assert "interrupted" in (out / folder.LOG).read_text()
    assert folder.tasks(out).num_rows > 0
