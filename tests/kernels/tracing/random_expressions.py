"""Random expressions whose meaning is clear, and values for their leaves."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from quorisk.kernels.tracing.evaluate import Evaluation
from quorisk.kernels.tracing.folding import make
from quorisk.kernels.tracing.program import program

NUM_VALUES = 10


def columns_of(mays: Sequence[int], chance: random.Random) -> dict[int, np.ndarray]:
    """By leaf, int64 of length NUM_VALUES: only bits of `mays` are set."""
    return {i: np.array([chance.getrandbits(63) & may for _ in range(NUM_VALUES)]) for i, may in enumerate(mays)}


def random_constant(chance: random.Random) -> int:
    return chance.choice(
        [0, 1, 2, 3, 6, 63, chance.getrandbits(6), chance.getrandbits(30), -1, -chance.getrandbits(20)]
    )


def random_expression(graph: Any, leaf_nodes: list[Any], chance: random.Random, depth: int) -> Any:
    """An expression whose meaning is clear for all values of its leaves: shifts by 0 to 63, divisors above 0."""
    if depth == 0:
        return chance.choice([*leaf_nodes, random_constant(chance)])
    a, b, c = (random_expression(graph, leaf_nodes, chance, depth - 1) for _ in range(3))
    op = chance.choice(
        ["and", "or", "xor", "add", "sub", "mul", "shl", "shr", "div", "less", "equal", "unequal", "select", "when"]
        + ["not", "popcount", "deposit"]
    )
    if op in ("shl", "shr"):
        return make(op, a, make("and", b, chance.choice([1, 3, 7, 63])))
    if op == "div":
        return make(op, a, chance.choice([1, 2, 3, 6, 12, 24, 1000, make("or", make("and", b, 31), 1)]))
    if op == "not":
        return make("not", make("less", a, b))
    if op == "deposit":
        return make(op, make("and", a, 7), make("and", b, chance.choice([1, 0b100100, 0b111])))
    arguments = {"select": (a, b, c), "when": (a, b), "popcount": (a,)}
    return make(op, *arguments.get(op, (a, b)))


def evaluate(outputs: Iterable[Any], leaves: Mapping[Any, Any]) -> np.ndarray:
    """The outputs' values where the leaves, by name, have these: int64 by output and place."""
    computed = Evaluation(program(outputs, {name: row for row, name in enumerate(leaves)}))
    return computed(np.array(np.broadcast_arrays(*leaves.values()), np.int64))
