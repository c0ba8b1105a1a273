"""The reader of saved answers of Prometheus."""

import json

import pytest

from quorisk.analysis.rates import metrics
from quorisk.analysis.rates.oddities import Oddities


@pytest.fixture
def read(tmp_path):
    def read(*answers, name="metrics"):
        paths = []
        for number, each in enumerate(answers):
            paths.append(tmp_path / (f"{name}.{number}.json" if isinstance(each, dict) else f"{number}.json"))
            paths[-1].write_text(each if isinstance(each, str) else json.dumps(each))
        oddities: Oddities = {}
        found = metrics.counts_of_queries(paths, oddities)
        counts = {each.kind: (each.events, each.exposure) for each in found}
        return counts, {odd: seen.times for odd, seen in oddities.items()}

    return read
