"""Programs on rows of a layout, as a store keeps them: steps before a program make the words of a wide row from those
of a row, and steps after it the other way round. Bits that all states have in common are constants, so that most of the
program folds away.
"""

import numpy as np

from quorisk.kernels.packing import RowLayout, rotated
from quorisk.kernels.tracing.expressions import signed
from quorisk.kernels.tracing.program import OPERATIONS, Program


class _Writer:
    """Steps written before those of a program, or after them. Constant i has the number -1 - i until all are known."""

    def __init__(self, num_leaves: int, constants: np.ndarray) -> None:
        self._constants, self._steps = constants.tolist(), list[np.ndarray]()
        self.num_leaves, self.next = num_leaves, num_leaves

    def constant(self, value: int) -> int:
        self._constants.append(signed(value))
        return -len(self._constants)

    def step(self, operation: str, a: int, b: int) -> int:
        return self.steps(np.array([[OPERATIONS.index(operation), a, b, 0, self.next]]))

    def steps(self, steps: np.ndarray) -> int:
        """Adds steps, the last of which has the result that is returned."""
        self._steps.append(steps)
        self.next += len(steps)
        return self.next - 1

    def program(self, outputs: list[int]) -> Program:
        """The program of all steps, with constants in their places."""

        def number(values: np.ndarray) -> np.ndarray:
            behind = np.where(values < self.num_leaves, values, values + len(self._constants))
            return np.where(values < 0, self.num_leaves - 1 - values, behind)

        steps = np.concatenate(self._steps)
        steps[:, 1:] = number(steps[:, 1:])
        return Program(steps, np.array(self._constants, np.int64), number(np.array(outputs, np.int64)), self.num_leaves)

    def turned(self, value: int, turn: int, mask: int) -> int:
        """Bits of a value, rotated to the left, whose places are then `mask`."""
        low, parts = (1 << turn) - 1, list[int]()
        for shift, amount, bits in (("shl", turn, mask & ~low), ("shr", 64 - turn, mask & low)):
            if bits:
                moved = self.step(shift, value, self.constant(amount)) if amount else value
                parts.append(self.step("and", moved, self.constant(bits)))
        return parts[0] if len(parts) == 1 else self.step("or", *parts)


def laid_out(whole: Program, layout: RowLayout, updates: bool) -> Program:
    """The program that reads words of a row of this layout in place of those of a wide row, which are its first leaves.

    If the first outputs are words of a wide row, its `updates`, they are words of such a row too, and one more output
    is not 0 where the state does not fit the layout.
    """
    num_wide, num_words = len(layout.base), layout.num_words
    places = (
        np.searchsorted(layout.last, np.arange(len(layout.source)), "right"),
        layout.source,
        layout.vary,
        layout.turn,
    )
    pieces = list(zip(*(each.tolist() for each in places), strict=True))
    writer = _Writer(whole.num_leaves + num_words - num_wide, whole.constants)
    words = [writer.constant(int(base)) for base in layout.base]
    for word, source, vary, turn in pieces:
        varying = writer.turned(word, -turn % 64, vary)
        words[source] = writer.step("or", varying, words[source])
    other_leaves = num_words + np.arange(whole.num_leaves - num_wide)
    constants, results = -1 - np.arange(len(whole.constants)), writer.next + np.arange(len(whole.steps))
    numbers = np.concatenate([np.array(words, np.int64), other_leaves, constants, results])
    steps = whole.steps.copy()
    steps[:, 1:] = numbers[steps[:, 1:]]
    writer.steps(steps)
    outputs = numbers[whole.results].tolist()
    if not updates:
        return writer.program(outputs)
    changed = np.flatnonzero(whole.results[:num_wide] != np.arange(num_wide)).tolist()
    after, beyond = list(range(num_words)), writer.constant(0)
    for word, source, vary, turn in pieces:
        if source in changed:
            mask = rotated(vary, turn)
            others = writer.step("and", after[word], writer.constant(~mask))
            after[word] = writer.step("or", others, writer.turned(outputs[source], turn, mask))
    for i in changed:
        differing = writer.step("xor", outputs[i], writer.constant(int(layout.base[i])))
        elsewhere = writer.step("and", differing, writer.constant(int(layout.fixed[i])))
        beyond = writer.step("or", beyond, elsewhere)
    for unfit in outputs[num_wide:]:
        beyond = writer.step("or", beyond, unfit)
    return writer.program([*after, beyond])
