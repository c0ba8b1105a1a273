"""Runs that start where a head is left: every engine makes the same ones."""

import numpy as np
import pytest

from quorisk.kernels.engines import jax_engine, lanes, numba_engine
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.numba_run import _first_above
from quorisk.kernels.engines.points import Points, pack
from quorisk.kernels.engines.starts import FLOW_UNIT, starts
from quorisk.kernels.model import leaves
from quorisk.kernels.packing import columns
from quorisk.kernels.protocols import registry
from quorisk.kernels.states.exits import Exits, exits_of
from quorisk.kernels.states.head import Head
from tests.support import point_of

MODEL = registry.load("compaction")
POINT = point_of(MODEL, rates={"broker_crash": 1e-3}, messages=3, compactions=2, keys=2, values=1, max_crashes=1)
SEED, RUNS = 5, 3000


@pytest.mark.parametrize("numbers", [[3], [1, 4, 4, 9, 12], list(range(0, 64, 2))])
def test_a_start_is_the_first_with_more_flow_before_its_end(numbers):
    ascending = np.array(numbers)
    for number in range(-1, 66):
        assert _first_above(ascending, number) == np.searchsorted(ascending, number, "right")


@pytest.fixture(scope="module")
def left() -> Exits:
    head = Head(MODEL, POINT, 1 << 26)
    assert head.grow(1 << 20)
    solved = head.solve()
    assert solved is not None
    found = exits_of(head, solved, 1 << 26)
    assert len(found.flows) > 5
    assert (found.flows[:-1] != found.flows[1:]).any()
    return found


def points_from(left: Exits) -> Points:
    return pack(MODEL, [POINT])._replace(starts=starts(left.rows, left.layout, left.flows))


def test_columns_have_what_the_states_have(left):
    told = np.array(columns(left.rows, left.layout, MODEL.widths)).T.tolist()
    assert told == [list(leaves(left.state(place, MODEL.widths))) for place in range(len(left.flows))]


def test_all_engines_make_the_same_runs_from_exits(left):
    points, job = points_from(left), Job(0, 1 << 41, RUNS)
    expected = numba_engine.record(MODEL, points, job, SEED)
    assert np.array_equal(jax_engine.record(MODEL, points, job, SEED), expected)
    assert np.array_equal(lanes.record(MODEL, points, job, SEED), expected)
    tally = numba_engine.simulate(MODEL, points, [job], SEED)
    assert np.array_equal(jax_engine.simulate(MODEL, points, [job], SEED), tally)
    from_the_beginning = numba_engine.record(MODEL, pack(MODEL, [POINT]), job, SEED)
    assert (expected != from_the_beginning).any(1).mean() > 0.5


def test_each_start_is_drawn_as_often_as_runs_leave_by_it(left):
    table = starts(left.rows, left.layout, left.flows)
    assert table.cumulative[-1] == FLOW_UNIT
    shares = np.diff(table.cumulative, prepend=0) / FLOW_UNIT
    np.testing.assert_allclose(shares, left.flows / left.flows.sum(), rtol=0.0, atol=1e-15)
