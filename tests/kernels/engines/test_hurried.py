"""Runs that meet the faults of a loss sooner: against exact answers, and against the margin that they rely on."""

import math

import numpy as np
import pytest
from numba import njit

from quorisk.analysis.estimate import method, rare
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.statistics.estimator import Estimator
from quorisk.kernels.engines import jax_engine, lanes, numba_engine
from quorisk.kernels.engines.hurried import hurry_functions
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import pack
from quorisk.kernels.engines.starts import NO_STARTS
from quorisk.kernels.engines.tally import STEPS
from quorisk.kernels.errors import ModelError
from quorisk.kernels.model import LOST, Margin
from quorisk.kernels.ops import as_uint64, popcount
from quorisk.kernels.protocols.bookkeeper import MODEL
from quorisk.kernels.protocols.bookkeeper.margin import MARGIN
from quorisk.kernels.rule import group_words
from quorisk.kernels.states.exits import exits_of, from_exits
from quorisk.kernels.states.head import Head
from tests.kernels import outside
from tests.kernels.states.test_margins import MEMORY, PROBLEMS, experiment

SEED = 9


def left(name, levels=1, rate=1e-4):
    """A head of so many levels, what is known of any data loss, and where the runs from its exits start."""
    return left_by(*solved_head(name, levels, rate))


def solved_head(name, levels, rate=1e-4):
    point = experiment(name, rate).points[0].point
    head = Head(MODEL, point, MEMORY, by_margin=True)
    for _ in range(levels):
        assert head.grow(rare.MOST_TRANSITIONS)
    solved = head.solve()
    assert solved
    return point, head, solved


def left_by(point, head, solved, memory_bytes=MEMORY):
    exits = exits_of(head, solved, memory_bytes)
    assert exits.places == (MARGIN.most(head.odds.params) if solved.is_far else 0)
    solved = method.sampled_head(solved, exits)
    return solved, rare.parts_by_invariant(MODEL, solved, exits)[DATA_LOSS], from_exits(pack(MODEL, [point]), exits)


def lost(points, first_run, runs):
    return int(numba_engine.simulate(MODEL, points, [Job(0, first_run, runs)], SEED, 2)[0][LOST])


@pytest.mark.sampled(9)
@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_lost_beyond_a_head_is_its_bound_times_the_share_of_hurried_runs(name, levels):
    solved, part, points = left(name, levels)
    truth, runs = exact(experiment(name), MEMORY).data_loss.p, 300_000
    losses = lost(points, 0, runs)
    low, high = part.interval(Estimator(0.9999), losses, runs, 0)
    assert losses > 10
    assert points.starts.places
    assert low <= truth <= high
    assert solved.beyond < 0.1 * solved.leaves


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["a quorum of one", "a quorum of two"])
def test_intervals_by_hurried_runs_cover_as_often_as_they_say(name):
    _, part, points = left(name)
    truth, runs, replicates = exact(experiment(name), MEMORY).data_loss.p, 1000, 1000
    jobs = [Job(0, replicate * runs, runs) for replicate in range(replicates)]
    covered = 0
    for losses in numba_engine.simulate(MODEL, points, jobs, SEED, 2)[:, LOST].tolist():
        low, high = part.interval(Estimator(0.95), losses, runs, 0)
        covered += low <= truth <= high
    assert covered >= replicates * (0.95 - 4.0 * math.sqrt(0.95 * 0.05 / replicates))


@pytest.mark.parametrize("levels", [1, 2])
def test_where_many_may_be_lost_runs_are_not_hurried(levels):
    solved, part, points = left("a quorum of one", levels, rate=3e-2)
    truth, runs = exact(experiment("a quorum of one", 3e-2), MEMORY).data_loss.p, 100_000
    low, high = part.interval(Estimator(0.9999), lost(points, 0, runs), runs, 0)
    assert points.starts.places == 0
    assert solved.beyond == pytest.approx(solved.leaves, rel=1e-9)
    assert low <= truth <= high


def test_a_run_is_dropped_where_more_faults_are_needed_and_so_is_shorter():
    _, _, points = left("all of three")
    ordinary = points._replace(starts=points.starts._replace(places=0))
    job = Job(0, 0, 10_000)
    hurried, others = (numba_engine.simulate(MODEL, each, [job], SEED)[0] for each in (points, ordinary))
    assert hurried[STEPS] < 0.9 * others[STEPS]


def test_each_fault_that_may_happen_has_one_of_the_places_and_the_others_end_the_lifetime():
    """A fault that is not enabled would be drawn too seldom for what is lost to show it."""
    places, enabled, tries = 5, 0b1011, 20_000
    words, instead = group_words(MODEL), hurry_functions(MODEL, True).instead
    fault = [MODEL.actions[action].name for action, _ in words].index(MARGIN.fault)
    masks = np.zeros(len(words) + 1, np.int64)
    masks[fault] = enabled

    @njit
    def drawn(masks, starts, found):
        for run in range(len(found)):
            source = as_uint64(SEED), as_uint64(run), as_uint64(1), as_uint64(0), as_uint64(0)
            found[run, 0], found[run, 1] = instead(masks, starts, source)

    found = np.empty((tries, 2), np.int64)
    drawn(masks, NO_STARTS._replace(places=places), found)
    kinds, times_of = np.unique(found, axis=0, return_counts=True)
    each = dict(zip(map(tuple, kinds.tolist()), times_of.tolist(), strict=True))
    num = enabled.bit_count()
    assert set(each) == {*((fault, nth) for nth in range(num)), (len(words), 0)}
    for place, times in each.items():
        p = (1 if place[0] == fault else places - num) / places
        assert abs(times - tries * p) < 4.5 * (tries * p * (1 - p)) ** 0.5


def test_all_engines_make_the_same_hurried_runs():
    _, _, points = left("a quorum of one")
    job = Job(0, 1 << 41, 3000)
    expected = numba_engine.record(MODEL, points, job, SEED)
    tally = numba_engine.simulate(MODEL, points, [job], SEED)
    for engine in (jax_engine, lanes):
        assert np.array_equal(engine.record(MODEL, points, job, SEED), expected)
        assert np.array_equal(engine.simulate(MODEL, points, [job], SEED), tally)


def test_exits_without_room_count_as_lost_as_far_as_faults_allow():
    truth, memory_bytes = exact(experiment("two entries"), MEMORY).data_loss.p, MEMORY
    point, head, grown = solved_head("two entries", 3)
    solved, whole, _ = left_by(point, head, grown)
    part = whole
    while not part.left_out:
        memory_bytes = memory_bytes * 15 // 16
        _, part, points = left_by(point, head, grown, memory_bytes)
    assert whole.left_out == 0.0
    assert part.num_exits < whole.num_exits
    assert whole.leaves * (1 - 1e-9) <= part.leaves < 0.1 * solved.leaves
    low, high = part.interval(Estimator(0.9999), lost(points, 0, 100_000), 100_000, 0)
    assert low <= truth <= high


def _two_at_once(state, params):
    """Crashes that a loss takes, if each counted twice."""
    return 2 * popcount(state.up)


@pytest.mark.exhaustive
def test_a_step_that_takes_more_than_the_margin_says_is_refused():
    wrong = outside.changed("margin", margin=Margin("crash", lambda params: params.replicas, _two_at_once))
    points = pack(wrong, [outside.point(crash=0.5)])._replace(starts=NO_STARTS._replace(places=4, p=0.5))
    with pytest.raises(ModelError, match="margin: a step takes more of the faults that are needed than it says"):
        numba_engine.simulate(wrong, points, [Job(0, 0, 1_000)], SEED)
