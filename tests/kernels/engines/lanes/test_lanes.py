"""Kernels compiled for one configuration against the generic engine, bit by bit; `tests.validation` draws many more."""

import random

import pytest

from quorisk.analysis import bench
from quorisk.analysis.experiment import config
from quorisk.kernels.engines.lanes import build, runs, traced
from quorisk.kernels.engines.lanes.build import QUEUED
from quorisk.kernels.engines.lanes.traced import Shape
from quorisk.kernels.engines.lanes.vector import effects
from quorisk.kernels.engines.points import ALWAYS, pack, params_at
from quorisk.kernels.protocols import registry
from quorisk.kernels.tracing import assume, cpu
from quorisk.kernels.tracing.observe import observe
from quorisk.kernels.tracing.trace import Follower
from tests.kernels.engines import fuzz
from tests.kernels.engines.losing import OF_16_BITS, OF_32_BITS, RUNS, losing
from tests.support import EACH_PROTOCOL, ROOT, point_of

pytestmark = pytest.mark.usefixtures("no_kernels_at_hand")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shape", [OF_16_BITS, QUEUED])
@pytest.mark.parametrize("name", EACH_PROTOCOL)
def test_kernels_give_the_generic_engines_results(name, shape):
    model = registry.load(name)
    [(point, seed)] = fuzz.cases(model, random.Random(1), 1)
    fuzz.compare(model, point, shape, not fuzz.supports(point, False), seed, RUNS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [OF_32_BITS, OF_16_BITS, OF_32_BITS.twice(), OF_16_BITS.twice(), QUEUED])
def test_runs_that_lose_data_and_start_in_several_states(shape):
    model, point = losing()
    assert fuzz.compare(model, point, shape, True, 3, RUNS).lost > RUNS / 20
    at_times = fuzz.compare(model, point, shape, False, 3, RUNS)
    assert at_times.repeated >= at_times.lost


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", [OF_16_BITS, QUEUED])
@pytest.mark.parametrize(
    "limits", [{"horizon": 0.7, "lifetime": 0.5}, {"horizon": 0.7}, {"lifetime": 0.5}, {"max_steps": 3}]
)
def test_what_ends_a_run_besides_the_model(shape, limits):
    model = registry.load("kafka")
    point = point_of(model)._replace(**limits)
    fuzz.compare(model, point, shape, True, 4, RUNS)


def test_rates_as_far_apart_as_they_may_lie():
    model = registry.load("compaction")
    point = point_of(model, rates={"broker_crash": 1e-15, "producer": 1 / 3})
    for shape in (Shape(8, 32), QUEUED):
        fuzz.compare(model, point, shape, True, 5, RUNS)


@pytest.mark.parametrize(("shape", "worth"), [(OF_16_BITS, 1e9), (OF_16_BITS, 0.0), (QUEUED, 1e9)])
def test_bounds_that_are_far_too_narrow_change_no_result(monkeypatch, shape, worth):
    """Two runs are observed for two steps: most others are repeated by the generic engine."""
    model = registry.load("kafka")
    monkeypatch.setattr(effects, "_WORTH_A_BRANCH", worth)
    monkeypatch.setattr("quorisk.kernels.tracing.observe.MAX_ROUNDS", 2)
    monkeypatch.setattr("quorisk.kernels.tracing.observe.NUM_RUNS", 2)
    monkeypatch.setattr(runs, "BATCH_RUNS", 1000)
    compared = fuzz.compare(model, point_of(model), shape, True, 6, RUNS)
    assert 0 < compared.repeated <= RUNS


def test_leaves_that_do_not_follow_as_was_seen_change_no_result(monkeypatch):
    """A leaf is taken to be another one, so runs in which they differ are repeated."""

    def one_more(*given):
        seen = observe(*given)
        told = {place for each in seen.followers for place in each[:2]}
        flag, leaf, *_ = (i for i, may in enumerate(seen.state) if may == 1 and i not in told)
        return seen._replace(followers=(*seen.followers, Follower(leaf, flag, 1)))

    monkeypatch.setattr(traced, "observe", one_more)
    model, point = registry.load("bookkeeper"), bench.random_runs("bookkeeper").points[0].point
    compared = fuzz.compare(model, point, OF_16_BITS, True, 6, RUNS)
    assert 0 < compared.repeated < RUNS


def test_shifts_by_more_than_was_seen_change_no_result(monkeypatch):
    """Nothing is taken to be shifted at all, so runs in which something is are repeated."""
    model = registry.load("kafka")

    def no_shifts(*given):
        seen = assume.habits(*given)
        return seen._replace(farthest=[dict.fromkeys(amounts, 0) for amounts in seen.farthest])

    monkeypatch.setattr(traced, "habits", no_shifts)
    compared = fuzz.compare(model, bench.random_runs("kafka").points[0].point, OF_16_BITS, True, 6, RUNS)
    assert 0 < compared.repeated <= RUNS


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "shape"), [("bookkeeper", OF_32_BITS), ("kraft", OF_32_BITS), ("kraft", QUEUED)])
def test_conditions_that_do_not_always_hold_change_no_result(monkeypatch, name, shape):
    """Each is taken to have the value that it has more often than not, so most runs are repeated."""
    monkeypatch.setattr(assume, "_MAY_BREAK", 1e9)
    compared = fuzz.compare(registry.load(name), bench.random_runs(name).points[0].point, shape, True, 7, RUNS)
    assert RUNS / 2 < compared.repeated <= RUNS


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", [OF_32_BITS, QUEUED])
def test_one_kernel_serves_points_that_differ_in_their_losses(tmp_path, shape):
    model, small = registry.load("bookkeeper"), registry.cases("bookkeeper").small
    for loss in (1e-3, 1.0):
        assert fuzz.compare(model, point_of(model, loss, **small), shape, True, 8, RUNS).repeated < RUNS / 50
    assert len(list(tmp_path.iterdir())) == 1
    for i, loss in enumerate((0.0, 1e-18)):
        assert fuzz.compare(model, point_of(model, loss, **small), shape, True, 8, RUNS).repeated < RUNS / 50
        assert len(list(tmp_path.iterdir())) == 2 + i


@pytest.mark.sampled(1)
@pytest.mark.parametrize("worth", [0.0, 1e9])
def test_effects_skipped_where_no_lane_takes_them_are_those_of_all_at_once(monkeypatch, worth):
    monkeypatch.setattr(effects, "_WORTH_A_BRANCH", worth)
    model = registry.load("bookkeeper")
    point = point_of(model, message_loss=0.2, **registry.cases("bookkeeper").small)
    assert fuzz.compare(model, point, OF_32_BITS, True, 8, RUNS).repeated < RUNS / 50


@pytest.mark.skipif(cpu.this_cpu().register_bits < 512, reason="no AVX-512 here")
@pytest.mark.parametrize(("bits", "narrow"), [(256, Shape(16, 16)), (128, Shape(8, 16)), (256, QUEUED), (128, QUEUED)])
def test_kernels_for_a_cpu_with_narrower_registers(monkeypatch, bits, narrow):
    model, point = losing()
    codes = list[bytes]()
    monkeypatch.setattr(build, "_keep", lambda path, description, code: codes.append(code))
    with fuzz.registers_of(bits):
        assert build.shapes() == (Shape(bits // 32, 32), Shape(bits // 16, 16))
        fuzz.compare(model, point, narrow, True, 7, RUNS)
    fuzz.compare(model, point, narrow, True, 7, RUNS)
    assert codes[0] != codes[1]


def test_observation_is_the_same_each_time():
    model, point = losing()
    points = pack(model, [point])
    given = model, params_at(model, points, 0), points.weights[0, :-1].tolist(), [0.0]
    assert observe(*given) == observe(*given)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", [OF_16_BITS, QUEUED])
def test_rates_thirteen_decades_apart_leave_few_runs_to_the_generic_engine(shape):
    """Which accept what they draw, or not: the end of a lifetime among them."""
    experiment = config.load(ROOT / "configs" / "pulsar.toml")
    point = experiment.points[0].point
    weights = pack(experiment.model, [point])
    assert (weights.accepts[0] < ALWAYS).sum() > 3
    compared = fuzz.compare(experiment.model, point, shape, False, 1, RUNS)
    assert compared.repeated < RUNS / 50
