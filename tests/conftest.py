"""Fixtures that several tests share."""

import pytest

from quorisk.command import main


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
