"""The folder for what only this user may touch, and what becomes of it when its process is killed."""

import fcntl
import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from quorisk.sparkjobs import private
from quorisk.sparkjobs.private import private_folder

HOLD = """
import sys, time
from quorisk.sparkjobs.private import private_folder
with private_folder() as folder:
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def hold(temporary):
    environment = os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen([sys.executable, "-c", HOLD], env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    return process, process.stdout.readline().strip()


def test_nobody_else_may_look_into_it_and_it_goes_with_the_body():
    before = os.umask(0o002)
    try:
        with private_folder() as folder:
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            (folder / "socket").touch()
    finally:
        os.umask(before)
    assert not folder.exists()


def test_what_a_killed_process_left_goes_at_the_next_start_and_what_a_living_one_has_stays(temporary):
    killed, left = hold(temporary)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    living, kept = hold(temporary)  # which is a next start
    try:
        assert not os.path.exists(left)
        with private_folder():
            assert os.path.exists(kept)
    finally:
        living.kill()
        living.wait()


def test_a_folder_that_another_start_removes_before_it_is_locked_is_replaced(temporary, monkeypatch):
    flock, others = fcntl.flock, iter([True])

    def flock_late(lock, how):
        if how == fcntl.LOCK_EX and next(others, False):
            private._remove_abandoned(temporary)
        flock(lock, how)

    monkeypatch.setattr(fcntl, "flock", flock_late)
    with private_folder() as folder:
        assert list(temporary.iterdir()) == [folder]
    assert next(others, None) is None


def test_folders_without_a_lock_stay_unless_they_are_old_and_empty(temporary):
    for name, age_s in (("quorisk-new", 0), ("quorisk-old", 3600), ("quorisk-full", 3600)):
        folder = temporary / name
        folder.mkdir()
        if name == "quorisk-full":
            (folder / "file").touch()
        os.utime(folder, (time.time() - age_s,) * 2)
    (temporary / "quorisk-link").symlink_to(temporary / "quorisk-full")
    with private_folder():
        pass
    assert {path.name for path in temporary.iterdir()} == {"quorisk-new", "quorisk-full", "quorisk-link"}
