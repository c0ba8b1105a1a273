"""Heads of small problems, held against their chains: what is inside, what leaves, and from where it goes on."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import spsolve

from quorisk.kernels import paths
from quorisk.kernels.engines.points import Point
from quorisk.kernels.model import LOST, leaves
from quorisk.kernels.protocols.compaction import MODEL as COMPACTION
from quorisk.kernels.states import absorption, chain, head, store
from quorisk.kernels.states.exits import exits_of
from tests.external import retransmission, tandem
from tests.kernels.engines import herds
from tests.support import point_of

MEMORY = 1 << 28
UNBOUNDED = 10**12
GONE = {"p_lost_in_storm": 0.04, "p_lost_in_flood": 0.6}
PROBLEMS = {
    "tandem": (tandem.MODEL, Point({"capacity": 6}, {"arrive": 0.05}, 0.0, 10**6, math.inf)),
    "retransmission": (
        retransmission.MODEL,
        Point({"frames": 1, "max_retries": 2}, retransmission.RATES, retransmission.FRAME_LOSS, 10**6, math.inf),
    ),
    "compaction": (
        COMPACTION,
        point_of(
            COMPACTION,
            rates={"broker_crash": 1e-3, "compactor_phase_two_write": 1e-2},
            persist_cursor_before_delete=False,
        ),
    ),
    "herds": (
        herds.MODEL,
        Point(
            herds.FEW,
            {"tick": 9.0},
            0.03,
            10**6,
            math.inf,
            other_losses=GONE,
        ),
    ),
}


@cache
def hopes(name):
    """By state (its integers), the probability that a run from it loses data: in plain Python, and a sparse solver."""
    model, point = PROBLEMS[name]
    params = model.make_params(point.values)
    data_loss = sum(1 << i for i, invariant in enumerate(model.invariants) if invariant.data_loss)
    states = [model.initial(params, choice) for choice in range(model.initial_choices(params))]
    places = {state: place for place, state in enumerate(states)}
    odds: dict[tuple[int, int], float] = {}
    ends: list[bool] = []
    for here, state in enumerate(states):
        ends.append(paths.broken(model, state, params) & data_loss != 0)
        flows = {} if ends[-1] else herds.flows(model, point, params, state)
        for after, flow in flows.items():
            if after not in places:
                places[after] = len(states)
                states.append(after)
            odds[here, places[after]] = flow / sum(flows.values())
    rows, columns = np.array(list(odds)).T
    matrix = csr_array((list(odds.values()), (rows, columns)), (len(states), len(states)))
    found = spsolve((eye_array(len(states)) - matrix).tocsc(), np.array(ends, float))
    return {leaves(state): p for state, p in zip(states, found, strict=True)}


@cache
def grown(name, cost):
    model, point = PROBLEMS[name]
    found = head.Head(model, point, MEMORY)
    while found.next_cost <= cost and found.grow(UNBOUNDED):
        pass
    return found


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("cost", [-1, 0, 1, 2, 4])
def test_what_is_inside_and_what_goes_on_from_the_exits_is_the_whole(name, cost):
    """L + the sum of flows x P(loss from there) = P(loss), whatever the head."""
    _check(name, grown(name, cost))


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("most_transitions", [10, 20])
def test_a_level_that_does_not_fit_is_left_unfinished(name, most_transitions, monkeypatch):
    monkeypatch.setattr(head, "SLICE", 3)
    model, point = PROBLEMS[name]
    found = head.Head(model, point, MEMORY)
    while found.grow(most_transitions):
        pass
    assert found.is_full
    assert found.transitions < 4 * most_transitions
    _check(name, found)


def _check(name, found):
    solved = found.solve()
    exits = exits_of(found, solved, MEMORY)
    values = hopes(name)
    model, point = PROBLEMS[name]
    states = [leaves(exits.state(place, model.widths)) for place in range(len(exits.rows))]
    tail = math.fsum(flow * values[state] for state, flow in zip(states, exits.flows, strict=True))
    params = model.make_params(point.values)
    choices = range(model.initial_choices(params))
    p = np.mean([values[leaves(model.initial(params, choice))] for choice in choices])
    assert solved.lost + tail == pytest.approx(p, rel=1e-9)
    assert p > 0.0
    assert math.fsum(exits.flows) == pytest.approx(solved.leaves, rel=1e-12)
    assert exits.left_out == 0.0
    assert 0.0 <= solved.lost <= 1.0 - solved.leaves + 1e-12
    assert (np.diff(exits.flows) <= 0.0).all()
    assert len(set(states)) == len(states)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_head_that_nothing_leaves_is_the_chain(name):
    found = grown(name, head.NEVER - 1)
    solved = found.solve()
    whole = chain.build_chain(*PROBLEMS[name], MEMORY)
    visits = absorption.visits(whole, absorption.components(whole))
    assert solved.complete
    assert (solved.states, solved.leaves) == (len(whole.ends), 0.0)
    assert solved.lost == pytest.approx(visits[whole.ends == LOST].sum(), rel=1e-12)


def test_heads_nest():
    solved = [grown("compaction", cost).solve() for cost in range(6)]
    assert [each.lost for each in solved] == sorted(each.lost for each in solved)
    assert [each.leaves for each in solved] == sorted((each.leaves for each in solved), reverse=True)
    assert solved[0].leaves > solved[5].leaves


@pytest.mark.parametrize("times", [0, 1, 2, 4])
def test_a_state_that_was_begun_as_room_ran_out_was_not_begun(times, monkeypatch):
    """With a lifetime: all that leaves such a state is outside, and runs end for certain, as `solve` checks."""
    admit, wider = store.Store.admit, []

    def no_room(self, rows, layout, count):
        before = self.kept.layout
        status, rows = admit(self, rows, layout, count)
        wider.extend([status] * (self.kept.layout is not before))
        return store.FULL if len(wider) > times else status, rows

    monkeypatch.setattr(store.Store, "admit", no_room)
    model, point = PROBLEMS["compaction"]
    found = head.Head(model, point._replace(lifetime=10.0), MEMORY)
    while found.grow(UNBOUNDED):
        pass
    assert len(wider) == times + 1
    solved = found.solve()
    assert solved
    assert 0.0 < solved.leaves <= 1.0
