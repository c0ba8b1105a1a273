"""Rows hold all that tells states apart, and no more."""

import random

import numpy as np

from quorisk.kernels.packing import narrow, narrowest, spread, unpacked, wide_row, widened
from quorisk.kernels.protocols.bookkeeper import MODEL as BOOKKEEPER
from quorisk.kernels.states import search, store
from tests.support import params_of, random_walks


def walked(params, walks):
    return [state for state, *_ in random_walks(BOOKKEEPER, params, walks, seed=3)]


def test_states_come_back_from_their_rows():
    """Each first makes room for itself: after that, all of them fit, and rows are equal only if states are."""
    states = walked(params_of(BOOKKEEPER), 40)
    wide = [wide_row(state, BOOKKEEPER.widths) for state in states]
    layout = narrowest(wide[0])
    for each in wide:
        words = layout.num_words
        layout = widened(layout, each)
        assert layout.num_words >= words  # or rows could not be written anew in their place
    rows = np.empty((len(states), layout.num_words), np.uint64)
    back = np.empty_like(wide[0])
    for row, state, each in zip(rows, states, wide, strict=True):
        assert ((each ^ layout.base) & layout.fixed == 0).all()
        narrow(each, layout, row)
        spread(row, layout, back)
        assert unpacked(back, BOOKKEEPER.widths) == state
    assert len(np.unique(rows, axis=0)) == len(set(states))
    assert 1 < layout.num_words < len(wide[0]) / 8


def test_pieces_of_a_row_do_not_overlap():
    chance = random.Random(5)
    for _ in range(20):
        layout = narrowest(np.zeros(12, np.uint64))
        masks = [chance.getrandbits(64) & chance.getrandbits(64) & chance.getrandbits(64) for _ in range(12)]
        layout = widened(layout, np.array(masks, np.uint64))
        one_by_one = []
        for word, mask in enumerate(masks):
            row, wide = np.empty(layout.num_words, np.uint64), np.zeros(12, np.uint64)
            wide[word] = mask
            narrow(wide, layout, row)
            one_by_one.append(row)
        bits = sum(mask.bit_count() for mask in masks)
        assert sum(int(each).bit_count() for row in one_by_one for each in row) == bits
        assert sum(int(each).bit_count() for each in np.bitwise_or.reduce(one_by_one)) == bits


def test_a_layout_only_grows():
    layout = narrowest(np.array([1, 2, 3], np.uint64))
    wider = widened(layout, np.array([1, 6, 3], np.uint64))
    assert (wider.fixed == widened(wider, np.array([1, 2, 3], np.uint64)).fixed).all()
    assert [~int(mask) & 0xFF for mask in wider.fixed] == [0, 4, 0]


def test_the_store_keeps_every_state_that_random_runs_come_to():
    params = params_of(BOOKKEEPER, bookies=1, write_quorum=1, ack_quorum=1)
    visited = search.visit(BOOKKEEPER, params, 1 << 28)
    assert visited.complete
    kept = {visited.store.state(place) for place in range(visited.num_states)}
    assert len(kept) == visited.num_states
    assert kept.issuperset(walked(params, 30))
    assert visited.store.state_bytes <= 8 * 4 + store.TABLE_BYTES
