"""Heads that the tasks of a process have in common."""

import numpy as np
import pytest

from quorisk.analysis.estimate import method
from quorisk.analysis.experiment import config
from quorisk.sparkjobs import tails
from tests.support import SMALL_FILE

MOST = 40


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Asks for a tail as a task does; returns it, and how many heads were solved for that."""
    path = tmp_path / "small.toml"
    path.write_text(
        f'{SMALL_FILE}[variant]\npersist_cursor_before_delete = false\n[run]\nmethod = "head"\nruns = 100\n'
    )
    solved, known = [], method.known_head

    def counted(*given):
        solved.append(given)
        return known(*given)

    monkeypatch.setattr(method, "known_head", counted)
    monkeypatch.setattr(tails, "_LATEST", {})

    def asked(*overrides, most=MOST):
        given = config.load(path, overrides)
        solved.clear()
        return tails.tail_of(given.model, given.points[0], given.run, most), len(solved)

    return asked


def test_tasks_of_one_point_that_come_one_after_another_have_one_head(ask):
    first, num_solved = ask()
    assert num_solved == 1
    assert ask() == (first, 0)
    others = (ask(most=MOST + 1), ask("rates.broker_crash=0.5"), ask("relative_precision=0.001"))
    assert [num_solved for _, num_solved in others] == [1, 1, 1]


def test_another_process_solves_the_same_head(ask):
    first, _ = ask()
    ask("rates.broker_crash=0.5")
    again, num_solved = ask()
    assert num_solved == 1
    assert again.head == first.head
    mine, theirs = (each.points.starts for each in (again, first))
    assert all(
        map(
            np.array_equal, [mine.rows, mine.cumulative, *mine.layout], [theirs.rows, theirs.cumulative, *theirs.layout]
        )
    )


def test_a_head_from_which_nothing_is_sampled_is_kept_too(ask):
    first, num_solved = ask("rates.broker_crash=1e-12", most=1 << 17)
    assert (first.points, first.head["exits"], num_solved) == (None, 0, 1)
    assert ask("rates.broker_crash=1e-12", most=1 << 17) == (first, 0)
