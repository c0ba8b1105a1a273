"""Another process compiles what heads need: where that helps anybody, and no longer than it does."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest

from quorisk.analysis.cluster.joined import surely_with_head
from quorisk.analysis.estimate import ahead
from quorisk.analysis.experiment import config
from quorisk.kernels.compiled import is_ready
from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.numba_run import batch_function
from quorisk.kernels.engines.points import pack
from quorisk.kernels.protocols import registry
from quorisk.kernels.states import head
from quorisk.kernels.states.exits import exits_of, from_exits
from tests.support import ROOT

LONGEST_S = 120.0


@pytest.fixture
def started(monkeypatch):
    """The processes that are started."""
    found = []

    class Noted(subprocess.Popen):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            found.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    monkeypatch.setattr(ahead, "num_cores", lambda: 2)
    return found


@pytest.fixture
def points():
    """Of the protocol that is compiled soonest."""
    model = {"messages": 2, "compactions": 1, "keys": 1, "values": 1, "max_crashes": 1}
    return [each.point for each in config.build_experiment({"protocol": "compaction", "model": model}, "topic").points]


def test_another_process_compiles_while_the_body_runs(started, points):
    for mark in ("exits", "exits-begun"):
        Path(numba.config.CACHE_DIR, f"{mark}-compaction.ready").unlink(missing_ok=True)
    until = time.monotonic() + LONGEST_S
    with ahead.compiling_for_exits("compaction", points):
        while not is_ready("exits", "compaction") and time.monotonic() < until:
            time.sleep(0.05)
        assert is_ready("exits", "compaction")
    with ahead.compiling_for_exits("compaction", points):
        assert len(started) == 1


def test_it_ends_with_the_body(started, points, monkeypatch):
    monkeypatch.setattr(ahead, "is_ready", lambda *_: False)
    with pytest.raises(KeyboardInterrupt), ahead.compiling_for_exits("compaction", points):
        raise KeyboardInterrupt
    (process,) = started
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("python", ["/bin/false", "/no/such/program"])
def test_the_body_runs_where_it_cannot(started, points, monkeypatch, python):
    monkeypatch.setattr(ahead, "is_ready", lambda *_: False)
    monkeypatch.setattr(sys, "executable", python)
    ran = False
    with ahead.compiling_for_exits("compaction", points):
        time.sleep(0.1)
        ran = True
    assert ran


@pytest.fixture
def never_begun(monkeypatch):
    """What this machine is told that it has, beside what it has: of heads nothing."""
    told = set[tuple[str, str]]()
    monkeypatch.setattr(ahead, "is_ready", lambda *what: what in told)
    monkeypatch.setattr(ahead, "once", lambda what, protocol, _: told.add((what, protocol)))


def test_another_helps_with_the_first_head_of_a_machine(started, points, never_begun):
    for _ in range(2):
        with ahead.compiling_for_exits("compaction", points):
            pass
    assert [process.returncode for process in started] == [-signal.SIGKILL]


def test_it_compiles_what_runs_from_exits_need(points):
    """Runs from real exits need no other types."""
    model, point = registry.load("compaction"), points[0]
    engine = batch_function(model, hurried=model.margin is not None)
    numba_engine.compile_for_exits(model, point)
    known = list(engine.signatures)
    solved = head.Head(model, point, 1 << 25, by_margin=True)
    solved.grow(1 << 10)
    found = solved.solve()
    assert known
    assert found is not None
    exits = exits_of(solved, found, 1 << 25)
    numba_engine.simulate(model, from_exits(pack(model, [point]), exits), [Job(0, 0, 10)], 0)
    assert list(engine.signatures) == known


def test_a_process_does_what_it_is_asked_for(started, points, never_begun):
    with ahead.compiling_for_exits("compaction", points):
        assert started[0].wait(LONGEST_S) == 0


def test_nobody_is_started_in_vain(started, points, monkeypatch):
    monkeypatch.setattr(ahead, "is_ready", lambda *_: False)
    with ahead.compiling_for_exits("compaction", ()):
        pass
    monkeypatch.setattr(ahead, "num_cores", lambda: 1)
    with ahead.compiling_for_exits("compaction", points):
        pass
    assert not started


def test_points_that_surely_have_heads_are_those_beside_a_cluster():
    pulsar = config.load(ROOT / "configs/pulsar.toml")
    assert {each.scenario for each in surely_with_head(pulsar)} == {"failover"}
    assert not surely_with_head(config.load(ROOT / "configs/pulsar.toml", ["run.method=count"]))
    assert not surely_with_head(config.load(ROOT / "configs/demo.toml"))
