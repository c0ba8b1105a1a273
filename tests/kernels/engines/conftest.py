"""What kernels compiled for one configuration leave for others."""

import inspect
from functools import cache, lru_cache

import pytest

from quorisk.kernels.engines import lanes
from quorisk.kernels.engines.lanes import build, traced
from quorisk.kernels.engines.lanes.by_configuration import ByConfiguration
from quorisk.kernels.engines.lanes.switch import Switch
from quorisk.kernels.tracing import cpu

_COMPILE = cpu.object_code
_LOOK = {name: getattr(traced, name).__wrapped__ for name in ("_bounds", "_traced")}
_SEEN = {name: cache(look) for name, look in _LOOK.items()}


@cache
def _code_of(text, soon, cpu):
    """LLVM makes the same code of a text each time, and many tests come to the same text."""
    return _COMPILE(text, soon)


@pytest.fixture
def no_kernels_at_hand(request, monkeypatch, tmp_path):
    """Kernels are traced and emitted anew, and nothing is left for other tests, but the code that LLVM makes of a text,
    and what runs of a configuration show in tests that change nothing of how that is found."""
    changes_nothing = "monkeypatch" not in inspect.signature(request.function).parameters
    monkeypatch.setattr(build, "folder", lambda protocol: tmp_path)
    monkeypatch.setattr(build, "object_code", lambda text, soon=False: _code_of(text, soon, cpu.this_cpu()))
    monkeypatch.setattr(lanes, "switches", ByConfiguration(lambda model, points: Switch(model, points, 0), 8))
    for name, look in _LOOK.items():
        monkeypatch.setattr(traced, name, _SEEN[name] if changes_nothing else lru_cache(look))
