"""Heads that the processes of an executor share."""

import os

import numpy as np
import pytest

from quorisk.analysis.estimate import method
from quorisk.analysis.experiment import config
from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.job import Job
from quorisk.sparkjobs import tails
from tests.support import SMALL_FILE

MOST = 40


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Asks for a tail as a new process of an executor does; returns it, and how many heads were solved for that."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/nowhere")
    path = tmp_path / "small.toml"
    path.write_text(
        f'{SMALL_FILE}[variant]\npersist_cursor_before_delete = false\n[run]\nmethod = "head"\nruns = 100\n'
    )
    solved, known = [], method.known

    def counted(*given):
        solved.append(given)
        return known(*given)

    monkeypatch.setattr(method, "known", counted)

    def asked(*overrides, most=MOST):
        given = config.load(path, overrides)
        tails._LATEST.clear()
        solved.clear()
        return tails.tail_of(given.model, given.points[0], given.run, most), len(solved)

    asked.experiment = lambda: config.load(path)  # type: ignore[attr-defined]
    return asked


def same(one, other):
    starts = [each.points.starts for each in (one, other)]
    arrays = [[each.rows, each.cumulative, *each.layout] for each in starts]
    return one.head == other.head and all(map(np.array_equal, *arrays))


def test_one_process_solves_what_others_find(ask, tmp_path):
    first, num_solved = ask()
    assert num_solved == 1
    again, num_solved = ask()
    assert num_solved == 0
    assert same(first, again)
    assert ask(most=MOST + 1)[1] == ask("rates.broker_crash=0.5")[1] == ask("relative_precision=0.001")[1] == 1
    assert not list(tmp_path.glob("*.part"))


def test_a_head_from_which_nothing_is_sampled_is_shared_too(ask):
    first, num_solved = ask("rates.broker_crash=1e-12", most=1 << 17)
    assert (first.points, first.head["exits"], num_solved) == (None, 0, 1)
    assert ask("rates.broker_crash=1e-12", most=1 << 17) == (first, 0)


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"", "flip"])
def test_what_is_damaged_is_solved_again(ask, tmp_path, damage):
    first, _ = ask()
    (path,) = tmp_path.glob("*.npz")
    data = path.read_bytes()
    if damage == "flip":
        at = data.index(first.points.starts.rows.tobytes())
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    else:
        path.write_bytes(damage(data))
    again, num_solved = ask()
    assert num_solved == 1
    assert same(first, again)
    assert path.read_bytes() == data


def test_the_oldest_heads_make_room_for_new_ones(ask, tmp_path, monkeypatch):
    ask()
    (first,) = tmp_path.glob("*.npz")
    os.utime(first, (0, 0))
    monkeypatch.setattr(tails, "ROOM_BYTES", 3 * first.stat().st_size)
    ask("rates.broker_crash=0.5")
    assert len(list(tmp_path.glob("*.npz"))) == 2
    monkeypatch.setattr(tails, "ROOM_BYTES", 2 * first.stat().st_size)
    ask("rates.broker_crash=0.25")
    assert len(list(tmp_path.glob("*.npz"))) == 2
    assert not first.exists()
    assert ask("rates.broker_crash=0.5")[1] == 0


def test_what_one_task_finishes_is_not_kept(ask, tmp_path):
    given = ask.experiment()
    tails._LATEST.clear()
    for num_runs, kept in ((given.run.runs, 0), (given.run.runs - 1, 1)):
        tails._LATEST.clear()
        head = tails.run_tail(numba_engine, given.model, given.points[0], given.run, Job(0, 0, num_runs), MOST)
        assert head["runs"] == [{"first_run": 0, "num_runs": num_runs}]
        assert len(list(tmp_path.glob("*.npz"))) == kept


def test_without_a_place_to_share_each_process_solves_it(ask, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/nowhere")
    assert ask()[1] == ask()[1] == 1


def test_without_room_each_process_solves_it(ask, monkeypatch, tmp_path):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("quorisk.kernels.keeping.write", full)
    first, _ = ask()
    assert not list(tmp_path.glob("head-*.[np]*"))
    again, num_solved = ask()
    assert num_solved == 1
    assert same(first, again)
