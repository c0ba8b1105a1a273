"""Runs where the generic engine is not compiled: by a kernel that takes nothing for granted, and by plain Python."""

import numpy as np
import pytest

from quorisk.kernels.engines import lanes, numba_engine, rerun
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.lanes import base
from quorisk.kernels.engines.lanes.base import MAX_EARLY_KERNELS, Base
from quorisk.kernels.engines.lanes.build import Configuration, build
from quorisk.kernels.engines.lanes.parts import choice
from quorisk.kernels.engines.points import Point, pack
from quorisk.kernels.model import Model
from quorisk.kernels.protocols import registry
from tests.kernels.engines import lamps
from tests.kernels.engines.losing import RUNS, losing, of_few_bits
from tests.support import point_of

pytestmark = pytest.mark.usefixtures("no_kernels_at_hand")


@pytest.fixture(autouse=True)
def _not_compiled(monkeypatch):
    monkeypatch.setattr(numba_engine, "is_at_hand", lambda model: False)


def begun(model: Model, point: Point) -> Base:
    found = Base(Configuration(model, pack(model, [point]), 0))
    found.begin()
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["lamps", *registry.names()])
def test_without_the_generic_engine_runs_are_the_same(monkeypatch, name):
    model, point = (
        (lamps.MODEL, lamps.POINT) if name == "lamps" else (registry.load(name), point_of(registry.load(name)))
    )
    some = np.array([5, 3, 1 << 41, *range(100, RUNS)])
    found = begun(model, point)
    expected = numba_engine.tally_of_runs(model, found.of.points, 4, 0, some, recording=True)
    monkeypatch.setattr(numba_engine, "tally_of_runs", lambda *given: pytest.fail("it is not compiled"))
    assert found.kernel is not None
    assert all(map(np.array_equal, found.tally_of_runs(4, some, recording=True), expected))
    tally, records = found.tally_of_runs(4, some)
    assert np.array_equal(tally, expected[0])
    assert len(records) == 0


@pytest.mark.parametrize("limits", [{}, {"horizon": 2.0, "lifetime": 3.0}, {"max_steps": 3}])
def test_plain_python_tallies_as_the_generic_engine_does(limits):
    model, point = losing()
    point = point._replace(**limits)
    points, some = pack(model, [point, point._replace(max_steps=9)]), np.arange(7, 207)
    for place in range(2):
        given = model, points, 1, place, some, True
        assert all(map(np.array_equal, rerun.tally_of_runs(*given), numba_engine.tally_of_runs(*given)))


@pytest.mark.parametrize("most", [1000, 10])
def test_plain_python_makes_the_few_runs_that_a_kernel_leaves_open(monkeypatch, most):
    """Of the numbers drawn the kernel sees 6 bits and not 32, so that it cannot choose in most runs."""
    made, make = list[str](), {each: each.tally_of_runs for each in (numba_engine, rerun)}
    point, some = lamps.POINT._replace(max_steps=2), np.array([9, 8, 7, *range(20, 120)])
    monkeypatch.setattr(choice, "places", of_few_bits)
    monkeypatch.setattr(base, "_MOST_IN_PYTHON", most)
    found = begun(lamps.MODEL, point)
    for each in make:

        def told(*given, by=each):
            made.append(by.__name__.rpartition(".")[-1])
            return make[by](*given)

        monkeypatch.setattr(each, "tally_of_runs", told)
    expected = make[numba_engine](lamps.MODEL, found.of.points, 2, 0, some, True)
    assert all(map(np.array_equal, found.tally_of_runs(2, some, recording=True), expected))
    assert made == ["rerun" if most == 1000 else "numba_engine"]


def test_a_first_kernel_that_differs_is_told_of_and_never_used(monkeypatch):
    model, point = losing()

    def wrong(*given):
        kernel = build(*given)
        return kernel._replace(run=lambda seed, *others: kernel.run(seed + 1, *others))

    monkeypatch.setattr(base, "build", wrong)
    for _ in range(2):  # it is not kept either
        with pytest.warns(RuntimeWarning, match="compaction: the first kernel's results differ from plain Python's"):
            found = begun(model, point)
        assert found.kernel is None
    expected = numba_engine.tally_of(model, found.of.points, 7, Job(0, 0, RUNS))
    assert np.array_equal(found.tally_of_runs(7, range(RUNS))[0], expected)


@pytest.mark.parametrize(("seconds", "num"), [(-1.0, 1), (1000.0, 16)])
def test_a_first_kernel_is_compared_for_as_long_as_that_takes_little_time(monkeypatch, seconds, num):
    compared, tally_of_runs = [], rerun.tally_of_runs

    def told(*given, **named):
        compared.append(given[4].tolist())
        return tally_of_runs(*given, **named)

    monkeypatch.setattr(rerun, "tally_of_runs", told)
    monkeypatch.setattr(base, "_COMPARING_S", seconds)
    assert begun(*losing()).kernel is not None
    assert compared == [[run] for run in range(num)]


def test_the_generic_engine_is_compiled_where_many_configurations_are_asked_about():
    """In one call, or one after another; what there is of the first ones serves on."""
    model, point = losing()
    points = [point._replace(rates={"producer": 1.0 + each}) for each in range(MAX_EARLY_KERNELS + 1)]
    assert [begun(model, each).kernel is not None for each in points] == [True] * MAX_EARLY_KERNELS + [False]
    assert [begun(model, each).kernel is not None for each in points] == [True] * MAX_EARLY_KERNELS + [False]
    packed = pack(model, points)
    for few in (pack(model, points[:MAX_EARLY_KERNELS]), packed):
        lanes.simulate(model, few, [Job(0, 0, 10)], 1)
        kernel = lanes.switches.get(model, few, 0)._base.kernel
        lanes.switches._made.clear()
        assert (kernel is None) == (few is packed)


def test_where_it_is_compiled_it_makes_all_runs(monkeypatch):
    monkeypatch.setattr(numba_engine, "is_at_hand", lambda model: True)
    assert begun(*losing()).kernel is None


def test_what_cannot_be_traced_is_left_to_the_generic_engine():
    model, point = losing()
    assert begun(model, point._replace(max_steps=1 << 40)).kernel is None


def test_no_kernel_takes_over_from_runs_that_were_begun():
    model, point = losing()
    found = Base(Configuration(model, pack(model, [point]), 0))
    found.tally_of_runs(1, range(3))
    found.begin()
    assert found.kernel is None
