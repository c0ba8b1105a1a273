"""The exhaustive search's own machinery; what it finds is held against TLC in test_oracle."""

from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from numba import njit

from quorisk.kernels import paths
from quorisk.kernels.compiled import bind
from quorisk.kernels.packing import narrowest
from quorisk.kernels.protocols import registry
from quorisk.kernels.protocols.compaction import MODEL
from quorisk.kernels.states import expand, search, store
from quorisk.kernels.states.odds import no_odds
from tests.support import EACH_PROTOCOL, params_of


def test_states_of_equal_hash_are_told_apart_by_every_word():
    one_hash_for_all = np.uint64(0x0123456789ABCDEF)
    inner = bind(store.settle, "collide")  # for compiled code alone
    settle = njit(lambda kept, at, count: inner(kept, at, one_hash_for_all, count))
    for word in range(3):
        rows, nothing = np.zeros((9, 3), np.uint64), np.zeros(1, np.uint64)
        kept = store.Kept(rows, np.zeros(64, np.int64), narrowest(nothing))
        for place in range(4):
            rows[place + 2, word] = place + 1
            assert settle(kept, place + 2, place) == place
            assert rows[place, word] == place + 1
        for known in range(4):
            rows[5] = rows[known]
            assert settle(kept, 5, 4) == known


def by_plain_python(model, params, most):
    """The first states in the order of their discovery, and of each the place of the one that it was found from."""
    order = [model.initial(params, choice) for choice in range(model.initial_choices(params))]
    known, parents, place = set(order), [-1] * len(order), 0
    while place < len(order) < most:
        for action, instance in paths.instances(model, order[place], params):
            sent = paths.sends(model, order[place], params, paths.Step(action, instance, 0))
            for lost in reversed(list(paths.subsets(sent))):
                after = paths.after(model, order[place], params, paths.Step(action, instance, lost))
                if after not in known:
                    known.add(after)
                    order.append(after)
                    parents.append(place)
        place += 1
    return order, parents


@pytest.mark.parametrize("name", EACH_PROTOCOL)
def test_states_are_found_in_the_order_in_which_plain_python_finds_them(name, monkeypatch):
    """Be it in wide rows, or in rows as they are kept."""
    model = registry.load(name)
    params = params_of(model, **{"raft": {"max_elections": 3}}.get(name, {}))  # its smallest case has few states
    unbroken = [i for i in range(len(model.invariants)) if model.invariants[i].data_loss][:1]
    order, parents = by_plain_python(model, params, 600)
    sizes = (search.visit(model, params, 1 << 28, max_depth=depth).num_states for depth in count(1))
    max_depth = next(depth for depth, num_states in enumerate(sizes, 1) if num_states >= len(order))
    monkeypatch.setattr(expand, "_SHARE", 0.0)
    for lasting in (0, 1 << 40):
        monkeypatch.setattr(expand, "_LASTING", lasting)
        visited = search.visit(model, params, 1 << 28, wanted=unbroken, max_depth=max_depth)
        assert not visited.breaking[0, unbroken].any()
        assert visited.num_states >= len(order) > 500
        assert [visited.store.state(place) for place in range(len(order))] == order
        assert visited.parents[: len(order)].tolist() == parents


def test_steps_do_not_depend_on_rows_that_move_meanwhile():
    """The second half is expanded after all rows were written anew."""
    params = params_of(MODEL)
    visited = search.visit(MODEL, params, 1 << 26, max_depth=8)
    states, half, one_by_one = visited.store, visited.num_states // 2, cast(Any, SimpleNamespace(map=map))
    expanders = [expand.Expander(MODEL, no_odds(MODEL, params), judges=False) for _ in range(2)]
    expected = [expanders[0](states.kept, np.arange(begin, begin + half)).rows for begin in (0, half)]
    expanders[0].at_once = half
    found = iter(search._side_by_side(expanders, one_by_one, states.kept, 0, 2 * half))
    batches = [next(found)]
    layout = states.kept.layout
    states.admit(~batches[0].rows[:1], expanders[0].programs.layout, visited.num_states)
    assert states.kept.layout.num_words > layout.num_words
    batches.append(next(found))
    for batch, rows in zip(batches, expected, strict=True):
        assert np.array_equal(batch.rows, rows)
