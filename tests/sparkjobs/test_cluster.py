"""A part of the demo grid on a standalone cluster on loopback, and what becomes of it when machines die midway."""

import os
import signal
import subprocess
import sys
import sysconfig
import time
from contextlib import ExitStack

import pyarrow.parquet as pq
import pytest

from quorisk.sparkjobs import folder
from tests.sparkjobs import standalone
from tests.sparkjobs.listening import addresses, beyond, family
from tests.support import ROOT

pytestmark = pytest.mark.cluster

RUNS = 150_000
POINTS = 10
LOSSY = "grid.message_loss=[0.2]"
WAIT_S = 900.0
RUN = """
from quorisk.command.main import main
from quorisk.sparkjobs import draw, folder, sweep
draw.figures, sweep.BREAK_EVEN_S, folder.COMMIT_S = (lambda *_, **__: ()), (0.0, 0.0), 0.1
main()
"""
"""`quorisk` without what takes longest after a sweep's tables are there, and happens on this machine alone. Rows are
on disk so soon that most runs are outstanding then, even on a machine that makes them in seconds."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A master, and two workers with a core each."""
    place = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        master = stack.enter_context(standalone.master(place))
        workers = [stack.enter_context(standalone.worker(place, number, master.url, 1)) for number in range(2)]

        def replace(number):
            workers[number] = stack.enter_context(standalone.worker(place, number, master.url, 1))

        listening = addresses(pid for part in (master, *workers) for pid in family(part.process.pid))
        assert listening
        assert not beyond(listening)
        yield master.url, workers, replace


def python(path, *before):
    """An interpreter with all packages that are installed here but Quorisk; `before` come first on its path."""
    where = ":".join(["$PYTHONPATH", sysconfig.get_path("purelib")])
    first = "".join(f"{folder}:" for folder in before)
    path.write_text(f'#!/bin/sh\nexport PYTHONPATH={first}{where}\nexec {sys.executable} -S "$@"\n')
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    path = python(tmp_path_factory.mktemp("bare") / "python")
    lacking = "import numba, importlib.util as util; assert util.find_spec('quorisk') is None"
    subprocess.run([path, "-c", lacking], env={}, cwd="/", check=True)
    return path


def start(out, *options, executors=sys.executable):
    """Starts `quorisk run` of a part of the demo grid; heads of rare losses are tasks like others, and take longer."""
    command = [sys.executable, "-c", RUN, "run", "configs/demo.toml", "--out", str(out)]
    return subprocess.Popen(
        [*command, "--set", f"run.runs={RUNS}", "--set", "run.method=count", "--set", LOSSY, *options],
        cwd=ROOT,
        env=os.environ | {"PYSPARK_PYTHON": executors, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process):
    """Standard error of a run that ended well."""
    _, said = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, said
    return said


def on(url, *more):
    return ("--master", url, "--conf", "spark.driver.host=127.0.0.1", *more)


def wait_for(process, condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wait_for_rows(process, out):
    """Waits for the first rows on disk; returns the number of runs in them."""
    wait_for(process, lambda: list((out / folder.TASKS).glob("*.parquet")))
    return runs_on_disk(out)


def runs_on_disk(out):
    return sum(folder.tasks(out)["num_runs"].to_pylist())


def tables(out):
    return (out / folder.RESULTS).read_bytes()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The table of an undisturbed run on this machine."""
    out = tmp_path_factory.mktemp("local") / "out"
    finished(start(out, "--master", "local[2]"))
    table = pq.read_table(out / folder.RESULTS)
    assert table["num_runs"].to_pylist() == [RUNS] * POINTS
    assert sum(table["lost"].to_pylist()) > 1000
    return tables(out)


def test_a_cluster_without_the_package_gives_the_same_table_and_a_worker_that_is_killed_changes_nothing(
    parts, bare, expected, tmp_path
):
    url, workers, replace = parts
    out = tmp_path / "out"
    running = start(out, *on(url), executors=bare)
    before = wait_for_rows(running, out)
    processes = (running, *(part.process for part in workers))  # those of driver and executors among them
    assert not beyond(addresses(pid for each in processes for pid in family(each.pid)))
    standalone.end(workers[0].process, signal.SIGKILL)
    assert before < RUNS * POINTS / 2
    finished(running)
    replace(0)
    assert tables(out) == expected
    assert runs_on_disk(out) == RUNS * POINTS
    log = (out / folder.LOG).read_text()
    assert log.count("1 cores") == 2
    assert "lost (" in log
    assert "finished" in log


@pytest.mark.exhaustive
def test_a_driver_that_is_killed_can_be_resumed_and_a_copy_of_a_slow_task_counts_once(parts, expected, tmp_path):
    """A worker stands still until Spark has done a copy of its task elsewhere, and then ends that task, too."""
    url, workers, _ = parts
    out = tmp_path / "out"
    running = start(out, *on(url))
    before = wait_for_rows(running, out)
    running.kill()
    running.communicate()
    assert 0 < before <= runs_on_disk(out) < RUNS * POINTS / 3
    assert not (out / folder.RESULTS).exists()
    eager = [
        f"speculation.{each}" for each in ("interval=100ms", "quantile=0.1", "multiplier=1.1", "minTaskRuntime=100ms")
    ]
    eager.append("rpc.askTimeout=10s")
    running = start(out, *on(url), "--resume", *(word for each in eager for word in ("--conf", f"spark.{each}")))
    # Both workers have what they need from each other by then, and nobody asks the one that stands still for long.
    wait_for(running, lambda: runs_on_disk(out) > RUNS * POINTS * 2 / 3)
    os.killpg(workers[1].process.pid, signal.SIGSTOP)
    try:
        wait_for(running, lambda: 1 in folder.tasks(out)["attempt"].to_pylist())
    finally:
        os.killpg(workers[1].process.pid, signal.SIGCONT)
    finished(running)
    assert tables(out) == expected
    assert runs_on_disk(out) == RUNS * POINTS
    assert "attempt 1 ended" in (out / folder.LOG).read_text()


@pytest.mark.exhaustive
def test_executors_without_numba_are_told_in_a_line(parts, tmp_path):
    url, _, _ = parts
    (tmp_path / "numba.py").write_text("raise ModuleNotFoundError(\"No module named 'numba'\", name='numba')")
    once = ("--conf", "spark.task.maxFailures=1")
    running = start(tmp_path / "out", *on(url, *once), executors=python(tmp_path / "python", tmp_path))
    out, err = running.communicate(timeout=WAIT_S)
    assert (running.returncode, out) == (1, "")
    said = err.splitlines()[-1]  # after how far it was
    assert said.startswith("error: Spark: ModuleNotFoundError: No module named 'numba'")
    assert "spark.log" in said
    assert (err.count("error:"), "Traceback" in err) == (1, False)
    assert not (tmp_path / "out" / folder.TASKS).exists()
