"""GPUs by tests/validation/gpu.py, rehearsed on whatever JAX runs on here: runs are compared, what differs is told."""

import numpy as np
import pytest

from quorisk.kernels.engines import jax_engine
from tests.kernels.engines import fuzz
from tests.validation import gpu


@pytest.mark.exhaustive
def test_runs_are_compared_and_timed(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["gpu.py", "compaction", "--minutes", "0.01"])
    monkeypatch.setattr(fuzz, "MOST_RUNS", 300)
    monkeypatch.setattr(gpu, "_SAME_RUNS", 300)
    gpu.main()
    compared, timed = (row for row in capsys.readouterr().out.splitlines() if row.startswith("| compaction"))
    _, _, variants, configurations, runs, _, differ, _ = compared.split("|")
    assert variants.strip().startswith(configurations.strip())
    assert (int(runs.replace(",", "")) % 300, differ.strip()) == (0, "0")
    assert timed.endswith("| yes |")


def test_what_differs_is_told(monkeypatch):
    def wrong(*given):
        return np.zeros((300, 7), np.int64)

    monkeypatch.setattr(jax_engine, "record", wrong)
    monkeypatch.setattr(fuzz, "MOST_RUNS", 300)
    row = gpu.equal("compaction", 0.5)
    assert row[5] != "0"
    assert "jax seed=" in row[6]
