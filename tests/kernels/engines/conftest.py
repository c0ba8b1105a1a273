"""What kernels compiled for one configuration leave for others."""

from functools import lru_cache

import pytest

from quorisk.kernels.engines import lanes
from quorisk.kernels.engines.lanes import build
from quorisk.kernels.engines.lanes.switch import Switch
from quorisk.kernels.engines.specialized import traced
from quorisk.kernels.engines.specialized.by_configuration import ByConfiguration


@pytest.fixture
def no_kernels_at_hand(monkeypatch, tmp_path):
    """Kernels are observed and compiled anew, and nothing is left for other tests."""
    monkeypatch.setattr(build, "folder", lambda: tmp_path)
    monkeypatch.setattr(lanes, "switches", ByConfiguration(lambda model, points: Switch(model, points, 0), 8))
    monkeypatch.setattr(traced, "_traced", lru_cache(traced._traced.__wrapped__))
