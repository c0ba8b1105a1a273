"""An experiment file for commands."""

import pytest

from tests.analysis.experiment.files import TOPIC


@pytest.fixture
def file(written):
    return str(written("topic.toml", f"{TOPIC}[variant]\nretain_null_key = false\n[run]\nruns = 5000\nseed = 3\n"))
