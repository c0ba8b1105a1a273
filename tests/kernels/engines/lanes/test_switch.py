"""Going over to kernels compiled for one configuration: when it is done, to which, and when it is not."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

from quorisk.kernels.engines import lanes, numba_engine
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.lanes import build, switch, traced
from quorisk.kernels.engines.lanes.build import QUEUED, Configuration, Kernel
from quorisk.kernels.engines.lanes.switch import Switch
from quorisk.kernels.engines.lanes.traced import Shape
from quorisk.kernels.engines.points import pack
from quorisk.kernels.engines.tally import num_columns
from quorisk.kernels.model import LOST
from tests.kernels.engines.losing import OF_16_BITS, OF_32_BITS, RUNS, losing, prepared

pytestmark = pytest.mark.usefixtures("no_kernels_at_hand")


def test_of_all_that_need_a_kernel_at_one_time_one_compiles_it(monkeypatch, tmp_path):
    compiled, compile_, together = list[bytes](), build._compile, threading.Barrier(3)

    def slow(*given):
        made = compile_(*given)
        compiled.append(made[1])
        return made

    def need() -> Kernel | None:
        together.wait()
        return prepared(OF_32_BITS).kernel

    monkeypatch.setattr(build, "_compile", slow)
    with ThreadPoolExecutor(3) as threads:
        kernels = [each.result() for each in [threads.submit(need) for _ in range(3)]]
    assert len(compiled) == 1
    assert len({id(kernel) for kernel in kernels}) == 3
    assert [path.suffix for path in tmp_path.iterdir()] == [""]


def test_nothing_more_is_compiled_once_the_program_ends(monkeypatch, tmp_path):
    monkeypatch.setattr(threading, "main_thread", threading.Thread)  # one that is not alive
    model, point = losing()
    found = Switch(model, pack(model, [point]), 0)
    found.prepare(timed=True, shape=OF_32_BITS)
    assert (found.kernel, found.why_not) == (None, "the program ends")
    assert not list(tmp_path.iterdir())


def test_a_kernel_that_differs_is_told_of_and_never_used():
    found = prepared()
    kernel, job = found.kernel, Job(0, 0, RUNS)
    assert kernel is not None

    def wrong(seed: int, *others: int) -> None:
        kernel.run(seed + 1, *others)

    found.kernel = kernel._replace(run=wrong)
    assert np.array_equal(found.record(7, job), numba_engine.record(found.model, found.points, job, 7))
    expected = numba_engine.tally_of(found.model, found.points, 7, job)
    with pytest.warns(RuntimeWarning, match="differ from the generic engine's for runs 0 to 2999 of seed 7"):
        assert np.array_equal(found.tally(7, job, 0), expected)
    assert found.kernel is None
    assert found.why_not == "its results differ from the generic engine's"
    assert np.array_equal(found.tally(7, job, 0), expected)


def test_each_kernel_is_compared_that_takes_over():
    found, job = prepared(), Job(0, 0, RUNS)
    kernel, expected = found.kernel, numba_engine.tally_of(found.model, found.points, 7, job)
    assert kernel is not None
    assert np.array_equal(found.tally(7, job, 0), expected)
    found.kernel = kernel._replace(run=lambda seed, *others: kernel.run(seed + 1, *others))
    with pytest.warns(RuntimeWarning, match="differ from the generic engine's"):
        assert np.array_equal(found.tally(7, job, 0), expected)
    assert found.kernel is None


def test_a_first_chunk_is_run_both_ways_and_the_next_by_the_kernel_alone(monkeypatch):
    found, calls = prepared(), list[Job]()
    monkeypatch.setattr(Switch, "_generic", generic := counted(calls))
    first, second = Job(0, 0, RUNS), Job(0, RUNS, RUNS)
    assert np.array_equal(found.tally(7, first, RUNS), generic(found, 7, first))
    assert calls[0] == first
    calls.clear()
    found.tally(7, second, 0)
    assert not calls


def counted(calls: list[Job]):
    def generic(self: Switch, seed: int, job: Job) -> np.ndarray:
        calls.append(job)
        return numba_engine.tally_of(self.model, self.points, seed, job)

    return generic


def test_a_sweep_goes_over_to_kernels_and_nobody_sees_it(monkeypatch):
    model, point = losing()
    points = pack(model, [point, point._replace(max_steps=20)])
    jobs = [Job(0, 0, 70_000), Job(1, 5, 40_000), Job(0, 1 << 40, 20_000)]
    expected = numba_engine.simulate(model, points, jobs, 8)
    monkeypatch.setattr(switch, "WORTH_COMPILING_S", 0.0)
    monkeypatch.setattr(switch, "WORTH_LOADING_S", 0.0)
    for _ in range(2):  # the second time there are kernels at hand
        assert np.array_equal(lanes.simulate(model, points, jobs, 8, threads=2), expected)
        joined()
    assert lanes.switches.get(model, points, 0).kernel is not None
    records = lanes.record(model, points, Job(0, 3, 500), 8)
    assert np.array_equal(records, numba_engine.record(model, points, Job(0, 3, 500), 8))


def test_short_runs_stay_with_the_generic_engine():
    model, point = losing()
    points, jobs = pack(model, [point]), [Job(0, 0, 1000)]
    assert np.array_equal(lanes.simulate(model, points, jobs, 8), numba_engine.simulate(model, points, jobs, 8))
    assert lanes.switches.get(model, points, 0).kernel is None


def test_a_kernel_is_compiled_at_once_for_runs_that_are_still_to_come():
    model, point = losing()
    points, jobs = pack(model, [point]), [Job(0, 0, 1000)]
    numba_engine.simulate(model, points, jobs, 8)  # which loads the engine: that takes long enough, too
    lanes.simulate(model, points, jobs, 8, later=10**9)
    joined()
    assert lanes.switches.get(model, points, 0).kernel is not None


@pytest.mark.parametrize("over_s", [-1.0, math.inf])
def test_kernels_are_got_one_after_the_other_and_only_for_runs_that_go_on(monkeypatch, over_s):
    """Side by side none would be there in time: 12 at a time took half of the minutes of a recommendation."""
    model, point = losing()
    found, got, first = Switch(model, pack(model, [point]), 0), threading.Event(), threading.Lock()
    monkeypatch.setattr(switch, "_TURN", first)
    monkeypatch.setattr(switch, "_OVER_S", over_s)
    monkeypatch.setattr(Switch, "prepare", lambda *given, **more: got.set())
    with first:  # which another's kernel has
        found.tally(8, Job(0, 0, 1000), 10**9)
        assert found._begun
        assert not got.wait(0.1)
    joined()
    assert (got.is_set(), found._begun) == ((True, True) if over_s > 0 else (False, False))


def test_a_kernel_is_not_worth_less_than_the_slowest_of_its_model_took(monkeypatch):
    found = prepared()
    model, nothing = found.model, np.zeros(num_columns(found.model), np.int64)
    monkeypatch.setattr(switch, "_TOOK_S", {})
    found._better(switch._Best(lambda job: None), True, OF_32_BITS)
    assert switch._TOOK_S[model.name] > 0
    found.kernel = None
    monkeypatch.setattr(switch, "_TOOK_S", {model.name: 50.0})
    monkeypatch.setattr(Switch, "prepare", lambda *given, **more: None)
    found._consider(nothing, 49.0, 1000, 0)
    assert not found._begun
    found._consider(nothing, 2.0, 1000, 0)  # what was spent so far counts
    assert found._begun
    joined()


@pytest.mark.parametrize(("left", "worth_s", "soon"), [(0, 30, True), (10**9, 30, False), (10**9, math.inf, True)])
def test_where_nothing_is_compiled_lanes_for_many_runs_are_begun_with(monkeypatch, left, worth_s, soon):
    """They make way for the fastest, if so many runs are left that this is worth while."""
    model, point = losing()
    points, found = pack(model, [point]), list[Shape]()
    monkeypatch.setattr(numba_engine, "is_at_hand", lambda model: False)
    monkeypatch.setattr(Switch, "_times_as_fast", lambda self, new, old, trial_s: 1.5)
    monkeypatch.setattr(switch, "_MANY_RUNS", 5000)
    monkeypatch.setattr(switch, "WORTH_COMPARING_S", worth_s)
    switched = lanes.switches.get(model, points, 0)
    for num_runs in (4999, 5000, 10_000):
        switched._asked = False
        switched.begin(num_runs)
        joined()
        found += [switched.kernel.shape] if switched.kernel else []
    _, narrow = build.shapes()
    assert found == [narrow._replace(soon=True)] * 2
    for first in (0, RUNS):
        job = Job(0, first, RUNS)
        assert np.array_equal(switched.tally(5, job, left), numba_engine.tally_of(model, points, 5, job))
    joined()
    assert switched.kernel is not None
    assert switched.kernel.shape.soon == soon


@pytest.mark.parametrize(
    ("worth_s", "operations", "gains", "in_use", "best"),
    [
        (math.inf, 800, (10, 20, 15), [None, OF_16_BITS, OF_32_BITS], OF_32_BITS),
        (math.inf, 800, (10, 5, 15), [None, OF_16_BITS, OF_16_BITS], OF_16_BITS.twice()),
        (5.0, 800, (10, 20, 15), [None], OF_16_BITS),
        (5.0, 800, (0.5, 20, 15), [None, None, OF_32_BITS], OF_32_BITS),
        (1.0, 800, (0.5, 20, 15), [None], None),
        (math.inf, 801, (10, 5), [None, OF_16_BITS], OF_16_BITS),
        (math.inf, 1201, (3, 5), [None, OF_16_BITS], QUEUED),
        (math.inf, 1201, (0.5, 5), [None, None], QUEUED),
    ],
)
def test_each_kernel_that_is_faster_takes_over(monkeypatch, worth_s, operations, gains, in_use, best):
    """One that gains much is in use before the next is compiled, which is not done for runs that end soon."""
    found, seen, kernel = prepared(), list[Shape | None](), prepared().kernel
    found.kernel, left, speeds = None, list(gains), dict[Any, float]()
    assert kernel is not None

    def look(of: Configuration, timed: bool, shape: Shape) -> Kernel:
        seen.append(found.kernel and found.kernel.shape)
        return kernel._replace(shape=shape, operations=operations)

    def times_as_fast(self, new: Any, old: Any, trial_s: float) -> float:
        speeds[new] = left.pop(0)
        return speeds[new] / speeds.get(old, 1.0)

    monkeypatch.setattr(switch, "shapes", lambda: (OF_32_BITS, OF_16_BITS))
    monkeypatch.setattr(switch, "build", look)
    monkeypatch.setattr(Switch, "_times_as_fast", times_as_fast)
    found.prepare(worth_s=worth_s)
    assert seen == in_use
    assert (found.kernel and found.kernel.shape) == best
    assert found.why_not == (None if best else "it would not be faster")


def test_none_is_tried_once_kernels_are_given_up(monkeypatch):
    found, tried, kernel = prepared(), list[Shape](), prepared().kernel
    found.kernel = None
    assert kernel is not None

    def give_up_meanwhile(of: Configuration, timed: bool, shape: Shape) -> Kernel:
        tried.append(shape)
        found._give_up("its results differ")
        return kernel._replace(shape=shape)

    monkeypatch.setattr(switch, "shapes", lambda: (OF_32_BITS, OF_16_BITS))
    monkeypatch.setattr(switch, "build", give_up_meanwhile)
    monkeypatch.setattr(Switch, "_times_as_fast", lambda self, new, old, trial_s: 9.0)
    found.prepare()
    assert (found.kernel, found.why_not, tried) == (None, "its results differ", [OF_16_BITS])


def test_a_kernel_that_fails_leaves_the_one_in_use(monkeypatch):
    found, idle = prepared(), prepared()

    def fail(of: Configuration, timed: bool, shape: Shape) -> Kernel:
        raise MemoryError("no room")

    monkeypatch.setattr(switch, "build", fail)
    with pytest.warns(RuntimeWarning, match="a kernel was not compiled: MemoryError: no room"):
        beside(found)
    assert found.kernel is not None
    assert found.why_not is None
    idle.kernel = None
    with pytest.warns(RuntimeWarning):
        beside(idle)
    assert idle.why_not == "MemoryError: no room"


def beside(found: Switch) -> None:
    found._beside(partial(found.prepare, True))
    joined()


def joined() -> None:
    """Waits for all kernels that are being got."""
    for thread in threading.enumerate():
        if thread.name == "compile":
            thread.join()


def test_lanes_that_are_there_first_wait_for_what_makes_the_first_runs(monkeypatch):
    """Or else the generic engine would be compiled, to compare them with it."""
    model, point = losing()
    monkeypatch.setattr(numba_engine, "is_at_hand", lambda model: False)
    monkeypatch.setattr(numba_engine, "tally_of_runs", lambda *given: pytest.fail("it is not compiled"))
    found = Switch(model, pack(model, [point]), 0)
    found._get_first()
    assert found._base.kernel is not None


def test_a_kernel_that_tells_the_time_is_loaded_for_runs_that_need_none(monkeypatch):
    model, point = losing()
    found, asked = Switch(model, pack(model, [point]), 0), list[bool]()
    monkeypatch.setattr(Switch, "prepare", lambda self, timed, worth_s: asked.append(timed))
    monkeypatch.setattr(switch, "is_kept", lambda of, timed, shape: timed)
    monkeypatch.setattr(Switch, "_needs_time", lambda self: False)
    nothing = np.zeros_like(numba_engine.tally_of(found.model, found.points, 0, Job(0, 0, 1)))
    found._consider(nothing, 1.0, 1000, 0)
    found._begun = False
    found._consider(nothing, 60.0, 1000, 0)
    joined()
    assert asked == [True, False]


def test_code_on_disk_serves_others_and_damage_is_noticed(monkeypatch, tmp_path):
    job = Job(0, 0, RUNS)
    expected = prepared().tally_all(7, job)
    (kept,) = tmp_path.iterdir()
    monkeypatch.setattr(build, "_compile", lambda *given: pytest.fail("it was at hand"))
    prepared()
    monkeypatch.undo()
    monkeypatch.setattr(build, "folder", lambda protocol: tmp_path)
    content = kept.read_bytes()
    kept.write_bytes(content[:500] + bytes([content[500] ^ 1]) + content[501:])
    assert np.array_equal(prepared().tally_all(7, job), expected)
    assert kept.read_bytes() == content


def test_why_there_is_no_kernel(monkeypatch):
    model, point = losing()

    def why(timed=True, **changed) -> str | None:
        found = Switch(model, pack(model, [point._replace(**changed)]), 0)
        found.prepare(timed=timed, shape=OF_16_BITS)
        assert found.kernel is None
        return found.why_not

    assert why(timed=False, horizon=1.0) == "a run with a horizon needs the time"
    assert why(max_steps=1 << 40) == "max_steps of lanes: 1 to 1073741824"
    assert why(rates={action.name: 0.0 for action in model.actions}) == "all rates are 0"

    def untraceable(*given):
        raise TypeError("a branch on a traced value")

    monkeypatch.setattr(traced, "_bounds", untraceable)
    assert why() == "compaction cannot be traced: a branch on a traced value"


def test_losing_runs_are_timed_where_there_are_many():
    model, point = losing()
    found = Switch(model, pack(model, [point]), 0)
    found.prepare()
    assert found.kernel is not None
    assert found.kernel.timed
    tally = numba_engine.tally_of(found.model, found.points, 0, Job(0, 0, RUNS))
    assert tally[LOST] > RUNS / 16
    assert math.isinf(found.points.horizons[0])
