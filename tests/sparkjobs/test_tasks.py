"""Tasks: the runs of a plan, each once and in even shares, and what a worker makes of its own."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest

from quorisk.kernels.engines import registry
from quorisk.kernels.engines.job import Job
from quorisk.sparkjobs.plan import PLAN_SCHEMA, cut_tasks, pilot
from quorisk.sparkjobs.run import TaskPiece, compile_once, pieces_of, run, run_piece
from quorisk.sparkjobs.sweep import work_of


@pytest.mark.parametrize("cores", [1, 2, 10, 50])
@pytest.mark.parametrize("ranges", [[range(7)], [range(5, 9), range(0), range(100), range(3, 3), range(1)]])
@pytest.mark.sampled(2)
def test_a_plan_covers_every_run_once(ranges, cores):
    jobs = [Job(point, runs.start, len(runs)) for point, runs in enumerate(ranges)]
    table = cut_tasks(jobs, np.linspace(0.1, 3.0, len(ranges)), cores)
    assert table.schema.equals(PLAN_SCHEMA, check_metadata=True)
    rows = table.to_pylist()
    assert [row["task"] for row in rows] == sorted(row["task"] for row in rows)
    assert {row["task"] for row in rows} == set(range(rows[-1]["task"] + 1))
    covered = [(row["point"], row["first_run"] + i) for row in rows for i in range(row["num_runs"])]
    assert sorted(covered) == [(point, run) for point, runs in enumerate(ranges) for run in runs]


def test_points_are_timed_part_by_part_and_told_of(load, monkeypatch):
    """There are four; the second part is what the first one leaves."""
    told: list[int] = []
    whole = pilot(work_of(load()))
    monkeypatch.setattr("quorisk.sparkjobs.plan._TOGETHER", 3)
    run_s = pilot(work_of(load()), told.append)
    assert (run_s > 0).all()
    assert run_s / run_s.sum() == pytest.approx(whole / whole.sum())  # by the same steps of the same runs
    assert told == [3, 4] * (len(told) // 2) != []


def test_tasks_cost_about_the_same():
    run_s = np.array([1.0, 10.0, 0.1]) / 10_000
    tasks = cut_tasks([Job(point, 0, 1000) for point in range(3)], run_s, 8).to_pandas()
    cost = (tasks["num_runs"] * run_s[tasks["point"]]).groupby(tasks["task"]).sum()
    assert len(cost) == 8
    assert cost.max() - cost.min() <= 2 * run_s.max()
    assert tasks["expected_s"].sum() == pytest.approx(1.11)


def test_tasks_are_neither_too_short_nor_too_long():
    def num_tasks(total_s):
        return len(pieces_of(cut_tasks([Job(0, 0, 10**6)], np.array([total_s / 10**6]), 2), 2, [0]))

    assert [num_tasks(total_s) for total_s in (0.1, 5.0, 100.0, 10_000.0)] == [2, 20, 48, 1000]


def test_a_core_is_told_how_many_runs_of_a_point_are_left_for_it():
    """Of runs from the exits of a head it is told nothing, as they need no kernel."""
    jobs = [Job(0, 0, 1000), Job(1, 0, 600), Job(2, 5, 90), Job(3, 0, 400)]
    tasks = pieces_of(cut_tasks(jobs, np.full(4, 1e-3), 4, {1: 50}), 4, [0, 1, 2, 0])
    pieces = [piece for task in tasks for piece in task]
    assert len(pieces) > 6
    assert {later for job, _, later in pieces if job.point == 1} == {0}
    of_kin = [(job.num_runs, later) for job, _, later in pieces if job.point in (0, 3)]
    assert [later for _, later in of_kin] == [sum(num for num, _ in of_kin[i + 1 :]) // 4 for i in range(len(of_kin))]
    assert of_kin[0][1] > 200


def test_what_is_left_for_a_core_reaches_the_engine(monkeypatch, load):
    told, numba = list[int](), registry.engine_of("numba")

    def simulate(*given):
        *others, later = given
        told.append(later)
        return numba.simulate(*others)

    engine = SimpleNamespace(NAME="numba", simulate=simulate)
    monkeypatch.setattr("quorisk.sparkjobs.run.engine_of", lambda name: engine)
    monkeypatch.setattr("quorisk.sparkjobs.run.compile_once", lambda *given: None)
    run_piece(work_of(load()), TaskPiece(Job(0, 0, 10), later=1234), 0)
    assert told == [1234]


def test_one_worker_of_a_machine_compiles_while_the_others_wait(load, tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("quorisk.kernels.compiled._ONCE", set())
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


def test_a_job_that_time_ends_before_spark_has_it_ends_and_no_other_job_does(load, monkeypatch):
    monkeypatch.setattr("quorisk.sparkjobs.run.POLL_S", 0.01)
    groups, too_early, ended = list[str](), Event(), Event()

    def cancel(group):
        assert [group] == groups
        (ended if too_early.is_set() else too_early).set()

    def start(*_):
        assert too_early.wait(10.0)  # Spark has no job to cancel yet
        return SimpleNamespace(foreachPartition=lambda _: ended.wait(10.0))

    spark: Any = SimpleNamespace(
        defaultParallelism=1,
        accumulator=lambda *_: SimpleNamespace(value=[]),
        setJobGroup=lambda group, _: groups.append(group),
        parallelize=start,
        cancelJobGroup=cancel,
    )
    jobs = cut_tasks([Job(0, 0, 10)], np.ones(4), 1)
    work: Any = SimpleNamespace(value=work_of(load()))
    assert not run(spark, work, jobs, time.monotonic() + 0.05, lambda _: None)
    assert ended.is_set()
