"""Fixtures that several tests share."""

import pytest

from quorisk.command import main

LONG = (
    "test_adding_a_protocol",
    "test_session",
    "test_sweep",
    "test_api",
    "test_jax_engine",
    "test_survival",
    "test_break_even",
    "test_oracle",
    "test_lanes",
    "test_listening",
    "test_private",
    "test_one_name",
    "test_validate",
)
"""Files of few tests that take long."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the files that take longest first, so that no worker is left with one of them at the end."""
    place = {name: i for i, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONG)))


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
