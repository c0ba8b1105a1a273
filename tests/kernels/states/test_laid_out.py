"""Programs on rows of a layout: they mean what those of wide rows mean."""

import random

import numpy as np
import pytest

from quorisk.kernels.packing import narrow, narrowest, spread, wide_layout, widened
from quorisk.kernels.states.laid_out import laid_out
from quorisk.kernels.states.rows import in_layout
from quorisk.kernels.tracing.evaluate import Evaluation, specialized
from quorisk.kernels.tracing.expressions import HIGHEST, LOWEST, WORD, signed
from quorisk.kernels.tracing.folding import make, new_graph
from quorisk.kernels.tracing.program import program
from tests.kernels.tracing.random_expressions import random_expression

WIDE, MANY = 5, 200


def random_layout(chance):
    """A layout of states in which some bits vary, in all words but one."""
    layout = narrowest(np.array([chance.getrandbits(64) for _ in range(WIDE)], np.uint64))
    masks = [chance.getrandbits(64) & chance.getrandbits(64) for _ in range(WIDE - 1)]
    return widened(layout, layout.base ^ np.array([*masks, 0], np.uint64))


@pytest.mark.parametrize("seed", range(40))
def test_a_program_means_the_same_on_rows_of_a_layout(seed):
    graph, chance = new_graph(), random.Random(seed)
    layout = random_layout(chance)
    leaves = [graph.leaf(i, WORD, LOWEST, HIGHEST) for i in range(WIDE + 1)]
    updates = list(leaves[:WIDE])
    for word in (0, 2, 3):  # some bits of each, and seldom others than those that vary
        mask = signed(~int(layout.fixed[word]) & chance.getrandbits(64) | chance.choice([0, 0, 1 << 5]))
        new = make("and", random_expression(graph, leaves, chance, 3), mask)
        updates[word] = make("or", make("and", leaves[word], ~mask), new)
    doubt = make("and", leaves[WIDE], 1)
    others = [random_expression(graph, leaves, chance, 4) for _ in range(3)]
    places = {i: i for i in range(WIDE + 1)}
    asked, updating = program([*others, 7], places), program([*updates, doubt], places)

    vary = ~layout.fixed
    values = np.random.default_rng(seed)
    wide = values.integers(0, WORD, (MANY, WIDE), np.uint64, endpoint=True) & vary | layout.base
    rows = np.empty((MANY, layout.num_words), np.uint64)
    for i in range(MANY):
        narrow(wide[i], layout, rows[i])
    more = values.integers(0, 2, (1, MANY))
    of_wide, of_rows = (np.vstack([each.view(np.int64).T, more]) for each in (wide, rows))

    def computed(whole, values):
        return Evaluation(specialized(whole, {}))(values)

    assert np.array_equal(computed(laid_out(asked, layout, False), of_rows), computed(asked, of_wide))
    *after, unfit = computed(updating, of_wide)
    *found, beyond = computed(laid_out(updating, layout, True), of_rows)
    after = np.array(after).T.view(np.uint64)
    fits = ((after ^ layout.base) & layout.fixed == 0).all(axis=1) & (unfit == 0)
    assert np.array_equal(beyond == 0, fits)
    back = np.empty(WIDE, np.uint64)
    for row, expected in zip(np.array(found).T.view(np.uint64)[fits], after[fits], strict=True):
        spread(row, layout, back)
        assert np.array_equal(back, expected)


def test_rows_of_one_layout_come_back_from_another():
    chance = random.Random(1)
    one, whole = random_layout(chance), wide_layout(WIDE)
    other = widened(one, one.base ^ np.uint64(0xF0F0))
    rows = np.random.default_rng(1).integers(0, WORD, (50, WIDE), np.uint64, endpoint=True) & ~one.fixed | one.base
    for path in ([one], [one, other], [other, one]):
        found, layout = rows, whole
        for each in path:
            found, layout = in_layout(found, layout, each), each
        assert found.shape == (50, path[-1].num_words)
        assert np.array_equal(in_layout(found, layout, whole), rows)
