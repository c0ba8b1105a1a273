"""Files that are asked for by name: whole or not at all."""

import os
import resource
import stat
from contextlib import contextmanager
from pathlib import Path

import pytest

from quorisk.analysis import files
from quorisk.kernels.errors import ConfigError, RunError


@contextmanager
def room(num_bytes):
    """Files can grow to so many bytes, as on a disk that is nearly full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_finds_no_room_leaves_what_was_there(tmp_path, written):
    path = written("figure.svg", "precious")
    with room(4096), pytest.raises(RunError, match=r"^`plot` [^\n]*figure\.svg: cannot be written: File too large$"):
        files.write_whole(path, bytes(5000), "plot")
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == ["figure.svg"]


def test_a_link_is_followed_and_what_it_leads_to_stays_what_it_is(tmp_path):
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "target"
    target.touch()
    target.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(target)
    files.write_whole(link, b"new", "out")
    assert (link.is_symlink(), target.read_bytes(), stat.S_IMODE(target.stat().st_mode)) == (True, b"new", 0o640)
    assert sorted(os.listdir(tmp_path / "there")) == ["target"]


def test_what_is_no_file_is_written_as_it_is(tmp_path):
    files.write_whole(tmp_path / ".." / ".." / ".." / ".." / ".." / ".." / "dev" / "null", b"new", "out")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(RunError, match=r"^`out` /dev/full: cannot be written: No space left on device$"):
        files.write_whole(tmp_path.joinpath("/dev/full"), b"new", "out")


@pytest.mark.parametrize("name", ["absent/file", ".", "loop"])
def test_where_nothing_can_be_written_is_bad_input(tmp_path, name):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ConfigError, match=r"^out [^\n]*: cannot be written: \w[^\n]*$"):
        files.write_whole(tmp_path / name, b"new", "out")
    assert os.listdir(tmp_path) == ["loop"]


def test_a_pipe_is_written_itself():
    """As /dev/stdout is in `quorisk trace ... --out /dev/stdout | head`."""
    read, write = os.pipe()
    path = Path(f"/dev/fd/{write}")
    files.require_writable(path, "out")
    files.write_whole(path, b"whole", "out")
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"whole"
