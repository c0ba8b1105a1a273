"""An experiment file for commands."""

import pytest

from tests.analysis.experiment.files import TOPIC


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "topic.toml"
    path.write_text(f"{TOPIC}[variant]\nretain_null_key = false\n[run]\nruns = 5000\nseed = 3\n")
    return str(path)
