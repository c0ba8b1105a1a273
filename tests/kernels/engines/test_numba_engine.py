"""The Numba engine's promises: a run depends on (seed, index) alone; rates, losses and limits mean what they say."""

import math
from fractions import Fraction

import numpy as np
import pytest

from quorisk.kernels import emitted, stepper
from quorisk.kernels.engines import numba_engine, points, tally
from quorisk.kernels.engines.job import RECORD, Job
from quorisk.kernels.engines.numba_run import batch_function
from quorisk.kernels.model import num_words
from quorisk.kernels.protocols.bookkeeper import MODEL
from tests.support import point_of, run

POINTS = (
    point_of(MODEL, 0.1, fence_recovery_reads=False),
    point_of(MODEL, 0.3, {"client_closes_ledger_success": 0.25}, bookies=3, write_quorum=3, clients=3),
    point_of(MODEL, 0.0, bookies=4, write_quorum=2, ack_quorum=1, entries=3, inflight=2, recovery_lac_floor=False),
)
SEED = 2**63 + 12345
RUNS = 40_000  # more than one chunk


@pytest.fixture(scope="module")
def alone():
    """Each point simulated on its own, in one job."""
    return np.array([numba_engine.simulate(MODEL, points.pack(MODEL, [p]), [Job(0, 0, RUNS)], SEED)[0] for p in POINTS])


def test_a_batch_that_mixes_points_equals_each_alone_for_any_number_of_threads(alone):
    jobs = [Job(2, 0, RUNS), Job(0, 0, RUNS), Job(1, 0, RUNS)]
    for threads in (1, 2):
        mixed = numba_engine.simulate(MODEL, points.pack(MODEL, POINTS), jobs, SEED, threads)
        assert (mixed == alone[[2, 0, 1]]).all()
    assert len({tuple(row) for row in alone.tolist()}) == len(POINTS)


def test_run_ranges_add_up(alone):
    jobs = [Job(1, 0, 7), Job(1, 7, 20_000), Job(1, 20_007, RUNS - 20_007)]
    parts = numba_engine.simulate(MODEL, points.pack(MODEL, POINTS), jobs, SEED)
    assert (parts.sum(0) == alone[1]).all()
    assert not (numba_engine.simulate(MODEL, points.pack(MODEL, POINTS), [Job(1, 1, RUNS)], SEED) == alone[1]).all()


def test_records_are_what_the_tally_adds_up(alone):
    records = numba_engine.record(MODEL, points.pack(MODEL, POINTS), Job(0, 0, RUNS), SEED)
    columns = dict(zip(RECORD, records.T, strict=True))
    sums = tally.named_tally(MODEL, alone[0])
    assert sums.runs == RUNS
    assert list(sums.outcomes.values()) == np.bincount(columns["outcome"], minlength=5).tolist()
    assert (sums.steps, sums.messages) == (columns["steps"].sum(), columns["messages"].sum())
    assert sums.steps_squared == (columns["steps"] ** 2).sum()
    assert list(sums.broken.values()) == [(columns["broken_mask"] >> i & 1).sum() for i in range(len(MODEL.invariants))]
    bins = np.floor(np.log2(np.maximum(columns["steps"], 0.5))).astype(int) + 1
    assert sums.step_histogram == np.bincount(bins, minlength=tally.STEP_BINS).tolist()


def test_progress_counts_every_run():
    seen: list[int] = []
    numba_engine.simulate(MODEL, points.pack(MODEL, POINTS), [Job(0, 0, RUNS), Job(1, 5, 3)], SEED, 2, seen.append)
    assert sum(seen) == RUNS + 3
    assert len(seen) > 2


def test_a_rate_of_zero_switches_an_action_off():
    """Nobody closes or recovers: every run ends with an OPEN ledger, which is stuck."""
    off = {"client_closes_ledger_success": 0.0, "client_starts_recovery": 0.0}
    ended = run(MODEL, point_of(MODEL, 0.1, off), 2000)
    assert ended.outcomes == {"completed": 0, "stuck": 2000, "lost": 0, "horizon": 0, "unfinished": 0}


def test_rates_set_how_often_an_action_is_taken():
    """One client, nothing but creating, closing (rate 3) and adding (rate 1): a quarter of the runs add."""
    rates = {"client_closes_ledger_success": 3.0}
    ended = run(MODEL, point_of(MODEL, 0.0, rates, clients=1), 40_000)
    added = 1 - ended.step_histogram[2] / ended.runs  # 2 or 3 steps: created, closed
    assert abs(added - 0.25) < 4.5 * (0.25 * 0.75 / ended.runs) ** 0.5


@pytest.mark.parametrize("rate", [1e-12, 3.7e-9, 1e-17, 1 / 3, 1e-300])
def test_small_rates_are_kept_exactly_or_refused(rate):
    if rate < 1e-100:
        with pytest.raises(points.RateError, match=r"less than one part in 2e\+21 of all rates together"):
            points.scale_rates(MODEL, {"client_creates_ledger": rate})
        return
    weights, accepts, unit = points.scale_rates(MODEL, {"client_creates_ledger": rate}, lifetime=10.0)
    kept = [weight * Fraction(accept, points.ALWAYS) for weight, accept in zip(weights, accepts, strict=True)]
    by_name = dict(zip([*(a.name for a in MODEL.actions), "end"], kept, strict=True))
    assert abs(by_name["client_creates_ledger"] / by_name["client_starts_recovery"] / Fraction(rate) - 1) < 1e-9
    assert by_name["client_starts_recovery"] == unit
    assert abs(by_name["end"] / unit * 10 - 1) < 1e-9
    words = (*num_words(MODEL), 1 / 63)
    assert sum(weight * 63 * num for weight, num in zip(weights, words, strict=True)) < 2**62


def test_rates_with_a_common_unit_are_in_exact_proportion():
    weights, accepts, unit = points.scale_rates(MODEL, {"client_creates_ledger": 1e-12, "client_starts_recovery": 2.5})
    assert set(weights) == {1, 10**12, 25 * 10**11, 0}
    assert (int(unit), weights[-1]) == (10**12, 0)
    assert set(accepts) == {points.ALWAYS}


def test_points_that_share_their_mappings_are_packed_as_those_that_do_not():
    one, other = point_of(MODEL, 0.1, {"client_creates_ledger": 0.3}), point_of(MODEL, 0.2, clients=1)
    all_of_them = [one, other, one._replace(lifetime=5.0), one._replace(rates=other.rates), one._replace(max_steps=3)]
    alone = [points.pack(MODEL, [each]) for each in all_of_them]
    packed = points.pack(MODEL, all_of_them)
    for name in points.Points._fields[:-1]:
        assert np.array_equal(getattr(packed, name), np.concatenate([getattr(each, name) for each in alone])), name


def test_a_probability_of_1e_12_is_kept():
    packed = points.pack(MODEL, [point_of(MODEL, loss) for loss in (0.0, 1e-12, 1.0)])
    assert packed.losses[::2, 0].tolist() == [0, 2**63]
    assert abs(packed.losses[1, 0] * points.LOSS_UNIT / 1e-12 - 1) < 1e-6


def test_max_steps_and_horizon_cut_runs_off():
    cut = run(MODEL, point_of(MODEL, 0.1, max_steps=3), 5000)
    assert cut.outcomes["unfinished"] > 0
    assert cut.step_histogram[3] == 0  # nobody took 4 steps or more
    late = run(MODEL, point_of(MODEL, 0.1, horizon=0.5), 5000)
    assert 0 < late.outcomes["horizon"] < 5000
    assert run(MODEL, point_of(MODEL, 0.1, horizon=1e9), 5000).outcomes["horizon"] == 0


def test_model_time_is_exponential():
    """Creating the ledger is the only first step, two instances of rate 5: no run passes the horizon before it with
    probability exp(-10 t)."""
    rates = {"client_creates_ledger": 5.0}
    runs = 40_000
    for horizon in (0.02, 0.1, 0.3):
        limited = run(MODEL, point_of(MODEL, 0.1, rates, horizon=horizon), runs)
        p = math.exp(-10 * horizon)
        assert abs(limited.step_histogram[0] / runs - p) < 4.5 * (p * (1 - p) / runs) ** 0.5


def test_time_to_loss_is_summed_and_binned_over_lost_runs_alone():
    rates = {"client_closes_ledger_success": 0.05, "client_closes_ledger_fail": 0.05}
    point = point_of(MODEL, 0.2, rates, bookies=1, write_quorum=1, ack_quorum=1, fence_unknown_ledger=False)
    sums = run(MODEL, point, 20_000)
    records = numba_engine.record(MODEL, points.pack(MODEL, [point]), Job(0, 0, 20_000), 1)
    ticks = [tally.ticks(*record[-2:]) for record in records[records[:, 0] == 2].tolist()]
    assert len(ticks) == sums.outcomes["lost"] > 100
    assert sums.loss_time_ticks == sum(ticks)
    assert (
        sums.loss_steps
        == records[records[:, 0] == 2, RECORD.index("steps")].sum()
        == sums.first_steps["NoDivergenceBetweenClientAndMetaData"]
    )
    assert sums.loss_time_histogram == np.bincount([t.bit_length() for t in ticks], minlength=tally.TIME_BINS).tolist()


def test_a_protocol_is_traced_only_where_code_is_made_of_it(monkeypatch):
    for module in (emitted, stepper):
        monkeypatch.setattr(module, "general", None)
    stepper.stepper.__wrapped__(MODEL)
    assert batch_function.__wrapped__(MODEL).signatures == []
