"""The exhaustive search's own machinery; what it finds is held against TLC in test_oracle."""

import numpy as np
import pytest
from numba import njit

from quorisk.kernels.compiled import bind
from quorisk.kernels.ops import jitable
from quorisk.kernels.protocols.compaction import MODEL
from quorisk.kernels.states import search, store
from tests.support import params_of


@jitable
def one_hash_for_all(row):
    return np.uint64(0x0123456789ABCDEF)


@pytest.mark.parametrize("word", [0, 1, 2])
def test_states_of_equal_hash_are_told_apart_by_every_word(word):
    inner = bind(store._insert, "collide", hash_words=one_hash_for_all)  # for compiled code alone
    insert = njit(lambda states, table, place: inner(states, table, place))
    states, table = np.zeros((9, 3), np.uint64), np.zeros(64, np.int64)
    for place in range(4):
        states[place, word] = place + 1
        assert insert(states, table, place) == place
    for known in range(4):
        states[4] = states[known]
        assert insert(states, table, 4) == known


def test_an_incomplete_search_counts_what_it_found_and_says_so():
    params = params_of(MODEL, messages=3, keys=2)
    whole = search.explore(MODEL, params, 1 << 30)
    part = search.explore(MODEL, params, 3 << 20)
    assert (whole.complete, part.complete) == (True, False)
    assert 0 < part.distinct_states < whole.distinct_states
    assert part.depth <= whole.depth
    assert sum(part.action_counts.values()) == part.generated_states - 1


@pytest.mark.parametrize(
    ("given", "who"), [({}, "the initial state and its"), ({"model_producer": False}, "16 initial states and their")]
)
def test_a_search_that_cannot_begin_says_what_it_needs(given, who):
    with pytest.raises(search.SearchError, match=rf"^{who} successors need 0\.9 MiB$"):
        search.explore(MODEL, params_of(MODEL, **given), 1 << 10)


def test_progress_tells_states_and_depth():
    seen = []
    found = search.explore(MODEL, params_of(MODEL), 1 << 30, lambda states, depth: seen.append((states, depth)))
    assert seen[-1] == (found.distinct_states, found.depth)
    assert seen == sorted(seen)
