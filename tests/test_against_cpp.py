"""tests/references/cpp: that the programs by hand make the engines' runs, and that it is told if it does not."""

from functools import partial

import pytest

from quorisk.analysis import bench
from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import pack
from tests.references.cpp import compare
from tests.references.cpp.compare import Way, by_hand, check, told_by_engine, told_by_program

RUNS = Job(0, 5, 3000)


def points_of(protocol):
    experiment = bench.random_runs(protocol)
    return experiment.model, pack(experiment.model, [experiment.points[0].point])


def generic(model, points, *, change=0):
    """The generic engine; with `change` it makes the runs of another seed."""
    make = partial(numba_engine.tally_of, model, points)
    return Way("generic engine", lambda seed, job: make(seed + change, job), partial(told_by_engine, model))


@pytest.mark.parametrize("protocol", compare.INVARIANTS)
def test_the_program_counts_what_the_engine_counts_where_it_can_be_compiled(protocol):
    model, points = points_of(protocol)
    try:
        function = compare.compiled(protocol)
    except SystemExit as why:
        without = str(why)
    else:
        program = Way("C++", partial(by_hand, function, model, points), partial(told_by_program, model))
        assert check([program, generic(model, points)], 3, RUNS) > 10 * RUNS.num_runs
        return
    assert "there is no g++" in without or "needs a CPU with AVX-512" in without


def test_other_counts_are_told():
    model, points = points_of("bookkeeper")
    with pytest.raises(SystemExit, match=r"generic engine counts otherwise .* seed 3: .*steps: \d+, not \d+"):
        check([generic(model, points, change=1), generic(model, points)], 3, RUNS)


def test_without_a_compiler_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"there is no g\+\+"):
        compare.compiled("kafka")
