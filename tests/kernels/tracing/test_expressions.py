"""Expressions against plain Python, rule by rule: their values, bits, ranges and folding."""

import random
from typing import Any

import numpy as np
import pytest

from quorisk.kernels import ops
from quorisk.kernels.tracing.demand import demanded_bits, in_order, widths
from quorisk.kernels.tracing.evaluate import Columns, Evaluation, _interpreter, specialized
from quorisk.kernels.tracing.expressions import WORD, Node, signed
from quorisk.kernels.tracing.folding import make, new_graph
from quorisk.kernels.tracing.narrow import only_asked_for
from quorisk.kernels.tracing.program import program
from tests.kernels.tracing.random_expressions import NUM_VALUES, columns_of, evaluate, random_expression


def by_python(node: Any, values: dict[Any, int], known: dict[int, Any]) -> Any:
    """The value of an expression, by Python's integers."""
    if not isinstance(node, Node):
        return node
    if node.id not in known:
        known[node.id] = values[node.args[0]] if node.op == "leaf" else _python(node, values, known)
    return known[node.id]


def _python(node: Node, values: dict[Any, int], known: dict[int, Any]) -> Any:
    a, *rest = (by_python(argument, values, known) for argument in node.args)
    match node.op:
        case "not":
            return not a
        case "int":
            return int(a)
        case "select":
            return rest[0] if a else rest[1]
        case "when":
            return rest[0] if a else 0
        case "popcount":
            return (a & WORD).bit_count()
        case "deposit":
            return signed(ops.deposit(a & WORD, rest[0] & WORD))
        case "both":
            return a and rest[0]
        case "either":
            return a or rest[0]
        case "differ":
            return a != rest[0]
    folded = make(node.op, a, rest[0])  # of two constants
    return folded


@pytest.mark.parametrize("seed", range(40))
def test_an_expression_means_what_python_says_and_knows_its_bits_and_range(seed):
    chance = random.Random(seed)
    graph = new_graph()
    mays = [chance.getrandbits(chance.choice([1, 3, 6, 24, 60])) | 1 for _ in range(4)]
    nodes = [graph.leaf(i, may) for i, may in enumerate(mays)]
    outputs = [random_expression(graph, nodes, chance, 4) for _ in range(12)]
    columns = columns_of(mays, chance)
    order = in_order(outputs)
    for node, column in zip(order, evaluate(order, columns), strict=True):
        for i in range(NUM_VALUES):
            known: dict[int, Any] = {}
            value = by_python(node, {name: int(columns[name][i]) for name in columns}, known)
            assert column[i] == value, node.op
            if not node.is_bool:
                assert node.lo <= value <= node.hi, node.op
                assert node.ones & ~value & WORD == 0 == value & WORD & ~node.may, node.op


@pytest.mark.parametrize("seed", range(60))
def test_for_lanes_an_expression_is_another_one_of_the_same_value(seed):
    """The same expression, drawn with the same seed, is made by all rules, by those of lanes as well, and narrowed."""
    mays = [1, 1, 7, 0b111000111]
    columns, outputs = columns_of(mays, random.Random(seed)), []
    for graph in (new_graph(), new_graph(lanes=True)):
        nodes = [graph.leaf(i, may) for i, may in enumerate(mays)]
        chosen = [make("select", node, 7, 0) for node in nodes]
        chance = random.Random(1000 + seed)
        outputs.append([random_expression(graph, nodes + chosen, chance, 4) for _ in range(12)])
    plain, of_lanes = outputs
    expected = [column.tolist() for column in evaluate(plain, columns)]
    for others in (of_lanes, only_asked_for(of_lanes)):
        assert [column.tolist() for column in evaluate(others, columns)] == expected


def test_many_values_are_computed_as_few_are():
    graph, chance = new_graph(), random.Random(4)
    nodes = [graph.leaf(i, WORD >> 1) for i in range(3)]
    outputs = [*(random_expression(graph, nodes, chance, 3) for _ in range(8)), 5, nodes[1]]
    columns = {i: np.random.default_rng(i).integers(0, 1 << 62, 333) for i in range(3)}
    few = [evaluate(outputs, {i: column[[place]] for i, column in columns.items()}) for place in range(333)]
    assert np.array_equal(evaluate(outputs, columns), np.hstack(few))


@pytest.mark.sampled(15)
@pytest.mark.parametrize("seed", range(60))
def test_a_program_means_the_same_with_leaves_that_are_fixed_and_when_it_is_compiled(seed, monkeypatch):
    """Outputs that are leaves are left alone by an update: they hold these already."""
    monkeypatch.setattr("quorisk.kernels.tracing.evaluate._WORTH_COMPILING", 400)
    graph, chance = new_graph(), random.Random(seed)
    nodes = [graph.leaf(i, may) for i, may in enumerate([7, 1, WORD >> 1, 1, 7])]
    outputs = [*nodes[:3], *(random_expression(graph, nodes, chance, 5) for _ in range(12)), 5, nodes[1], nodes[3]]
    fixed = {3: chance.choice([0, 1]), 4: chance.choice([0, 1, 7])}
    values = np.random.default_rng(seed).integers(0, 1 << 62, (3, 300)) & np.array([[7], [1], [WORD >> 1]])
    expected = evaluate(outputs, dict(enumerate(values)) | fixed)
    written = specialized(program(outputs, {i: i for i in range(5)}), fixed)
    computed, update = Evaluation(written), Evaluation(written, num_updated=3)
    interpreter = _interpreter()
    for _ in range(3):
        assert np.array_equal(computed(values), expected)
        found = np.vstack([values[:, ::-1], np.zeros((len(outputs) - 3, 300), np.int64)])
        backwards = np.arange(299, -1, -1)
        update.write(300, Columns(values, backwards), Columns(values[3:]), Columns(found[:5]), Columns(found[5:]))
        assert np.array_equal(found[:, ::-1], expected)
    assert computed._run is not interpreter
    assert Evaluation(written)._run is computed._run


def test_what_a_configuration_never_does_folds_in_lanes():
    graph = new_graph(lanes=True)
    flag, row = graph.leaf("flag", 1), graph.leaf("row", 7)
    everybody = ops.where(flag != 0, 7, 0)
    assert make("and", (row & everybody) != 0, everybody == 0) is False
    assert ops.popcount(everybody) is ops.where(flag != 0, 3, 0)
    assert make("deposit", row, everybody) is ops.where(flag != 0, row, 0)
    assert (row + 3 == 5) is (row == 2)
    assert ((row << 1 | 1) == 5) is ((row << 1) == 4)
    assert (row ^ 5 == 4) is (row == 1)
    assert make("or", make("or", row == 2, flag == 0), row != 2) is True


def test_only_what_is_asked_for_is_left():
    graph = new_graph(lanes=True)
    rows, other = graph.leaf("rows", 0b111000111), graph.leaf("other", 0b111000111)
    (found,) = only_asked_for([(rows | (other << 3) | 0b1000) & 7])
    assert found is rows & 7


def test_bits_that_are_asked_for_by_way_of_others_are_kept():
    graph = new_graph(lanes=True)
    a, b = graph.leaf("a", 0b11), graph.leaf("b", 0b11)
    outputs = [
        (a - 2 >> 10) & (1 << 60),  # the sign, many times
        ~(a | 4) & ~(b | 4),  # that neither has bit 2 is known by both of each other
        ~(a | 4) & ~(b & 1 | 4) & 0b111,
    ]
    columns = {"a": np.repeat(np.arange(4), 4), "b": np.tile(np.arange(4), 4)}
    for found, expected in zip(evaluate(only_asked_for(outputs), columns), evaluate(outputs, columns), strict=True):
        assert found.tolist() == expected.tolist()


def test_rules_fold_what_is_settled():
    graph = new_graph()
    row = graph.leaf("row", 0b111)
    assert (row >> 3, row & 0b1000, (row << 3) & 0b111, row ^ row) == (0, 0, 0, 0)
    assert (row < 8, row > 7, row == 8, row != 9) == (True, False, False, True)
    assert (row | 0) & 7 is row
    assert ops.where(row == 1, row, row) is row
    assert ops.popcount(graph.leaf("bit", 0b100)).op == "shr"
    assert (row + 1) + 1 is row + 2
    with pytest.raises(TypeError, match="a branch on a traced value"):
        bool(row)
    with pytest.raises(TypeError, match="~ of a condition"):
        _ = ~(row == 1)
    with pytest.raises(TypeError, match="a division by a constant that is not positive"):
        _ = row // 0


def test_bits_that_nobody_asks_for_narrow_a_lane():
    graph = new_graph()
    word = graph.leaf("word", (1 << 40) - 1)
    product = word * 3
    low = product & 0xFF
    assert demanded_bits([low])[product.id] == 0xFF
    assert widths([low], 16) == {word.id: 64, product.id: 16, low.id: 16}
    assert widths([product], 16)[product.id] == 64
