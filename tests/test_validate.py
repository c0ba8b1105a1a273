"""python -m tests.validation: that its checks can fail, and that the page keeps what was not checked again."""

import subprocess
import sys

import pytest

from quorisk.kernels.engines.lanes.traced import Shape
from tests.external import pbs
from tests.kernels.engines import fuzz
from tests.validation import __main__ as validate
from tests.validation import engines, page, probabilities
from tests.validation.page import Check


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "PAGE", tmp_path / "validation.md")
    return tmp_path / "validation.md"


def test_a_section_takes_the_place_of_its_last_one_and_leaves_the_others(there):
    def write(name, cell, holds):
        page.write(
            name, Check(name.title(), "What.", ("a", "b"), [(cell, 2)], "so it is.", holds), "cmd", 1.0, ["x", "y"]
        )

    write("y", "old", True)
    write("x", "first", True)
    write("y", "a|b", False)
    text = there.read_text()
    assert text.startswith("# Validation\n")
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## X", "## Y"]
    assert "| first | 2 |" in text
    assert "| a\\|b | 2 |" in text
    assert "| old |" not in text
    assert "Holds: so it is." in text
    assert "**Does not hold**: so it is." in text
    assert "numpy " in text


def test_a_section_names_a_commit_that_stays(monkeypatch, tmp_path):
    """Of a branch that may be rebased, the one of `main` that it began at."""

    def git(*words):
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        done = subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(file):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("x")
        git("add", file)
        git("commit", "-q", "-m", file)
        return f"commit {git('rev-parse', '--short', 'HEAD')}"

    monkeypatch.setattr(page, "ROOT", tmp_path)
    assert page.commit() == ""
    git("init", "-q", "-b", "main")
    kept = commit("plots/a.py")
    assert page.commit() == kept
    git("checkout", "-q", "-b", "mine")
    commit("docs/a.md")
    assert page.commit() == kept
    commit("plots/b.py")
    assert page.commit() == f"{kept} with changes"
    git("checkout", "-q", "main")
    (tmp_path / "plots" / "a.py").write_text("y")
    assert page.commit() == f"{kept} with changes"


def test_what_deviates_does_not_hold(there, monkeypatch, capsys):
    assert probabilities.latency(True).holds
    monkeypatch.setitem(pbs.YAMMER_MS, 1, 10.0)
    found = probabilities.latency(True)
    assert not found.holds
    assert any(row[2] == 10.0 and str(row[-1]) > "60" for row in found.rows)
    monkeypatch.setattr(sys, "argv", ["validate.py", "--only", "latency", "--quick"])
    with pytest.raises(SystemExit) as ended:
        validate.main()
    assert ended.value.code == 1
    assert capsys.readouterr().out.startswith("latency: DOES NOT HOLD: ")
    assert not there.exists()


def test_an_engine_that_makes_other_runs_is_found(monkeypatch):
    def right(made, timed):
        return fuzz.by_kernel(made, Shape(8, 32), timed)

    def wrong(made, timed):
        return fuzz.by_kernel(made._replace(seed=made.seed + 1), Shape(8, 32), timed)

    monkeypatch.setattr(fuzz, "engines", lambda: {"right": right, "wrong": wrong})
    found = engines.fuzz_engines(True, 300, 2)
    assert not found.holds
    assert [(row[1], row[3], row[-1]) for row in found.rows] == [("right", "300", "0"), ("wrong", "300", "1")]
    monkeypatch.setattr(fuzz, "engines", lambda: {"right": right})
    assert engines.fuzz_engines(True, 300, 2).holds
