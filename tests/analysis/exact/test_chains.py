"""Chains: what they are, how they are written to files, and what `exact` proves and refuses."""

import math

import numpy as np
import pytest

from quorisk.analysis.exact import answers, exact
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import COMPLETED, LOST, OUTCOMES, UNFINISHED
from quorisk.kernels.states import absorption, chain, store
from tests.analysis.exact.chains import (
    BOOKKEEPER,
    CHECKED,
    KAFKA,
    MEMORY,
    by_hand,
    experiment,
    external_point,
    named,
    solved,
)
from tests.external import herman, tandem
from tests.support import point_of

# What a chain is


@pytest.mark.parametrize(("model", "point"), CHECKED, ids=lambda v: getattr(v, "name", ""))
def test_chains_are_well_formed(model, point):
    found = chain.build_chain(model, point, MEMORY)
    goes_on = found.ends == UNFINISHED
    sums = np.add.reduceat(np.append(found.p, 0.0), found.first[:-1]) * (np.diff(found.first) > 0)
    assert np.abs(sums - goes_on).max() < 1e-14
    assert (found.p > 0.0).all()
    assert ((found.total_rate > 0.0) | ~goes_on).all()
    pairs = np.repeat(np.arange(len(goes_on)), np.diff(found.first)) * len(goes_on) + found.target
    assert len(np.unique(pairs)) == len(pairs)
    assert found.initial.sum() == pytest.approx(1.0, rel=1e-14)
    assert (found.initial > 0.0).sum() == model.initial_choices(model.make_params(point.values))


@pytest.mark.parametrize(("loss", "fewer"), [(0.0, True), (0.1, False), (1.0, True)])
def test_what_cannot_happen_is_not_followed(loss, fewer):
    states = len(chain.build_chain(BOOKKEEPER, point_of(BOOKKEEPER, loss, **named(2, 2, 1, 1, 1, 1)), MEMORY).ends)
    everything = len(chain.build_chain(BOOKKEEPER, point_of(BOOKKEEPER, 0.5, **named(2, 2, 1, 1, 1, 1)), MEMORY).ends)
    assert (states < everything) == fewer


def test_ways_to_the_same_state_are_one_transition():
    """Every move comes twice, by two actions of rates 1 and 3: the same chain, four times as fast."""
    move = herman.MODEL.actions[0]
    twice = herman.MODEL._replace(name="herman_twice", actions=(move, move._replace(name="again")))
    once = chain.build_chain(herman.MODEL, external_point({}, {}, herman.MESSAGE_LOSS), MEMORY)
    found = chain.build_chain(twice, external_point({}, {"again": 3.0}, herman.MESSAGE_LOSS), MEMORY)
    assert (found.first == once.first).all()
    assert (found.target == once.target).all()
    assert found.p == pytest.approx(once.p, rel=1e-15)
    assert (found.total_rate == 4.0 * once.total_rate).all()


def test_model_time_is_in_the_unit_of_the_rates():
    rates = {name: 1000.0 * rate for name, rate in tandem.RATES.items()}
    *_, slow = solved(tandem.MODEL, external_point({"capacity": 4}, tandem.RATES, 0.0), times=[1.0])
    *_, fast = solved(tandem.MODEL, external_point({"capacity": 4}, rates, 0.0), times=[0.001])
    assert fast.expected_time == pytest.approx(slow.expected_time / 1000.0, rel=1e-12)
    assert fast.p_by_time[0.001] == pytest.approx(slow.p_by_time[1.0], rel=1e-12)
    assert fast.expected_steps == pytest.approx(slow.expected_steps, rel=1e-12)


def test_components_come_before_those_that_lead_to_them():
    found = chain.build_chain(*CHECKED[2], MEMORY)
    parts = absorption.components(found)
    assert sorted(parts.states.tolist()) == list(range(len(found.ends)))
    of = np.empty(len(found.ends), np.int64)
    of[parts.states] = np.repeat(np.arange(len(parts.first) - 1), np.diff(parts.first))
    source = np.repeat(np.arange(len(found.ends)), np.diff(found.first))
    assert (of[found.target] <= of[source]).all()
    assert parts.largest == 2


def test_runs_that_never_end_are_unfinished():
    rows = [{1: 0.25, 3: 0.75}, {2: 1.0}, {1: 1.0}, {}]
    found = by_hand(rows, [1.0, 0.0, 0.0, 0.0], [UNFINISHED] * 3 + [COMPLETED])
    ours = answers.solve_chain(found, absorption.components(found), herman.MODEL, [], [])
    assert ours.outcomes == {"completed": 0.75, "stuck": 0.0, "lost": 0.0, "horizon": 0.0, "unfinished": 0.25}
    assert math.isinf(ours.expected_steps)
    assert math.isinf(ours.expected_time)


def test_rounding_makes_no_probability_larger_than_1():
    ends = by_hand([{}] * 4, [0.2, 0.4, 0.3, 0.1], [LOST] * 4)
    assert ends.initial.sum() > 1.0
    ours = answers.solve_chain(ends, absorption.components(ends), herman.MODEL, [5], [2.0])
    found = ours.data_loss, ours.invariants["HasToken"], ours.outcomes["lost"], ours.p_by_steps[5], ours.p_by_time[2.0]
    assert found == (1.0,) * 5


def test_states_and_transitions_together_stay_within_the_memory():
    point = point_of(KAFKA, replicas=3, truncation="kip320")
    found = chain.build_chain(KAFKA, point, MEMORY)
    state_bytes = 8 + store.TABLE_BYTES + chain.STATE_BYTES  # of a state that is told apart by one word
    needed = state_bytes * len(found.ends) + chain.TRANSITION_BYTES * len(found.p)
    with pytest.raises(
        chain.ChainError, match=r"the first \d{3},\d{3} states and 1,\d{3},\d{3} transitions fill \d+ MiB"
    ):
        chain.build_chain(KAFKA, point, int(0.9 * needed))


def test_no_memory_is_so_large_that_states_outnumber_their_numbers(monkeypatch):
    """Places are int32, and so is what elimination counts up to one beyond the number of states."""
    assert np.iinfo(np.int32).max == chain.MOST_STATES + 1
    monkeypatch.setattr(chain, "MOST_STATES", 20_000)
    with pytest.raises(chain.ChainError, match=r"^the first 3,\d{3} states and .* fill 1,024 MiB, and there are more"):
        chain.build_chain(BOOKKEEPER, point_of(BOOKKEEPER), MEMORY)


# The function behind the command


def test_a_run_that_takes_no_step_ends_where_it_starts():
    """With a rate of 0 for all that may happen, and without a warning of NumPy's on the way."""
    with np.errstate(all="raise"):
        found = exact.exact(experiment(rates={"client_creates_ledger": 0.0}), MEMORY, times=(1.0,))
    assert (found.states, found.expected_steps, found.expected_time, found.p_by_time) == (1, 0.0, 0.0, {1.0: 0.0})
    assert found.outcomes["stuck"] + found.outcomes["completed"] == 1.0


def test_zero_is_proved_where_no_state_breaks_it():
    found = exact.exact(experiment(), MEMORY)
    assert found.data_loss == exact.Certain(0.0, True)
    assert all(certain == exact.Certain(0.0, True) for certain in found.invariants.values())
    broken = exact.exact(experiment(variant={"defer_recovery_ensemble_change": False}), MEMORY)
    readable, survive = (broken.invariants[name] for name in ("AllAckedEntriesAreReadable", "AckedEntriesSurvive"))
    assert broken.data_loss == survive  # which also counts the entries of a writer that is gone
    assert 0.0 < readable.p < survive.p
    assert not broken.data_loss.proved_zero
    assert set(broken.outcomes) == set(OUTCOMES)


@pytest.mark.parametrize(
    ("asked", "memory", "says"),
    [
        ({"model": {"bookies": 4, "entries": 2}}, 8 << 20, r"memory: .* states so far fill .* `quorisk estimate`"),
        ({}, 1 << 20, r"memory: the initial state and its successors need \d+\.\d MiB; give it more memory"),
        ({"run": {"horizon": 5.0}}, MEMORY, r"run\.horizon = 5: .* by time 5"),
        ({"run": {"lifetime": 5.0, "at_any_time": True}}, MEMORY, r"run\.at_any_time = true: false, because"),
    ],
    ids=["states", "start", "horizon", "lifetime"],
)
def test_what_cannot_be_solved_is_refused_in_one_line(asked, memory, says):
    with pytest.raises(ConfigError, match=says) as error:
        exact.exact(experiment(**asked), memory)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("steps", "times", "says"),
    [
        ((), (1.0, -1.0), "by_time -1.0: a time, 0 or more"),
        ((), (math.inf,), "by_time inf: a time, 0 or more"),
        ((), (math.nan,), "by_time nan: a time, 0 or more"),
        ((3, -1), (), "by_steps -1: a whole number of steps, 0 or more"),
    ],
)
def test_what_is_no_time_or_number_of_steps_is_refused_at_once(steps, times, says):
    with pytest.raises(ConfigError, match=says) as error:
        exact.exact(experiment(), MEMORY, steps, times)
    assert "\n" not in str(error.value)


def test_large_cycles_are_refused(monkeypatch):
    monkeypatch.setattr(exact, "MAX_COMPONENT", 1)
    model = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
    with pytest.raises(ConfigError, match="back and forth among 2 states"):
        exact.exact(experiment("kafka", 0.0, model=model), MEMORY)
