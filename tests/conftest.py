"""Fixtures that several tests share, and what makes all of them faster."""

import gc
import signal
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

from quorisk.command import main
from quorisk.say import waiting

HERE = Path(__file__).parent
settings.register_profile("usual", max_examples=200)
settings.register_profile("many", max_examples=10_000)
settings.register_profile("few", max_examples=25)
settings.load_profile("usual")


def pytest_configure():
    """Has Ctrl-C end commands that tests start, even if these run in the background of a script, where it would not.
    Garbage is looked for seldom, which else takes a tenth of the time. No progress is told, on however slow a machine:
    tests that are about it set the time from which on it is."""
    waiting.SOON_S = 1e6
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(100_000, 20, 100)


def pytest_addoption(parser):
    """`--short`: what a change must pass; without it, all tests run."""
    parser.addoption("--short", action="store_true", help="skip what is exhaustive: `exhaustive`, and most `sampled`")


def pytest_collection_modifyitems(config, items):
    """Leaves out of the short tests what is exhaustive, and orders the rest.

    Files that run sweeps come first, as they share Spark, then those that run whole commands, then those with many
    tests: the former have few tests, which take long and wait for other programs, and one that came last would keep all
    cores but one idle.
    """
    if config.getoption("--short"):
        left_out = exhaustive(items)
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=list(left_out))
    num_tests, sparks = Counter(item.path for item in items), {item.path for item in items if needs_spark(item)}
    items.sort(
        key=lambda item: (
            item.path not in sparks,
            item.path.parent not in (HERE, HERE / "sparkjobs"),
            -num_tests[item.path],
        )
    )


def exhaustive(items):
    """The tests that only `make test-all` runs: those marked so, and of `sampled(n)` all cases but n, spread evenly,
    and those marked `short`."""
    cases: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        cases.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    left_out = [item for item in items if item.get_closest_marker("exhaustive")]
    for alike in cases.values():
        if marked := alike[0].get_closest_marker("sampled"):
            kept = marked.args[0]
            places = {place * len(alike) // kept for place in range(kept)}
            others = (item for place, item in enumerate(alike) if place not in places)
            left_out += [item for item in others if not item.get_closest_marker("short")]
    return dict.fromkeys(left_out)


def needs_spark(item):
    return "spark" in item.fixturenames


@pytest.fixture(scope="session")
def kept_spark():
    """What ends Spark once no test needs it."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module", autouse=True)
def spark_only_where_it_is_needed(request, kept_spark):
    """A file's Spark goes on for the next file that needs one, and ends before any other."""
    if not any(needs_spark(item) for item in request.session.items if item.path == request.path):
        kept_spark.close()


def pytest_collection_finish():
    """Has the garbage collector leave alone what test modules import: millions of objects that stay to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def written(tmp_path):
    """A function that writes a file of a name and a text into the test's folder, and returns its path."""

    def written(name: str, text: str) -> Path:
        path: Path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return written


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


@pytest.fixture
def printed(quorisk):
    """Runs a command that has to end well and to complain of nothing; returns what it prints."""

    def printed(*arguments: str) -> str:
        code, out, err = quorisk(*arguments)
        assert (code, err) == (0, "")
        return out

    return printed


@pytest.fixture
def refused(quorisk):
    """Runs a command that has to be refused in one line, with nothing printed; returns the line without `error: `."""

    def refused(*arguments: str) -> str:
        code, out, err = quorisk(*arguments)
        assert (code, out) == (2, "")
        [line] = err.splitlines()
        assert line.startswith("error: ")
        return str(line).removeprefix("error: ")

    return refused
