"""What kernels compiled for one configuration leave for others."""

import inspect
from functools import cache, lru_cache

import pytest

from quorisk.kernels.engines import lanes
from quorisk.kernels.engines.lanes import build
from quorisk.kernels.engines.lanes.switch import Switch
from quorisk.kernels.engines.specialized import traced
from quorisk.kernels.engines.specialized.by_configuration import ByConfiguration

_COMPILE, _OBSERVE = build.object_code, traced._traced.__wrapped__
_OBSERVED = cache(_OBSERVE)


@cache
def _code_of(text, cpu):
    """LLVM makes the same code of a text each time, and many tests come to the same text."""
    return _COMPILE(text)


@pytest.fixture
def no_kernels_at_hand(request, monkeypatch, tmp_path):
    """Kernels are traced and emitted anew, and nothing is left for other tests, but the code that LLVM makes of a text,
    and what runs of a configuration show in tests that change nothing of how that is found."""
    changes_nothing = "monkeypatch" not in inspect.signature(request.function).parameters
    monkeypatch.setattr(build, "folder", lambda protocol: tmp_path)
    monkeypatch.setattr(build, "object_code", lambda text: _code_of(text, build.this_cpu()))
    monkeypatch.setattr(lanes, "switches", ByConfiguration(lambda model, points: Switch(model, points, 0), 8))
    monkeypatch.setattr(traced, "_traced", _OBSERVED if changes_nothing else lru_cache(_OBSERVE))
