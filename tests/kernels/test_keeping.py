"""Machine code on disk: kept where only this user writes, and run only as it was kept."""

import os
import re
import sys
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from types import FunctionType

import numba
import pytest
from numba import njit
from numba.core.errors import TypingError

from quorisk.kernels import keeping
from quorisk.kernels.errors import ConfigError

COMPILED, LOADED = 10, 11
"""How a process ends."""


def plus_one(number):
    return number + 1


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("QUORISK_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "code"))
    return tmp_path / "quorisk"


def kept():
    """A function as another process would have it: nothing of it is in memory."""
    return keeping.kept(njit(FunctionType(plus_one.__code__, {"__name__": __name__}, "plus_one")))


def files(folder):
    return sorted(path for path in folder.parent.joinpath("code").rglob("*") if path.is_file())


def compiled(function):
    """Whether the first call compiles, instead of loading what is on disk."""
    assert function(41) == 42
    return not sum(function.stats.cache_hits.values())


def test_code_is_loaded_by_whoever_comes_next(folder):
    assert [compiled(kept()) for _ in range(2)] == [True, False]


def test_whether_code_is_at_hand_is_known_before_it_is_asked_for(folder):
    function = kept()
    assert not keeping.is_at_hand(function)
    assert compiled(function)
    assert keeping.is_at_hand(function)
    assert keeping.is_at_hand(kept())


def test_one_of_several_processes_compiles_and_the_others_wait_for_its_code(folder):
    forked = get_context("fork")
    together = forked.Barrier(3)

    def needs_it():
        function = kept()
        together.wait()
        sys.exit(COMPILED if compiled(function) else LOADED)

    processes = [forked.Process(target=needs_it) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert Counter(process.exitcode for process in processes) == {COMPILED: 1, LOADED: 2}


def test_whoever_fails_to_compile_lets_the_next_one_try(folder):
    for _ in range(2):
        with pytest.raises(TypingError):
            kept()("one")


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b[:-9] + b"x" + b[-8:]])
def test_damaged_code_is_compiled_again_and_kept(folder, which, damage):
    kept()(1)
    path = files(folder)[which]
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert [compiled(kept()) for _ in range(2)] == [True, False]
    assert len(files(folder)) == 2


def test_every_flipped_bit_of_a_file_is_noticed(tmp_path):
    path = tmp_path / "file"
    keeping.write(path, b"code")
    whole = path.read_bytes()
    assert keeping.read(path) == b"code"
    for bit in range(8 * len(whole)):
        number = int.from_bytes(whole, "little") ^ (1 << bit)
        path.write_bytes(number.to_bytes(len(whole), "little"))
        assert keeping.read(path) is None


def test_a_file_in_the_place_of_another_is_not_taken(tmp_path):
    keeping.write(tmp_path / "one", b"code")
    (tmp_path / "one").rename(tmp_path / "two")
    assert keeping.read(tmp_path / "two") is None


def test_code_for_other_arguments_is_not_taken_if_two_processes_gave_it_one_name(folder):
    kept()(1)
    code, index = files(folder)
    for_integers = code.read_bytes()
    index.unlink()
    kept()(1.5)
    assert files(folder) == [code, index]
    code.write_bytes(for_integers)
    function = kept()
    assert function(1.5) == 2.5
    assert not sum(function.stats.cache_hits.values())


def test_a_disk_that_takes_nothing_stops_nobody(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(keeping, "write", full)
    assert compiled(kept())
    assert not files(folder)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "/dev/null/code")
    assert kept()(41) == 42


def test_the_folder_is_this_user_s_alone(folder):
    before = os.umask(0)
    try:
        assert keeping.cache_folder() == folder
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700


def somebody_else_s(folder, monkeypatch):
    if os.geteuid() == 0:
        os.chown(folder, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder, _: folder.chmod(0o770), "its group may write there, and code from there runs here"),
        (lambda folder, _: folder.chmod(0o777), "anyone may write there, and code from there runs here"),
        (somebody_else_s, "belongs to another user, whose code would run here"),
        (lambda folder, m: m.setattr(os, "access", lambda *_: False), "cannot be written"),
        (lambda folder, _: folder.rmdir() or folder.touch(), "cannot be made: File exists"),
    ],
)
def test_a_folder_that_is_not_safe_to_run_code_from_is_refused(folder, monkeypatch, change, said):
    folder.mkdir()
    change(folder, monkeypatch)
    line = f"QUORISK_CACHE_DIR: {folder}: {said}; set it to a folder of yours where compiled code can be kept"
    with pytest.raises(ConfigError, match=f"^{re.escape(line)}$"):
        keeping.cache_folder()


@pytest.mark.parametrize(
    ("mode", "who"), [(0o777, "anyone"), (0o775, "its group"), (0o1777, ""), (0o755, ""), (0o1775, "")]
)
@pytest.mark.parametrize("by_link", [False, True])
def test_a_folder_that_others_could_replace_is_refused(tmp_path, monkeypatch, mode, who, by_link):
    """Unless the folder around it is sticky, as /tmp is, where nobody may move what is another user's."""
    around = tmp_path / "around"
    (around / "mine").mkdir(parents=True)
    around.chmod(mode)
    (tmp_path / "link").symlink_to(around / "mine")
    monkeypatch.setenv("QUORISK_CACHE_DIR", str(tmp_path / "link" if by_link else around / "mine"))
    if not who:
        assert keeping.cache_folder().is_dir()
        return
    with pytest.raises(
        ConfigError, match=rf": {around} \(around .*quorisk\): {who} may write there, and code from there"
    ):
        keeping.cache_folder()


def test_folders_that_are_missing_are_made_for_this_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("QUORISK_CACHE_DIR", str(tmp_path / "new" / "er"))
    before = os.umask(0o002)
    try:
        folder = keeping.cache_folder()
    finally:
        os.umask(before)
    assert [each.stat().st_mode & 0o777 for each in (folder, *folder.parents[:2])] == [0o700] * 3


@pytest.mark.parametrize("elsewhere", ["", "relative", "/absolute"])
def test_what_no_path_can_be_made_of_does_not_lead_to_the_current_folder(monkeypatch, elsewhere):
    monkeypatch.setenv("QUORISK_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", elsewhere)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert keeping._cache_parent() == Path("/absolute" if elsewhere == "/absolute" else "/home/somebody/.cache")


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("QUORISK_CACHE_DIR", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(ConfigError, match=r"^QUORISK_CACHE_DIR: not set, and there is no home folder; set it to "):
        keeping.cache_folder()
