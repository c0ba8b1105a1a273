"""Instances that share a rate, and subsets lost with a probability of their own: the same runs on every engine."""

import math
from collections import Counter

import pytest

from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.job import RECORD, Job
from quorisk.kernels.engines.lanes.build import QUEUED
from quorisk.kernels.engines.lanes.traced import Shape
from quorisk.kernels.engines.philox import PICK, RETRY
from quorisk.kernels.engines.points import Point, pack, rates_in_force
from quorisk.kernels.engines.rerun import rerun
from quorisk.kernels.model import LOST, fault_kinds
from quorisk.kernels.rule import loss_names
from tests.kernels.engines import fuzz, herds
from tests.kernels.engines.herds import MODEL

SEED, RUNS, RERUNS = 5, 3000, 30
VALUES = {"sparse": 1, "herd": 8, "ticks": 6, "marks": 20, "max_storms": 2, "max_floods": 3}
RATES = {"wake": 3.0, "wander": 2.0, "flood": 0.7, "tick": 2.0}
LOSSES = {"p_lost_in_storm": 0.6, "p_lost_in_flood": 0.9000001}
POINT = Point(VALUES, RATES, 0.2, 10_000, math.inf, other_losses=LOSSES)
REFUSED = "refused again and again"
SELDOM = {"wake": 1e-18, "flood": 2e-18, "tick": 3e-18, "graze": 0.0, "wander": 0.0}
"""Weights of less than a unit, and nothing else once there have been all storms."""
POINTS = {
    "plain": POINT,
    "lifetime and horizon": POINT._replace(lifetime=3.0, horizon=5.0),
    REFUSED: POINT._replace(rates=SELDOM, max_steps=60),
    "few, and all are lost": POINT._replace(values=VALUES | {"sparse": 7}, other_losses={"p_lost_in_storm": 1.0}),
    "no messages are lost": POINT._replace(message_loss=0.0, other_losses={"p_lost_in_flood": 1e-3}),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", list(POINTS))
def test_all_engines_make_the_same_runs(name):
    made = fuzz.make(MODEL, POINTS[name], SEED, RUNS, [POINTS[REFUSED]])
    for i in range(RERUNS):
        again = rerun(MODEL, made.point, made.seed, made.job.first_run + i)
        assert again.record() == tuple(made.records[i].tolist())
    assert fuzz.by_jax(made).runs == RUNS
    for shape in (Shape(32, 16), QUEUED) if name == "plain" else (Shape(16, 32), Shape(32, 16), QUEUED):
        compared = fuzz.by_kernel(made, shape, True)
        assert compared.repeated < RUNS / 8 or name == REFUSED


def test_most_runs_come_to_what_is_refused():
    """Else that point would show nothing."""
    assert fuzz.share_refused(MODEL, POINTS[REFUSED], SEED, 500) > 0.5


def test_a_member_that_is_picked_otherwise_would_be_seen(monkeypatch):
    """So these comparisons can fail: the replay picks the other way round."""
    made = fuzz.make(MODEL, POINT, SEED, 20)
    monkeypatch.setattr("quorisk.kernels.engines.step.pick", lambda source: (1 << 53) - 1)
    differ = [
        rerun(MODEL, POINT, SEED, made.job.first_run + i).record() != tuple(made.records[i].tolist()) for i in range(20)
    ]
    assert sum(differ) > 10


def test_a_group_goes_off_at_its_rate_and_each_member_as_often():
    """A sole step: ten groups of six tufts, ten pens, three meadows; the one that wanders, a storm, a tick."""
    values = VALUES | {"ticks": 1, "max_storms": 1, "max_floods": 0}
    rates = {"wake": 2.0, "graze": 3.0, "storm": 5.0, "tick": 7.0}
    point = Point(values, rates, 0.5, 1, math.inf, other_losses={"p_lost_in_storm": 0.25})
    runs = 1_500
    steps = Counter[tuple[str, int]]()
    gone = Counter[int]()
    for run in range(runs):
        (step,) = rerun(MODEL, point, 8, run).path.steps
        steps[MODEL.actions[step.action].name, step.instance] += 1
        if step.action == 3:
            gone[step.lost.bit_count()] += 1
    total = 2.0 * 15 + 3.0 * 3 + 5.0 + 7.0
    for name, rate, groups, size in (("wake", 2.0, 15, 6), ("graze", 3.0, 3, 16), ("storm", 5.0, 1, 1)):
        counts = [count for (action, _), count in steps.items() if action == name]
        assert len(counts) == groups * size
        each = rate / total / size * runs
        assert sum((count - each) ** 2 / each for count in counts) < len(counts) + 5 * (2 * len(counts)) ** 0.5
        assert abs(sum(counts) - groups * rate / total * runs) < 4.5 * runs**0.5
    storms = sum(gone.values())
    for lost in range(9):
        p = math.comb(8, lost) * 0.25**lost * 0.75 ** (8 - lost)
        assert abs(gone[lost] - storms * p) < 4.5 * (storms * p) ** 0.5 + 1


def test_what_is_no_message_is_not_counted_as_one():
    """Storms and floods alone: no message is sent, and none is lost."""
    rates = {"wake": 0.0, "graze": 0.0}
    records = numba_engine.record(MODEL, pack(MODEL, [POINT._replace(rates=rates)]), Job(0, 0, 500), SEED)
    columns = dict(zip(RECORD, records.T, strict=True))
    assert not columns["messages"].any()
    assert fault_kinds(MODEL) == ("lost message", "storm", "flood")
    assert not (columns["met_mask"] & 1).any()
    assert (columns["met_mask"] & 0b110 == 0b110).any()
    assert (columns["outcome"] == LOST).mean() > 0.5


def test_a_rate_plays_no_part_where_what_its_action_needs_is_off():
    """The weights of all others are what they were, however far apart rates lie."""
    values = VALUES | {"max_storms": 0}
    rates = {"wake": 1e-15, "storm": 1e3}
    point = Point(values, rates, 0.2, 10_000, math.inf)
    assert rates_in_force(MODEL, point)["storm"] == 0.0
    packed = pack(MODEL, [point, point._replace(rates=rates | {"storm": 0.0}), point._replace(values=VALUES)])
    assert (packed.weights[0] == packed.weights[1]).all()
    assert (packed.accepts[0] == packed.accepts[1]).all()
    assert (packed.weights[0] != packed.weights[2]).any()
    assert packed.losses.shape == (3, len(loss_names(MODEL)))


def test_blocks_of_draws_do_not_meet():
    """That of a member comes after those of all messages that a step may send, and before those of the next attempt."""
    assert 2 + 63 // 2 < PICK < RETRY
    assert herds.MODEL.max_sends <= 63
