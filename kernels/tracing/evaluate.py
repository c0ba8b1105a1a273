"""Expressions computed by NumPy, for many values of their leaves at once."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from quorisk.kernels.tracing.demand import in_order
from quorisk.kernels.tracing.expressions import Node


class Evaluation:
    """Outputs that can be computed any number of times."""

    def __init__(self, outputs: Iterable[Any]) -> None:
        self.outputs = list(outputs)
        nodes = in_order(self.outputs)
        places = {node.id: place for place, node in enumerate(nodes)}
        self._leaves = [(place, node.args[0]) for place, node in enumerate(nodes) if node.op == "leaf"]
        self._steps = [
            (place, _COMPUTED[node.op], [(places[a.id], None) if isinstance(a, Node) else (-1, a) for a in node.args])
            for place, node in enumerate(nodes)
            if node.op != "leaf"
        ]
        self._results = [places[output.id] if isinstance(output, Node) else -1 for output in self.outputs]
        self._num = len(nodes)

    def __call__(self, leaves: Mapping[Any, np.ndarray]) -> list[Any]:
        """The outputs' values where the leaves, by name, have these (int64, of one shape). Constants stay constants."""
        values: list[Any] = [None] * self._num
        for place, name in self._leaves:
            values[place] = leaves[name]
        with np.errstate(over="ignore", divide="ignore"):
            for place, compute, args in self._steps:
                values[place] = compute(*[value if at < 0 else values[at] for at, value in args])
        return [output if at < 0 else values[at] for output, at in zip(self.outputs, self._results, strict=True)]


def _shifted(shift: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A shift whose result is arbitrary where the amount has no meaning."""
    return lambda a, b: shift(a, b & 63)


def _deposit(spread: Any, mask: Any) -> Any:
    result, below = np.zeros(np.broadcast(spread, mask).shape, np.int64), 0
    for place in range(64):
        is_set = mask >> place & 1
        result |= (is_set & (spread >> below)) << place
        below = np.minimum(below + is_set, 63)
    return result


_COMPUTED: dict[str, Callable[..., Any]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "shl": _shifted(np.left_shift),
    "shr": _shifted(np.right_shift),
    "div": np.floor_divide,
    "less": np.less,
    "equal": np.equal,
    "unequal": np.not_equal,
    "both": np.logical_and,
    "either": np.logical_or,
    "differ": np.not_equal,
    "not": np.logical_not,
    "int": lambda a: a.astype(np.int64),
    "select": np.where,
    "when": lambda chosen, guarded: np.where(chosen, guarded, 0),
    "popcount": lambda a: np.bitwise_count(a.view(np.uint64)).astype(np.int64),
    "deposit": _deposit,
}
