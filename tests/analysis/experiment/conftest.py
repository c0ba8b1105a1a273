"""How tests here read experiment files."""

from pathlib import Path

import pytest

from quorisk.analysis.experiment.config import Experiment, load


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Loads a file with this text, called x.toml."""
    monkeypatch.chdir(tmp_path)

    def read(text: str, *overrides: str) -> Experiment:
        Path("x.toml").write_text(text)
        return load(Path("x.toml"), overrides)

    return read
