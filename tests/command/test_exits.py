"""How the command ends: exit statuses, a line for each error, and streams that nobody reads."""

import json
import subprocess
import sys

import pytest
import typer

from quorisk.analysis import bench
from quorisk.kernels.errors import RunError
from quorisk.sparkjobs import sweep


def test_a_run_that_fails_ends_with_1_and_one_line(quorisk, file, monkeypatch):
    def fails(*_):
        raise RunError("the disk\nis full")

    monkeypatch.setattr(sweep, "sweep", fails)
    assert quorisk("run", file, "--out", "x") == (1, "", "error: the disk is full\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["estimate"], "Missing argument"),
        (["estimat", "FILE"], "No such command 'estimat'"),
        (["estimate", "FILE", "--sed", "1"], "No such option: --sed"),
        (["estimate", "FILE", "--threads", "0"], "--threads 0: should be greater than or equal to 1"),
        (["estimate", "FILE", "--set", "keys=7"], "FILE: model.keys = 7: an integer from 1 to 6"),
        (["estimate", "FILE", "--set", "grid.keys=[1, 2]"], "FILE: grid.model.keys: 2 grid points, but one is needed"),
        (["estimate", "absent.toml"], "absent.toml: cannot be read"),
        (["explore", "FILE", "--memory", "lots"], "--memory 'lots': above 0 and at most 1024TiB, written as 4GiB"),
        (["explore", "FILE", "--memory", "0GiB"], "--memory '0GiB': above 0 and at most 1024TiB, written as 4GiB"),
        (["explore", "FILE", "--memory", "1KiB"], "--memory: the initial state and its successors need"),
        (["explore", "FILE", "--memory", "1024TiB"], "--memory 1024TiB: this machine does not have"),
        (["explore", "FILE", "--set", "grid.keys=[1, 2]"], "FILE: grid.model.keys: 2 grid points, but one is needed"),
        (["estimate", "FILE", "--threads", "4", "--threads", "0"], "Invalid value for '--threads': should be"),
        (["bench", "--engine", "abacus"], "--engine abacus: 'abacus' is not one of"),
        (["run", "FILE", "--out", "x", "--budget-s", "nan"], "--budget-s nan: should be greater"),
        (["run", "FILE"], "Missing option '--out'"),
        (["run", "FILE", "--out", "s3a://x/y"], "--out s3a://x/y: must be on this machine; copy it"),
        (["plot", "FILE", "--out=hdfs:///x/y"], "--out hdfs:///x/y: must be on this machine; copy it"),
        (["run", "FILE", "--out", "x", "--set", "run.target=1"], "FILE: run.target = 1: a number between 0 and 1"),
        (["plot", "absent"], "absent: has no results; `quorisk run"),
        (["plot", "FILE"], "FILE: damaged, or not written by this version of Quorisk"),
        (["plot", "FILE", "--format", "gif"], "--format gif: one of svg, png, pdf"),
    ],
)
def test_bad_input_ends_with_2_and_one_line(refused, file, arguments, said):
    err = refused(*(file if argument == "FILE" else argument for argument in arguments))
    assert err.startswith(said.replace("FILE", file))


@pytest.mark.parametrize("how", [KeyboardInterrupt, typer.Abort])  # the latter at a question
def test_an_interrupted_command_ends_with_130_and_one_line(quorisk, monkeypatch, how):
    def interrupted(*_):
        raise how

    monkeypatch.setattr(bench, "bench", interrupted)
    assert quorisk("bench") == (130, "", "interrupted\n")


@pytest.mark.parametrize(
    ("where", "how"),
    [
        ("quorisk.command.main", "exec('raise KeyboardInterrupt')"),
        ("quorisk.analysis.estimate.estimate", "raise KeyboardInterrupt"),
    ],
)
def test_an_interrupt_while_modules_load_ends_with_130_and_one_line(file, tmp_path, where, how):
    """`python -m` kills itself with SIGINT if the interrupt hit a text that was being executed, as named tuples are."""
    program = f"""
import sys
from importlib.abc import MetaPathFinder
from quorisk.command.start import main

class Interrupted(MetaPathFinder):
    def find_spec(self, name, *_):
        if name == {where!r}:
            {how}

sys.meta_path.insert(0, Interrupted())
main()
"""
    (tmp_path / "begin.py").write_text(program)
    command = [sys.executable, "-m", "begin", "estimate", str(file)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def ended(arguments):
    """Exit status, stdout and stderr of a command whose streams a shell has redirected."""
    program = "import sys; from quorisk.command.main import main; main(sys.argv[1:])"
    command = ["sh", "-c", f'exec "$0" -c "$1" {arguments}', sys.executable, program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("arguments", ["--help", "init kafka"])
def test_output_that_finds_no_room_ends_with_1_and_one_line(arguments):
    assert ended(f"{arguments} >/dev/full") == (1, "", "error: [Errno 28] No space left on device\n")


@pytest.mark.parametrize("redirected", ["2>&-", "<&- 2>&-", "2>/dev/full"])
@pytest.mark.sampled(1)
def test_errors_that_nobody_can_read_change_nothing_else(file, redirected):
    code, out, err = ended(f"estimate {file} --json --set runs=10 {redirected}")
    assert (code, json.loads(out)["runs"], err) == (0, 10, "")
    assert ended(f"estimate {file} --json --set runs=0 {redirected}") == (2, "", "")


@pytest.mark.parametrize("redirected", [">&-", "<&- >&-"])
def test_output_that_is_closed_is_no_error(redirected):
    assert ended(f"init kafka {redirected}") == (0, "", "")


def test_memory_that_runs_out_is_told_in_a_line(quorisk, file, monkeypatch):
    def large(*_, **__):
        raise MemoryError

    monkeypatch.setattr("quorisk.analysis.estimate.estimate.estimate", large)
    assert quorisk("estimate", str(file)) == (1, "", "error: out of memory\n")
