"""Random expressions as machine code, of one value and of lanes, and as arrays, against what they mean."""

import ctypes
import random
from typing import Any

import jax
import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir

from quorisk.kernels.engines.lanes.plan import NAME
from quorisk.kernels.ops import once
from quorisk.kernels.tracing import cpu
from quorisk.kernels.tracing.arrays import Arrays
from quorisk.kernels.tracing.demand import in_order
from quorisk.kernels.tracing.emit import Emitter
from quorisk.kernels.tracing.expressions import Node
from quorisk.kernels.tracing.folding import make, new_graph
from quorisk.kernels.tracing.machine import I64, POINTER, constant, lanes_of
from tests.kernels.tracing.random_expressions import NUM_VALUES, columns_of, evaluate, random_expression

SCALAR = (1, 64, False)
PDEP = pytest.param(
    (1, 64, True), marks=pytest.mark.skipif(not llvm.get_host_cpu_features().get("bmi2", False), reason="no pdep here")
)
ARRAYS = (0, 32, False)
"""Stands for JAX's arrays."""
SHAPES = ((8, 32, False), (16, 16, False), SCALAR, PDEP, ARRAYS)


def emitted(outputs: list[Any], shape: tuple[int, int, bool]) -> ir.Function:
    """A function from an address of leaves' values to one of the outputs', lane by lane."""
    lanes, narrowest, has_pdep = shape
    module = ir.Module("expressions")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, POINTER]), NAME)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    kind = lanes_of(I64, lanes)

    def place(array: Any, i: int) -> Any:
        return builder.gep(array, [ir.Constant(I64, i)], source_etype=kind)

    def leaf(name: Any, width: int) -> Any:
        value = builder.load(place(function.args[0], name), typ=kind, align=8)
        return value if width == 64 else builder.trunc(value, lanes_of(ir.IntType(width), lanes))

    emitter = Emitter(builder, lanes, narrowest, leaf, outputs, has_pdep)
    for i, output in enumerate(outputs):
        builder.store(emitter.get(output, 64), place(function.args[1], i), align=8)
    builder.ret_void()
    return function


def machine_code(outputs: list[Any], shape: tuple[int, int, bool]) -> Any:
    """The same to call."""
    engine, address = cpu.linked(cpu.object_code(str(emitted(outputs, shape).module)), NAME)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)
    call.engine = engine  # type: ignore[attr-defined]  # which owns the code
    return call


def as_arrays(outputs: list[Any], columns: dict[int, np.ndarray]) -> np.ndarray:
    """int64 by output and value, by JAX."""

    def of_one(leaves: dict[int, Any]) -> list[Any]:
        arrays = Arrays(outputs, leaves.__getitem__)
        return [arrays.get(output, 64) for output in outputs]

    with jax.enable_x64(True):
        return np.array(jax.vmap(of_one)(columns))


def computed(outputs: list[Any], columns: dict[int, np.ndarray], shape: tuple[int, int, bool]) -> np.ndarray:
    """int64 by output and value; lanes of machine code beyond the values repeat them."""
    if shape == ARRAYS:
        return as_arrays(outputs, columns)
    lanes, call = shape[0], machine_code(outputs, shape)
    size = -(-NUM_VALUES // lanes) * lanes
    found = np.empty((len(outputs), size), np.int64)
    for start in range(0, size, lanes):
        there = np.arange(start, start + lanes) % NUM_VALUES
        leaves = np.array([columns[name][there] for name in sorted(columns)])
        part = np.empty((len(outputs), lanes), np.int64)
        call(leaves.ctypes.data, part.ctypes.data)
        found[:, start : start + lanes] = part
    return found[:, :NUM_VALUES]


@pytest.mark.sampled(20)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(24))
def test_machine_code_computes_what_the_expressions_mean(seed, shape):
    chance = random.Random(seed)
    graph = new_graph()
    mays = [chance.getrandbits(chance.choice([1, 3, 6, 16, 24, 32, 60])) | 1 for _ in range(4)]
    nodes = [graph.leaf(i, may) for i, may in enumerate(mays)]
    outputs = [
        each for each in (random_expression(graph, nodes, chance, 4) for _ in range(12)) if isinstance(each, Node)
    ]
    columns = columns_of(mays, chance)
    order = in_order(outputs)
    meant = dict(zip((node.id for node in order), evaluate(order, columns), strict=True))
    for output, values in zip(outputs, computed(outputs, columns, shape), strict=True):
        np.testing.assert_array_equal(values, meant[output.id].astype(np.int64), output.op)


@pytest.mark.parametrize("seed", range(6))
def test_what_conditions_guard_means_the_same_within_one_another(seed):
    chance, graph, mays = random.Random(seed), new_graph(), [7, 7, 1, 0xFFFF]
    leaves = [graph.leaf(i, may) for i, may in enumerate(mays)]
    conditions, outputs = [make("less", *leaves[:2]), make("unequal", leaves[2], 0)], list[Any]()
    for _ in range(12):
        arm = once(random_expression(graph, leaves + outputs, chance, 3))
        again = random_expression(graph, [arm, *outputs, *leaves], chance, 3)
        outputs += [make("when", chance.choice(conditions), each) for each in (arm, again)]
    outputs, columns = [each for each in outputs if isinstance(each, Node)], columns_of(mays, chance)
    np.testing.assert_array_equal(computed(outputs, columns, SCALAR), evaluate(outputs, columns))


def test_what_one_condition_guards_is_skipped_by_one_branch():
    """And what is computed once comes before it, so that other conditions need not compute it again."""
    graph = new_graph()
    a, b, shared = (graph.leaf(i, 0xFF) for i in range(3))
    for factor in (7, 11, 13, 17):
        shared = make("xor", make("mul", shared, factor), make("add", shared, a))
    arms = [make("xor", make("mul", make("add", once(shared), b), i), shared) for i in (3, 5, 9)]
    guarded = [make("when", make("unequal", leaf, 0), arm) for leaf, arm in zip((a, a, b), arms, strict=True)]
    function = emitted(guarded, SCALAR)
    assert [len(function.blocks), str(function).count(" mul ")] == [5, 7]


def test_shifts_by_amounts_beyond_what_is_known_of_them_have_a_meaning():
    """As in a lane that draws another word: else LLVM makes what it likes of all flags that depend on it."""
    graph = new_graph()
    drawn, shifted = graph.leaf(0, 1, is_bool=True), make("shr", graph.leaf(1, 0xFF), graph.leaf(2, 15))
    flag = make("or", make("and", drawn, make("equal", shifted, 1)), drawn)
    module = ir.Module("shifts")
    kind = lanes_of(ir.IntType(1), 16)
    function = ir.Function(module, ir.FunctionType(kind, [kind]), NAME)
    builder = ir.IRBuilder(function.append_basic_block("entry"))

    def leaf(name: int, width: int) -> Any:
        return function.args[0] if name == 0 else constant(lanes_of(ir.IntType(width), 16), 100)

    builder.ret(Emitter(builder, 16, 16, leaf, [flag], False).flag(flag))
    assert "poison" not in str(cpu._module(str(module), soon=False))


@pytest.mark.parametrize("shape", SHAPES)
def test_quotients_are_rounded_down(shape):
    """As Python rounds: also of numbers below 0, by divisors that are known and by those that are not."""
    graph = new_graph()
    number, divisor = graph.leaf(0, (1 << 20) - 1), graph.leaf(1, 15)
    below = make("sub", number, 1 << 19)
    outputs = [make("div", below, 7), make("div", make("sub", make("and", number, 31), 16), 3)]
    outputs.append(make("div", below, make("or", divisor, 1)))
    chance = random.Random(1)
    columns = columns_of([(1 << 20) - 1, 15], chance)
    negative = columns[0] - (1 << 19)
    assert (negative < 0).any()
    meant = [negative // 7, ((columns[0] & 31) - 16) // 3, negative // (columns[1] | 1)]
    np.testing.assert_array_equal(computed(outputs, columns, shape), meant)
