"""Fixtures that several tests share, and what makes all of them faster."""

import gc
import signal
from collections import Counter
from pathlib import Path

import pytest

from quorisk.command import main

HERE = Path(__file__).parent


def pytest_configure():
    """Has Ctrl-C end commands that tests start, even if these run in the background of a script, where it would not."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Puts files first that run sweeps or whole commands, and otherwise those with many tests: each of the former has
    few tests, which take long and wait for other programs, and one that came last would keep all cores but one idle."""
    num_tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path.parent not in (HERE, HERE / "sparkjobs"), -num_tests[item.path]))


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
