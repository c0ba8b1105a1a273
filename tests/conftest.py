"""Fixtures that several tests share."""

import pytest

from analysis import cli


@pytest.fixture
def quorisk(capsys):
    """Runs the command here; returns exit status, stdout and stderr."""

    def quorisk(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int | None)
        return ended.value.code or 0, captured.out, captured.err

    return quorisk
