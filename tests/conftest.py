"""Fixtures that several tests share, and what makes all of them faster."""

import gc

import pytest

from quorisk.command import main


def pytest_collection_finish():
    """Has the garbage collector leave alone what test modules import, and look seldom: else it takes a tenth of the
    time, most of it among millions of objects that stay to the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


@pytest.fixture
def quorisk(capsys):
    """Runs the command here; returns exit status, stdout and stderr."""

    def quorisk(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main.main(arguments)
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int | None)
        return ended.value.code or 0, captured.out, captured.err

    return quorisk
