"""The steps of heads one by one: solved under other rates, backward as well as forward, and the likeliest of them."""

import heapq
import math
from typing import Any

import numpy as np
import pytest

from quorisk.kernels import paths
from quorisk.kernels.model import LOST, UNFINISHED, leaves
from quorisk.kernels.states import absorption
from quorisk.kernels.states.head import Head
from quorisk.kernels.states.likeliest import likeliest, likeliest_states
from quorisk.kernels.states.moves import Moves, lost_and_left, moves_of, reweighted
from tests.analysis.exact.chains import by_hand
from tests.kernels.engines import herds
from tests.kernels.states.test_head import MEMORY, PROBLEMS, UNBOUNDED, grown, hopes

WHOLE = 1000
"""A cost at which the heads of all problems are whole."""


def others(name):
    """A point that differs from a problem's in all that moves are reweighted by."""
    model, point = PROBLEMS[name]
    rates = {action.name: point.rates.get(action.name, 1.0) * 1.5**i for i, action in enumerate(model.actions)}
    losses = {key: p / 3 for key, p in point.other_losses.items()}
    return point._replace(rates=rates, message_loss=point.message_loss * 2, other_losses=losses)


def moves(name, cost) -> Any:
    head: Any = grown(name, cost)
    return moves_of(head, head.solve().states)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("cost", [0, 1, 2, 4, WHOLE])
def test_the_steps_of_a_head_add_up_to_it(name, cost):
    found, solved = moves(name, cost), grown(name, cost).solve()
    assert lost_and_left(found, found.chain) == pytest.approx((solved.lost, solved.leaves), rel=1e-13)
    odds = np.bincount(found.source, found.chain.p, len(found.chain.ends))
    assert np.isin(np.round(odds, 12), (0.0, 1.0)).all()


def test_it_is_told_how_far_the_listing_is_which_changes_no_step(monkeypatch):
    head: Any = grown("compaction", WHOLE)
    num, told = head.solve().states, list[tuple[int, int]]()
    at_once = moves_of(head, num)
    monkeypatch.setattr("quorisk.kernels.states.expand._MOST_STATES", 10)
    head.expand.at_once = 10
    found = moves_of(head, num, lambda *each: told.append(each))
    assert len(told) > 2
    assert told == [(place, num) for place in range(0, num, 10)]
    for one, other in zip(found[2:6], at_once[2:6], strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("cost", [1, WHOLE])
def test_a_head_under_other_rates_is_that_of_the_other_point(name, cost):
    model, other = PROBLEMS[name][0], others(name)
    found = moves(name, cost)
    lost, left = lost_and_left(found, reweighted(found, model, other))
    whole: Any = Head(model, other, MEMORY)
    while whole.grow(UNBOUNDED):
        pass
    truth = whole.solve().lost
    if cost == WHOLE:
        assert lost == pytest.approx(truth, rel=1e-12)
        assert left == 0.0
    assert lost * (1 - 1e-12) <= truth <= (lost + left) * (1 + 1e-12)


def test_a_level_that_does_not_fit_leads_outside():
    model, point = PROBLEMS["compaction"]
    head: Any = Head(model, point, MEMORY)
    while head.grow(20):
        pass
    solved = head.solve()
    assert head.is_full
    found = moves_of(head, solved.states)
    lost, left = lost_and_left(found, found.chain)
    assert (lost, left) == pytest.approx((solved.lost, solved.leaves), rel=1e-12)


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "herds"])
def test_backward_solutions_are_those_of_a_sparse_solver(name):
    """By state: heads of models without things that are alike keep the model's own states."""
    found, head = moves(name, WHOLE), grown(name, WHOLE)
    lost = absorption.hits(found.chain, found.parts, found.is_lost.astype(float))
    truth = hopes(name)
    for place in range(len(lost) - 2):
        assert lost[place] == pytest.approx(truth[leaves(head.state(place))], rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("name", PROBLEMS)
def test_forward_and_backward_solutions_say_the_same_of_a_loss(name):
    found = moves(name, 2)
    for goal in (found.is_lost, found.is_outside):
        backward = absorption.hits(found.chain, found.parts, goal.astype(float))
        forward = absorption.visits(found.chain, found.parts)[goal].sum()
        assert found.chain.initial @ backward == pytest.approx(forward, rel=1e-13)


def most_likely(model, point):
    """The largest product of odds on a path to a loss: Dijkstra's algorithm, in plain Python, on the model's states."""
    params = model.make_params(point.values)
    data_loss = sum(1 << i for i, invariant in enumerate(model.invariants) if invariant.data_loss)
    choices = model.initial_choices(params)
    queue = [(math.log(choices), leaves(state), state) for state in (model.initial(params, i) for i in range(choices))]
    done = set()
    while queue:
        cost, _, state = heapq.heappop(queue)
        if state in done:
            continue
        done.add(state)
        if paths.broken(model, state, params) & data_loss:
            return math.exp(-cost)
        flows = herds.flows(model, point, params, state)
        for after, flow in flows.items():
            heapq.heappush(queue, (cost - math.log(flow / sum(flows.values())), leaves(after), after))
    return 0.0


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_likeliest_path_is_that_of_plain_python(name):
    (model, point), head = PROBLEMS[name], grown(name, WHOLE)
    found: Any = likeliest(head, moves(name, WHOLE))
    if model.alike is None:
        assert found.p == pytest.approx(most_likely(model, point), rel=1e-12)
    params = model.make_params(point.values)
    last = paths.replay(model, params, found.path)[-1]
    assert any(not each.holds(last, params) for each in model.invariants if each.data_loss)


def test_steps_that_do_the_same_to_things_that_are_alike_are_one_on_the_likeliest_path():
    """To a state by two steps of 0.3 each, or to another one by one of 0.4; from both on with certainty."""
    chain = by_hand([{1: 0.3, 2: 0.4}, {3: 1.0}, {4: 1.0}, {}, {}], [1, 0, 0, 0, 0], [UNFINISHED] * 3 + [LOST] * 2)
    twice = chain._replace(
        first=np.array([0, 3, 4, 5, 5, 5]),
        target=np.array([1, 1, 2, 3, 4], np.int32),
        p=np.array([0.3, 0.3, 0.4, 1, 1]),
    )
    nothing = np.zeros(5, np.int8)
    steps: Any = Moves(twice, absorption.components(twice), nothing, nothing, nothing, nothing, None)  # type: ignore[arg-type]
    found: Any = likeliest_states(steps)
    assert found == ([0, 1, 3], pytest.approx(0.6))
