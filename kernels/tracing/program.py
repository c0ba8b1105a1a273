"""Expressions as programs: steps on numbered values, which an interpreter runs (`kernels.tracing.evaluate`).

A program of a protocol has the parameters of all configurations as leaves. `simplified` makes that of one: whatever
follows from its parameters becomes a constant, and a step of which nothing is read any more goes.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.keeping import njit_kept
from quorisk.kernels.tracing.demand import in_order
from quorisk.kernels.tracing.expressions import BOOLEAN, Node, signed
from quorisk.kernels.tracing.machine import INTEGERS

OPERATIONS = (*sorted(BOOLEAN), *INTEGERS, "shr", "div", "deposit", "popcount", "int", "when", "select")
ARGUMENTS = {"not": 1, "popcount": 1, "int": 1, "select": 3}
"""Number of arguments of operations that have not two."""
FIELDS = 5
"""Fields of a step: its operation, up to three arguments, and its result."""


class Program(NamedTuple):
    """Steps on values. The first values are the leaves, then come the constants, then the results of all steps."""

    steps: np.ndarray
    """int64, [step, field]."""
    constants: np.ndarray
    """int64."""
    results: np.ndarray
    """int64 by output, its value's number."""
    num_leaves: int

    @property
    def num_values(self) -> int:
        """Number of values."""
        return max(self.num_leaves + len(self.constants), 1 + self.steps[:, -1].max(initial=-1))


class Part(NamedTuple):
    """Bits of a value that are a leaf, counted from bit `shift`."""

    value: int
    shift: int
    width: int


def program(outputs: Iterable[Any], places: Mapping[Any, int | Part]) -> Program:
    """Makes the program of outputs; `places` gives the numbers of leaves, or the parts of values, by the leaves' names.

    Each step writes a value of its own; see `in_few_rows`.
    """
    outputs = list(outputs)
    order = in_order(outputs)
    numbers = [place if isinstance(place, int) else place.value for place in places.values()]
    parts = {node.id: places[node.args[0]] for node in order if node.op == "leaf"}
    found = {number: place for number, place in parts.items() if isinstance(place, int)}
    wanted = [arg for node in order if node.op != "leaf" for arg in node.args] + outputs
    plain = {signed(int(value)) for value in wanted if not isinstance(value, Node)}
    plain |= {each for part in parts.values() if not isinstance(part, int) for each in (part.shift, _mask(part))}
    num_leaves, constants, steps = max(numbers, default=-1) + 1, sorted(plain), list[list[int]]()
    of_constant = {value: num_leaves + i for i, value in enumerate(constants)}

    def number(value: Any) -> int:
        return found[value.id] if isinstance(value, Node) else of_constant[signed(int(value))]

    def step(operation: str, *args: int) -> int:
        result = num_leaves + len(constants) + len(steps)
        steps.append([OPERATIONS.index(operation), *args, *[0] * (3 - len(args)), result])
        return result

    for node in order:
        if node.op != "leaf":
            found[node.id] = step(node.op, *map(number, node.args))
        elif isinstance(part := parts[node.id], Part):
            found[node.id] = step("and", step("shr", part.value, of_constant[part.shift]), of_constant[_mask(part)])
    results = np.array([number(output) for output in outputs], np.int64)
    return Program(np.array(steps, np.int64).reshape(-1, FIELDS), np.array(constants, np.int64), results, num_leaves)


def _mask(part: Part) -> int:
    return (1 << part.width) - 1


def simplified(whole: Program, num_leaves: int, values: np.ndarray) -> Program:
    """Specializes a program to the values of all leaves but the first `num_leaves`, and folds constants. `values` is
    int64 by value of the whole program."""
    is_known = np.zeros(whole.num_values, bool)
    is_known[num_leaves : whole.num_leaves + len(whole.constants)] = True
    steps, results, values = whole.steps.copy(), whole.results.copy(), values.copy()
    _fold(steps, results, is_known, values)
    is_read = _last_reads(steps, results, is_known) >= 0
    steps = steps[(is_read & ~is_known)[steps[:, -1]]]
    (constants,) = np.nonzero(is_read & is_known)
    number = np.arange(len(is_known))
    number[constants] = num_leaves + np.arange(len(constants))
    number[steps[:, -1]] = num_leaves + len(constants) + np.arange(len(steps))
    steps[:, 1:] = number[steps[:, 1:]]
    return Program(steps, values[constants], number[results], num_leaves)


def in_few_rows(whole: Program) -> tuple[Program, np.ndarray]:
    """Allocates rows: returns the program with each value's row used again after its last read, and the numbers of
    the leaves that are read."""
    steps, results, first = whole.steps.copy(), whole.results.copy(), whole.num_leaves + len(whole.constants)
    last = _last_reads(steps, results, np.zeros(whole.num_values, bool))
    _use_again(steps, results, first, last.copy())
    return whole._replace(steps=steps, results=results), np.flatnonzero(last[: whole.num_leaves] >= 0)


_NAMES = "and", "or", "xor", "add", "sub", "shl", "shr", "mul", "both", "either", "differ", "select", "when", "deposit"
_AND, _OR, _XOR, _ADD, _SUB, _SHL, _SHR, _MUL, _BOTH, _EITHER, _DIFFER, _SELECT, _WHEN, _DEPOSIT = (
    OPERATIONS.index(name) for name in _NAMES
)
_ZERO = -1
"""Stands for the number of a value that is 0."""
_NUM_ARGS = np.array([ARGUMENTS.get(name, 2) for name in OPERATIONS])


@njit_kept
def _fold(steps, results, is_known, values):
    """Folds constants (`is_known`, `values`), and replaces each argument by the simplest equal value."""
    equal = np.arange(len(is_known))
    for i in range(len(steps)):
        operation, result, all_known = steps[i, 0], steps[i, 4], True
        for k in range(1, 1 + _NUM_ARGS[operation]):
            steps[i, k] = equal[steps[i, k]]
            all_known &= is_known[steps[i, k]]
        if all_known:
            is_known[result] = True
            continue
        equal[result] = _simplest(operation, steps[i], is_known, values)
        if equal[result] == _ZERO:
            equal[result], is_known[result], values[result] = result, True, 0
    for i in range(len(results)):
        results[i] = equal[results[i]]


@njit_kept
def _simplest(operation, step, is_known, values):
    """Returns the number of the simplest value equal to a step's result: an argument, the result itself, or _ZERO."""
    a, b, c = step[1], step[2], step[3]
    if operation == _SELECT:
        if is_known[a]:
            return b if values[a] != 0 else c
        return b if b == c else step[4]
    if operation == _WHEN:
        if is_known[a]:
            return b if values[a] != 0 else _ZERO
        return _ZERO if is_known[b] and values[b] == 0 else step[4]
    for this, other in ((a, b), (b, a)):
        if is_known[this] and values[this] == 0:
            if operation in (_AND, _MUL, _BOTH, _DEPOSIT):
                return _ZERO
            if operation in (_OR, _XOR, _ADD, _EITHER, _DIFFER):
                return other
            if operation in (_SUB, _SHL, _SHR) and this == b:
                return other
        elif is_known[this] and operation in (_BOTH, _EITHER):
            return other if operation == _BOTH else this
    return step[4]


@njit_kept
def _last_reads(steps, results, is_known):
    """Returns, by value, the last step that reads it for the results: their number for results, -1 if none does."""
    last = np.full(len(is_known), -1)
    for result in results:
        last[result] = len(steps)
    for i in range(len(steps) - 1, -1, -1):
        if last[steps[i, 4]] >= 0 and not is_known[steps[i, 4]]:
            for k in range(1, 1 + _NUM_ARGS[steps[i, 0]]):
                last[steps[i, k]] = max(last[steps[i, k]], i)
    return last


@njit_kept
def _use_again(steps, results, first, last):
    """Allocates rows from `first` on to the results of steps, given the last step that reads each value."""
    number, free, num_free, most = np.arange(len(last)), np.empty(len(steps), np.int64), 0, first
    for i in range(len(steps)):
        for k in range(1, 1 + _NUM_ARGS[steps[i, 0]]):
            arg = steps[i, k]
            steps[i, k] = number[arg]
            if last[arg] == i and arg >= first:
                free[num_free] = number[arg]
                num_free += 1
                last[arg] = len(steps) + 1  # once, if it is read twice
        result = steps[i, 4]
        if num_free > 0:
            num_free -= 1
            number[result] = free[num_free]
        else:
            number[result] = most
            most += 1
        steps[i, 4] = number[result]
    for i in range(len(results)):
        results[i] = number[results[i]]
