"""Files in a results folder: whole or not at all, and nowhere else."""

import pytest

from quorisk.kernels.errors import ConfigError, RunError
from quorisk.sparkjobs import files, folder
from quorisk.sparkjobs.watch import LOG, log_to


def test_a_file_is_there_whole_or_not_at_all(tmp_path):
    path = tmp_path / "sub" / "file"
    files.write_in_folder(path, b"old")

    def fails():
        with files.writing(path) as file:
            file.write(b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def test_a_link_is_replaced_and_what_it_led_to_stays(tmp_path):
    outside, inside = tmp_path / "outside", tmp_path / "out" / "file"
    outside.write_text("precious")
    inside.parent.mkdir()
    for name in ("file", "file.part"):
        (inside.parent / name).symlink_to(outside)
    files.write_in_folder(inside, b"ours")
    assert outside.read_text() == "precious"
    assert (inside.read_bytes(), inside.is_symlink()) == (b"ours", False)


def test_a_folder_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "tasks").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match=r"^[^\n]*tasks: is a symbolic link, which is not followed$"):
        files.write_in_folder(tmp_path / "tasks" / "file", b"ours")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_log_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("")
    (tmp_path / "quorisk.log").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"), log_to(tmp_path / "quorisk.log"):
        LOG.info("overwritten")
    assert (tmp_path / "precious").read_text() == ""


def test_what_was_left_half_written_goes(tmp_path):
    (tmp_path / "results.parquet.0123456789abcdef.part").touch()
    others = ["movie.mkv.part", "results.parquet"]
    for name in others:
        (tmp_path / name).touch()
    files.sweep_up(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == others


@pytest.mark.parametrize("name", [folder.EXPERIMENT, folder.REPORT])
def test_a_file_of_somebody_else_is_not_replaced(tmp_path, name):
    folder.check_writable(tmp_path)
    (tmp_path / name).write_text("mine")
    with pytest.raises(ConfigError, match=rf"^out \S+: no sweep has written \S+{name}; choose another folder$"):
        folder.check_writable(tmp_path)
    (tmp_path / folder.LOG).touch()  # of a sweep that was killed at its beginning
    folder.check_writable(tmp_path)
