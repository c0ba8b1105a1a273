"""After installation there is one name, `quorisk`, whatever else has the names of our folders."""

import os
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from quorisk.sparkjobs.archive import package_archive
from tests.support import ROOT, SMALL_FILE

FOLDERS = ("kernels", "analysis", "sparkjobs", "plots", "say", "tests")


@pytest.fixture
def elsewhere(tmp_path):
    """A folder with an experiment and with packages of our folders' names, which fail when they are imported."""
    for name in FOLDERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise ImportError({name!r})")
    (tmp_path / "topic.toml").write_text(SMALL_FILE + "[run]\nruns = 500\n")
    return tmp_path


def in_folder(folder: Path, *command: str) -> str:
    """What a command prints that runs there, with the folder on PYTHONPATH, too, and before this repository."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_works_where_others_have_our_folders_names(elsewhere):
    out = in_folder(elsewhere, sys.executable, "-m", "quorisk", "estimate", "topic.toml")
    assert "500 runs" in out


@pytest.mark.exhaustive
def test_spark_works_where_others_have_our_folders_names(elsewhere):
    in_folder(elsewhere, sys.executable, "-m", "quorisk", "run", "topic.toml", "--out", "results")
    assert (elsewhere / "results" / "report.html").stat().st_size > 1000


def test_files_older_than_what_archives_can_say_travel_as_well(tmp_path, monkeypatch):
    root = tmp_path / "quorisk"
    root.mkdir()
    (root / "__init__.py").touch()
    os.utime(root / "__init__.py", (0, 0))
    monkeypatch.setattr("quorisk.__file__", str(root / "__init__.py"))
    assert zipfile.ZipFile(package_archive(tmp_path)).namelist()[0] == "quorisk/__init__.py"


def test_what_travels_to_executors_is_all_that_a_task_needs(tmp_path):
    """The archive alone, without this repository, runs a job."""
    folder = tmp_path / "executor"
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(package_archive(tmp_path)), str(folder)], check=True)
    program = f"""
import sys
import zipfile
from importlib.metadata import distribution
sys.path[:] = [{str(folder)!r}, *(place for place in sys.path if place not in ("", {str(ROOT)!r}))]
from quorisk.analysis.experiment import config
from quorisk.sparkjobs import run
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import pack

sizes = dict(messages=2, compactions=1, keys=1, values=1, max_crashes=0)
given = config.build_experiment({{"protocol": "compaction", "model": sizes, "run": {{"engine": "numba"}}}}, "a job")
points = pack(given.model, [given.points[0].point])
done = run.run_piece(run.Work("compaction", given.run, points), run.TaskPiece(Job(0, 0, 100)), 0)
assert all(module.__file__.startswith({str(folder)!r})
           for name, module in sys.modules.items() if name.split(".")[0] == "quorisk"), sys.modules
about = distribution("quorisk")
assert str(about.locate_file("")) == {str(folder)!r}
print(done.job.num_runs, about.version)
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == (f"100 {distribution('quorisk').version}\n", 0), done.stderr


def test_an_editable_installation_is_one_line_that_every_tool_follows():
    """A path in a .pth file; no import hook, which mypy, editors and Spark's workers would not see."""
    files = [Path(str(file.locate())) for file in distribution("quorisk").files or [] if file.suffix in (".pth", ".py")]
    editable = [file for file in files if file.name.startswith("__editable__")]
    for file in editable:
        (line,) = file.read_text().splitlines()
        assert (Path(line) / "quorisk" / "kernels" / "model.py").is_file()
